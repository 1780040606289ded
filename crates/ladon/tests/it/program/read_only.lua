-- An instance that is told to change nothing, and may change again.
local fiber = require('fiber')
local address = '127.0.0.1:' .. arg[1]
local options = {wal_mode = 'write', log_level = 0, listen = address, log = 'own.log', pid_file = 'own.pid'}
box.cfg(options)
-- What is given again may be what cannot be changed.
box.cfg(options)
local own = box.info.replication[1]
print(#box.info.replication, own.id, own.uuid == box.info.uuid, own.upstream)
box.schema.user.grant('guest', 'read,write,execute', 'universe')
local space = box.schema.space.create('s')
space:create_index('pk')
space:insert{1, 'one'}

local temporary = box.schema.space.create('t', {temporary = true})
temporary:create_index('pk')
local own_space = box.schema.space.create('l', {is_local = true})
own_space:create_index('pk')
local function try(what, ...)
    local done, result = pcall(...)
    if done then
        print(what, 'done')
    else
        print(what, result.code, tostring(result))
    end
end

local waits = fiber.new(function()
    box.ctl.wait_ro()
    print('it is read-only')
    box.ctl.wait_rw()
    print('it is not')
end)
waits:set_joinable(true)
print(box.info.ro, box.cfg.read_only)
print(pcall(box.cfg, {read_only = 'yes'}))

-- What a transaction has written before is refused when it is committed; what it has read is not.
box.begin()
space:insert{2, 'two'}
box.rollback()
box.cfg{read_only = true}
fiber.yield()
print(box.info.ro, box.cfg.read_only)
try('insert', space.insert, space, {3})
try('replace', space.replace, space, {1, 'uno'})
try('update', space.update, space, 1, {{'=', 2, 'uno'}})
try('upsert', space.upsert, space, {1, 'uno'}, {{'=', 2, 'uno'}})
try('delete', space.delete, space, 1)
try('truncate', space.truncate, space)
try('create', box.schema.space.create, 't')
try('drop', space.drop, space)
try('grant', box.schema.user.grant, 'guest', 'read', 'space', 's', {if_not_exists = true})
print(space:get(1)[2], space:count())
try('a transaction that reads', function()
    box.begin()
    space:get(1)
    box.commit()
end)
try('a temporary space', temporary.insert, temporary, {1})
try('a local space', own_space.insert, own_space, {1})
try('a transaction of it', function()
    box.begin()
    temporary:insert{2}
    box.commit()
end)
try('a transaction of both', function()
    box.begin()
    temporary:insert{3}
    space:insert{3}
end)
box.rollback()
print(temporary:count())
local client = require('net.box').connect(address)
try('a client', client.space.s.insert, client.space.s, {4})
print(client.space.s:get(1)[2])
box.cfg{read_only = false}
waits:join()
print(box.info.ro, box.cfg.read_only)
try('insert', space.insert, space, {3})
try('a client', client.space.s.insert, client.space.s, {4})
print(space:count())
os.exit(0)
