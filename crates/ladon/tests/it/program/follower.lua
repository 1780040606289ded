-- A read replica of the server at the second argument; it listens at the first.
local fiber = require('fiber')
local followed = '127.0.0.1:' .. arg[2]

local function refused(what, options)
    local is_done, err = pcall(box.cfg, options)
    print(what, is_done, (tostring(err):gsub('%d%d%d%d+', 'PORT')))
end
refused('it writes', {replication = followed})
refused('two', {replication = {followed, '127.0.0.1:1'}, read_only = true})
refused('nobody', {replication = '127.0.0.1:1', read_only = true, replication_connect_timeout = 0.1})

box.cfg{log_level = 0, log = 'own.log', listen = '127.0.0.1:' .. arg[1], replication = {followed},
        read_only = true}
-- All that was there before has come when box.cfg returns.
print(box.space.s:get(1), box.info.ro, box.info.id)
local of = box.info.replication
print(#of, of[1].upstream.status, type(of[1].upstream.lag), of[2].upstream, of[2].uuid == box.info.uuid)

local function try(what, f, ...)
    local is_done, err = pcall(f, ...)
    print(what, is_done, not is_done and type(err) == 'cdata' and err.code == box.error.READONLY
        or (tostring(err):gsub('%d%d%d%d+', 'PORT')))
end
try('insert', box.space.s.insert, box.space.s, {2})
try('create', box.schema.space.create, 't')
try('execute', function()
    local _, err = box.execute([[INSERT INTO "s" VALUES (3, NULL)]])
    error(err, 0)
end)
try('read_only', box.cfg, {read_only = false})
try('the same', box.cfg, {replication = {'127.0.0.1:' .. arg[1], followed}})
print(box.cfg.read_only, #box.cfg.replication)

-- What is written there comes.
local net = require('net.box')
local connection = net.connect(followed)
connection:eval("box.space.s:insert({4, 'after'}) box.schema.space.create('u'):create_index('pk')")
local stop = fiber.clock() + 20
while (box.space.s:get(4) == nil or box.space.u == nil) and fiber.clock() < stop do
    fiber.sleep(0.01)
end
print(box.space.s:get(4), box.space.u:len())
stop = fiber.clock() + 20
local found
repeat
    found = connection:call('followers')
    fiber.sleep(0.01)
until #found == 1 and found[1][3] or fiber.clock() > stop
print(#found, found[1][1], found[1][2], found[1][3])

-- It becomes a server of its own.
box.cfg{replication = {}, read_only = false}
print(box.info.ro, #box.info.replication, box.space.s:insert({5, 'own'}))
print(connection:eval('return box.space.s:len(), box.space.s:get(5) == nil'))
os.exit(0)
