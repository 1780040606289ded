-- Functions that are called when tuples of a space change: by the program, and by clients.
local function try(f, ...)
    local ok, e = pcall(f, ...)
    if type(e) == 'table' then
        print(ok, #e)
    elseif type(e) == 'cdata' and not box.tuple.is(e) then
        local is_box = e.type == 'ClientError' and e.code ~= 32
        print(ok, is_box and e.code or (e.message:gsub('^.-:%d+: ', '')))
    else
        print(ok, e)
    end
end
box.cfg{listen='127.0.0.1:' .. arg[1], log_level=1}
local s = box.schema.space.create('t', {format={{'id','unsigned'},{'v','any',is_nullable=true}}}) s:create_index('pk')
local log = box.schema.space.create('log') log:create_index('pk', {sequence=true})
local function show(tag) return function(...) print(tag, select('#', ...), ...) end end
local t1, t2 = show('on1'), show('on2')
print(s:on_replace(t1) == t1, s:on_replace(t2) == t2, #s:on_replace(), s:on_replace()[1] == t1)
s:insert{1, 'a'} s:replace{1, 'b'} s:update(1, {{'=', 2, 'c'}}) s:upsert({1,'x'}, {{'=', 2, 'd'}}) s:upsert({2,'x'}, {{'=', 2, 'd'}}) s:delete(1) s:delete(99) s:update(99, {{'=', 2, 1}})
s:update(2, {{'=', 2, 'x'}})
print('truncate') s:truncate()
print(s:on_replace(nil, t2), #s:on_replace())
try(s.on_replace, s, nil, t2)
try(s.on_replace, s, 5)
try(s.on_replace, s, nil)
try(s.on_replace, s, nil, nil)
try(s.on_replace)
s:on_replace(nil, t1)
-- before
local function before(f) return s:before_replace(f, s:before_replace()[1]) end
print(s:before_replace(show('b1')) ~= nil)
print(s:insert{1, 'a'}, s:replace{1, 'b'}, s:update(1, {{'=', 2, 'c'}})) print(s:upsert({1,'x'}, {{'=', 2, 'd'}})) print(s:upsert({2,'x'}, {{'=', 2, 'd'}})) print(s:delete(1), s:delete(99), s:update(99, {{'=', 2, 1}}))
s:truncate()
s:on_replace(t1)
before(function(o, n) return nil end)
print('nil', s:insert{1}) print(#s:select()) print(s:delete(1))
before(function(o, n) return o end)
print('old', s:insert{1}, #s:select())
before(function(o, n, name, op) return n and n:update{{'=', 2, op}} end)
print('new', s:insert{1}, s:replace{1}, s:update(1, {{'=', 2, 'y'}})) print(s:upsert({1}, {{'=', 2, 'z'}})) print(s:get(1)) print(s:delete(1))
s:insert{1}
try(s.insert, s, {1})
print(s:get(1))
before(function(o, n) return nil end) print('nil on old', s:replace{1, 'q'}) print(#s:select())
before(function(o, n) return o end) print('old') 
before(show('none')) s:insert{1, 'w'}
before(function(o, n) return o end) print('old', s:replace{1, 'q'}, s:delete(1)) print(s:upsert({1}, {{'=', 2, 'z'}})) print(s:update(1, {{'=', 2, 'z'}}), s:get(1))
before(function(o, n) return 5 end) try(s.insert, s, {7})
before(function(o, n) return {7} end) try(s.insert, s, {7})
before(function(o, n) return box.tuple.new{8} end) try(s.insert, s, {7}) try(s.replace, s, {1, 2}) print(#s:select(), s:get(8))
before(function(o, n) return box.tuple.new{'a'} end) try(s.insert, s, {9})
before(function(o, n) error('oops') end) try(s.insert, s, {9})
before(function(o, n) box.error(1000, 'x') end) try(s.insert, s, {9})
before(function(o, n) return nil end) try(s.delete, s, {1}) print(#s:select())
before(nil)
print(#s:before_replace())
-- order of before
s:before_replace(function(o, n) print('first', n) return n:update{{'=', 2, 'first'}} end)
s:before_replace(function(o, n) print('second', n) return n:update{{'!', -1, 'second'}} end)
print(s:replace{20, 1})
for _, f in ipairs(s:before_replace()) do s:before_replace(nil, f) end
s:on_replace(nil, t1)
-- errors in on_replace, transactions
local function on(f) return s:on_replace(f, s:on_replace()[1]) end
on(function(o, n) error('no') end)
try(s.insert, s, {30}) print(s:get(30))
box.begin() log:insert{nil, 'before'} try(s.insert, s, {30}) log:insert{nil, 'after'} box.commit() print(s:get(30), log:count())
on(function(o, n) log:insert{nil, n[1], box.is_in_txn()} if n[1] == 31 then error('later') end end)
s:insert{30} try(s.insert, s, {31}) print(s:get(31), log:count())
box.begin() s:insert{32} s:insert{33} box.rollback() print(s:get(32), log:count())
print(log:select{}[3])
on(function(o, n) try(box.begin) try(box.commit) try(box.rollback) try(box.savepoint) end)
s:replace{40}
on(function(o, n) if n[1] < 100 then s:replace{n[1] + 1} end end)
try(s.replace, s, {50}) print(s:get(50), s:get(51))
try(s.replace, s, {98}) print(s:get(98), s:get(99), s:get(100))
on(function() return 1, 2 end) print(s:replace{60})
on(function() print(box.session.type(), box.session.user(), box.session.id() ~= nil) end) s:replace{61}
box.schema.user.grant('guest', 'read,write,execute', 'universe')
local c = require('net.box').connect(arg[1])
on(function(o, n, name, op) print(box.session.type(), box.session.user(), box.session.effective_user(), o, n, name, op) end)
print(c.space.t:insert{70, 'x'}, c.space.t:update(70, {{'=', 2, 'y'}}), c.space.t:replace{70, 'z'}) print(c.space.t:upsert({70}, {{'=', 2, 'u'}})) print(c.space.t:delete{70}, c.space.t:delete{70})
print(c:call('box.space.t:insert', {{71}})[1])
on(function(o, n) error('not this one') end)
try(c.space.t.insert, c.space.t, {72}) print(s:get(72))
try(c.call, c, 'box.space.t:insert', {{72}})
s:drop()
s = box.schema.space.create('t') s:create_index('pk') print(#s:on_replace(), s:insert{1})
os.exit(0)
