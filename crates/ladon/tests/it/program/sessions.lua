-- What is called when clients connect, log in and go, and what is sent ahead of an answer.
local fiber = require('fiber')
box.cfg{listen='127.0.0.1:' .. arg[1], log_level=1}
box.schema.user.grant('guest', 'read,write,execute', 'universe')
box.schema.user.create('ann', {password='secret'})
local t = function(...) print('connect', box.session.type(), box.session.user(), box.session.id() > 1, box.session.peer() ~= nil, select('#', ...)) box.session.storage.x = 5 end
print(box.session.on_connect(t) == t, #box.session.on_connect())
local left, seen = 0, 0
-- Waits until one more client has gone.
local function await_end()
    seen = seen + 1
    for _ = 1, 1000 do
        if left >= seen then return end
        fiber.sleep(0.01)
    end
end
box.session.on_disconnect(function(...) left = left + 1 print('disconnect', box.session.type(), box.session.user(), box.session.storage.x, select('#', ...)) end)
box.session.on_auth(function(...) print('auth', box.session.user(), ...) end)
local net = require('net.box')
local c = net.connect(arg[1])
print(c:eval('return box.session.storage.x'))
print(c:eval('return box.session.fd() > 0, box.session.sync() > 0'))
local id = c:eval('return box.session.id()')
print(box.session.exists(id), box.session.exists(123456), box.session.exists(box.session.id()))
print(pcall(box.session.exists))
c:close()
await_end()
print(box.session.exists(id))
c = net.connect('ann:secret@127.0.0.1:'..arg[1])
local is_there, state = c:ping(), c.state
c:close() await_end()
print(is_there, state)
c = net.connect('ann:wrong@127.0.0.1:'..arg[1])
local is_there, state = c:ping(), c.state
c:close() await_end()
print(is_there, state)
c = net.connect('nosuch:wrong@127.0.0.1:'..arg[1])
local is_there, state = c:ping(), c.state
c:close() await_end()
print(is_there, state)
c = net.connect('ann:secret@127.0.0.1:'..arg[1])
print(pcall(c.eval, c, 'return 1'))
c:close() await_end()
-- push
c = net.connect(arg[1])
print(c:eval('for i = 1, 3 do box.session.push(i) box.session.push({i, "x"}) end return "done"', {}, {on_push = function(ctx, m) print('push', ctx, type(m) == 'table' and m[2] or m) end, on_push_ctx = 'ctx'}))
local got = {}
c:eval('box.session.push(1) box.session.push(2)', {}, {on_push = table.insert, on_push_ctx = got}) print(#got, got[1], got[2])
local f = c:eval('box.session.push(1) require("fiber").sleep(0.05) box.session.push(2) return 3', {}, {is_async = true})
for i, m in f:pairs() do print(i, type(m) == 'table' and m[1] or m) end
print(pcall(box.session.push, 1))
print(c:eval('return pcall(box.session.push)'))
print(c:eval('return box.session.push(5)'))
c:close() await_end()
box.session.on_connect(nil, t)
box.session.on_connect(function() error('not you') end)
c = net.connect(arg[1])
print(c:ping() or 'refused')
await_end()
os.exit(0)
