-- box.schema: definitions, as tuples of the system spaces
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/box_schema/).
local ladon = ...

local ladon_map = ladon.registry['ladon.map']

-- Tries to take a number that others take at the same time.
local TRIES = 100

local function map(of)
    return setmetatable(of or {}, ladon_map)
end

local function usage(text, level)
    box.error({code = box.error.ILLEGAL_PARAMS, reason = 'Illegal parameters, ' .. text})
end

-- Checks options: names to types, several types with commas.
local function check_options(options, template)
    if options == nil then
        return {}
    end
    if type(options) ~= 'table' then
        usage('options should be a table')
    end
    for name, value in pairs(options) do
        local expected = template[name]
        if expected == nil then
            usage(("unexpected option '%s'"):format(tostring(name)))
        end
        if expected ~= 'any' and not (',' .. expected .. ','):find(',' .. type(value) .. ',', 1, true)
            and value ~= box.NULL then
            usage(("options parameter '%s' should be of type %s"):format(name, expected:gsub(',', ' or ')))
        end
    end
    return options
end

-- The next free number in a space's first index, from `least` on.
local function next_id(space, least)
    local last = space.index[0]:max()
    return math.max(last ~= nil and last[1] + 1 or least, least)
end

-- Inserts with the next free number: `make(id)` is the tuple.
local function insert_numbered(space, least, make)
    for _ = 1, TRIES do
        local id = next_id(space, least)
        local is_ok, err = pcall(space.insert, space, make(id))
        if is_ok then
            return id
        end
        local is_taken = ladon.is_error(err) and err.code == box.error.TUPLE_FOUND
            and space:get({id}) ~= nil
        if not is_taken then
            error(err, 0)
        end
    end
    error('no free number was found', 0)
end

local function drop_privileges(kind, id)
    for _, tuple in ipairs(box.space._priv.index.object:select({kind, id})) do
        box.space._priv:delete({tuple[2], tuple[3], tuple[4]})
    end
end

-- What the files of definitions share.
ladon.definitions = {
    TRIES = TRIES, map = map, usage = usage, check_options = check_options,
    insert_numbered = insert_numbered, drop_privileges = drop_privileges,
}
box.schema = {space = {}, user = {}, role = {}, func = {}, sequence = {}, index = {}}
for name, methods in pairs(ladon.methods_shown) do
    box.schema[name] = methods
end
