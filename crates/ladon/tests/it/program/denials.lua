-- What is called when something is denied, and triggers of spaces that are switched off.
local json = require('json')
local address = '127.0.0.1:' .. arg[1]
print(rawget(box, 'space'), (pcall(function() return box.space end)))
print((pcall(function() return box.nothing end)))
box.cfg{wal_mode = 'none', log_level = 0, listen = address}
local s = box.schema.space.create('s')
s:create_index('pk')

local seen = {}
s:on_replace(function(_, new) table.insert(seen, new and new[1] or 'deleted') end)
s:before_replace(function(_, new)
    if new ~= nil and new[1] == 13 then
        return nil
    end
    return new
end)
s:insert{1}
s:insert{13}
print(s:run_triggers(false))
s:insert{2}
s:insert{13}
s:delete{1}
s:run_triggers(true)
s:insert{3}
s:delete{13}
print(json.encode(seen), json.encode(s:select()))
print((pcall(s.run_triggers)), (pcall(s.run_triggers, s)), (pcall(s.run_triggers, {id = 999999}, true)))

local denied = {}
local function note(...)
    table.insert(denied, {...})
end
local function show()
    print(json.encode(denied))
    denied = {}
end
print(box.session.on_access_denied(note) == note, #box.session.on_access_denied())
box.schema.user.create('eve', {password = 'eve'})
box.schema.func.create('secret')
box.session.su('eve', function()
    print(pcall(s.get, s, 1))
    print(pcall(s.insert, s, {9}))
end)
show()
local client = require('net.box').connect(address, {user = 'eve', password = 'eve'})
print(pcall(client.call, client, 'secret'))
print(pcall(client.eval, client, 'return 1'))
require('fiber').sleep(0.05)
show()
box.session.on_access_denied(nil, note)
box.session.su('eve', function() print(pcall(s.get, s, 1)) end)
show()
box.session.on_access_denied(function() error('in the trigger') end)
box.session.su('eve', function() print(pcall(s.get, s, 1)) end)
box.session.on_access_denied(nil, box.session.on_access_denied()[1])

-- Methods of an index need the rights to its space, and none to execute.
local function methods()
    for _, name in ipairs({'min', 'max', 'count', 'len', 'random', 'bsize'}) do
        local is_done, found = pcall(s.index.pk[name], s.index.pk, name == 'random' and 0 or nil)
        print(name, is_done, name == 'bsize' or tostring(found))
    end
end
box.session.su('eve', methods)
box.schema.user.grant('eve', 'read', 'space', 's')
s:run_triggers(false)
s:delete{3}
box.session.su('eve', methods)

-- The program becomes whom it wants, and itself again.
box.session.su('eve')
print(pcall(s.insert, s, {10}))
box.session.su('admin')
print(box.session.effective_user(), pcall(s.delete, s, 10))
os.exit(0)
