-- Savepoints, and functions that are called when a transaction ends.
local function try(f, ...)
    local ok, e = pcall(f, ...)
    local is_box = type(e) == 'cdata'
    print(ok, is_box and e.code or e)
end

box.cfg{listen = '127.0.0.1:' .. arg[1], log_level = 1}
local s = box.schema.space.create('t')
s:create_index('pk')
local s2 = box.schema.space.create('t2')
s2:create_index('pk')
try(box.savepoint)
try(box.rollback_to_savepoint)
try(box.rollback_to_savepoint, {})
try(box.on_commit, function() end)
try(box.on_rollback, function() end)

box.begin()
s:replace{1}
local sp = box.savepoint()
s:replace{2}
s2:replace{3}
local sp2 = box.savepoint()
s:delete{1}
print(s:count(), s2:count())
box.rollback_to_savepoint(sp2)
print(s:count(), s2:count())
box.rollback_to_savepoint(sp)
print(s:count(), s2:count(), box.is_in_txn())
try(box.rollback_to_savepoint, sp2)
try(box.rollback_to_savepoint)
try(box.rollback_to_savepoint, {})
try(box.rollback_to_savepoint, 1)
try(box.on_commit, 1)
local first = function(statements)
    for number, old, new, space in statements() do
        print(number, old, new, space == s.id)
    end
end
print(box.on_commit(first) == first)
box.on_commit(function(statements) print('second', type(statements)) end)
box.on_rollback(function() print('not called') end)
s:replace{5}
s2:replace{6}
s:replace{5, 7}
s:delete{1}
s:upsert({5}, {{'=', 2, 8}})
s:update(5, {{'=', 2, 9}})
box.commit()
try(box.rollback_to_savepoint, sp)
print(s:count(), s2:count(), s:get(5))

-- What was taken back is in no list, and a savepoint may be gone back to again.
box.begin()
local before = s:count()
local start = box.savepoint()
for round = 1, 3 do
    s:replace{10 + round}
    s2:insert{10 + round}
    box.rollback_to_savepoint(start)
end
s:replace{20}
box.on_commit(first)
box.commit()
print(s:count() - before, s2:get(11), s:get(20))

box.begin()
box.on_rollback(function(statements) print('r1') first(statements) end)
box.on_rollback(function() print('r2') end)
box.on_commit(function() print('not called') end)
s:replace{30}
s2:replace{5, 1}
s:delete{5}
box.rollback()
print(s:get(5), s2:get(5), s:get(30))

-- Lists of them: replaced, removed.
local f1, f2 = function() print('f1') end, function() print('f2') end
box.begin()
box.on_commit(f1)
box.on_commit(f2)
print(#box.on_commit())
print(box.on_commit(f2, f1) == f2)
print(box.on_commit(nil, f2))
print(#box.on_commit())
s:replace{40}
box.commit()

-- Statements that fail, and the end of a fiber, which takes back.
box.begin()
s:insert{50}
try(s.insert, s, {50})
sp = box.savepoint()
try(s.insert, s, {50})
s:insert{51}
box.rollback_to_savepoint(sp)
s:insert{52}
box.rollback_to_savepoint(sp)
box.commit()
print(s:get(50), s:get(51), s:get(52))
local fiber = require('fiber')
local ended = fiber.new(function()
    box.begin()
    s:replace{60}
    box.on_rollback(function() print('the fiber has ended') end)
end)
ended:set_joinable(true)
ended:join()
print(s:get(60))
print(pcall(box.atomic, function()
    box.on_rollback(function() print('an error') end)
    s:replace{61}
    error('oops', 0)
end))
print(s:get(61))
-- A transaction goes on with the rights of another user.
box.schema.user.grant('guest', 'read,write,execute', 'universe')
box.begin()
s:insert{70}
box.session.su('guest', function() s:insert{71} print(s:get(70), s:count()) end)
box.rollback()
print(s:get(70), s:get(71))
box.begin()
box.session.su('guest')
s:insert{72}
box.commit()
print(s:get(72))

-- The place of a text that is raised.
local function raises(...)
    local text = select(2, pcall(...))
    print((tostring(text):gsub('^.*/', '')))
end
raises(function() local done = box.atomic(function() error('a text', 0) end) return done end)
raises(function() local done = box.atomic(function() error('a text') end) return done end)
raises(function() local done = box.atomic(function() box.error({code = 7, reason = 'an error'}) end) return done end)
os.exit(0)
