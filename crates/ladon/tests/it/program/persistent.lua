-- Persistent functions, called by a client: what they return and raise, and what they leave.
box.cfg{wal_mode = 'write', log_level = 0, listen = '127.0.0.1:' .. arg[1]}
local s = box.schema.space.create('s')
s:create_index('pk', {parts = {1, 'unsigned'}})
s:create_index('name', {parts = {2, 'string'}, unique = false})
box.schema.sequence.create('numbers')
local t = box.schema.space.create('t', {format = {{'id', 'unsigned'}, {'name', 'string'}}})
t:create_index('pk', {sequence = 'numbers'})
for i = 1, 100 do
    s:insert{i, 'n' .. i % 7, i * 10}
end
box.schema.user.grant('guest', 'execute,read,write', 'universe')
local client = require('net.box').connect('127.0.0.1:' .. arg[1])

-- Shows a function's results, or its error: codes of box, texts of Lua.
local function show(name, is_ok, ...)
    local shown = {}
    for at = 1, select('#', ...) do
        local value = select(at, ...)
        local has_code, code = pcall(function() return value.code end)
        if type(value) == 'cdata' and has_code and type(code) == 'number' and code ~= 32 then
            shown[at] = 'error ' .. code
        elseif box.tuple.is(value) then
            shown[at] = require('json').encode(value:totable())
        elseif type(value) == 'table' then
            shown[at] = require('json').encode(value)
        else
            shown[at] = tostring(value)
        end
    end
    print(name, is_ok, unpack(shown))
end

local count = 0
local function try(body, ...)
    count = count + 1
    local name = 'f' .. count
    box.schema.func.create(name, {body = body})
    -- Once more each: what is remembered of the first call changes nothing.
    for _ = 1, 2 do
        show(name, pcall(client.call, client, name, {...}))
    end
end

print('-- values')
try('function(...) return ... end', 1, 'a', {1, 2}, {a = 1}, 1.5, true)
try('function() end')
try('function() return nil, 1, nil end')
try('function() return 18446744073709551615ULL, -5, 2 ^ 53 end')
try('function(n) return {n, {n}}, {n = n} end', 7)
try('function() return box.NULL == nil, type(box.NULL) end')

print('-- tuples')
try('function(key) return box.space.s:get(key), box.space.s:get{key} end', 5)
try('function(key) return box.space.s:get(key) end', 500)
try("function(key) local r = box.space.s:replace{key, 'new', 1} return r, r[3], #r end", 200)
try("function(key) return box.space.s:update(key, {{'+', 3, 5}, {'=', 2, 'x'}}) end", 200)
try("function(key) box.space.s:upsert({key, 'u', 1}, {{'+', 3, 1}}) return box.space.s:get(key)[3] end", 201)
try('function(key) return box.space.s:delete(key) end', 201)
try("function(name) return box.space.t:insert{box.NULL, name}.name end", 'ada')
try('function() return box.space.t:get(1).name, box.space.t:get(1):tomap({names_only = true}).id end')
try('function() return #box.space.s:select({}, {limit = 3}), box.space.s:select({98}, {iterator = "GE", limit = 2}) end')
try('function() return box.space.s:count(), box.space.s:len(), box.space.s.index.name:count("n1") end')
try('function() return box.space.s.index.pk:min()[1], box.space.s.index.pk:max()[1], box.space.s.index.name:min("n2")[1] end')
try([[function() local sum = 0
    for _, tuple in box.space.s.index.pk:pairs({10}, {iterator = 'LE'}) do sum = sum + tuple[1] end
    return sum end]])
try('function() return box.space.s.id, box.space.s.name, box.space.s.index.name.unique, box.space.nothing end')
try('function() return box.tuple.new({1, 2, 3}):update({{"+", 2, 5}}) end')

print('-- errors')
try("function() error('no') end")
try("function() local ok, why = pcall(error, {code = 3, why = 'none'}) return ok, why.why end")
try('function() box.space.s:insert{1, "a", 1} end')
try('function() box.space.s:insert{"x"} end')
try('function() box.space.s:get{1, 2} end')
try('function() box.space.s.index.name:get("n1") end')
try('function() box.space.nothing:get(1) end')
try('function() local x = nil return x.y end')
try("function() box.error(box.error.PROC_C, 'mine') end")
try('function() return (pcall(box.space.s.insert, {})) end')
try('function() local ok, why = pcall(box.space.s.insert, box.space.s, {1, "a"}) return ok, why.code end')
try("function(key) box.space.s:replace{key, 'kept', 0} error('after') end", 300)
show('kept', true, s:get(300))
show('bad', (pcall(box.schema.func.create, 'bad', {body = 'function( return 1 end'})))

print('-- transactions')
try([[function(key) box.begin() box.space.s:replace{key, 'gone', 0} box.rollback()
    return box.space.s:get(key), box.is_in_txn() end]], 301)
try([[function(key) box.begin() box.space.s:replace{key, 'there', 0} box.commit()
    return box.space.s:get(key)[2] end]], 302)
try("function(key) box.begin() box.space.s:replace{key, 'open', 0} end", 303)
show('open', true, s:get(303))
try('function() box.begin() box.begin() end')
try([[function(key) return box.atomic(function(k) box.space.s:replace{k, 'atomic', 0} return k end, key) end]], 304)
try([[function(key) local ok = pcall(box.atomic, function()
    box.space.s:replace{key, 'lost', 0} error('x') end) return ok, box.space.s:get(key) end]], 305)
try([[function(key) box.begin() box.space.s:replace{key, 'a', 0} local mark = box.savepoint()
    box.space.s:replace{key + 1, 'b', 0} box.rollback_to_savepoint(mark) box.commit()
    return box.space.s:get(key)[2], box.space.s:get(key + 1) end]], 306)
try('function() return pcall(box.savepoint) end')
try([[function() box.begin() box.space.t:insert{box.NULL, 'never'} box.rollback()
    return box.space.t:len() end]])

print('-- what only a program has')
try([[function(key) box.space.s:insert{key + (counter or 0), 'once', 0}
    counter = (counter or 0) + 1 return counter end]], 400)
show('inserted', true, s.index.name:count('once'))
helper = function(x) return x * 2 end
try('function(x) return helper(x) end', 21)
try('(function() local n = 0 return function() n = n + 1 return n end end)()')
try('function(key) pcall(function() helper(1) end) return box.space.s:get(key)[1] end', 1)
try([[function(key) local ok, n = pcall(function() box.space.s:insert{key + helper(0), 'p', 0} return helper(3) end)
    if ok then box.space.s:delete(key) end return ok, n end]], 500)
try('function() string.mine = nil return 1 end')
try("function() return require('fiber').id() ~= nil end")
try('function() return box.session.user(), box.info.id end')
try('function() local n = 0 for i = 1, 3000000 do n = n + 1 end return n end')
try([[function(key) box.space.s:insert{key, 'slow', 0} local n = 0
    for i = 1, 3000000 do n = n + 1 end box.space.s:delete(key) return n end]], 600)
try("function() return #('x'):rep(5000000) end")
try("function() local t = {} for i = 1, 100000 do t[i] = i end return #t end")
try('function() return #box.space._space.index.name.parts > 0, box.space._user:get(1)[3] end')
try('function() return #box.space.s:select() >= 100 end')

print('-- the library')
try("function(a, b) return a:upper(), (a .. b):sub(2, 3), ('%d-%s'):format(7, b), a:rep(3, ',') end", 'ab', 'cd')
try("function(a) return a:match('(%a+)=(%d+)'), a:gsub('%d', 'n'), a:find('=', 1, true) end", 'key=123')
try("function(a) return a:split(','), a:startswith('a'), a:strip() end", 'a,b ')
try("function() local t = {3, 1, 2} table.sort(t) return t, table.concat(t, '-'), unpack(t) end")
try('function() return math.floor(2.7), math.max(1, 5, 3), math.huge > 1, tonumber("12"), tostring(1.5) end')
try([[function() local json = require('json') return json.encode({1, 2}), json.decode('{"a": [1]}') end]])
try([[function() local t = setmetatable({}, {__index = function(_, k) return k .. '!' end}) return t.hey, getmetatable(t) ~= nil end]])
try("function() return select('#', 1, nil, 2), select(2, 'a', 'b'), type(next), next({}) end")
try("function() return require('digest').sha1_hex('x'), require('uuid').fromstr('c8f0fa1f-da29-438c-a040-393f1126ad39'):str() end")
try('function(n) if n < 2 then return n end local a, b = 0, 1 for i = 2, n do a, b = b, a + b end return b end', 50)

print('-- definitions that change')
box.schema.func.create('late', {body = 'function() return box.space.later ~= nil end'})
show('late', pcall(client.call, client, 'late'))
local later = box.schema.space.create('later')
show('late', pcall(client.call, client, 'late'))
later:drop()
show('late', pcall(client.call, client, 'late'))
box.schema.func.drop('late')
show('late', pcall(client.call, client, 'late'))
box.schema.func.create('late', {body = 'function() return 2 end'})
show('late', pcall(client.call, client, 'late'))
s:on_replace(function(_, new) last_seen = new[1] end)
box.schema.func.create('told', {body = "function(k) return box.space.s:replace{k, 't', 0}[1] end"})
show('told', pcall(client.call, client, 'told', {700}))
print(last_seen)

print('-- rights')
box.schema.user.revoke('guest', 'execute,read,write', 'universe')
box.schema.func.create('reads', {body = 'function() return box.space.t:len() end'})
box.schema.func.create('owned', {body = 'function() return box.space.t:len() > 0 end', setuid = true})
show('reads', pcall(client.call, client, 'reads'))
box.schema.user.grant('guest', 'execute', 'function', 'reads')
box.schema.user.grant('guest', 'execute', 'function', 'owned')
show('reads', pcall(client.call, client, 'reads'))
show('owned', pcall(client.call, client, 'owned'))
box.schema.user.grant('guest', 'read', 'space', 't')
show('reads', pcall(client.call, client, 'reads'))
os.exit(0)
