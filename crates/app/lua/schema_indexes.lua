-- Definitions of indexes: space:create_index, and methods of indexes that define.
local ladon = ...

local space_methods, index_methods = ladon.space_methods, ladon.index_methods
local definitions = ladon.definitions
local map, usage, check_options = definitions.map, definitions.usage, definitions.check_options

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
        definitions.drop_sequence_of(index.space_id)
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
        definitions.drop_sequence_of(space.id)
        if options.sequence then
            box.space._space_sequence:insert(make_sequence(space, options.sequence, tuple[6]))
        end
    end
end
