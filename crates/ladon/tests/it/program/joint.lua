-- Commands of Redis in transactions of spaces: both are committed, or neither.
box.cfg{wal_mode = 'write', log_level = 0, listen = '127.0.0.1:' .. arg[1]}
local fiber = require('fiber')
local call = box.resp.call
local accounts = box.schema.space.create('accounts')
accounts:create_index('pk')
accounts:insert{1, 100}

local function state()
    return call('GET', 'total'), accounts:get(1)[2]
end
local function tried(...)
    local is_ok, why = pcall(...)
    print(is_ok, tostring(why))
end

-- What is not committed is seen by nobody else, and by the transaction itself.
box.begin()
print(call('SET', 'total', 1), call('INCR', 'total'), call('GET', 'total'))
accounts:update(1, {{'-', 2, 10}})
local others = fiber.create(function() print('others', state()) end)
print('own', state())
box.commit()
print('committed', state())

box.begin()
call('INCRBY', 'total', 1000)
accounts:update(1, {{'-', 2, 1}})
box.rollback()
print('rolled back', state())

-- An error is raised; the transaction goes on.
print(box.atomic(function()
    local is_ok, why = pcall(call, 'LPUSH', 'total', 'x')
    print(is_ok, tostring(why))
    call('APPEND', 'total', '0')
    accounts:update(1, {{'+', 2, 1}})
    return 'done'
end), state())
tried(box.atomic, function()
    call('SET', 'total', 'lost')
    accounts:insert{1, 'duplicate'}
end)
print('after an error', state())

-- Savepoints.
box.begin()
call('SET', 'total', 5)
local savepoint = box.savepoint()
call('INCRBY', 'total', 7)
accounts:update(1, {{'=', 2, 0}})
box.rollback_to_savepoint(savepoint)
print('at the savepoint', state())
call('INCR', 'total')
box.commit()
print('committed', state())

-- Another one's change is a conflict if it was seen, and only then.
local function conflict(read, other)
    box.begin()
    print(read())
    call('INCR', 'count')
    accounts:update(1, {{'+', 2, 1}})
    local writer = fiber.new(other)
    writer:set_joinable(true)
    writer:join()
    local is_ok, why = pcall(box.commit)
    print(is_ok, tostring(why), call('GET', 'count'), state())
    if not is_ok then box.rollback() end
end
call('SET', 'seen', 1)
conflict(function() return call('GET', 'seen') end, function() call('SET', 'seen', 2) end)
conflict(function() return call('GET', 'seen') end, function() call('SET', 'seen', 2) end)
conflict(function() return call('GET', 'seen') end, function() call('SET', 'unseen', 2) end)
conflict(function() return call('EXISTS', 'later') end, function() call('SET', 'later', 2) end)
-- Read alone, beside a command that writes.
box.begin()
print(accounts:get(1)[2])
call('SET', 'copy', accounts:get(1)[2])
fiber.new(function() accounts:update(1, {{'+', 2, 1}}) end):wakeup()
fiber.sleep(0.01)
tried(box.commit)
print(call('GET', 'copy'))

-- What a savepoint took back was seen all the same.
box.begin()
local before = box.savepoint()
print(call('INCR', 'ghost'))
box.rollback_to_savepoint(before)
accounts:update(1, {{'+', 2, 1}})
local writer = fiber.new(call, 'SET', 'ghost', 9)
writer:set_joinable(true)
writer:join()
tried(box.commit)
print(call('GET', 'ghost'))

-- Draws and ids are those that were shown.
call('SADD', 'set', 'a', 'b', 'c', 'd', 'e', 'f', 'g')
box.begin()
local drawn = call('SPOP', 'set', 2)
local id = call('XADD', 'stream', '*', 'f', 'v')
fiber.sleep(0.01)
box.commit()
print(call('SISMEMBER', 'set', drawn[1]), call('SISMEMBER', 'set', drawn[2]), call('SCARD', 'set'))
print(call('XRANGE', 'stream', '-', '+')[1][1] == id)

-- Scripts, messages; what is refused.
box.begin()
print(call('EVAL', "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])", 1, 'scripted', 'x'))
print(call('PUBLISH', 'channel', 'message'))
tried(call, 'TIME')
tried(call, 'CONFIG', 'SET', 'maxmemory', 0)
tried(call, 'SELECT', 1)
tried(call, 'NOTHING')
tried(call, 'GET')
tried(call, 'WATCH', 'a')
box.commit()
print(call('GET', 'scripted'))
box.begin()
for n = 1, 128 do call('INCR', 'many') end
tried(call, 'INCR', 'many')
box.commit()
print(call('GET', 'many'))

-- A mounted space is changed by statements.
local users = box.schema.space.create('users', {format = {{'id', 'string'}, {'name', 'string'}}})
box.space._space:update(users.id, {{'=', 6, {resp_prefix = 'user:'}}})
box.space.users:create_index('pk', {parts = {1, 'string'}})
box.begin()
tried(call, 'HSET', 'user:1', 'name', 'ada')
box.space.users:insert{'1', 'ada'}
box.commit()
print(call('HGET', 'user:1', 'name'))

-- An open transaction of commands alone.
box.begin()
call('SET', 'alone', 1)
box.commit()
print(call('GET', 'alone'))
box.begin()
print(call('GET', 'alone'))
box.commit()
os.exit(0)
