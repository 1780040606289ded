-- key_def: the parts of a key, and how tuples compare by them
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/key_def/).
local ladon = ...
local ffi = require('ffi')

ffi.cdef('struct key_def { uint32_t number; };')

local USAGE = 'Bad params, use: key_def.new({{fieldno = fieldno, type = type'
    .. '[, is_nullable = <boolean>][, path = <string>][, collation_id = <number>]'
    .. '[, collation = <string>]}, ...}'
local EMPTY = 'Key definition can only be constructed by using at least 1 key_part'
local PARTS_MAX = 255

-- Collations that can be had without a space: their numbers and names.
local COLLATIONS = {none = 0, unicode = 1, unicode_ci = 2, binary = 3}
local COLLATION_NAMES = {[0] = 'none', 'unicode', 'unicode_ci', 'binary'}

-- In which order values of different types come in a scalar part.
local RANKS = {null = 0, boolean = 1, number = 2, string = 3, uuid = 4}

local int64, uint64 = ffi.typeof('int64_t'), ffi.typeof('uint64_t')
local decimal, uuid
local function load_types()
    decimal, uuid = decimal or require('decimal'), uuid or require('uuid')
end

local function is_integer(value)
    return type(value) == 'cdata' and (ffi.istype(int64, value) or ffi.istype(uint64, value))
end

local function kind_of(value)
    if value == nil then
        return 'null'
    elseif type(value) == 'cdata' then
        if is_integer(value) or ffi.istype('float', value) or ffi.istype('double', value)
            or decimal.is_decimal(value) then
            return 'number'
        elseif ffi.istype('bool', value) then
            return 'boolean'
        elseif uuid.is_uuid ~= nil and uuid.is_uuid(value)
            or ffi.istype('struct tt_uuid', value) then
            return 'uuid'
        end
        return 'cdata'
    end
    return type(value)
end

local function is_whole(value)
    return is_integer(value) or type(value) == 'number' and value % 1 == 0
end

local TYPES = {
    unsigned = function(value)
        return is_whole(value) and value >= 0
    end,
    integer = is_whole,
    number = function(_, kind)
        return kind == 'number'
    end,
    double = function(value)
        return type(value) == 'number' or ffi.istype('double', value)
    end,
    decimal = function(value)
        return decimal.is_decimal(value)
    end,
    string = function(_, kind)
        return kind == 'string'
    end,
    boolean = function(_, kind)
        return kind == 'boolean'
    end,
    uuid = function(_, kind)
        return kind == 'uuid'
    end,
    scalar = function(_, kind)
        return RANKS[kind] ~= nil
    end,
}

-- Numbers of different kinds are compared as decimals, which lose nothing of integers.
local function compare_numbers(left, right)
    if type(left) ~= type(right) or type(left) == 'cdata' then
        if left ~= left or right ~= right then
            return 0
        elseif type(left) == 'number' and math.abs(left) == math.huge then
            return left > 0 and 1 or -1
        elseif type(right) == 'number' and math.abs(right) == math.huge then
            return right > 0 and -1 or 1
        end
        left, right = decimal.new(left), decimal.new(right)
    end
    return left < right and -1 or left == right and 0 or 1
end

local function compare_texts(left, right, collation)
    if collation == 'unicode' then
        return require('utf8').cmp(left, right)
    elseif collation == 'unicode_ci' then
        return require('utf8').casecmp(left, right)
    end
    return left < right and -1 or left == right and 0 or 1
end

local function compare_values(left, right, part)
    local left_kind, right_kind = kind_of(left), kind_of(right)
    if left_kind ~= right_kind then
        return RANKS[left_kind] < RANKS[right_kind] and -1 or 1
    elseif left_kind == 'null' then
        return 0
    elseif left_kind == 'number' then
        return compare_numbers(left, right)
    elseif left_kind == 'string' then
        return compare_texts(left, right, part.collation)
    elseif left_kind == 'uuid' then
        return compare_texts(left:bin('b'), right:bin('b'))
    elseif left == right then
        return 0
    end
    return left and 1 or -1
end

local parts_of = {}
local count = 0
local key_def_type

local function check(value, name)
    local parts = type(value) == 'cdata' and parts_of[value.number]
    if not parts then
        error('Usage: key_def:' .. name, 3)
    end
    return parts
end

local function check_tuple(value)
    if type(value) ~= 'table' and not ladon.is_tuple(value) then
        error('A tuple or a table expected, got ' .. type(value), 3)
    end
end

-- The value of a part in a tuple, checked.
local function value_of(tuple, part, place)
    local value = tuple[part.fieldno]
    for _, name in ipairs(part.names) do
        if type(value) ~= 'table' then
            value = nil
            break
        end
        value = value[name]
    end
    if value == nil then
        if not part.is_nullable then
            box.error(box.error.FIELD_MISSING,
                ('[%d]%s'):format(part.fieldno, part.path or ''))
        end
        return box.NULL
    end
    local kind = kind_of(value)
    if not TYPES[part.type](value, kind) then
        box.error(box.error.KEY_PART_TYPE, place - 1, part.type)
    end
    return value
end

local function key_of(parts, tuple)
    local key = {}
    for place, part in ipairs(parts) do
        key[place] = value_of(tuple, part, place)
    end
    return key
end

local methods = {}

function methods.extract_key(key_def, tuple)
    local parts = check(key_def, 'extract_key(tuple)')
    check_tuple(tuple)
    return box.tuple.new(key_of(parts, tuple))
end

function methods.compare(key_def, left, right)
    local parts = check(key_def, 'compare(tuple_a, tuple_b)')
    check_tuple(left)
    check_tuple(right)
    for place, part in ipairs(parts) do
        local order = compare_values(
            value_of(left, part, place), value_of(right, part, place), part)
        if order ~= 0 then
            return order
        end
    end
    return 0
end

function methods.compare_with_key(key_def, tuple, key)
    local parts = check(key_def, 'compare_with_key(tuple, key)')
    check_tuple(tuple)
    check_tuple(key)
    local length = #key
    if length > #parts then
        box.error(box.error.KEY_PART_COUNT, #parts, length)
    end
    for place = 1, length do
        local part, value = parts[place], key[place]
        local kind = kind_of(value)
        if value ~= nil and not TYPES[part.type](value, kind) then
            box.error(box.error.KEY_PART_TYPE, place - 1, part.type)
        end
        local order = compare_values(value_of(tuple, part, place), value, part)
        if order ~= 0 then
            return order
        end
    end
    return 0
end

function methods.totable(key_def)
    local shown = {}
    for place, part in ipairs(check(key_def, 'totable()')) do
        local one = {type = part.type, fieldno = part.fieldno}
        one.path, one.collation, one.is_nullable = part.path, part.collation, part.is_nullable
        shown[place] = one
    end
    return shown
end

local function new_of(parts)
    count = count + 1
    local key_def = key_def_type(count)
    parts_of[count] = parts
    return ffi.gc(key_def, function(value)
        parts_of[value.number] = nil
    end)
end

-- The parts of the first, then those of the second that the first has not.
function methods.merge(key_def, second)
    local merged, seen = {}, {}
    for _, parts in ipairs({check(key_def, 'merge(second_key_def)'),
                            check(second, 'merge(second_key_def)')}) do
        for _, part in ipairs(parts) do
            local name = part.fieldno .. ' ' .. (part.path or '')
            if not seen[name] then
                seen[name] = true
                merged[#merged + 1] = part
            end
        end
    end
    return new_of(merged)
end

function methods.__serialize(key_def)
    return methods.totable(key_def)
end

key_def_type = ffi.metatype('struct key_def', {
    __index = methods,
    __tostring = function()
        return '<struct key_def &>'
    end,
})

local function collation_of(given, number)
    if given.collation_id ~= nil and given.collation ~= nil then
        error('Conflicting options: collation_id and collation', 4)
    elseif given.collation_id ~= nil then
        local name = COLLATION_NAMES[given.collation_id]
        if name == nil or not ladon.is_configured() then
            box.error(box.error.WRONG_INDEX_OPTIONS, number, 'collation was not found by ID')
        end
        return name ~= 'none' and name or nil
    elseif given.collation ~= nil then
        if COLLATIONS[given.collation] == nil or not ladon.is_configured() then
            error(('Unknown collation: "%s"'):format(tostring(given.collation)), 0)
        end
        return given.collation ~= 'none' and given.collation or nil
    end
end

local function part_of(given)
    if type(given) ~= 'table' then
        error(USAGE, 0)
    end
    if given.field ~= nil and given.fieldno ~= nil then
        error('Conflicting options: fieldno and field', 0)
    end
    local number = given.fieldno or given.field
    if type(number) ~= 'number' or number < 1 or number % 1 ~= 0 then
        error(number == nil and 'fieldno must not be nil' or 'fieldno must be a whole number', 0)
    elseif given.type == nil then
        error('type must not be nil', 0)
    elseif TYPES[given.type] == nil then
        error('Unknown field type: ' .. tostring(given.type), 0)
    end
    local names = {}
    if given.path ~= nil then
        if type(given.path) == 'string' and given.path:find('[*]', 1, true) then
            error('multikey path is unsupported', 0)
        end
        names = type(given.path) == 'string' and ladon.path_parts(given.path)
        if not names then
            error('invalid path', 0)
        end
    end
    return {
        fieldno = number, type = given.type, is_nullable = given.is_nullable or false,
        path = given.path, names = names, collation = collation_of(given, number),
    }
end

local key_def = {}

function key_def.new(...)
    local given = ...
    if select('#', ...) ~= 1 or type(given) ~= 'table' then
        error(USAGE, 0)
    end
    load_types()
    if #given == 0 then
        error(EMPTY, 0)
    elseif #given > PARTS_MAX then
        error(('a key has %d parts at most'):format(PARTS_MAX), 0)
    end
    local parts = {}
    for place, part in ipairs(given) do
        parts[place] = part_of(part)
    end
    return new_of(parts)
end

ladon.module('key_def', function()
    return key_def
end)
ladon.module('tuple.keydef', function()
    return key_def
end)
