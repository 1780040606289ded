-- box.schema: definitions, as tuples of the system spaces
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/box_schema/).
local ladon = ...

local space_methods, index_methods = ladon.space_methods, ladon.index_methods
local ladon_map = ladon.registry['ladon.map']

local SPACE_ID_MIN = 512
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

box.schema = {space = {}, user = {}, role = {}, func = {}, sequence = {}, index = {}}

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

local function drop_sequence_of(space_id)
    local filler = box.space._space_sequence:get({space_id})
    if filler ~= nil then
        box.space._space_sequence:delete({space_id})
        if filler[3] then
            box.space._sequence_data:delete({filler[2]})
            box.space._sequence:delete({filler[2]})
        end
    end
end

local function drop_privileges(kind, id)
    for _, tuple in ipairs(box.space._priv.index.object:select({kind, id})) do
        box.space._priv:delete({tuple[2], tuple[3], tuple[4]})
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
    drop_sequence_of(space.id)
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

-- The parts of an index, from any of the forms that programs have.
local OLD_TYPES = {num = 'unsigned', uint = 'unsigned', str = 'string', int = 'integer'}

local function type_of(name)
    name = tostring(name):lower()
    return OLD_TYPES[name] or name
end

local function field_of(space, field, at)
    if type(field) == 'number' then
        return field - 1
    end
    local names = ladon.formats[space.id] or {}
    if names[field] ~= nil then
        return names[field] - 1
    end
    -- A field, and a path inside of it.
    for name, number in pairs(names) do
        local path = field:match('^' .. name:gsub('%p', '%%%0') .. '([%.%[].*)$')
        if path ~= nil then
            return number - 1, (path:gsub('^%.', ''))
        end
    end
    local number, path = field:match('^%[(%d+)%](.*)$')
    if number ~= nil then
        return tonumber(number) - 1, path ~= '' and (path:gsub('^%.', '')) or nil
    end
    usage(("options.parts[%d]: field was not found by name '%s'"):format(at, field))
end

local function type_in_format(space, field)
    local format = box.space._vspace:get({space.id})[7]
    local of = format[field + 1]
    return of and (of.type == '*' and 'any' or of.type)
end

local function part_of(space, part, at)
    local given = part.field or part[1]
    if given == nil then
        usage(("options.parts[%d]: field (name or number) is expected"):format(at))
    end
    local field, path = field_of(space, given, at)
    local kind = part.type or part[2]
    local shown = {
        field = field,
        type = kind and type_of(kind) or type_in_format(space, field) or 'scalar',
        path = part.path or path,
        is_nullable = part.is_nullable,
        exclude_null = part.exclude_null,
    }
    if part.collation ~= nil then
        local found = type(part.collation) == 'number' and {part.collation}
            or box.space._collation.index.name:get({part.collation})
        if found == nil then
            usage(("options.parts[%d]: collation was not found by name '%s'"):format(
                at, tostring(part.collation)))
        end
        shown.collation = found[1]
    end
    return map(shown)
end

local function parts_of(space, parts)
    if type(parts) ~= 'table' then
        parts = {parts}
    end
    if parts.field ~= nil then
        return {part_of(space, parts, 1)}
    end
    local shown = {}
    local at = 1
    while at <= #parts do
        local part = parts[at]
        if type(part) == 'table' then
            shown[#shown + 1] = part_of(space, part, at)
            at = at + 1
        else
            -- A flat list: numbers or names, each perhaps with its type.
            local kind = parts[at + 1]
            local has_type = type(kind) == 'string'
                and (type(part) == 'number' or (ladon.formats[space.id] or {})[kind] == nil)
            shown[#shown + 1] = part_of(space, {part, has_type and kind or nil}, at)
            at = at + (has_type and 2 or 1)
        end
    end
    return shown
end

local INDEX_OPTIONS = {
    if_not_exists = 'boolean', type = 'string', id = 'number', unique = 'boolean',
    parts = 'table,string,number', sequence = 'boolean,string,number,table',
    distance = 'string', dimension = 'number', hint = 'boolean', func = 'string,number',
    page_size = 'number', range_size = 'number', run_count_per_level = 'number',
    run_size_ratio = 'number', bloom_fpr = 'number', name = 'string', field = 'any',
    is_multikey = 'boolean',
}

-- The number of the field that a sequence fills, and the sequence's number.
local function make_sequence(space, of, parts)
    local options = of
    if type(of) ~= 'table' then
        options = {id = of ~= true and of or nil}
    end
    local field, path = parts[1].field, parts[1].path or ''
    if options.field ~= nil then
        field, path = field_of(space, options.field, 1)
    end
    if options.id == nil then
        local sequence = box.schema.sequence.create(space.name .. '_seq')
        return {space.id, sequence.id, true, field, path or ''}
    end
    local found = type(options.id) == 'number' and box.space._sequence:get({options.id})
        or box.space._sequence.index.name:get({options.id})
    if found == nil then
        box.error(box.error.NO_SUCH_SEQUENCE, options.id)
    end
    return {space.id, found[1], false, field, path or ''}
end

-- The number of the function that makes an index's keys.
local function function_of(name)
    if name == nil then
        return nil
    end
    local id = type(name) == 'number' and name
    local found = ladon.as_admin(function()
        return id and box.space._func:get({id}) or not id and box.space._func.index.name:get({name})
    end)
    if not found then
        box.error(box.error.NO_SUCH_FUNCTION, name)
    end
    return found[1]
end

local function index_options(options)
    return map({
        unique = options.unique, distance = options.distance, dimension = options.dimension,
        hint = options.hint, func = function_of(options.func),
    })
end

function space_methods.create_index(space, name, options)
    if type(name) ~= 'string' then
        usage('name should be a string')
    end
    options = check_options(options, INDEX_OPTIONS)
    local found = space.index[name]
    if found ~= nil then
        if options.if_not_exists then
            return found, 'not created'
        end
        box.error(box.error.INDEX_EXISTS, name)
    end
    local kind = type_of(options.type or 'TREE')
    local number = options.id
    if number == nil then
        local last = box.space._vindex.index[0]:select({space.id}, {iterator = 'REQ', limit = 1})[1]
        number = last and last[2] + 1 or 0
    end
    local default_part = {kind == 'rtree' and 2 or 1, kind == 'rtree' and 'array' or 'unsigned'}
    local parts = parts_of(space, options.parts or default_part)
    local stored = index_options(options)
    if stored.unique == nil and kind ~= 'rtree' and kind ~= 'bitset' then
        stored.unique = true
    elseif stored.unique == nil then
        stored.unique = false
    end
    box.space._index:insert({space.id, number, name, kind, stored, parts})
    if options.sequence then
        local is_ok, err = pcall(function()
            box.space._space_sequence:insert(make_sequence(space, options.sequence, parts))
        end)
        if not is_ok then
            box.space._index:delete({space.id, number})
            error(err, 0)
        end
    end
    return box.space[space.id].index[number], 'created'
end

function index_methods.drop(index)
    if index.id == 0 then
        drop_sequence_of(index.space_id)
    end
    box.space._index:delete({index.space_id, index.id})
end

function index_methods.rename(index, name)
    if type(name) ~= 'string' then
        usage('name should be a string')
    end
    box.space._index:update({index.space_id, index.id}, {{'=', 3, name}})
end

function index_methods.alter(index, options)
    options = check_options(options, INDEX_OPTIONS)
    local space = box.space[index.space_id]
    local tuple = box.space._vindex:get({space.id, index.id}):totable()
    tuple[3] = options.name or tuple[3]
    tuple[4] = options.type and type_of(options.type) or tuple[4]
    for key, value in pairs(index_options(options)) do
        tuple[5][key] = value
    end
    if options.parts ~= nil then
        tuple[6] = parts_of(space, options.parts)
    end
    box.space._index:replace(tuple)
    if options.sequence ~= nil then
        drop_sequence_of(space.id)
        if options.sequence then
            box.space._space_sequence:insert(make_sequence(space, options.sequence, tuple[6]))
        end
    end
end

-- Sequences.
local sequence_methods = {}
local Sequence = {__index = sequence_methods}

local SEQUENCE_OPTIONS = {
    start = 'number,cdata', min = 'number,cdata', max = 'number,cdata', step = 'number,cdata',
    cache = 'number,cdata', cycle = 'boolean', if_not_exists = 'boolean', name = 'string',
}

local function sequence_of(tuple)
    return setmetatable({
        id = tuple[1], uid = tuple[2], name = tuple[3], step = tuple[4], min = tuple[5],
        max = tuple[6], start = tuple[7], cache = tuple[8], cycle = tuple[9],
    }, Sequence)
end

local function sequence_tuple(id, owner, name, options)
    local step = options.step or 1
    local is_up = step > 0
    local least = options.min or (is_up and 1 or -9223372036854775807LL - 1)
    local most = options.max or (is_up and 9223372036854775807ULL or -1)
    local start = options.start or (is_up and least or most)
    return {id, owner, name, step, least, most, start, options.cache or 0, options.cycle or false}
end

function box.schema.sequence.create(name, options)
    options = check_options(options, SEQUENCE_OPTIONS)
    local found = box.space._sequence.index.name:get({name})
    if found ~= nil then
        if options.if_not_exists then
            return sequence_of(found), 'not created'
        end
        box.error(box.error.SEQUENCE_EXISTS, name)
    end
    local owner = ladon.user()
    local id = insert_numbered(box.space._sequence, 1, function(id)
        return sequence_tuple(id, owner, name, options)
    end)
    return box.sequence[name], 'created'
end

function box.schema.sequence.alter(name, options)
    options = check_options(options, SEQUENCE_OPTIONS)
    local of = box.sequence[name]
    if of == nil then
        box.error(box.error.NO_SUCH_SEQUENCE, name)
    end
    local merged = {}
    for key, value in pairs(of) do
        merged[key] = value
    end
    for key, value in pairs(options) do
        merged[key] = value
    end
    box.space._sequence:replace(sequence_tuple(of.id, of.uid, options.name or of.name, merged))
end

function box.schema.sequence.drop(name, options)
    local of = box.sequence[name]
    if of == nil then
        if options and options.if_exists then
            return
        end
        box.error(box.error.NO_SUCH_SEQUENCE, name)
    end
    ladon.as_admin(function()
        drop_privileges('sequence', of.id)
    end)
    box.space._sequence_data:delete({of.id})
    box.space._sequence:delete({of.id})
end

-- The next number. Two fibers never get the same one: the row is compared and changed in a
-- transaction.
function sequence_methods.next(of)
    local data = box.space._sequence_data
    for _ = 1, TRIES do
        local before = data:get({of.id})
        local value
        if before == nil then
            value = of.start
        else
            value = before[2] + of.step
            local is_beyond = of.step > 0 and value > of.max or of.step < 0 and value < of.min
            if is_beyond then
                if not of.cycle then
                    box.error(box.error.SEQUENCE_OVERFLOW, of.name)
                end
                value = of.step > 0 and of.min or of.max
            end
        end
        local is_ok, err
        if before == nil then
            is_ok, err = pcall(data.insert, data, {of.id, value})
        else
            data:replace({of.id, value})
            is_ok = true
        end
        if is_ok then
            return value
        end
    end
    error('the sequence is too busy', 0)
end

function sequence_methods.current(of)
    local now = box.space._sequence_data:get({of.id})
    if now == nil then
        box.error(box.error.SEQUENCE_NOT_STARTED, of.name)
    end
    return require('ffi').cast('int64_t', now[2])
end

function sequence_methods.set(of, value)
    box.space._sequence_data:replace({of.id, value})
end

function sequence_methods.reset(of)
    box.space._sequence_data:delete({of.id})
end

function sequence_methods.alter(of, options)
    box.schema.sequence.alter(of.name, options)
end

function sequence_methods.drop(of)
    box.schema.sequence.drop(of.name)
end

box.sequence = setmetatable({}, {
    __index = function(_, name)
        local space = box.space._sequence
        local found = type(name) == 'number' and space:get({name}) or
            type(name) == 'string' and space.index.name:get({name})
        return found and sequence_of(found) or nil
    end,
})

-- Users, roles and their rights.
local PRIVILEGES = {
    read = 1, write = 2, execute = 4, session = 8, usage = 16, create = 32, drop = 64, alter = 128,
    reference = 256, trigger = 512, insert = 1024, update = 2048, delete = 4096,
}
local PRIVILEGE_ORDER = {
    'read', 'write', 'execute', 'session', 'usage', 'create', 'drop', 'alter', 'reference',
    'trigger', 'insert', 'update', 'delete',
}
local USER_ID_MIN = 32

local function bits_of(privileges)
    if type(privileges) == 'number' then
        return privileges
    end
    local bits = 0
    for name in tostring(privileges):gmatch('[%a]+') do
        local one = PRIVILEGES[name:lower()]
        if one == nil then
            box.error(box.error.UNKNOWN_PRIVILEGE or box.error.ILLEGAL_PARAMS, privileges)
        end
        bits = bit.bor(bits, one)
    end
    return bits
end

local OBJECT_SPACES = {
    space = '_space', ['function'] = '_func', sequence = '_sequence', user = '_user', role = '_user',
}
local NOT_FOUND = {
    space = 'NO_SUCH_SPACE', ['function'] = 'NO_SUCH_FUNCTION', sequence = 'NO_SUCH_SEQUENCE',
    user = 'NO_SUCH_USER', role = 'NO_SUCH_ROLE',
}

-- The number of an object; 0 of the universe, '' of all of a kind.
local function object_id(kind, name)
    if kind == 'universe' then
        return 0
    end
    local space = OBJECT_SPACES[kind]
    if space == nil then
        box.error(box.error.UNKNOWN_SCHEMA_OBJECT, tostring(kind))
    end
    if name == nil or name == '' then
        return ''
    end
    local found = type(name) == 'number' and box.space[space]:get({name})
        or box.space[space].index.name:get({name})
    if found == nil then
        box.error(box.error[NOT_FOUND[kind]], name)
    end
    return found[1]
end

local function grantee_of(name, kind, users)
    users = users or box.space._user
    local found
    if type(name) == 'number' then
        found = users:get({name})
    else
        found = users.index.name:get({name})
    end
    if found == nil or found[4] ~= kind then
        box.error(box.error[NOT_FOUND[kind]], name)
    end
    return found[1]
end

-- A role may be named in the place of rights.
local function rights_of(privileges, kind, name)
    if kind == nil then
        return 'execute', 'role', privileges
    end
    return privileges, kind, name
end

local function grant(grantee, privileges, kind, name, options)
    local given = privileges
    privileges, kind, name = rights_of(privileges, kind, name)
    local bits, id = bits_of(privileges), object_id(kind, name)
    local before = box.space._priv:get({grantee, kind, id})
    local had = before and before[5] or 0
    if bit.bor(had, bits) == had and before ~= nil then
        if options and options.if_not_exists then
            return
        end
        local who = box.space._user:get({grantee})[3]
        if kind == 'role' then
            box.error(box.error.ROLE_GRANTED, who, name)
        end
        box.error(box.error.PRIV_GRANTED, who, given, kind, name or '')
    end
    box.space._priv:replace({ladon.user(), grantee, kind, id, bit.bor(had, bits)})
end

local function revoke(grantee, privileges, kind, name, options)
    privileges, kind, name = rights_of(privileges, kind, name)
    local bits, id = bits_of(privileges), object_id(kind, name)
    local before = box.space._priv:get({grantee, kind, id})
    if before == nil or bit.band(before[5], bits) == 0 then
        if options and options.if_exists then
            return
        end
        local who = box.space._user:get({grantee})[3]
        if kind == 'role' then
            box.error(box.error.ROLE_NOT_GRANTED, who, name)
        end
        box.error(box.error.PRIV_NOT_GRANTED, who, privileges, kind, name or '')
    end
    local left = bit.band(before[5], bit.bnot(bits))
    if left == 0 then
        box.space._priv:delete({grantee, kind, id})
    else
        box.space._priv:replace({before[1], grantee, kind, id, left})
    end
end

local function info_of(id)
    local shown = {}
    for _, tuple in ipairs(box.space._vpriv:select({id})) do
        local names = {}
        for _, name in ipairs(PRIVILEGE_ORDER) do
            if bit.band(tuple[5], PRIVILEGES[name]) ~= 0 then
                names[#names + 1] = name
            end
        end
        local kind, object = tuple[3], tuple[4]
        local space = OBJECT_SPACES[kind]
        local found = space and object ~= '' and ladon.as_admin(function()
            return box.space[space]:get({object})
        end)
        shown[#shown + 1] = {table.concat(names, ','), kind, found and found[3] or ''}
    end
    return shown
end

local function make_user(name, kind, auth)
    local owner = ladon.user()
    return insert_numbered(box.space._user, USER_ID_MIN, function(id)
        return {id, owner, name, kind, auth, {}, math.floor(ladon.clock(0))}
    end)
end

function box.schema.user.password(password)
    return ladon.decode(ladon.password_map(password), 1)['chap-sha1']
end

local function auth_of(password)
    if password == nil then
        return map({})
    end
    return map({['chap-sha1'] = box.schema.user.password(password)})
end

function box.schema.user.create(name, options)
    options = check_options(options, {password = 'string', if_not_exists = 'boolean'})
    if box.space._user.index.name:get({name}) ~= nil then
        if options.if_not_exists then
            return
        end
        box.error(box.error.USER_EXISTS, name)
    end
    local id = make_user(name, 'user', auth_of(options.password))
    -- What every user has: the rights of `public`, a session, and its own definition.
    box.space._priv:replace({1, id, 'role', 2, 4})
    box.space._priv:replace({1, id, 'universe', 0, 24})
    box.space._priv:replace({1, id, 'user', id, 128})
end

function box.schema.user.passwd(name, password)
    local id
    if password == nil then
        password, id = name, ladon.user()
    else
        id = grantee_of(name, 'user')
    end
    box.space._user:update({id}, {{'=', 5, auth_of(password)}})
end

local function drop_grantee(id)
    for _, tuple in ipairs(box.space._priv:select({id})) do
        box.space._priv:delete({tuple[2], tuple[3], tuple[4]})
    end
    box.space._user:delete({id})
end

function box.schema.user.drop(name, options)
    local found = box.space._user.index.name:get({name})
    if found == nil or found[4] ~= 'user' then
        if options and options.if_exists then
            return
        end
        box.error(box.error.NO_SUCH_USER, name)
    end
    drop_grantee(found[1])
end

function box.schema.user.exists(name)
    local found = box.space._vuser.index.name:get({name})
    return found ~= nil and found[4] == 'user'
end

function box.schema.user.grant(name, ...)
    grant(grantee_of(name, 'user'), ...)
end

function box.schema.user.revoke(name, ...)
    revoke(grantee_of(name, 'user'), ...)
end

function box.schema.user.enable(name)
    grant(grantee_of(name, 'user'), 'session,usage', 'universe', nil, {if_not_exists = true})
end

function box.schema.user.disable(name)
    revoke(grantee_of(name, 'user'), 'session,usage', 'universe', nil, {if_exists = true})
end

function box.schema.user.info(name)
    return info_of(name and grantee_of(name, 'user', box.space._vuser) or ladon.user())
end

function box.schema.role.create(name, options)
    options = check_options(options, {if_not_exists = 'boolean'})
    local found = box.space._user.index.name:get({name})
    if found ~= nil then
        if options.if_not_exists and found[4] == 'role' then
            return
        end
        box.error(found[4] == 'role' and box.error.ROLE_EXISTS or box.error.USER_EXISTS, name)
    end
    make_user(name, 'role', map({}))
end

function box.schema.role.drop(name, options)
    local found = box.space._user.index.name:get({name})
    if found == nil or found[4] ~= 'role' then
        if options and options.if_exists then
            return
        end
        box.error(box.error.NO_SUCH_ROLE, name)
    end
    drop_privileges('role', found[1])
    drop_grantee(found[1])
end

function box.schema.role.exists(name)
    local found = box.space._vuser.index.name:get({name})
    return found ~= nil and found[4] == 'role'
end

function box.schema.role.grant(name, ...)
    grant(grantee_of(name, 'role'), ...)
end

function box.schema.role.revoke(name, ...)
    revoke(grantee_of(name, 'role'), ...)
end

function box.schema.role.info(name)
    return info_of(grantee_of(name, 'role'))
end

-- Functions.
local FUNC_OPTIONS = {
    setuid = 'boolean', if_not_exists = 'boolean', language = 'string', body = 'string',
    is_deterministic = 'boolean', is_sandboxed = 'boolean', is_multikey = 'boolean',
    aggregate = 'string', returns = 'string', param_list = 'table', exports = 'table',
    comment = 'string', opts = 'table', routine_type = 'string',
}

function box.schema.func.create(name, options)
    options = check_options(options, FUNC_OPTIONS)
    if box.space._func.index.name:get({name}) ~= nil then
        if options.if_not_exists then
            return
        end
        box.error(box.error.FUNCTION_EXISTS, name)
    end
    local language = (options.language or 'LUA'):upper()
    if language ~= 'LUA' then
        box.error(box.error.UNSUPPORTED, 'Ladon', 'functions in ' .. language)
    end
    if options.body ~= nil then
        local chunk, why = loadstring('return ' .. options.body, '@' .. name)
        if chunk == nil then
            box.error(box.error.LOAD_FUNCTION, name, why)
        end
    end
    local owner, now = ladon.user(), os.date('!%Y-%m-%d %H:%M:%S')
    local exports, opts = options.exports or {'LUA'}, options.opts or {}
    insert_numbered(box.space._func, 2, function(id)
        return {
            id, owner, name, options.setuid and 1 or 0, language, options.body or '', 'function',
            setmetatable(options.param_list or {}, ladon.registry['ladon.seq']),
            options.returns or 'any', options.aggregate or 'none', 'none',
            options.is_deterministic or false, options.is_sandboxed or false, true, exports,
            map(opts), options.comment or '', now, now,
        }
    end)
end

function box.schema.func.drop(name, options)
    local found = box.space._func.index.name:get({name})
    if found == nil then
        if options and options.if_exists then
            return
        end
        box.error(box.error.NO_SUCH_FUNCTION, name)
    end
    ladon.as_admin(function()
        drop_privileges('function', found[1])
    end)
    box.space._func:delete({found[1]})
end

function box.schema.func.exists(name)
    return box.space._vfunc.index.name:get({name}) ~= nil
end

local func_methods = {}
local Func = {__index = func_methods}

function func_methods.call(func, arguments)
    ladon.check_call(func.name)
    local body = ladon.body_of(func.name)
    if body ~= nil then
        return body(unpack(arguments or {}))
    end
    local value = _G
    for part in func.name:gmatch('[^%.]+') do
        value = type(value) == 'table' and value[part] or nil
    end
    if value == nil then
        box.error(box.error.NO_SUCH_PROC, func.name)
    end
    return value(unpack(arguments or {}))
end

function func_methods.drop(func)
    box.schema.func.drop(func.name)
end

box.func = setmetatable({}, {
    __index = function(_, name)
        -- Who may not call a function is told so when it does.
        local found = ladon.as_admin(function()
            return box.space._func.index.name:get({name})
        end)
        if found == nil then
            return nil
        end
        return setmetatable({
            id = found[1], uid = found[2], name = found[3], setuid = found[4] == 1,
            language = found[5], body = found[6] ~= '' and found[6] or nil,
        }, Func)
    end,
})
