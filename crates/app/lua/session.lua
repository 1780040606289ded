-- box.session, and what runs when a client calls something
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/box_session/).
local ladon = ...

local ADMIN = 1

-- What programs keep of sessions, by their numbers.
local storages = {}

-- Runs a function as admin, whoever asks.
local function finish_as(user, since, is_ok, ...)
    ladon.set_user(user, since)
    if not is_ok then
        error((...), 0)
    end
    return ...
end

function ladon.as_admin(func, ...)
    local user, since = ladon.user()
    if user == ADMIN then
        return func(...)
    end
    ladon.set_user(ADMIN)
    return finish_as(user, since, pcall(func, ...))
end

local function user_named(name)
    local found = ladon.as_admin(function()
        return box.space._user.index.name:get({name})
    end)
    if found == nil then
        box.error(box.error.NO_SUCH_USER, name)
    end
    return found
end
ladon.user_named = user_named

-- The name of a user, unless it is gone and another one has its number.
local function name_of(user, since)
    if since and ladon.user_since(user) ~= since then
        return nil
    end
    local found = ladon.as_admin(function()
        return box.space._user:get({user})
    end)
    return found and found[3]
end

local session = {}

function session.id()
    return ladon.client() or 1
end

function session.exists(...)
    if select('#', ...) > 1 then
        error('session.exists(sid): bad arguments', 2)
    end
    local id = ...
    return id == nil or id == session.id() or ladon.has_session(id)
end

function session.fd(id)
    local own, _, _, fd = ladon.client()
    return (id == nil or id == own) and fd or -1
end

function session.sync()
    local _, _, _, _, sync = ladon.client()
    return sync or 0
end

-- A client that does not read is looked at so often.
local PUSHES_AGAIN_S = 0.02

-- Sends a value to the client ahead of what is returned; waits while it has too much to read.
function session.push(...)
    if select('#', ...) ~= 1 then
        error('Usage: box.session.push(data)', 0)
    end
    local is_pushed = ladon.push((...))
    while is_pushed == nil do
        ladon.fiber.sleep(PUSHES_AGAIN_S)
        is_pushed = ladon.push((...))
    end
    if is_pushed then
        return true
    end
    return nil, box.error.new(box.error.UNSUPPORTED, ("Session '%s'"):format(session.type()), 'push()')
end

-- What is called when clients connect, log in and go, from the last one on.
local triggers = {connect = {}, auth = {}, disconnect = {}, denied = {}}
local NAMES = {denied = 'access_denied'}

for event, list in pairs(triggers) do
    session['on_' .. (NAMES[event] or event)] = function(new, old)
        local shown = ladon.triggers_called(list, new, old)
        ladon.want(event, #list > 0)
        return shown
    end
end

-- Sessions whose clients have gone, as long as functions are told of it.
local gone = {}

local function call_triggers(event, list, ...)
    local is_done, why = true, nil
    if event == 'disconnect' then
        gone[session.id()] = true
    end
    for at = #list, 1, -1 do
        is_done, why = pcall(list[at], ...)
        if not is_done then
            break
        end
    end
    if event == 'disconnect' then
        if not is_done then
            ladon.log(2, tostring(why))
        end
        storages[session.id()], gone[session.id()] = nil, nil
        ladon.forget_statements(session.id())
    elseif not is_done then
        error(why, 0)
    end
end

local is_telling = false

-- Something was denied: the functions are called with what it was. Errors of theirs are logged.
function ladon.denied(message)
    local list = triggers.denied
    if #list == 0 or is_telling then
        return
    end
    local privilege, kind, name = message:match("^(.-) access to (.-) '(.*)' is denied for user '")
    if privilege == nil then
        return
    end
    -- What is denied to one of them is not told.
    is_telling = true
    for at = #list, 1, -1 do
        local is_done, why = pcall(list[at], privilege, kind, name)
        if not is_done then
            ladon.log(2, tostring(why))
        end
    end
    is_telling = false
end

-- The users that the program's fibers have become, until they become another one: the number, and since
-- when it is theirs.
local own_users = setmetatable({}, {__mode = 'k'})
local ADMIN_ITSELF = {ADMIN, 0}

function session.uid()
    local _, user = ladon.client()
    return user or (own_users[ladon.fiber_self()] or ADMIN_ITSELF)[1]
end

function session.euid()
    return (ladon.user())
end

function session.user()
    local _, user, _, _, _, since = ladon.client()
    if user then
        return name_of(user, since)
    end
    return name_of(unpack(own_users[ladon.fiber_self()] or ADMIN_ITSELF))
end

function session.effective_user()
    return name_of(ladon.user())
end

function session.type()
    return ladon.client() and 'binary' or 'background'
end

function session.peer()
    local id, _, peer = ladon.client()
    return not (id and gone[id]) and peer or nil
end

-- The program's fibers that have become another user, and may be themselves again. Those that a client's
-- function makes are not among them: who may execute something must not become another user by it,
-- as in Tarantool.
local were_admin = setmetatable({}, {__mode = 'k'})

-- What a new user may do to the universe.
local USAGE_AND_SESSION = 24

-- What a client's function was before it took on a user without rights, as above.
local had_rights = setmetatable({}, {__mode = 'k'})

-- Whether a user has what each new one has, and nothing else: whoever becomes it gains nothing.
local function has_no_rights(id)
    if id == ADMIN then
        return false
    end
    return ladon.as_admin(function()
        for _, row in box.space._priv:pairs({id}) do
            local of, object, rights = row[3], row[4], row[5]
            local is_usual = of == 'user' and object == id
                or of == 'role' and object == box.space._user.index.name:get({'public'})[1]
                or of == 'universe' and rights == USAGE_AND_SESSION
            if not is_usual then
                return false
            end
        end
        for _, space in ipairs({'_space', '_func', '_sequence'}) do
            if box.space[space].index.owner:min({id}) ~= nil then
                return false
            end
        end
        return true
    end)
end

function session.su(name, func, ...)
    local id = type(name) == 'number' and name or user_named(name)[1]
    local before, since = ladon.user()
    local fiber, is_since = require('fiber').self(), ladon.user_since(id)
    local had = had_rights[fiber]
    local is_allowed = before == ADMIN or before == id and since == is_since
        or had and had[1] == id and had[2] == is_since
        or not ladon.client() and were_admin[fiber] or has_no_rights(id)
    if not is_allowed then
        box.error(box.error.ACCESS_DENIED, 'Su', 'user', name, session.effective_user())
    end
    ladon.set_user(id)
    if func == nil then
        if before == ADMIN and not ladon.client() then
            were_admin[fiber] = true
        elseif before ~= ADMIN then
            had_rights[fiber] = had or {before, since}
        end
        own_users[ladon.fiber_self()] = {id, is_since}
        return
    end
    return finish_as(before, since, pcall(func, ...))
end

-- Settings of the session: of the client's that is served, else of the program's own.
local SETTINGS = 380
local MARSHALING = 'error_marshaling_enabled'
local EQ, ALL = 0, 2

local function setting(name)
    local found = ladon.select(SETTINGS, 0, EQ, 0, 1, {name})[1]
    if found == nil then
        box.error(box.error.NO_SUCH_SESSION_SETTING, name)
    end
    return found[2]
end

session.settings = setmetatable({}, {
    __index = function(_, name)
        if name == MARSHALING then
            return ladon.marshals()
        end
        return setting(tostring(name))
    end,
    __newindex = function(_, name, value)
        setting(tostring(name))
        ladon.update(SETTINGS, 0, {name}, {{'=', 2, value}})
        if name == MARSHALING then
            ladon.marshals(value)
        end
    end,
    __serialize = function()
        local shown = {}
        for _, found in ipairs(ladon.select(SETTINGS, 0, ALL, 0, 100, {})) do
            shown[found[1]] = found[2]
        end
        shown[MARSHALING] = ladon.marshals()
        return shown
    end,
})

setmetatable(session, {
    __index = function(_, key)
        if key == 'storage' then
            local id = session.id()
            storages[id] = storages[id] or {}
            return storages[id]
        end
    end,
})

box.session = session

-- The parts of functions' names, as in `a.b.c` or `a.b:c`, and the method of the latter. There may be
-- any number of names: now and then all are forgotten.
local NAMES_MAX = 10000
local names, names_count = {}, 0

local function parse(name)
    if names_count >= NAMES_MAX then
        names, names_count = {}, 0
    end
    local path, method = name:match('^([^:]*):(.*)$')
    local parsed = {method = method}
    for part in (path or name):gmatch('[^%.]+') do
        parsed[#parsed + 1] = part
    end
    names[name], names_count = parsed, names_count + 1
    return parsed
end

local function has_fields(value)
    local kind = type(value)
    return kind == 'table' or kind == 'cdata' or kind == 'userdata'
end

-- Finds a function by its name; returns the object too if it is a method.
local function find(name)
    local parsed = names[name] or parse(name)
    local value = _G
    for at = 1, #parsed do
        if not has_fields(value) then
            return nil
        end
        value = value[parsed[at]]
        if value == nil then
            return nil
        end
    end
    if parsed.method == nil then
        return value
    end
    if not has_fields(value) then
        return nil
    end
    return value[parsed.method], value, true
end

local function is_callable(value)
    if type(value) == 'function' then
        return true
    end
    local mt = getmetatable(value)
    return type(mt) == 'table' and type(mt.__call) == 'function'
end
ladon.is_callable = is_callable

-- Functions with a body of their own, by name: the version of the schema and the function.
local bodies = {}

local function body_of(name, version)
    version = version or ladon.schema_version()
    local kept = bodies[name]
    if kept ~= nil and kept.version == version then
        return kept.func
    end
    local found = ladon.as_admin(function()
        return box.space._func.index.name:get({name})
    end)
    local text = found and found[6]
    local func
    if type(text) == 'string' and text ~= '' then
        local chunk, why = loadstring('return ' .. text)
        if chunk == nil then
            error(why, 0)
        end
        func = chunk()
    end
    bodies[name] = {version = version, func = func}
    return func
end
ladon.body_of = body_of

local function call_named(version, name, ...)
    local func = body_of(name, version)
    if func ~= nil then
        return func(...)
    end
    local object, has_object
    func, object, has_object = find(name)
    if func == nil or not is_callable(func) then
        box.error(box.error.NO_SUCH_PROC, name)
    end
    if has_object then
        return func(object, ...)
    end
    return func(...)
end

local function run(kind, name, ...)
    if kind == 'call' then
        return call_named(nil, name, ...)
    end
    if kind == 'statement' then
        return ladon.state(name, ...)
    end
    if kind == 'denied' then
        return ladon.denied(name)
    end
    if triggers[kind] ~= nil then
        -- Once more at the end of what the client had asked for.
        return call_triggers(kind, name ~= 'again' and triggers[kind] or {}, ...)
    end
    if kind == 'eval' then
        local chunk, why = loadstring(name, '=eval')
        if chunk == nil then
            error(why, 0)
        end
        return chunk(...)
    end
    error('unknown kind of request: ' .. kind, 0)
end

ladon.run = run

-- What a fiber has of its own: its transaction's part, and its object.
local transactions, objects = ladon.open_transactions, ladon.fiber_objects

local function finish(fiber, is_ok, ...)
    if transactions[fiber] ~= nil then
        local is_left_open = is_ok and ladon.in_transaction()
        ladon.leave_transaction()
        if is_left_open then
            ladon.end_request()
            box.error(box.error.FUNCTION_TX_ACTIVE)
        end
    end
    if objects[fiber] ~= nil then
        ladon.end_request()
    end
    if not is_ok then
        local raised = ...
        if type(raised) == 'string' then
            -- Who is called by a client has no caller in Lua whose place could be shown.
            raised = raised:gsub('^builtin/session%.lua:%d+: ', '')
        end
        error(raised, 0)
    end
    return ...
end

-- A transaction that has no part here and is left open, is what `serve.rs` looks for.
ladon.registry['ladon.call'] = function(fiber, version, kind, name, ...)
    -- Definitions may have changed since the last one.
    if version ~= nil then
        ladon.spaces(version)
    end
    if kind == nil then
        return finish(fiber, pcall(call_named, version, name, ...))
    end
    return finish(fiber, pcall(run, kind, name, ...))
end
