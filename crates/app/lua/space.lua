-- box.space: spaces and their indexes as objects
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/box_space/).
local ladon = ...

local select_natively, get_natively = ladon.select, ladon.get
local is_tuple = ladon.is_tuple

local ALL, EQ = 2, 0
-- Spaces below are the system's.
local SPACE_ID_MIN = 512
local LIMIT_MAX = 4294967295
-- Tuples that an iterator takes at a time.
local PAGE = 128

local ITERATORS = {
    EQ = 0, REQ = 1, ALL = 2, LT = 3, LE = 4, GE = 5, GT = 6, BITS_ALL_SET = 7, BITS_ANY_SET = 8,
    BITS_ALL_NOT_SET = 9, OVERLAPS = 10, NEIGHBOR = 11,
}
box.index = {}
for name, number in pairs(ITERATORS) do
    box.index[name] = number
end

-- A key for natives: they take a value that is no table as a key of one part.
local function is_whole(key)
    return type(key) == 'table' or is_tuple(key)
end

local function key_of(key)
    if key == nil then
        return {}
    end
    if type(key) == 'table' or is_tuple(key) then
        return key
    end
    return {key}
end

local function iterator_of(options, key)
    local iterator = options
    if type(options) == 'table' then
        iterator = options.iterator
    end
    if iterator == nil then
        local is_empty = is_tuple(key) and #key == 0 or type(key) == 'table' and next(key) == nil
        return is_empty and ALL or EQ
    end
    if type(iterator) == 'number' then
        return iterator
    end
    local number = ITERATORS[tostring(iterator):upper()]
    if number == nil then
        box.error(box.error.ITERATOR_TYPE, tostring(iterator))
    end
    return number
end

local index_methods, space_methods = {}, {}

-- Counts what the program's fibers change: iterators look whether their tuples are still there.
local changes = 0

function ladon.changed()
    changes = changes + 1
end

local function check_index(index, name)
    if type(index) ~= 'table' or index.space_id == nil then
        error(string.format('Use index:%s(...) instead of index.%s(...)', name, name), 3)
    end
end

local function check_space(space, name)
    if type(space) ~= 'table' or space.id == nil then
        error(string.format('Use space:%s(...) instead of space.%s(...)', name, name), 3)
    end
end

-- The primary index, or the error that there is none.
local function primary(space, name)
    check_space(space, name)
    local index = space.index[0]
    if index == nil then
        box.error(box.error.NO_SUCH_INDEX_ID, 0, space.name)
    end
    return index
end

-- What a change of a definition returns, once the objects show it.
local function defined(id, ...)
    if id < SPACE_ID_MIN then
        ladon.spaces()
    end
    return ...
end

-- A method as a call by its name, which knows its errors.
local function call(index, method, ...)
    if ladon.call_method ~= nil then
        return ladon.call_method(index.space_id, index.id, method, ...)
    end
    local space = box.space[index.space_id]
    local name = 'box.space.' .. space.name .. '.index.' .. index.name .. ':' .. method
    return ladon.call(name, {...})
end

function index_methods.select(index, key, options)
    check_index(index, 'select')
    key = key_of(key)
    local offset, limit, after = 0, LIMIT_MAX, nil
    if type(options) == 'table' then
        offset, limit, after = options.offset or 0, options.limit or LIMIT_MAX, options.after
    end
    local iterator = iterator_of(options, key)
    return select_natively(index.space_id, index.id, iterator, offset, limit, key, after)
end

function index_methods.get(index, key)
    check_index(index, 'get')
    local parts = key == nil and 0 or is_whole(key) and #key or 1
    if parts ~= #index.parts then
        box.error(box.error.EXACT_MATCH, #index.parts, parts)
    elseif not index.unique then
        box.error(box.error.MORE_THAN_ONE_TUPLE)
    end
    return get_natively(index.space_id, index.id, key)
end

function index_methods.update(index, key, operations)
    check_index(index, 'update')
    changes = changes + 1
    local id = index.space_id
    if id < SPACE_ID_MIN then
        return defined(id, ladon.update(id, index.id, key, operations))
    end
    return ladon.update(id, index.id, key, operations)
end

function index_methods.delete(index, key)
    check_index(index, 'delete')
    changes = changes + 1
    local id = index.space_id
    if id < SPACE_ID_MIN then
        return defined(id, ladon.delete(id, index.id, key))
    end
    return ladon.delete(id, index.id, key)
end

function index_methods.count(index, key, options)
    check_index(index, 'count')
    key = key_of(key)
    return call(index, 'count', key, {iterator = iterator_of(options, key)})
end

function index_methods.len(index)
    check_index(index, 'len')
    return call(index, 'len')
end

function index_methods.bsize(index)
    check_index(index, 'bsize')
    return call(index, 'bsize')
end

local function named(index, tuple)
    if tuple ~= nil then
        tuple.space = index.space_id
        return tuple
    end
end

function index_methods.min(index, key)
    check_index(index, 'min')
    return named(index, (call(index, 'min', key_of(key))))
end

function index_methods.max(index, key)
    check_index(index, 'max')
    return named(index, (call(index, 'max', key_of(key))))
end

function index_methods.random(index, seed)
    check_index(index, 'random')
    return named(index, (call(index, 'random', seed or math.random(0, 2 ^ 31))))
end

-- Reads a page of tuples, behind one or from the beginning.
local function read_page(state, after)
    local page = select_natively(
        state.space, state.index, state.iterator, 0, state.size, state.key, after)
    state.page, state.at, state.is_last = page, 1, #page < state.size
    state.after, state.seen = after, changes
end

-- An iterator's next tuple. The state is a page of tuples, and where in the index it goes on. What
-- the program has changed meanwhile is read anew: a loop that changes each tuple reads them one by
-- one.
local function next_of(state, at)
    if state.is_ordered and state.seen ~= changes then
        state.size = 1
        read_page(state, state.at > 1 and state.page[state.at - 1] or state.after)
    elseif state.page[state.at] == nil then
        if state.is_last then
            return nil
        end
        state.size = math.min(2 * state.size, PAGE)
        read_page(state, state.page[#state.page])
    end
    local tuple = state.page[state.at]
    if tuple == nil then
        return nil
    end
    state.at = state.at + 1
    return at + 1, tuple
end

-- Whether an iterator can go on behind a tuple that is gone: not where a tuple has several keys.
local function is_ordered(index)
    for _, part in ipairs(index.parts) do
        if part.path ~= nil and part.path:find('[*]', 1, true) then
            return false
        end
    end
    return index.type == 'TREE' and not index.func
end

local function next_tuple(param, state)
    local at, tuple = next_of(state, state.passed)
    if at == nil then
        return nil
    end
    state.passed = at
    return state, tuple
end

function index_methods.pairs(index, key, options)
    check_index(index, 'pairs')
    key = key_of(key)
    local after = type(options) == 'table' and options.after or nil
    local state = {
        space = index.space_id, index = index.id, iterator = iterator_of(options, key), key = key,
        passed = 0, size = PAGE, is_ordered = is_ordered(index),
    }
    read_page(state, after)
    local has_fun, fun = pcall(require, 'fun')
    if has_fun then
        return fun.wrap(next_tuple, nil, state)
    end
    return next_tuple, nil, state
end

function index_methods.stat(index)
    return {}
end

function index_methods.compact(index)
    check_index(index, 'compact')
end

function space_methods.insert(space, tuple)
    check_space(space, 'insert')
    changes = changes + 1
    local id = space.id
    if id < SPACE_ID_MIN then
        return defined(id, ladon.put(id, tuple, false))
    end
    return ladon.put(id, tuple, false)
end

function space_methods.replace(space, tuple)
    check_space(space, 'replace')
    changes = changes + 1
    local id = space.id
    if id < SPACE_ID_MIN then
        return defined(id, ladon.put(id, tuple, true))
    end
    return ladon.put(id, tuple, true)
end
space_methods.put = space_methods.replace

function space_methods.get(space, key)
    return index_methods.get(primary(space, 'get'), key)
end

function space_methods.select(space, key, options)
    return index_methods.select(primary(space, 'select'), key, options)
end

function space_methods.update(space, key, operations)
    return index_methods.update(primary(space, 'update'), key, operations)
end

function space_methods.upsert(space, tuple, operations, deprecated)
    check_space(space, 'upsert')
    changes = changes + 1
    return ladon.upsert(space.id, tuple, operations)
end

function space_methods.delete(space, key)
    return index_methods.delete(primary(space, 'delete'), key)
end

function space_methods.count(space, key, options)
    check_space(space, 'count')
    local index = space.index[0]
    return index == nil and 0 or index_methods.count(index, key, options)
end

function space_methods.len(space)
    check_space(space, 'len')
    local index = space.index[0]
    return index == nil and 0 or index_methods.len(index)
end

function space_methods.bsize(space)
    check_space(space, 'bsize')
    return (ladon.call('box.space.' .. space.name .. ':bsize', {}))
end

function space_methods.pairs(space, key, options)
    check_space(space, 'pairs')
    local index = space.index[0]
    if index == nil then
        return function() end
    end
    return index_methods.pairs(index, key, options)
end

function space_methods.auto_increment(space, tuple)
    local last = index_methods.max(primary(space, 'auto_increment'))
    table.insert(tuple, 1, (last and last[1] or 0) + 1)
    return space_methods.insert(space, tuple)
end

function space_methods.frommap(space, map, options)
    check_space(space, 'frommap')
    if type(map) ~= 'table' then
        error('Usage: space:frommap(map, opts)', 2)
    end
    local names, tuple, most = ladon.formats[space.id] or {}, {}, 0
    for name in pairs(map) do
        if names[name] == nil then
            local err = box.error.new({code = 0, reason = ("Unknown field '%s'"):format(name)})
            return nil, err
        end
    end
    for name, at in pairs(names) do
        local value = map[name]
        if value ~= nil then
            tuple[at] = value
            most = math.max(most, at)
        end
    end
    for at = 1, most do
        if tuple[at] == nil then
            tuple[at] = box.NULL
        end
    end
    if options and options.table then
        return tuple
    end
    return ladon.tuple_new(setmetatable(tuple, ladon.registry['ladon.seq']), space.id)
end

ladon.space_methods, ladon.index_methods = space_methods, index_methods

-- What a program may add methods to: those of all spaces, of all indexes, and of an engine's
-- indexes, which look in those of all.
local engine_methods = {
    memtx = setmetatable({}, {__index = index_methods}),
    vinyl = setmetatable({}, {__index = index_methods}),
}
ladon.methods_shown = {
    space_mt = space_methods, index_mt = index_methods,
    memtx_index_mt = engine_methods.memtx, vinyl_index_mt = engine_methods.vinyl,
}

-- Metatables of single objects: what is put into one is a method of that object alone.
local OwnMethods = {
    __newindex = function(metatable, name, method)
        local shared = metatable.__index
        rawset(metatable, name, method)
        if type(shared) == 'table' then
            rawset(metatable, '__index', function(_, key)
                local own = rawget(metatable, key)
                if own ~= nil then
                    return own
                end
                return shared[key]
            end)
        end
    end,
}

local function with_methods(object, methods)
    return setmetatable(object, setmetatable({__index = methods}, OwnMethods))
end

-- Methods of schema.lua are put in there too.

-- All spaces, by number and by name, and the version of the schema that they are of.
local spaces, version = {}, nil

local SPACES, INDEXES, FUNCTIONS = 281, 289, 296

local function parts_of(parts)
    local shown = {}
    for at, part in ipairs(parts) do
        local field, of = part.field or part[1], part.type or part[2]
        shown[at] = {
            fieldno = field + 1, type = of, is_nullable = part.is_nullable or false,
            collation = part.collation, path = part.path,
        }
    end
    return shown
end

-- The indexes of each space that programs may hold.
local known = setmetatable({}, {__mode = 'k'})

-- What is shown of the function that makes an index's keys.
local function function_of_index(id, functions)
    local options = functions[id] ~= nil and functions[id][16]
    return {fid = id, is_multikey = options and options.is_multikey or false}
end

local function fill_indexes(space, tuples, functions)
    for key in pairs(space.index) do
        space.index[key] = nil
    end
    for _, tuple in ipairs(tuples) do
        local number, name, options = tuple[2], tuple[3], tuple[5]
        local before = known[space][number]
        local index = before
            or with_methods({}, engine_methods[space.engine] or engine_methods.memtx)
        known[space][number] = index
        index.id, index.name, index.space_id = number, name, space.id
        index.type = tuple[4]:upper()
        index.unique = options.unique ~= false
        index.parts = parts_of(tuple[6])
        index.hint = nil
        index.func = options.func and function_of_index(options.func, functions)
        space.index[number], space.index[name] = index, index
    end
end

local function fill_format(space, format)
    local names, has_names = {}, false
    for at, field in ipairs(format) do
        local name = field.name or field[1]
        if name ~= nil then
            names[name], has_names = at, true
        end
    end
    ladon.formats[space.id] = has_names and names or nil
end

-- Brings a space's object up to date with the tuples that define it. Makes it if there is none.
local function fill_space(space, tuple, indexes, functions)
    local id, flags = tuple[1], tuple[6]
    if space == nil then
        space = with_methods({index = {}}, space_methods)
        known[space] = {}
    end
    space.id, space.name, space.engine, space.field_count = id, tuple[3], tuple[4], tuple[5]
    space.temporary = flags.temporary or false
    space.is_local = flags.group_id == 1
    space.is_sync = flags.is_sync or false
    space.ck_constraint = ladon.checks_of(id, flags)
    fill_format(space, tuple[7])
    fill_indexes(space, indexes, functions)
    space.enabled = space.index[0] ~= nil
    return space
end
ladon.fill_space = fill_space

local function reload()
    local seen = ladon.schema_version()
    if seen == version then
        return
    end
    -- All is read before an object changes: a read may raise an error, or let other fibers run.
    local tuples = select_natively(SPACES, 0, ALL, 0, LIMIT_MAX, {})
    local by_space, functions = {}, {}
    for _, tuple in ipairs(select_natively(INDEXES, 0, ALL, 0, LIMIT_MAX, {})) do
        local id = tuple[1]
        by_space[id] = by_space[id] or {}
        table.insert(by_space[id], tuple)
    end
    for _, tuple in ipairs(select_natively(FUNCTIONS, 0, ALL, 0, LIMIT_MAX, {})) do
        functions[tuple[1]] = tuple
    end
    local before = spaces
    spaces = {}
    for _, tuple in ipairs(tuples) do
        local id = tuple[1]
        local space = fill_space(before[id], tuple, by_space[id] or {}, functions)
        spaces[id], spaces[space.name] = space, space
    end
    version = seen
    ladon.triggers_reloaded(spaces)
end

-- `seen` is the version of the definitions, if the caller knows it.
local function current(seen)
    if (seen or ladon.schema_version()) ~= version then
        ladon.as_admin(reload)
    end
    return spaces
end
ladon.spaces = current

-- The system spaces are shown by their names, as all are.
box.space = setmetatable({}, {
    __index = function(_, key)
        if ladon.schema_version() == nil then
            error('Please call box.cfg{} first', 2)
        end
        return current()[key]
    end,
    __pairs = function()
        return pairs(current())
    end,
    __serialize = function()
        local shown = {}
        for key, space in pairs(current()) do
            if type(key) == 'string' then
                shown[key] = space
            end
        end
        return shown
    end,
})
