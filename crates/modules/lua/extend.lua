-- Tarantool's additions to the libraries of Lua.
local ffi = require('ffi')

local function bad(place, name, expected, got)
    error(("bad argument #%d to '%s' (%s expected, got %s)"):format(place, name, expected, got), 3)
end

local function check_text(value, place, name)
    if type(value) ~= 'string' then
        error(("bad argument #%d to '%s' (string expected, got %s)"):format(
            place, name, type(value)), 3)
    end
end

-- string ------------------------------------------------------------------------------------------

local function split_by_space(text, most)
    local parts, from = {}, 1
    while true do
        local start, stop = text:find('%S+', from)
        if start == nil then
            return parts
        end
        if #parts == most then
            parts[#parts + 1] = text:sub(start)
            return parts
        end
        parts[#parts + 1] = text:sub(start, stop)
        from = stop + 1
    end
end

local function split_by_text(text, separator, most)
    local parts, from = {}, 1
    while #parts ~= most do
        local start, stop = text:find(separator, from, true)
        if start == nil then
            break
        end
        parts[#parts + 1] = text:sub(from, start - 1)
        from = stop + 1
    end
    parts[#parts + 1] = text:sub(from)
    return parts
end

function string.split(text, separator, most)
    check_text(text, 1, 'string.split')
    if separator ~= nil then
        check_text(separator, 2, 'string.split')
        if separator == '' then
            bad(2, 'string.split', 'non-empty string', 'empty string')
        end
    end
    if most ~= nil and (type(most) ~= 'number' or most < 0) then
        bad(3, 'string.split', 'positive integer', type(most))
    end
    most = (most == nil or most == 0) and math.huge or most
    if separator == nil then
        return split_by_space(text, most)
    end
    return split_by_text(text, separator, most)
end

local function check_padding(text, width, char, name)
    if type(text) ~= 'string' then
        error(("bad argument #1 to '%s' (string expected, got %s)"):format(name, type(text)), 3)
    end
    if type(width) ~= 'number' or width < 0 then
        error(("bad argument #2 to '%s' (positive integer expected, got %s)"):format(
            name, type(width)), 3)
    end
    if char ~= nil and (type(char) ~= 'string' or #char ~= 1) then
        error(("bad argument #3 to '%s' (char expected, got %s)"):format(name, type(char)), 3)
    end
    return math.max(0, width - #text), char or ' '
end

function string.ljust(text, width, char)
    local missing
    missing, char = check_padding(text, width, char, 'string.ljust')
    return text .. char:rep(missing)
end

function string.rjust(text, width, char)
    local missing
    missing, char = check_padding(text, width, char, 'string.rjust')
    return char:rep(missing) .. text
end

function string.center(text, width, char)
    local missing
    missing, char = check_padding(text, width, char, 'string.center')
    local left = math.floor(missing / 2)
    return char:rep(left) .. text .. char:rep(missing - left)
end

-- The bytes that strip takes away unless told which: C's isspace.
local SPACES = ' \t\n\v\f\r'

local function strip(text, chars, left, right)
    chars = (chars == nil or chars == '') and SPACES or chars
    local first, last = 1, #text
    while left and first <= last and chars:find(text:sub(first, first), 1, true) do
        first = first + 1
    end
    while right and first <= last and chars:find(text:sub(last, last), 1, true) do
        last = last - 1
    end
    return text:sub(first, last)
end

for name, sides in pairs({strip = {true, true}, lstrip = {true, false}, rstrip = {false, true}}) do
    local full_name = 'string.' .. name
    string[name] = function(text, chars)
        check_text(text, 1, full_name)
        if chars ~= nil then
            check_text(chars, 2, full_name)
        end
        return strip(text, chars, sides[1], sides[2])
    end
end

-- The part of a text that the places mean, as string.sub takes them, has to be there.
local function check_range(text, part, from, to, name)
    if type(text) ~= 'string' then
        error(("bad argument #1 to '%s' (string expected, got %s)"):format(name, type(text)), 3)
    end
    if type(part) ~= 'string' then
        error(("bad argument #2 to '%s' (string expected, got %s)"):format(name, type(part)), 3)
    end
    if from ~= nil and type(from) ~= 'number' then
        error(("bad argument #3 to '%s' (integer expected, got %s)"):format(name, type(from)), 3)
    end
    if to ~= nil and type(to) ~= 'number' then
        error(("bad argument #4 to '%s' (integer expected, got %s)"):format(name, type(to)), 3)
    end
    return text:sub(from or 1, to or -1)
end

function string.startswith(text, head, from, to)
    local range = check_range(text, head, from, to, 'string.startswith')
    if from ~= nil and from < -#text then
        return head == ''
    end
    return range:sub(1, #head) == head
end

function string.endswith(text, tail, from, to)
    local range = check_range(text, tail, from, to, 'string.endswith')
    return tail == '' or range:sub(-#tail) == tail
end

function string.hex(text)
    check_text(text, 1, 'string.hex')
    return (text:gsub('.', function(char)
        return ('%02x'):format(char:byte())
    end))
end

function string.fromhex(text)
    check_text(text, 1, 'string.fromhex')
    if #text % 2 ~= 0 then
        bad(1, 'string.fromhex', 'even amount of chars', 'odd amount')
    end
    if text:find('%X') then
        bad(1, 'string.fromhex', 'hex string', 'non hex chars')
    end
    return (text:gsub('..', function(pair)
        return string.char(tonumber(pair, 16))
    end))
end

-- table -------------------------------------------------------------------------------------------

local function copied(value, seen)
    local metatable = getmetatable(value)
    local own = type(metatable) == 'table' and metatable.__copy or nil
    if type(value) ~= 'table' then
        return value
    end
    if seen[value] ~= nil then
        return seen[value]
    end
    if own ~= nil then
        local result = own(value)
        seen[value] = result
        return result
    end
    local result = {}
    seen[value] = result
    for key, field in pairs(value) do
        result[copied(key, seen)] = copied(field, seen)
    end
    return setmetatable(result, metatable)
end

function table.deepcopy(value)
    return copied(value, {})
end

function table.copy(value, shallow)
    if not shallow then
        return copied(value, {})
    end
    local metatable = getmetatable(value)
    if type(metatable) == 'table' and metatable.__copy ~= nil then
        return metatable.__copy(value)
    end
    if type(value) ~= 'table' then
        return value
    end
    local result = {}
    for key, field in pairs(value) do
        result[key] = field
    end
    return setmetatable(result, metatable)
end

function table.equals(left, right)
    if type(left) ~= 'table' or type(right) ~= 'table' then
        return type(left) == type(right) and left == right
    end
    local left_meta, right_meta = getmetatable(left), getmetatable(right)
    if left_meta and left_meta.__eq or right_meta and right_meta.__eq then
        return left == right
    end
    for key, value in pairs(left) do
        if not table.equals(value, right[key]) then
            return false
        end
    end
    for key in pairs(right) do
        if left[key] == nil then
            return false
        end
    end
    return true
end

table.new = require('table.new')
table.clear = require('table.clear')

-- os ----------------------------------------------------------------------------------------------

-- Tarantool knows this type, and programs use it.
pcall(ffi.cdef, 'typedef int pid_t;')
pcall(ffi.cdef, [[
extern char **environ;
int setenv(const char *name, const char *value, int overwrite);
int unsetenv(const char *name);
]])

function os.environ()
    local result, place = {}, 0
    while ffi.C.environ[place] ~= nil do
        local name, value = ffi.string(ffi.C.environ[place]):match('^([^=]+)=(.*)$')
        if name ~= nil then
            result[name] = value
        end
        place = place + 1
    end
    return result
end

function os.setenv(name, value)
    local result
    if value == nil then
        result = ffi.C.unsetenv(name)
    else
        result = ffi.C.setenv(name, tostring(value), 1)
    end
    if result ~= 0 then
        error(('error %d: %s'):format(ffi.errno(), require('errno').strerror(ffi.errno())), 2)
    end
end

-- Globals -----------------------------------------------------------------------------------------

-- The digits of a text as 64 bits. nil if one is none, or they are too many.
local function parse_digits(digits, base, negative)
    local limit = negative and 9223372036854775808ULL or 18446744073709551615ULL
    local value = 0ULL
    for place = 1, #digits do
        local digit = tonumber(digits:sub(place, place), 36)
        if digit == nil or digit >= base then
            return nil
        end
        if value > (limit - digit) / base then
            return nil
        end
        value = value * base + digit
    end
    if value < 100000000000000ULL then
        return negative and -tonumber(value) or tonumber(value)
    end
    if negative then
        return -ffi.cast('int64_t', value)
    end
    return value
end

function tonumber64(...)
    local value, base = ...
    if select('#', ...) == 0 then
        error("bad argument #1 to 'tonumber64' (value expected)", 2)
    end
    if base ~= nil and (base < 2 or base > 36) then
        error("bad argument #2 to 'tonumber64' (base out of range)", 2)
    end
    if type(value) == 'cdata' or type(value) == 'number' then
        return value
    elseif type(value) ~= 'string' then
        return nil
    end
    local sign, digits = value:match('^%s*([-+]?)(%w+)%s*$')
    if digits == nil then
        return base == nil and tonumber(value) or nil
    end
    if (base == nil or base == 16) and digits:find('^0[xX]%x') then
        return parse_digits(digits:sub(3), 16, sign == '-')
    elseif base == nil and digits:find('^0[bB][01]') then
        return parse_digits(digits:sub(3), 2, sign == '-')
    elseif base == nil and not digits:find('^%d+$') then
        return tonumber(value)
    end
    return parse_digits(digits, base or 10, sign == '-')
end

-- A global too, as in Tarantool.
utf8 = require('utf8')

function dostring(text, ...)
    local chunk, message = loadstring(text)
    if chunk == nil then
        error(message, 0)
    end
    return chunk(...)
end

-- The file of the function at a level, and its folder, as in Tarantool 3; 2 is who asks.
local function source_of(level)
    local at = debug.getinfo(level + 1, 'S')
    local source = at ~= nil and at.source or ''
    return source:sub(1, 1) == '@' and source:sub(2) or nil
end

local function folder_of(source)
    return source ~= nil and source:match('^(.*)/') or '.'
end

function debug.sourcefile(level)
    local source = source_of(level or 2)
    return source
end

function debug.sourcedir(level)
    local source = source_of(level or 2)
    return folder_of(source)
end

setmetatable(debug, {
    __index = function(_, name)
        if name == '__file__' then
            local source = source_of(2)
            return source
        elseif name == '__dir__' then
            local source = source_of(2)
            return folder_of(source)
        end
    end,
})
