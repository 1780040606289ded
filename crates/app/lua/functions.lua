-- Functions that see nothing but their argument: those that make the keys of indexes.
local ladon = ...

-- What there is for them (https://www.tarantool.io/en/doc/2.6/reference/reference_lua/box_schema/func_create/).
local NAMES = {
    'assert', 'error', 'ipairs', 'math', 'next', 'pairs', 'pcall', 'print', 'select', 'string', 'table',
    'tonumber', 'tostring', 'type', 'unpack', 'xpcall', 'utf8',
}

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
