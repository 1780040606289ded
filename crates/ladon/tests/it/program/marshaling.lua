-- Errors as values of MessagePack: in answers, arguments and tuples, as the session says.
local msgpack, net, json = require('msgpack'), require('net.box'), require('json')
box.cfg{wal_mode = 'none', log_level = 0, log = 'own.log', listen = '127.0.0.1:' .. arg[1]}
box.schema.user.grant('guest', 'super')

local function show(what, f, ...)
    local found = {pcall(f, ...)}
    for at = 1, #found do
        found[at] = tostring(found[at])
    end
    print(what, unpack(found))
end

-- An error with all that a program sees of it, and its causes.
local function shown(err)
    local parts = {}
    while err ~= nil do
        local fields = err:unpack()
        table.insert(parts, table.concat({
            fields.type, fields.base_type, tostring(fields.code), fields.message,
            tostring(err.object_type), tostring(err.object_name), tostring(err.access_type),
            tostring(err.errno), type(fields.trace[1].line),
        }, ' '))
        err = err.prev
    end
    return table.concat(parts, ' <- ')
end

local function kinds(...)
    local found = {}
    for at = 1, select('#', ...) do
        local value = select(at, ...)
        local inner = type(value) == 'table' and (value[1] or value.a) or value
        found[at] = type(value) .. '/' .. type(inner) .. '/' .. tostring(inner)
    end
    return unpack(found)
end

local settings = box.session.settings
print(settings.error_marshaling_enabled, settings.sql_full_metadata, settings.sql_default_engine)
show('no boolean', function() settings.error_marshaling_enabled = 5 end)
show('no setting', function() return settings.nosuch end)
show('no setting', function() settings.nosuch = true end)

first = box.error.new({code = 5, reason = 'the first'})
second = box.error.new({code = 6, reason = 'the second', type = 'Mine'})
first:set_prev(second)
show('text', function() return msgpack.decode(msgpack.encode({first}))[1] end)
settings.error_marshaling_enabled = true
print(settings.error_marshaling_enabled)
show('error', function() return shown(msgpack.decode(msgpack.encode(first))) end)
show('json', json.encode, {first})
settings.error_marshaling_enabled = false
show('text', function() return msgpack.decode(msgpack.encode({first}))[1] end)

function all()
    return first, {first}, {a = first}, second
end
function echo(...)
    return ...
end
function raise()
    box.error(first)
end
function denied()
    return select(2, pcall(function()
        box.session.su('guest')
        box.space._user:insert({})
    end))
end

local connection = net.connect(box.cfg.listen)
local function call(name, ...)
    return connection:call(name, {...})
end
show('off', function() return kinds(call('all')) end)
show('argument', function() return kinds(call('echo', first)) end)
show('setting', function() return connection:eval('return box.session.settings.error_marshaling_enabled') end)
show('set', function() return connection:eval('box.session.settings.error_marshaling_enabled = true') end)
show('setting', function() return connection:eval('return box.session.settings.error_marshaling_enabled') end)
print(settings.error_marshaling_enabled)
show('on', function() return kinds(call('all')) end)
show('whole', function() return shown((call('all'))) end)
show('argument', function() return kinds(call('echo', first)) end)
show('raised', function()
    local _, err = pcall(call, 'raise')
    return shown(err)
end)
show('update', function()
    return connection.space._session_settings:update('error_marshaling_enabled', {{'=', 2, false}})
end)
show('off', function() return kinds(call('all')) end)
show('update', function()
    return connection.space._session_settings:update('error_marshaling_enabled', {{'=', 2, 1}})
end)

-- An error that an error was caused by, many times over.
local last = first
for at = 1, 200 do
    local err = box.error.new({code = 1, reason = tostring(at)})
    err:set_prev(last)
    last = err
end
settings.error_marshaling_enabled = true
local count, at = 0, msgpack.decode(msgpack.encode({last}))[1]
while at ~= nil do
    count, at = count + 1, at.prev
end
print(count)

local function decode(hex)
    return msgpack.decode((hex:gsub('..', function(byte)
        return string.char(tonumber(byte, 16))
    end)))
end
for _, hex in ipairs({'d403c0', 'd40380', 'c7040381009180', 'c704038100dc00'}) do
    show(hex, decode, hex)
end
os.exit(0)
