-- box.tuple: tuples as values of Lua
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/box_tuple/).
local ladon = ...
local ffi = require('ffi')

local field, len, values = ladon.tuple_field, ladon.tuple_len, ladon.tuple_values
local methods = {}

-- Names of fields by the space's number: `space.lua` fills it in.
local formats = {}
ladon.formats = formats

local function is_tuple(value)
    return type(value) == 'cdata' and ffi.istype(ladon.tuple_type, value)
end

local function check(tuple, usage)
    if not is_tuple(tuple) then
        error('Invalid argument #1 (box.tuple expected, got ' .. type(tuple) .. ')', 3)
    end
end

-- The parts of a JSON path: `a.b[1]["c"]`; nil if it is none.
local function path_parts(path)
    local parts, at = {}, 1
    while at <= #path do
        local number, stop = path:match('^%[(%d+)%]()', at)
        local name, after
        if number == nil then
            name, after = path:match('^%["([^"]*)"%]()', at)
            if name == nil then
                name, after = path:match("^%['([^']*)'%]()", at)
            end
            if name == nil then
                name, after = path:match('^%.?([^%.%[%]]+)()', at)
            end
            if name == nil then
                return nil
            end
        end
        parts[#parts + 1] = number and tonumber(number) or name
        at = stop or after
    end
    return parts
end

local function number_of(tuple, name)
    local names = formats[tuple.space]
    return names and names[name]
end

local function by_path(tuple, path)
    local number = number_of(tuple, path)
    if number ~= nil then
        return field(tuple, number)
    end
    local parts = path_parts(path)
    if parts == nil or #parts < 2 and type(parts[1]) == 'string' then
        return nil
    end
    local first = parts[1]
    local value = field(tuple, type(first) == 'number' and first or number_of(tuple, first) or 0)
    for at = 2, #parts do
        if type(value) ~= 'table' then
            return nil
        end
        value = value[parts[at]]
    end
    return value
end

function methods.totable(tuple, from, to)
    check(tuple)
    local all = {}
    local count = values(tuple, all)
    if from == nil and to == nil then
        return setmetatable(all, ladon.registry['ladon.seq'])
    end
    from = from or 1
    if from < 0 then
        from = math.max(count + from + 1, 1)
    end
    to = to or count
    if to < 0 then
        to = count + to + 1
    end
    local some = {}
    for at = from, math.min(to, count) do
        some[#some + 1] = all[at]
    end
    return some
end

function methods.unpack(tuple, from, to)
    check(tuple)
    local all = {}
    local count = values(tuple, all)
    return unpack(all, from or 1, math.min(to or count, count))
end

function methods.slice(tuple, from, to)
    check(tuple)
    local all = {}
    local count = values(tuple, all)
    if type(from) ~= 'number' then
        error('tuple.slice(): start must be >= field count', 2)
    end
    if from < 0 then
        from = from + count
    end
    if to == nil then
        to = count
    elseif to < 0 then
        to = to + count
    end
    if from < 0 or from >= count then
        error('tuple.slice(): start must be >= field count', 2)
    end
    if to <= from then
        error('tuple.slice(): end must be > start', 2)
    end
    return unpack(all, from + 1, to)
end

-- Operations with the names of fields as their numbers.
local function numbered(tuple, operations)
    if type(operations) ~= 'table' then
        error('Usage: tuple:update(operations)', 3)
    end
    local shown = {}
    for at, operation in ipairs(operations) do
        local number = type(operation[2]) == 'string' and number_of(tuple, operation[2])
        if number then
            operation = {unpack(operation, 1, table.maxn(operation))}
            operation[2] = number
        end
        shown[at] = operation
    end
    return setmetatable(shown, ladon.registry['ladon.seq'])
end

function methods.update(tuple, operations)
    check(tuple, 'tuple:update()')
    return ladon.tuple_update(tuple, numbered(tuple, operations), false)
end

function methods.upsert(tuple, operations)
    check(tuple, 'tuple:upsert()')
    return ladon.tuple_update(tuple, numbered(tuple, operations), true)
end

function methods.bsize(tuple)
    check(tuple)
    return tuple.size
end

function methods.tomap(tuple, options)
    check(tuple)
    local map, names = {}, formats[tuple.space] or {}
    local only_names = options and options.names_only
    local count = len(tuple)
    if not only_names then
        for at = 1, count do
            map[at] = field(tuple, at)
        end
    end
    for name, at in pairs(names) do
        if at <= count then
            map[name] = field(tuple, at)
        end
    end
    return map
end

local function find_from(tuple, usage, first, ...)
    local from, value = 1, first
    if select('#', ...) > 0 then
        from, value = first + 1, (...)
    end
    return from, value
end

function methods.find(tuple, ...)
    check(tuple)
    local from, value = find_from(tuple, 'find', ...)
    for at = from, len(tuple) do
        if field(tuple, at) == value then
            return at
        end
    end
end

function methods.findall(tuple, ...)
    check(tuple)
    local found = {}
    local from, value = find_from(tuple, 'findall', ...)
    for at = from, len(tuple) do
        if field(tuple, at) == value then
            found[#found + 1] = at
        end
    end
    return found
end

function methods.next(tuple, at)
    check(tuple)
    at = (at or 0) + 1
    if at <= len(tuple) then
        return at, field(tuple, at)
    end
    return nil
end

local function each(tuple, at)
    at = at + 1
    if at <= len(tuple) then
        return at, field(tuple, at)
    end
end

function methods.pairs(tuple, at)
    check(tuple)
    local has_fun, fun = pcall(require, 'fun')
    if has_fun then
        return fun.wrap(each, tuple, at or 0)
    end
    return each, tuple, at or 0
end
methods.ipairs = methods.pairs

-- A tuple with the fields from `at` on, `removed` of them, changed for others.
function methods.transform(tuple, at, removed, ...)
    check(tuple)
    local all = {}
    local count = values(tuple, all)
    if type(at) ~= 'number' or at == 0 then
        error('tuple.transform(): offset is out of bound', 2)
    end
    if at < 0 then
        at = at + count + 1
    end
    if at < 1 or at > count + 1 then
        error('tuple.transform(): offset is out of bound', 2)
    end
    if removed < 0 then
        error('tuple.transform(): len must be positive', 2)
    end
    local changed = {}
    for number = 1, at - 1 do
        changed[number] = all[number]
    end
    for number = 1, select('#', ...) do
        changed[#changed + 1] = (select(number, ...))
    end
    for number = at + removed, count do
        changed[#changed + 1] = all[number]
    end
    return ladon.tuple_new(changed, 0)
end

-- How it is shown by json and yaml.
function methods.__serialize(tuple)
    return methods.totable(tuple)
end

function methods.is(value)
    return is_tuple(value)
end

local function shown(value, seen)
    local kind = type(value)
    if kind == 'string' then
        return "'" .. value:gsub("'", "''") .. "'"
    elseif kind == 'cdata' then
        if value == nil then
            return 'null'
        end
        return (tostring(value):gsub('U?LL$', ''))
    elseif kind == 'number' then
        if value == math.floor(value) and math.abs(value) < 1e15 then
            return string.format('%d', value)
        end
        return string.format('%.14g', value)
    elseif kind == 'table' then
        local parts = {}
        local mt = getmetatable(value)
        if mt and mt.__serialize == 'map' then
            for key, one in pairs(value) do
                parts[#parts + 1] = shown(key) .. ': ' .. shown(one)
            end
            return '{' .. table.concat(parts, ', ') .. '}'
        end
        for at, one in ipairs(value) do
            parts[at] = shown(one)
        end
        return '[' .. table.concat(parts, ', ') .. ']'
    end
    return tostring(value)
end

local function to_string(tuple)
    local parts = {}
    for at = 1, len(tuple) do
        parts[at] = shown(field(tuple, at))
    end
    return '[' .. table.concat(parts, ', ') .. ']'
end

ffi.metatype(ladon.tuple_type, {
    __len = len,
    __tostring = to_string,
    __index = function(tuple, key)
        if type(key) == 'number' then
            return field(tuple, key)
        end
        if type(key) == 'string' then
            local value = by_path(tuple, key)
            if value ~= nil then
                return value
            end
        end
        return methods[key]
    end,
    __eq = function(a, b)
        return is_tuple(a) and is_tuple(b) and ffi.cast('void *', a) == ffi.cast('void *', b)
    end,
    __pairs = methods.pairs,
    __ipairs = methods.ipairs,
})

box.tuple = {is = is_tuple}
for _, name in ipairs({
    'totable', 'unpack', 'slice', 'bsize', 'tomap', 'find', 'findall', 'next', 'pairs',
    'transform', 'update', 'upsert',
}) do
    box.tuple[name] = methods[name]
end
box.tuple.ipairs = methods.pairs

function box.tuple.new(...)
    local first = ...
    if select('#', ...) > 1 or type(first) ~= 'table' and not is_tuple(first) then
        return ladon.tuple_new({...}, 0)
    end
    return ladon.tuple_new(first, is_tuple(first) and first.space or 0)
end

ladon.is_tuple = is_tuple
ladon.path_parts = path_parts
ladon.iterate[is_tuple] = methods.pairs
ladon.add_plain(is_tuple, methods.totable)

-- The old name, whose functions are the same; but memory needs no length.
ladon.module('msgpackffi', function()
    local msgpack = require('msgpack')
    local old = {internal = {}}
    function old.decode(text, at)
        if type(text) == 'cdata' and at == nil then
            return msgpack.decode_unchecked(text)
        end
        return msgpack.decode(text, at)
    end
    function old.internal.encode_r(buffer, value)
        msgpack.encode(value, buffer)
    end
    return setmetatable(old, {__index = msgpack})
end)
