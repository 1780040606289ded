-- box.schema.space, and methods of spaces that define.
local ladon = ...

local space_methods = ladon.space_methods
local definitions = ladon.definitions
local map, usage, check_options = definitions.map, definitions.usage, definitions.check_options
local insert_numbered, drop_privileges = definitions.insert_numbered, definitions.drop_privileges

local SPACE_ID_MIN = 512

-- Foreign keys of a field, by name, with numbers of spaces; one without a name has its space's.
-- A key of the space `own` to itself names none.
local function foreign_keys_of(keys, own)
    if type(keys) ~= 'table' then
        usage('foreign key definition is expected to be a table')
    end
    if keys.field ~= nil and type(keys.field) ~= 'table' then
        keys = {[tostring(keys.space or own)] = keys}
    end
    local shown = {}
    for name, key in pairs(keys) do
        local one = table.copy(type(key) == 'table' and key or usage('wrong foreign key'))
        if one.space == own then
            one.space = nil
        elseif type(one.space) == 'string' then
            local found = box.space[one.space]
            if found == nil then
                usage(("foreign key '%s': space %s was not found"):format(name, one.space))
            end
            one.space = found.id
        end
        shown[name] = map(one)
    end
    return map(shown)
end

-- A format as _space has it; `own` is the space's name.
local function format_of(format, own)
    local shown = {}
    for at, field in ipairs(format or {}) do
        local one = {}
        if type(field) == 'string' then
            one.name, one.type = field, 'any'
        else
            for key, value in pairs(field) do
                if key == 1 then
                    one.name = value
                elseif key == 2 then
                    one.type = value
                else
                    one[key] = value
                end
            end
            one.type = one.type or 'any'
        end
        if type(one.collation) == 'string' then
            local found = box.space._collation.index.name:get({one.collation})
            if found == nil then
                usage(("format[%d]: collation '%s' was not found"):format(at, one.collation))
            end
            one.collation = found[1]
        end
        if one.foreign_key ~= nil then
            one.foreign_key = foreign_keys_of(one.foreign_key, own)
        end
        one.type = tostring(one.type):lower()
        local old = {num = 'unsigned', str = 'string', int = 'integer'}
        one.type = old[one.type] or one.type
        shown[at] = map(one)
    end
    return shown
end

function box.schema.space.create(name, options)
    if type(name) ~= 'string' then
        usage('name should be a string')
    end
    options = check_options(options, {
        if_not_exists = 'boolean', engine = 'string', id = 'number', field_count = 'number',
        user = 'string,number', format = 'table', is_local = 'boolean', temporary = 'boolean',
        is_sync = 'boolean',
    })
    local found = box.space[name]
    if found ~= nil then
        if options.if_not_exists then
            return found, 'not created'
        end
        box.error(box.error.SPACE_EXISTS, name)
    end
    local engine = options.engine or 'memtx'
    if engine == 'vinyl' then
        ladon.log(4, ("space '%s': vinyl is kept in memory here"):format(name))
        engine = 'memtx'
    end
    local owner = ladon.user()
    if options.user ~= nil then
        owner = type(options.user) == 'number' and options.user or ladon.user_named(options.user)[1]
    end
    local flags = map({
        temporary = options.temporary or nil,
        group_id = options.is_local and 1 or nil,
        is_sync = options.is_sync or nil,
    })
    local format = format_of(options.format, name)
    local function tuple(id)
        return {id, owner, name, engine, options.field_count or 0, flags, format}
    end
    if options.id ~= nil then
        box.space._space:insert(tuple(options.id))
        return box.space[options.id], 'created'
    end
    return box.space[insert_numbered(box.space._space, SPACE_ID_MIN, tuple)], 'created'
end
box.schema.create_space = box.schema.space.create

function space_methods.format(space, format)
    if format == nil then
        local tuple = box.space._vspace:get({space.id})
        return tuple and tuple[7] or {}
    end
    box.space._space:update({space.id}, {{'=', 7, format_of(format, space.name)}})
end

function space_methods.rename(space, name)
    if type(name) ~= 'string' then
        usage('name should be a string')
    end
    box.space._space:update({space.id}, {{'=', 3, name}})
end

function space_methods.alter(space, options)
    local operations = {}
    if options.name then
        operations[#operations + 1] = {'=', 3, options.name}
    end
    if options.field_count then
        operations[#operations + 1] = {'=', 5, options.field_count}
    end
    if options.format then
        operations[#operations + 1] = {'=', 7, format_of(options.format, options.name or space.name)}
    end
    box.space._space:update({space.id}, operations)
end

-- Checks of SQL that hold for every tuple, whoever writes it. They are options of the space.
local CHECKS = 'sql_checks'

local function change_check(space, name, text)
    local flags = box.space._space:get({space.id})[6]
    local checks = flags[CHECKS] or {}
    checks[name] = text
    flags[CHECKS] = next(checks) ~= nil and map(checks) or nil
    box.space._space:update({space.id}, {{'=', 6, map(flags)}})
end

local check_methods = {}
local Check = {__index = check_methods}

function check_methods.drop(check)
    if type(check) ~= 'table' or check.space_id == nil then
        error('Usage: ck_constraint:drop()', 2)
    end
    change_check(box.space[check.space_id], check.name, nil)
end

function check_methods.enable()
    box.error(box.error.UNSUPPORTED, 'Ladon', 'ck_constraint:enable()')
end

-- What is shown of a space's checks.
function ladon.checks_of(space_id, flags)
    local shown = {}
    for name, text in pairs(flags[CHECKS] or {}) do
        shown[name] = setmetatable(
            {space_id = space_id, name = name, code = text, is_enabled = true}, Check)
    end
    return shown
end

function space_methods.create_check_constraint(space, name, code)
    if type(space) ~= 'table' or name == nil or code == nil then
        error('Usage: space:create_constraint(name, code)', 2)
    end
    if space.ck_constraint[name] ~= nil then
        box.error(box.error.CONSTRAINT_EXISTS, 'Check', name, space.name)
    end
    change_check(space, name, code)
    return box.space[space.id].ck_constraint[name]
end

function space_methods.truncate(space)
    ladon.as_admin(function()
        box.space._truncate:upsert({space.id, 1}, {{'+', 2, 1}})
    end)
end

function definitions.drop_sequence_of(space_id)
    local filler = box.space._space_sequence:get({space_id})
    if filler ~= nil then
        box.space._space_sequence:delete({space_id})
        if filler[3] then
            box.space._sequence_data:delete({filler[2]})
            box.space._sequence:delete({filler[2]})
        end
    end
end

function space_methods.drop(space)
    box.schema.space.drop(space.id, space.name)
end

function box.schema.space.drop(id, name, options)
    local space = box.space[id]
    if space == nil then
        if options and options.if_exists then
            return
        end
        box.error(box.error.NO_SUCH_SPACE, name or '#' .. tostring(id))
    end
    definitions.drop_sequence_of(space.id)
    local indexes = box.space._index:select({space.id})
    for at = #indexes, 1, -1 do
        box.space._index:delete({space.id, indexes[at][2]})
    end
    ladon.as_admin(function()
        drop_privileges('space', space.id)
        box.space._truncate:delete({space.id})
    end)
    box.space._space:delete({space.id})
end

function box.schema.space.rename(id, name)
    space_methods.rename(box.space[id], name)
end

function box.schema.space.format(id, format)
    return space_methods.format(box.space[id], format)
end
