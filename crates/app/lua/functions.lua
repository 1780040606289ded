-- Functions that see nothing but their argument: those that make the keys of indexes.
local ladon = ...

-- What there is for them (https://www.tarantool.io/en/doc/2.6/reference/reference_lua/box_schema/func_create/).
local NAMES = {
    'assert', 'error', 'ipairs', 'math', 'next', 'pairs', 'pcall', 'print', 'select', 'string', 'table',
    'tonumber', 'tostring', 'type', 'unpack', 'xpcall', 'utf8',
}

-- Steps of a match, bytes of a text that is repeated, elements of a table that is sorted.
local MATCHED_MAX, TEXT_MAX, SORTED_MAX = 10000000, 1000000, 100000

local look = ladon.look

local patterns = ladon.bounded_patterns(function(steps, text, pattern)
    look()
    if steps > MATCHED_MAX then
        error(("pattern '%s' may take too long for a text of %d bytes"):format(pattern, #text), 3)
    end
end)
for name, func in pairs(patterns) do
    string[name] = func
end

local rep, sort = string.rep, table.sort

function string.rep(text, count, ...)
    local is_known = (type(text) == 'string' or type(text) == 'number') and type(count) == 'number'
    look()
    if is_known and #tostring(text) * count > TEXT_MAX then
        error(('string.rep: a text of more than %d bytes'):format(TEXT_MAX), 2)
    end
    return rep(text, count, ...)
end

function table.sort(list, ...)
    look()
    if type(list) == 'table' and #list > SORTED_MAX then
        error(('table.sort: a table of more than %d elements'):format(SORTED_MAX), 2)
    end
    return sort(list, ...)
end

local function own(value)
    if type(value) ~= 'table' then
        return value
    end
    local copy = {}
    for key, of in pairs(value) do
        copy[key] = of
    end
    return copy
end

-- Makes a function of its text.
ladon.registry['ladon.make'] = function(name, text)
    local chunk, why = loadstring('return ' .. text, '=' .. name)
    if chunk == nil then
        error(why, 0)
    end
    local environment = {}
    for _, known in ipairs(NAMES) do
        environment[known] = own(_G[known])
    end
    local func = setfenv(chunk, environment)()
    if type(func) ~= 'function' then
        error('its body is no function', 0)
    end
    return func
end

-- Names the fields of tuples with a number in place of a space's.
ladon.registry['ladon.name'] = function(number, ...)
    local names = {}
    for at = 1, select('#', ...) do
        names[(select(at, ...))] = at
    end
    ladon.formats[number] = names
end
