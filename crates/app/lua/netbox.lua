-- net.box: a client of another server, or of this one
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/net_box/).
local ladon = ...

local GREETING_BYTES = 128
local map_mark = ladon.registry['ladon.map']

local OK, SELECT, INSERT, REPLACE, UPDATE, DELETE = 0, 1, 2, 3, 4, 5
local AUTH, EVAL, UPSERT, CALL, PING, CHUNK = 7, 8, 9, 10, 64, 128
local WATCH, UNWATCH, EVENT = 74, 75, 76
local KEY = {
    TYPE = 0x00, SYNC = 0x01, SCHEMA_VERSION = 0x05, SPACE = 0x10, INDEX = 0x11, LIMIT = 0x12,
    OFFSET = 0x13, ITERATOR = 0x14, INDEX_BASE = 0x15, KEY = 0x20, TUPLE = 0x21, FUNCTION = 0x22,
    USER = 0x23, EXPRESSION = 0x27, OPERATIONS = 0x28, DATA = 0x30, ERROR = 0x31, ERROR_STACK = 0x52,
    EVENT_KEY = 0x57, EVENT_DATA = 0x58,
}
local ITERATORS = box.index
local LIMIT_MAX = 4294967295

local function map(of)
    return setmetatable(of, map_mark)
end

local function packet(kind, sync, body)
    local text = ladon.encode(map({[KEY.TYPE] = kind, [KEY.SYNC] = sync})) .. ladon.encode(map(body))
    local length = #text
    return string.char(
        0xce, math.floor(length / 16777216) % 256, math.floor(length / 65536) % 256,
        math.floor(length / 256) % 256, length % 256) .. text
end

local connection_methods = {}
local Connection = {__index = connection_methods}

local function no_connection(connection, why)
    return box.error.new({
        code = box.error.NO_CONNECTION, type = 'ClientError', reason = why or 'Connection is not established',
    })
end

local function set_state(connection, state, err)
    connection.state, connection.error = state, err and tostring(err) or nil
    for _, request in pairs(connection.requests) do
        if state ~= 'active' then
            request.failed = err or no_connection(connection)
            request.cond:broadcast()
        end
    end
    if state ~= 'active' then
        connection.requests = {}
    end
    connection.changed:broadcast()
end

-- Fails everything that waits, and says why.
local function fail(connection, why)
    if connection.socket ~= nil then
        connection.socket:close()
        connection.socket = nil
    end
    local state = connection.is_closed and 'closed' or connection.options.reconnect_after
        and 'error_reconnect' or 'error'
    set_state(connection, state, no_connection(connection, why))
end

local function read_packet(socket)
    local head = socket:read(5)
    if head == nil or #head < 5 then
        return nil
    end
    local length = ladon.decode(head, 1)
    local text = socket:read(length)
    if text == nil or #text < length then
        return nil
    end
    return text
end

-- Sends whatever waits, in one piece.
local function send_loop(connection, socket)
    while connection.socket == socket do
        if #connection.outgoing == 0 then
            connection.has_outgoing:wait()
        else
            local text = table.concat(connection.outgoing)
            connection.outgoing = {}
            if socket:write(text) == nil then
                return
            end
        end
    end
end

local function enqueue(connection, text)
    connection.outgoing[#connection.outgoing + 1] = text
    connection.has_outgoing:signal()
end

local function ask_for_events(connection, key)
    if connection.state == 'active' then
        enqueue(connection, packet(WATCH, 0, {[KEY.EVENT_KEY] = key}))
    end
end

-- Once it is asked for again, the server sends the next one.
local function event_came(connection, body)
    local key, value = body[KEY.EVENT_KEY], body[KEY.EVENT_DATA]
    local entry = connection.watched.entries[key]
    if entry ~= nil and next(entry.watchers) ~= nil then
        connection.watched:changed(key, value ~= nil and ladon.encode(value) or nil)
        ask_for_events(connection, key)
    end
end

local function read_loop(connection, socket)
    while true do
        local text = read_packet(socket)
        if text == nil then
            return 'Peer closed'
        end
        local header, at = ladon.decode(text, 1)
        local body = {}
        if at <= #text then
            body = ladon.decode(text, at)
        end
        if tonumber(header[KEY.TYPE]) == EVENT then
            event_came(connection, body)
        end
        local sync = tonumber(header[KEY.SYNC])
        local request = connection.requests[sync]
        if request ~= nil and tonumber(header[KEY.TYPE]) == CHUNK then
            local pushed = request.pushed
            pushed[#pushed + 1] = body[KEY.DATA][1]
            request.cond:broadcast()
        elseif request ~= nil then
            connection.requests[sync] = nil
            request.kind, request.body = tonumber(header[KEY.TYPE]), body
            request.is_done = true
            request.cond:broadcast()
        end
    end
end

local function begin(connection, kind, body)
    connection.sync = connection.sync + 1
    local request = {
        cond = ladon.fiber.cond(), connection = connection, number = connection.sync,
        -- What came ahead of the answer.
        pushed = {},
    }
    connection.requests[connection.sync] = request
    enqueue(connection, packet(kind, connection.sync, body))
    return request
end

-- Waits for a request's answer and returns its data; raises its error.
-- What has come ahead of the answer goes to `on_push`, if there is one. A future goes on when the
-- time is over; another request is given up.
local function finish(request, timeout, on_push, context, is_future)
    local stop = timeout and ladon.clock(1) + timeout
    while true do
        while on_push and #request.pushed > 0 do
            on_push(context, table.remove(request.pushed, 1))
        end
        if request.is_done or request.failed ~= nil then
            break
        end
        local left = stop and stop - ladon.clock(1)
        if left ~= nil and left <= 0 then
            if not is_future then
                request.connection.requests[request.number] = nil
            end
            box.error(box.error.TIMEOUT)
        end
        request.cond:wait(left)
    end
    if request.failed ~= nil then
        error(request.failed, 0)
    end
    if request.kind ~= OK then
        local stack = request.body[KEY.ERROR_STACK]
        local err = type(stack) == 'table' and type(stack[0]) == 'table'
            and ladon.restore_error(stack[0])
            or box.error.new({code = request.kind % 32768, reason = request.body[KEY.ERROR]})
        box.error.set(err)
        error(err, 0)
    end
    return request.body[KEY.DATA] or {}
end

local function log_in(connection, socket, greeting)
    local user, password = connection.options.user, connection.options.password
    if user == nil then
        return true
    end
    local tuple = {}
    if password ~= nil then
        tuple = {'chap-sha1', ladon.scramble(greeting, password)}
    end
    socket:write(packet(AUTH, 0, {[KEY.USER] = user, [KEY.TUPLE] = tuple}))
    local text = read_packet(socket)
    if text == nil then
        return false, 'Peer closed'
    end
    local header, at = ladon.decode(text, 1)
    if tonumber(header[KEY.TYPE]) ~= OK then
        return false, ladon.decode(text, at)[KEY.ERROR]
    end
    return true
end

local function connect_once(connection)
    local options = connection.options
    local socket, why = require('socket').tcp_connect(
        connection.host, connection.port, options.connect_timeout or 10)
    if socket == nil then
        return why or 'cannot connect'
    end
    local greeting = socket:read(GREETING_BYTES, options.connect_timeout or 10)
    if greeting == nil or #greeting < GREETING_BYTES or greeting:sub(1, 9) ~= 'Tarantool' then
        socket:close()
        return 'Invalid greeting'
    end
    connection.peer_uuid = greeting:match('%) (%x+%-[%x%-]+)')
    local is_in, refused = log_in(connection, socket, greeting)
    if not is_in then
        socket:close()
        return refused
    end
    connection.socket, connection.outgoing = socket, {}
    set_state(connection, 'active')
    for key, entry in pairs(connection.watched.entries) do
        if next(entry.watchers) ~= nil then
            ask_for_events(connection, key)
        end
    end
    ladon.background('net.box', send_loop, connection, socket)
    return read_loop(connection, socket)
end

local function run(connection)
    repeat
        local why = connect_once(connection)
        fail(connection, why)
        connection.has_outgoing:broadcast()
        local after = connection.options.reconnect_after
        if after and not connection.is_closed then
            ladon.fiber.sleep(after)
        end
    until connection.is_closed or not connection.options.reconnect_after
end

local future_methods = {}
local Future = {__index = future_methods}

function future_methods.is_ready(future)
    return future.request.is_done or future.request.failed ~= nil
end

function future_methods.wait_result(future, timeout)
    local is_ok, result = pcall(finish, future.request, timeout, nil, nil, true)
    if not is_ok then
        return nil, result
    end
    return future.shape(result)
end

function future_methods.result(future)
    if not future_methods.is_ready(future) then
        return nil, box.error.new(box.error.PROC_LUA, 'Response is not ready')
    end
    return future_methods.wait_result(future)
end

-- Iterates over what comes ahead of the answer, and over the answer, which is the last.
function future_methods.pairs(future, timeout)
    local request = future.request
    local function next_of(_, at)
        local stop = timeout and ladon.clock(1) + timeout
        while request.pushed[at + 1] == nil and not future_methods.is_ready(future) do
            local left = stop and stop - ladon.clock(1)
            if left ~= nil and left <= 0 then
                return box.NULL, box.error.new(box.error.TIMEOUT)
            end
            request.cond:wait(left)
        end
        if at < #request.pushed then
            return at + 1, request.pushed[at + 1]
        end
        if at > #request.pushed then
            return nil
        end
        local result, why = future_methods.wait_result(future)
        if result == nil and why ~= nil then
            return box.NULL, why
        end
        return at + 1, result
    end
    return next_of, nil, 0
end

function future_methods.discard(future)
    future.request.connection.requests[future.request.number] = nil
end

local function same(result)
    return result
end

local function ask(connection, kind, body, options, shape)
    if connection.state ~= 'active' then
        connection_methods.wait_connected(connection, options and options.timeout)
    end
    if connection.state ~= 'active' then
        error(no_connection(connection, connection.error), 0)
    end
    local on_push = options and options.on_push
    if on_push and options.is_async then
        error('To handle pushes in an async request use future:pairs()', 0)
    end
    local request = begin(connection, kind, body)
    shape = shape or same
    if options and options.is_async then
        return setmetatable({request = request, shape = shape}, Future)
    end
    local timeout, context = options and options.timeout, options and options.on_push_ctx
    return shape(finish(request, timeout, on_push, context))
end

local function check(connection, name)
    if type(connection) ~= 'table' or connection.requests == nil then
        error(('Use remote:%s(...) instead of remote.%s(...):'):format(name, name), 3)
    end
end

local function unpacked(result)
    return unpack(result, 1, table.maxn(result))
end

function connection_methods.ping(connection, options)
    check(connection, 'ping')
    return (pcall(ask, connection, PING, {}, options))
end

function connection_methods.call(connection, name, arguments, options)
    check(connection, 'call')
    local body = {[KEY.FUNCTION] = name, [KEY.TUPLE] = arguments or {}}
    local shape = options and options.is_async and same or unpacked
    return ask(connection, CALL, body, options, shape)
end

function connection_methods.eval(connection, text, arguments, options)
    check(connection, 'eval')
    local body = {[KEY.EXPRESSION] = text, [KEY.TUPLE] = arguments or {}}
    local shape = options and options.is_async and same or unpacked
    return ask(connection, EVAL, body, options, shape)
end

function connection_methods.is_connected(connection)
    return connection.state == 'active'
end

function connection_methods.wait_connected(connection, timeout)
    local stop = timeout and ladon.clock(1) + timeout
    while connection.state == 'initial' or connection.state == 'error_reconnect' do
        local left = stop and stop - ladon.clock(1)
        if left ~= nil and left <= 0 then
            return false
        end
        connection.changed:wait(left)
    end
    return connection.state == 'active'
end

function connection_methods.close(connection)
    check(connection, 'close')
    connection.is_closed = true
    fail(connection, 'Connection closed')
    connection.has_outgoing:broadcast()
end

-- The other server's spaces, as its definitions were when they were first asked for.
local space_methods, index_methods = {}, {}
local Space, Index = {__index = space_methods}, {__index = index_methods}

local function tuples(result)
    local shown = {}
    for at, one in ipairs(result) do
        shown[at] = box.tuple.new(one)
    end
    return shown
end

local function first(result)
    if result[1] ~= nil then
        return box.tuple.new(result[1])
    end
end

local function key_of(key)
    if key == nil then
        return {}
    end
    if type(key) == 'table' or box.tuple.is(key) then
        return key
    end
    return {key}
end

function index_methods.select(index, key, options)
    key = key_of(key)
    options = options or {}
    local iterator = options.iterator
    if iterator == nil then
        iterator = #key == 0 and ITERATORS.ALL or ITERATORS.EQ
    elseif type(iterator) == 'string' then
        iterator = ITERATORS[iterator:upper()]
    end
    return ask(index.connection, SELECT, {
        [KEY.SPACE] = index.space_id, [KEY.INDEX] = index.id, [KEY.LIMIT] = options.limit or LIMIT_MAX,
        [KEY.OFFSET] = options.offset or 0, [KEY.ITERATOR] = iterator, [KEY.KEY] = key,
    }, options, tuples)
end

function index_methods.get(index, key, options)
    return ask(index.connection, SELECT, {
        [KEY.SPACE] = index.space_id, [KEY.INDEX] = index.id, [KEY.LIMIT] = 2, [KEY.OFFSET] = 0,
        [KEY.ITERATOR] = ITERATORS.EQ, [KEY.KEY] = key_of(key),
    }, options, function(result)
        if #result > 1 then
            box.error(box.error.MORE_THAN_ONE_TUPLE)
        end
        return first(result)
    end)
end

function index_methods.delete(index, key, options)
    return ask(index.connection, DELETE, {
        [KEY.SPACE] = index.space_id, [KEY.INDEX] = index.id, [KEY.KEY] = key_of(key),
    }, options, first)
end

function index_methods.update(index, key, operations, options)
    return ask(index.connection, UPDATE, {
        [KEY.SPACE] = index.space_id, [KEY.INDEX] = index.id, [KEY.KEY] = key_of(key),
        [KEY.TUPLE] = operations, [KEY.INDEX_BASE] = 1,
    }, options, first)
end

for _, name in ipairs({'min', 'max', 'count'}) do
    index_methods[name] = function(index, key, options)
        local path = ('box.space.%s.index.%s:%s'):format(index.space_name, index.name, name)
        return connection_methods.call(index.connection, path, {key_of(key)}, options)
    end
end

function space_methods.insert(space, tuple, options)
    local body = {[KEY.SPACE] = space.id, [KEY.TUPLE] = tuple}
    return ask(space.connection, INSERT, body, options, first)
end

function space_methods.replace(space, tuple, options)
    local body = {[KEY.SPACE] = space.id, [KEY.TUPLE] = tuple}
    return ask(space.connection, REPLACE, body, options, first)
end
space_methods.put = space_methods.replace

function space_methods.upsert(space, tuple, operations, options)
    return ask(space.connection, UPSERT, {
        [KEY.SPACE] = space.id, [KEY.TUPLE] = tuple, [KEY.OPERATIONS] = operations,
        [KEY.INDEX_BASE] = 1,
    }, options, function() end)
end

for _, name in ipairs({'select', 'get', 'delete', 'update', 'min', 'max', 'count'}) do
    space_methods[name] = function(space, ...)
        local index = space.index[0]
        if index == nil then
            box.error(box.error.NO_SUCH_INDEX_ID, 0, space.name)
        end
        return index_methods[name](index, ...)
    end
end

local function load_spaces(connection)
    local all = {}
    local function rows(space)
        return ask(connection, SELECT, {
            [KEY.SPACE] = space, [KEY.INDEX] = 0, [KEY.LIMIT] = LIMIT_MAX, [KEY.OFFSET] = 0,
            [KEY.ITERATOR] = ITERATORS.ALL, [KEY.KEY] = {},
        })
    end
    for _, row in ipairs(rows(281)) do
        local space = setmetatable({
            id = row[1], name = row[3], engine = row[4], field_count = row[5], index = {},
            connection = connection, _format = row[7],
        }, Space)
        all[row[1]], all[row[3]] = space, space
    end
    for _, row in ipairs(rows(289)) do
        local space = all[row[1]]
        if space ~= nil then
            local index = setmetatable({
                id = row[2], name = row[3], type = row[4]:upper(), space_id = row[1],
                space_name = space.name, connection = connection, unique = row[5].unique ~= false,
                parts = row[6],
            }, Index)
            space.index[row[2]], space.index[row[3]] = index, index
        end
    end
    return all
end

function connection_methods.reload_schema(connection)
    connection.loaded = nil
end

Connection.__index = function(connection, key)
    if key == 'space' then
        local kept = rawget(connection, 'loaded')
        if kept == nil then
            kept = load_spaces(connection)
            rawset(connection, 'loaded', kept)
        end
        return setmetatable({}, {
            __index = function(_, name)
                local found = kept[name]
                if found == nil then
                    -- It may be newer than what was loaded.
                    kept = load_spaces(connection)
                    rawset(connection, 'loaded', kept)
                    found = kept[name]
                end
                return found
            end,
        })
    end
    return connection_methods[key]
end

local function parse(uri)
    local user, password
    if type(uri) == 'number' then
        return nil, nil, 'localhost', tostring(uri)
    end
    local login, rest = uri:match('^([^@]*)@(.*)$')
    if login ~= nil then
        user, password = login:match('^([^:]*):?(.*)$')
        uri = rest
    end
    if uri:match('^unix/:') then
        return user, password, 'unix/', uri:sub(7)
    elseif uri:match('^/') then
        return user, password, 'unix/', uri
    elseif uri:match('^%d+$') then
        return user, password, 'localhost', uri
    end
    local host, port = uri:match('^(.*):(%d+)$')
    return user, password, host or uri, port
end

local net_box = {}

function net_box.connect(host, port, options)
    if type(port) == 'table' or port == nil then
        host, port, options = host, nil, port
    end
    options = options or {}
    local user, password, name = nil, nil, host
    if port == nil then
        user, password, name, port = parse(host)
    end
    options.user = options.user or user
    options.password = options.password or password
    if options.user ~= nil and options.user ~= 'guest' then
        -- A user may have the empty password.
        options.password = options.password or ''
    elseif options.password == '' then
        options.password = nil
    end
    local connection = setmetatable({
        host = name, port = tostring(port), options = options, state = 'initial', requests = {},
        outgoing = {}, sync = 0, changed = ladon.fiber.cond(), has_outgoing = ladon.fiber.cond(),
        opts = options,
    }, Connection)
    connection.watched = ladon.new_watched(function(key)
        ask_for_events(connection, key)
    end, function(key)
        connection.watched.entries[key] = nil
        if connection.state == 'active' then
            enqueue(connection, packet(UNWATCH, 0, {[KEY.EVENT_KEY] = key}))
        end
    end)
    ladon.background('net.box', run, connection)
    if options.wait_connected ~= false then
        connection:wait_connected(type(options.wait_connected) == 'number'
            and options.wait_connected or nil)
    end
    return connection
end
net_box.new = net_box.connect

-- Calls a function with each value of a key that the server broadcasts, from the present one on.
function connection_methods.watch(connection, key, func)
    if type(key) ~= 'string' or not ladon.is_callable(func) then
        error('Usage: connection:watch(key, function)', 0)
    end
    return connection.watched:watch(key, func)
end

-- This server, as a connection.
net_box.self = {
    ping = function()
        return true
    end,
    is_connected = function()
        return true
    end,
    wait_connected = function()
        return true
    end,
    close = function()
        return true
    end,
    call = function(_, name, arguments)
        return ladon.run('call', name, unpack(arguments or {}))
    end,
    eval = function(_, text, arguments)
        return ladon.run('eval', text, unpack(arguments or {}))
    end,
}
setmetatable(net_box.self, {
    __index = function(_, key)
        if key == 'space' then
            return box.space
        end
    end,
})

ladon.module('net.box', function()
    return net_box
end)
