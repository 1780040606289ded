-- Spaces, indexes, tuples, transactions, errors: what a program sees of box. Messages are those of
-- 2.11, so errors of box are shown by their codes.
local function try(func, ...)
    local ok, err = pcall(func, ...)
    print(ok, ok and err or (type(err) == 'cdata' and err.code or (err:gsub('^.-:%d+: ', ''))))
end

box.cfg{listen = '127.0.0.1:' .. arg[1], wal_mode = 'none', log_level = 1}
local s = box.schema.space.create('accounts', {format = {
    {'id', 'unsigned'}, {'owner', 'string'}, {name = 'amount', type = 'number', is_nullable = true},
}})
print(s.name, s.engine, s.id >= 512, box.space.accounts == s, box.space.nosuch)
try(box.schema.space.create, 'accounts')
print(box.schema.space.create('accounts', {if_not_exists = true}) == s)
try(s.insert, s, {1})
s:create_index('primary', {parts = {'id'}})
s:create_index('owner', {unique = false, parts = {{'owner', collation = 'unicode_ci'}}})
s:create_index('amount', {unique = false, parts = {{field = 3, type = 'number', is_nullable = true}}})
print(s.index.primary.unique, s.index.owner.unique, s.index[1].name, s.index.owner.type)
try(s.create_index, s, 'primary')
try(s.create_index, s, 'x', {type = 'nosuch'})
try(s.create_index, s, 'x', {parts = {'nosuch'}})

print(s:insert{1, 'Ann', 10}, s:insert{2, 'bob', 5.5}, s:replace{3, 'ANN', 7}, s:put{4, 'Eve'})
try(s.insert, s, {1, 'x', 1})
try(s.insert, s, {'a', 'x', 1})
try(s.insert, s, {5, 6})
try(s.insert, s, 5)
print(s:get(1), s:get{2}, s:get(9), s.index.primary:get(3))
try(s.get, s, 'a')
try(s.get, s, {1, 2})
try(s.index.owner.get, s.index.owner, 'bob')
print(#s:select(), #s:select{1}, #s.index.owner:select('ann'), s:count(), s:len())
print(s.index.amount:min(), s.index.amount:max(), s.index.amount:count(5, {iterator = 'GE'}))
for _, t in ipairs(s:select({2}, {iterator = 'GE', limit = 2})) do print(t) end
for _, t in ipairs(s:select({}, {iterator = box.index.LE, offset = 1})) do print(t) end
for _, t in s:pairs(3, {iterator = 'LE'}) do print(t.id, t.owner, t.amount, t[1], t[9]) end
try(s.select, s, 1, {iterator = 'NOSUCH'})

print(s:update(1, {{'+', 3, 5}, {'=', 'owner', 'Anna'}}), s:update(99, {{'+', 3, 5}}))
try(s.update, s, 1, {{'+', 2, 5}})
try(s.update, s, 1, {{'=', 1, 5}})
try(s.update, s, 1, {{'?', 1, 5}})
print(s:upsert({7, 'New', 1}, {{'+', 3, 1}}), s:upsert({7, 'New', 1}, {{'+', 3, 1}}), s:get(7))
print(s:delete(7), s:delete(7))

local t = s:get(1)
print(t.owner, t[2], #t, t:bsize(), t:unpack())
print(t:totable()[3], t:tomap().amount, t:find('Anna'), t:findall('Anna')[1], t:slice(0, 2))
print(t:transform(2, 1, 'x', 'y'), t:unpack(2, 3))
print(box.tuple.new{1, 'a', {x = 1}, {1, 2}, true, box.NULL, 1.5}, box.tuple.is(t), box.tuple.is({}))
try(function() t[1] = 2 end)
print(s:frommap{id = 5, owner = 'map'}, s:frommap({nosuch = 1}))
print(s:len(), s:auto_increment{'auto', 1})

box.begin()
s:replace{50, 'tx', 1}
print(box.is_in_txn(), s:get(50))
box.rollback()
print(box.is_in_txn(), s:get(50))
box.begin() s:replace{51, 'tx', 1} box.commit()
print(s:get(51))
try(function() box.begin() box.begin() end)
box.rollback()

local seq = box.schema.sequence.create('seq', {start = 10, step = 5, max = 25})
print(seq:next(), seq:next(), seq:current(), box.sequence.seq:next())
print(seq:next()) try(seq.next, seq)
seq:set(12) print(seq:next()) seq:reset() print(seq:next())
local q = box.schema.space.create('q')
q:create_index('pk', {sequence = true})
print(q:insert{box.NULL, 'a'}, q:insert{box.NULL, 'b'})
q:truncate() print(q:len())
q:drop() print(box.space.q, box.sequence.q_seq)
s.index.amount:rename('money') print(s.index.money ~= nil, s.index.amount)
s.index.money:drop() print(s.index.money)
s:rename('people') print(box.space.people == s, box.space.accounts)

box.schema.user.create('u', {password = 'p'})
try(box.schema.user.create, 'u')
box.schema.user.grant('u', 'read,write', 'space', 'people')
try(box.schema.user.grant, 'u', 'read', 'space', 'people')
box.schema.role.create('r') box.schema.role.grant('r', 'execute', 'universe')
box.schema.user.grant('u', 'r')
print(box.schema.user.exists('u'), box.schema.user.exists('v'), box.schema.role.exists('r'))
box.session.su('u', function() print(box.session.effective_user(), s:get(2)) end)
try(box.session.su, 'guest', function() return s:get(2) end)
box.schema.user.revoke('u', 'write', 'space', 'people')
try(box.session.su, 'u', function() return s:replace{1, 'x', 1} end)
box.schema.user.drop('u') box.schema.role.drop('r')
print(box.session.user(), box.session.uid(), box.session.euid())
box.once('key', function() print('once') end) box.once('key', function() print('twice') end)

try(box.error, box.error.NO_SUCH_SPACE, 'x')
try(box.error, {code = 100, reason = 'own'})
print(pcall(box.error, box.error.NO_SUCH_SPACE, 'x'))
local e = box.error.new(box.error.NO_SUCH_SPACE, 'y')
print(e.type, e.code, e.message, tostring(e))
try(error, e)
-- An iterator shows what is there when it comes to it.
local moving = box.schema.space.create('moving')
moving:create_index('pk')
for at = 1, 300 do
    moving:insert{at, 'old'}
end
local seen = {}
for _, tuple in moving:pairs() do
    seen[#seen + 1] = tuple[1] .. tuple[2]
    if tuple[1] == 2 then
        moving:delete(3)
        moving:update(5, {{'=', 2, 'new'}})
        moving:insert{6.5 * 2 + 288, 'added'}
    elseif tuple[1] == 6 then
        for at = 7, 299 do
            moving:delete(at)
        end
    end
end
print(table.concat(seen, ' '))
local iterator, param, state = moving:pairs()
moving:delete(1)
print((select(2, iterator(param, state))))
print(type(box.NULL), box.NULL == nil, type(1ULL), tostring(s:len()))
try(box.cfg, {nosuch = 1})
try(box.cfg, {listen = {}})
os.exit(0)
