-- utf8: texts by characters
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/utf8/).
local native = ...

local utf8 = {}

-- A call with the wrong arguments says how it is called. A number is a text.
local function text_of(value, usage, level)
    if type(value) == 'number' then
        return tostring(value)
    elseif type(value) ~= 'string' then
        error('Usage: ' .. usage, (level or 2) + 1)
    end
    return value
end

local function number_of(value, place)
    local number = tonumber(value)
    if number == nil then
        error(("bad argument #%d to '?' (number expected, got %s)"):format(
            place, value == nil and 'no value' or type(value)), 3)
    end
    return number < 0 and math.ceil(number) or math.floor(number)
end

-- Bytes that a character takes by its first one; nil of a byte that begins none.
local function width(byte)
    if byte < 0x80 then
        return 1
    elseif byte < 0xc2 then
        return nil
    elseif byte < 0xe0 then
        return 2
    elseif byte < 0xf0 then
        return 3
    elseif byte < 0xf5 then
        return 4
    end
end

-- The first bytes whose second one is bound closer: no overlong forms, no surrogates.
local SECOND = {[0xe0] = {0xa0, 0xbf}, [0xed] = {0x80, 0x9f}, [0xf0] = {0x90, 0xbf},
                [0xf4] = {0x80, 0x8f}}

-- The code at a byte, and where the next one begins; nil if there is none.
local function decode(text, at)
    local first = text:byte(at)
    local length = first and width(first)
    if length == nil then
        return nil
    elseif length == 1 then
        return first, at + 1
    end
    local code = first % 2 ^ (7 - length)
    for place = 1, length - 1 do
        local byte = text:byte(at + place)
        local range = place == 1 and SECOND[first] or nil
        local low, high = range and range[1] or 0x80, range and range[2] or 0xbf
        if byte == nil or byte < low or byte > high then
            return nil
        end
        code = code * 64 + byte % 64
    end
    return code, at + length
end

function utf8.len(text, from, to)
    text = text_of(text, 'utf8.len(<string>, [i, [j]])')
    from, to = from and number_of(from, 2) or 1, to and number_of(to, 3) or -1
    from = from < 0 and from + #text + 1 or from
    to = to < 0 and to + #text + 1 or to
    if from < 1 or from > #text + 1 or to > #text then
        return nil, 'position is out of string'
    end
    local count, at = 0, from
    while at <= to do
        local code, after = decode(text, at)
        if code == nil then
            return nil, at
        end
        count, at = count + 1, after
    end
    return count
end

-- Where the characters begin, and where the text ends; a byte that begins none counts as one.
local function starts(text)
    local found, at = {}, 1
    while at <= #text do
        found[#found + 1] = at
        local _, after = decode(text, at)
        at = after or at + 1
    end
    found[#found + 1] = #text + 1
    return found
end

function utf8.sub(text, from, to)
    if from == nil then
        error('Usage: utf8.sub(<string>, [i, [j]])', 2)
    end
    text = text_of(text, 'utf8.sub(<string>, [i, [j]])')
    from, to = number_of(from, 2), to and number_of(to, 3) or -1
    local found = starts(text)
    local count = #found - 1
    from = math.max(from < 0 and from + count + 1 or from, 1)
    to = math.min(to < 0 and to + count + 1 or to, count)
    if from > to then
        return ''
    end
    return text:sub(found[from], found[to + 1] - 1)
end

function utf8.upper(text)
    return native.upper(text_of(text, 'utf8.upper(<string>)'))
end

function utf8.lower(text)
    return native.lower(text_of(text, 'utf8.lower(<string>)'))
end

local function encode(code)
    if code < 0x80 then
        return string.char(code)
    elseif code < 0x800 then
        return string.char(0xc0 + math.floor(code / 64), 0x80 + code % 64)
    elseif code < 0x10000 then
        return string.char(0xe0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64,
            0x80 + code % 64)
    end
    return string.char(0xf0 + math.floor(code / 262144), 0x80 + math.floor(code / 4096) % 64,
        0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
end

function utf8.char(...)
    if select('#', ...) == 0 then
        error('Usage: utf8.char(<char code>', 2)
    end
    local parts = {}
    for place = 1, select('#', ...) do
        local code = number_of((select(place, ...)), place)
        if code < 0 or code > 0x10ffff then
            error(('utf8.char: %d is no code of a character'):format(code), 2)
        end
        parts[place] = encode(code)
    end
    return table.concat(parts)
end

for _, kind in ipairs({'alpha', 'digit', 'lower', 'upper'}) do
    local name = 'is' .. kind
    utf8[name] = function(what)
        if what == nil then
            error(('Usage: utf8.%s(<string> or <one symbol code>)'):format(name), 2)
        end
        if type(what) == 'string' then
            local code, after = decode(what, 1)
            return code ~= nil and after == #what + 1 and native.is(kind, code)
        end
        return native.is(kind, number_of(what, 1))
    end
end

function utf8.cmp(left, right)
    left = text_of(left, 'utf8.cmp(<string1>, <string2>)')
    return native.compare(left, text_of(right, 'utf8.cmp(<string1>, <string2>)'), false)
end

function utf8.casecmp(left, right)
    left = text_of(left, 'utf8.casecmp(<string1>, <string2>)')
    return native.compare(left, text_of(right, 'utf8.casecmp(<string1>, <string2>)'), true)
end

-- Where the character behind the one at this byte begins, and the code of that at this byte.
function utf8.next(text, at)
    text = text_of(text, 'utf8.next(<string>, [<byte offset>])')
    at = at and number_of(at, 2) or 1
    at = at < 0 and at + #text + 1 or at
    local code, after = decode(text, math.max(at, 1))
    if code ~= nil then
        return after, code
    end
end

return utf8
