-- Persistent functions on the threads that have the requests: what they see
-- (https://www.tarantool.io/en/doc/2.6/reference/reference_lua/box_schema/func_create/).
local ladon = ...

local leave, look = ladon.leave, ladon.look
local registry = ladon.registry

-- What `error.lua` and `space.lua` ask for of a program.
function ladon.denied() end
function ladon.checks_of() end
function ladon.triggers_reloaded() end
function ladon.as_admin(func, ...)
    return func(...)
end
function ladon.call(name)
    leave(name)
end

-- Spaces below are the system's.
local SPACE_ID_MIN = 512
-- Texts, and tables to be sorted, that are longer take too long.
local TEXT_MAX, SORTED_MAX = 16384, 1000
-- Steps of a match.
local MATCHED_MAX = 100000

-- A table for functions: they read its fields, and leave where they change it or ask for another one.
local function closed(name, fields)
    setmetatable(fields, {
        __index = function(_, key)
            leave(name .. tostring(key))
        end,
    })
    local function refuse()
        leave('a change of ' .. name)
    end
    return setmetatable({}, {
        __index = fields, __newindex = refuse, __metatable = false,
        __pairs = function()
            leave('all of ' .. name)
        end,
    })
end

local function some(of, names)
    local taken = {}
    for _, name in ipairs(names) do
        taken[name] = of[name]
    end
    return taken
end

-- The library's functions, of which those are bounded that take long.

local strings = table.copy(string)
strings.dump = nil

local rep = string.rep
local patterns = ladon.bounded_patterns(function(steps)
    look()
    if steps > MATCHED_MAX then
        leave()
    end
end)
for name, func in pairs(patterns) do
    strings[name] = func
end

function strings.rep(text, count, ...)
    if type(text) == 'string' and type(count) == 'number' and #text * count > TEXT_MAX then
        leave()
    end
    return rep(text, count, ...)
end

-- A function whose texts are short.
local function bounded(func)
    return function(first, ...)
        look()
        if type(first) == 'string' and #first > TEXT_MAX then
            leave()
        end
        return func(first, ...)
    end
end

strings.split = bounded(strings.split)

local tables = some(table, {
    'concat', 'insert', 'remove', 'maxn', 'copy', 'deepcopy', 'unpack', 'equals',
})
local sort = table.sort
function tables.sort(list, ...)
    if type(list) == 'table' and #list > SORTED_MAX then
        leave()
    end
    return sort(list, ...)
end

local maths = table.copy(math)
maths.randomseed = nil

-- Modules without effects, and what of them takes nothing but values.
local MODULES = {
    json = {'encode', 'decode', 'NULL'},
    msgpack = {'encode', 'decode', 'NULL'},
    decimal = {'new', 'is_decimal', 'abs', 'exp', 'ln', 'log10', 'sqrt', 'round', 'scale', 'precision'},
    uuid = {'new', 'str', 'bin', 'fromstr', 'frombin', 'is_uuid', 'NULL'},
    clock = {'time', 'realtime', 'monotonic', 'proc', 'time64', 'realtime64', 'monotonic64'},
    digest = {
        'md5', 'md5_hex', 'sha1', 'sha1_hex', 'sha256', 'sha256_hex', 'sha512', 'sha512_hex',
        'base64_encode', 'base64_decode', 'crc32', 'guava',
    },
    string = {}, table = {}, math = {}, os = {},
}

local modules = {}
local load_module = require

local function module_of(name)
    local names, module = MODULES[name], modules[name]
    if module ~= nil then
        return module
    elseif names == nil then
        leave("module '" .. tostring(name) .. "'")
    end
    local fields = some(load_module(name), names)
    for key, value in pairs(fields) do
        fields[key] = type(value) == 'function' and bounded(value) or value
    end
    modules[name] = closed(name .. '.', fields)
    return modules[name]
end

-- box, as far as it is about tuples.

local raise = getmetatable(box.error).__call
local errors = setmetatable({new = box.error.new}, {
    __index = function(_, key)
        local code = box.error[key]
        if type(code) ~= 'number' then
            leave('box.error.' .. tostring(key))
        end
        return code
    end,
})
local error_object = setmetatable({}, {
    __index = errors, __metatable = false,
    __newindex = function()
        leave('a change of box.error')
    end,
    __call = function(self, ...)
        if select('#', ...) == 0 then
            leave('the last error')
        end
        return raise(self, ...)
    end,
})

local known = {
    NULL = box.NULL, error = error_object, tuple = closed('box.tuple.', box.tuple),
    index = closed('box.index.', box.index), is_in_txn = ladon.in_transaction,
}

function known.begin()
    if ladon.in_transaction() then
        box.error(box.error.ACTIVE_TRANSACTION)
    end
    ladon.begin()
end

function known.commit()
    ladon.commit()
end

function known.rollback()
    ladon.rollback()
end

local function finish_atomic(is_ok, ...)
    if not is_ok then
        ladon.rollback()
        -- A text gets the place that has called `box.atomic`, which is no tail call here.
        error((...), 3)
    end
    ladon.commit()
    return ...
end

function known.atomic(func, ...)
    known.begin()
    return finish_atomic(pcall(func, ...))
end

function known.savepoint()
    if not ladon.in_transaction() then
        box.error(box.error.NO_TRANSACTION)
    end
    return {csavepoint = ladon.savepoint()}
end

function known.rollback_to_savepoint(savepoint)
    if type(savepoint) ~= 'table' or type(savepoint.csavepoint) ~= 'number' then
        error('Usage: box.rollback_to_savepoint(savepoint)', 0)
    end
    if not ladon.in_transaction() or not ladon.go_back(savepoint.csavepoint) then
        box.error(box.error.NO_SUCH_SAVEPOINT)
    end
end

-- Methods that are calls by their names in a program.
function ladon.call_method(space, index, method, key, options)
    if method == 'count' then
        return ladon.count(space, index, options.iterator, key)
    elseif method == 'len' then
        return ladon.len(space, index)
    elseif method == 'min' or method == 'max' then
        return ladon.extreme(space, index, method == 'max', key)
    end
    leave('method ' .. method)
end

local function missing(_, key)
    leave(("field '%s' of a space or an index"):format(tostring(key)))
end

-- An object of a space or an index, that functions cannot change: what it has of its own, and methods.
local function object_for(original, methods)
    local fields = {}
    for _, of in ipairs({methods, original}) do
        for name, value in pairs(of) do
            fields[name] = value
        end
    end
    return fields, setmetatable({}, {
        __index = setmetatable(fields, {__index = missing}), __metatable = false,
        __newindex = function()
            leave('a change of a space')
        end,
        __pairs = function()
            leave('all fields of a space')
        end,
    })
end

-- Objects by number and name, of which there may be none. `find`, if it is given, makes one that is not
-- there yet.
local function list_of(objects, find)
    if find then
        setmetatable(objects, {
            __index = function(_, key)
                return find(key)
            end,
        })
    end
    return setmetatable({}, {
        __index = objects, __metatable = false,
        __newindex = function()
            leave('a change of box.space')
        end,
        __pairs = function()
            leave('all spaces')
        end,
    })
end

local function is_of_system(key)
    return type(key) == 'number' and key < SPACE_ID_MIN
        or type(key) == 'string' and key:sub(1, 1) == '_'
end

local fields_of_box = closed('box.', known)

local get, put, update, delete = ladon.get, ladon.put, ladon.update, ladon.delete

-- The methods of a space that are called most, without looks at what is known of it. `is_simple`: its
-- primary key has one part.
local function add_quick_methods(object, fields, is_simple)
    local id = fields.id
    local function is_key(value)
        local kind = type(value)
        return kind == 'number' or kind == 'string'
    end
    local slow_insert, slow_replace = fields.insert, fields.replace
    function fields.insert(space, tuple)
        if space == object then
            return put(id, tuple, false)
        end
        return slow_insert(space, tuple)
    end
    function fields.replace(space, tuple)
        if space == object then
            return put(id, tuple, true)
        end
        return slow_replace(space, tuple)
    end
    fields.put = fields.replace
    if not is_simple then
        return
    end
    local slow_get, slow_update, slow_delete = fields.get, fields.update, fields.delete
    function fields.get(space, key)
        if space == object and is_key(key) then
            return get(id, 0, key)
        end
        return slow_get(space, key)
    end
    function fields.update(space, key, operations)
        if space == object and is_key(key) then
            return update(id, 0, key, operations)
        end
        return slow_update(space, key, operations)
    end
    function fields.delete(space, key)
        if space == object and is_key(key) then
            return delete(id, 0, key)
        end
        return slow_delete(space, key)
    end
end

local SPACES, INDEXES, FUNCTIONS = 281, 289, 296
local EQ, BY_NAME = 0, 2
-- Names that no space has are remembered.
local ABSENT_MAX, LIMIT_MAX = 1000, 4294967295

local function select_definitions(space, index, key)
    return ladon.definitions(space, index, EQ, 0, LIMIT_MAX, key)
end

-- A space by its name or number, as it is defined now; nil if there is none.
local function defined(key)
    local index = type(key) == 'number' and 0 or BY_NAME
    local tuple = select_definitions(SPACES, index, {key})[1]
    if tuple == nil then
        return nil
    end
    local functions = {}
    local indexes = select_definitions(INDEXES, 0, {tuple[1]})
    for _, one in ipairs(indexes) do
        local number = one[5].func
        functions[number or 0] = number and select_definitions(FUNCTIONS, 0, {number})[1]
    end
    return ladon.fill_space(nil, tuple, indexes, functions)
end

local function make_object(space)
    local fields, object = object_for(space, ladon.space_methods)
    local indexes, primary = {}, space.index[0]
    for name, index in pairs(space.index) do
        indexes[name] = select(2, object_for(index, ladon.index_methods))
    end
    fields.index = list_of(indexes)
    add_quick_methods(object, fields, primary ~= nil and #primary.parts == 1)
    return object
end

-- Forgets the objects of spaces, since definitions have changed. They are made when they are asked for.
registry['ladon.forget'] = function()
    local objects, absent, absent_count = {}, {}, 0
    known.space = list_of(objects, function(key)
        local is_key = type(key) == 'string' or type(key) == 'number'
        if is_of_system(key) then
            leave('box.space.' .. tostring(key))
        elseif not is_key or absent[key] then
            return nil
        end
        local space = defined(key)
        if space == nil then
            absent_count = absent_count + 1
            absent[key] = absent_count <= ABSENT_MAX or nil
            return nil
        end
        local object = rawget(objects, space.id) or make_object(space)
        objects[space.id], objects[space.name] = object, object
        return object
    end)
end

local function metatable_of(value)
    if type(value) ~= 'table' then
        leave('a metatable of a ' .. type(value))
    end
    return getmetatable(value)
end

local globals = some(_G, {
    'assert', 'error', 'ipairs', 'next', 'pairs', 'pcall', 'rawequal', 'select', 'setmetatable',
    'tonumber', 'tostring', 'type', 'unpack', 'xpcall',
})
globals.getmetatable, globals.require = metatable_of, module_of
globals.box = fields_of_box
globals.string, globals.table = closed('string.', strings), closed('table.', tables)
globals.math = closed('math.', maths)
globals.os = closed('os.', some(os, {'clock', 'date', 'difftime', 'time'}))
for _, name in ipairs({'string', 'table', 'math', 'os'}) do
    modules[name] = globals[name]
end
-- Methods of texts.
debug.getmetatable('').__index = strings

local environment = setmetatable({}, {
    __index = setmetatable(globals, {
        __index = function(_, key)
            leave("global '" .. tostring(key) .. "'")
        end,
    }),
    __newindex = function(_, key)
        leave("a change of global '" .. tostring(key) .. "'")
    end,
    __metatable = false,
})

-- Makes a function of its text. One with upvalues may keep something from call to call.
registry['ladon.prepare'] = function(text)
    local chunk, why = loadstring('return ' .. text)
    if chunk == nil then
        error(why, 0)
    end
    local func = setfenv(chunk, environment)()
    if type(func) ~= 'function' then
        error('a value that is no function', 0)
    elseif debug.getupvalue(func, 1) ~= nil then
        error('variables of its own', 0)
    end
    return func
end
