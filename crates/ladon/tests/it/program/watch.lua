-- Values that are broadcast, here and to clients. Tarantool has them since 2.10: what its
-- documentation says is printed.
local fiber = require('fiber')
local json = require('json')
local address = '127.0.0.1:' .. arg[1]
box.cfg{wal_mode = 'write', log_level = 0, listen = address}
box.schema.user.grant('guest', 'execute', 'universe')

local seen = {}
local function note(who)
    return function(key, value)
        table.insert(seen, ('%s %s=%s'):format(who, key, json.encode(value)))
    end
end
local function show()
    fiber.sleep(0.05)
    table.sort(seen)
    print(table.concat(seen, '; '))
    seen = {}
end

-- The function is called at once, with no value yet.
local watcher = box.watch('color', note('own'))
show()
box.broadcast('color', 'red')
show()
box.broadcast('color', {'red', {shade = 3}})
show()
-- Of values that follow each other fast, the last one is seen for certain.
for number = 1, 100 do
    box.broadcast('count', number)
end
local counts = box.watch('count', note('late'))
show()
counts:unregister()
print(pcall(counts.unregister, counts))

local client = require('net.box').connect(address)
local remote = client:watch('color', note('remote'))
local unset = client:watch('nosuch', note('remote'))
show()
box.broadcast('color', 'green')
show()
box.broadcast('color', 'blue')
box.broadcast('nosuch', true)
show()
remote:unregister()
watcher:unregister()
box.broadcast('color', 'black')
show()
box.watch('color', note('again'))
client:watch('color', note('remote again'))
show()

-- A function that waits misses what comes meanwhile, but not the last.
local slow = {}
box.watch('slow', function(_, value)
    table.insert(slow, tostring(value))
    fiber.sleep(0.05)
end)
fiber.yield()
for number = 1, 10 do
    box.broadcast('slow', number)
end
fiber.sleep(0.2)
print(table.concat(slow, ' '))

-- The server's own.
local versions = {}
box.watch('box.schema', function(_, value) table.insert(versions, value.version) end)
fiber.sleep(0.05)
box.schema.space.create('made')
fiber.sleep(0.3)
print(#versions, versions[#versions] > versions[1])
box.watch('box.status', function(_, value) print(value.status, value.is_ro) end)
fiber.sleep(0.05)
print(pcall(box.broadcast, 'box.status', 1))
print(pcall(box.broadcast, 'one'))
print(pcall(box.watch, 'one'))
print((pcall(box.broadcast, 'function', print)))
-- An error in a function ends nothing.
box.watch('color', function() error('on purpose') end)
box.broadcast('color', 'white')
show()
os.exit(0)
