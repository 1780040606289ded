-- A client that may execute anything does not become another user by it. Under Tarantool 2.6 it does.
local address = '127.0.0.1:' .. arg[1]
box.cfg{wal_mode = 'write', log_level = 0, listen = address}
box.schema.user.create('eve', {password = 'eve'})
box.schema.user.grant('eve', 'execute', 'universe')
local client = require('net.box').connect(address, {user = 'eve', password = 'eve'})
print(pcall(client.eval, client, "box.session.su('admin')"))
print(pcall(client.eval, client, "return box.session.su('admin', function() return 1 end)"))
-- Nor does a fiber that it makes.
print(client:eval([[
    local fiber = require('fiber').new(pcall, box.session.su, 'admin')
    fiber:set_joinable(true)
    return fiber:join()
]]))
print(client:eval("box.session.su('eve') return box.session.effective_user()"))
-- It may become one who has no rights, which is no gain, and itself again.
box.schema.user.create('nobody')
box.schema.user.create('writer')
box.schema.user.grant('writer', 'write', 'universe')
box.schema.user.create('owner')
box.schema.space.create('owned', {user = 'owner'})
print(client:eval([[
    local seen = {}
    box.session.su('nobody')
    seen[1] = box.session.effective_user()
    seen[2] = pcall(box.session.su, 'writer')
    seen[3] = pcall(box.session.su, 'owner')
    seen[4] = pcall(box.session.su, 'admin')
    box.session.su('eve')
    seen[5] = box.session.effective_user()
    return unpack(seen)
]]))
-- The next request has not been anybody else.
print(pcall(client.eval, client, "box.session.su('nobody') box.session.su('writer')"))
os.exit(0)
