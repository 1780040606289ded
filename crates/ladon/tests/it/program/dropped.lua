-- Who has become a user that is dropped has no rights from then on, whoever gets the number. Under Tarantool 2.6,
-- a fiber that it makes has those of the next user.
local address = '127.0.0.1:' .. arg[1]
box.cfg{wal_mode = 'write', log_level = 0, listen = address}
local fiber = require('fiber')
box.schema.space.create('secret'):create_index('pk')
box.space.secret:replace{1, 'x'}
local function try(name, func, ...)
    print(name, pcall(func, ...))
end
local function read() return box.space.secret:get(1) ~= nil end
local function as_bob() return box.session.su('bob', read) end
local function in_child()
    local child = fiber.new(read)
    child:set_joinable(true)
    return child:join()
end
local function in_transaction()
    return box.atomic(function() return box.space.secret:replace{2} end)
end

box.schema.user.create('ann', {password = 'ann'})
box.schema.user.grant('ann', 'execute', 'universe')
local id = box.space._user.index.name:get('ann')[1]
local client = require('net.box').connect(address, {user = 'ann', password = 'ann'})
local go, seen = fiber.channel(), fiber.channel()
rawset(_G, 'left', fiber.channel())
print('called as ann', client:eval('return box.session.euid()') == id)
client:eval([[
    local fiber = require('fiber')
    waiting = fiber.new(function() left:get() return pcall(function() return box.space.secret:get(1) end) end)
    waiting:set_joinable(true)
    return true
]])
local own = fiber.new(function()
    box.session.su('ann')
    try('ann reads', read)
    go:get()
    print('gone', box.session.uid() == id, box.session.user(), box.session.effective_user())
    try('gone reads', read)
    seen:put(true)
    go:get()
    print('another', box.session.user(), box.session.effective_user())
    try('another reads', read)
    try('another writes', in_transaction)
    try('as bob', as_bob)
    try('in a child', in_child)
    try('makes a space', box.schema.space.create, 'mine')
    try('a new password', box.schema.user.passwd, 'x')
    seen:put(true)
end)
fiber.sleep(0.01)
box.schema.user.drop('ann')
go:put(true) seen:get()
box.schema.user.create('bob')
print('the same number', box.space._user.index.name:get('bob')[1] == id)
box.schema.user.grant('bob', 'read,write,execute,create', 'universe')
go:put(true) seen:get()
-- What a client of the first one has left running, and the client itself.
left:put(true)
print('left running', waiting:join())
print('the client', pcall(client.eval, client, 'return 1'))
-- The next one has its rights.
print('bob', as_bob())
os.exit(0)
