-- Functional indexes: what they select, and what they refuse.
box.cfg{log_level = 2}
local function try(func, ...)
    local is_done, result = pcall(func, ...)
    if is_done then return result end
    return tostring(result)
end
local function show(...) return tostring((...)) end
local function rows(found)
    local shown = {}
    for at, tuple in ipairs(found) do shown[at] = tostring(tuple) end
    return table.concat(shown, ' ')
end
local s = box.schema.space.create('people', {format = {{'id', 'unsigned'}, {'name', 'string'}, {'mail', 'string'}}})
s:create_index('pk', {parts = {{1, 'unsigned'}}})
local function make(name, body, options)
    options = options or {}
    options.body, options.is_deterministic, options.is_sandboxed = body, true, true
    return try(box.schema.func.create, name, options)
end
make('first', [[function(tuple) return {string.sub(tuple[2], 1, 1), #tuple.name} end]])
s:insert{1, 'ada', 'ada@x.org,lovelace@y.org'}
s:insert{2, 'bob', 'bob@x.org'}
local first = s:create_index('first', {func = 'first', unique = false, parts = {{1, 'string'}, {2, 'unsigned'}}})
print(first.type, first.unique, #first.parts, first.parts[1].fieldno, first.parts[1].type, first.func ~= nil)
s:insert{3, 'anna', 'anna@z.org'}
s:replace{2, 'cid', 'cid@x.org'}
print('select', rows(first:select{'a'}), '|', rows(first:select({'a', 4})), '|', rows(first:select({}, {iterator = 'LE'})))
print('count', first:count{'a'}, first:len(), show(first:min()), show(first:max{'a'}))
print('pairs')
for _, tuple in first:pairs({'a'}, {iterator = 'GT'}) do print(tuple) end
make('mails', [[function(tuple)
    local keys = {}
    for mail in string.gmatch(tuple[3], '[^,]+') do keys[#keys + 1] = {mail} end
    return keys
end]], {opts = {is_multikey = true}})
local mails = s:create_index('mails', {func = 'mails', parts = {{1, 'string', collation = 'unicode_ci'}}})
print(show(mails:get('LOVELACE@y.org')), show(mails:get('nobody')), mails:len())
local _, err = pcall(s.insert, s, {4, 'dan', 'dan@x.org,ada@x.org'})
print(err.code == box.error.TUPLE_FOUND)
print(s:get(4))
print(show(mails:update({'ada@x.org'}, {{'=', 3, 'ada@q.org'}})), show(mails:get('lovelace@y.org')), show(mails:get('ada@q.org')))
print(show(mails:delete('cid@x.org')), s:len(), mails:len(), first:len())
s:upsert({1, 'ada', ''}, {{'=', 'mail', 'up@x.org'}})
print(show(mails:get('up@x.org')), mails:len())
print('same key twice', show(s:replace{1, 'ada', 'a@b,a@b,A@B'}), mails:len(), rows(mails:select{}))
-- What is refused.
make('raises', [[function(tuple) error('no key for ' .. tuple[1]) end]])
make('scalar', [[function(tuple) return tuple[2] end]])
make('short', [[function(tuple) return {tuple[2]} end]])
make('two', [[function(tuple) return {1}, {2} end]])
make('none', [[function(tuple) end]])
make('open', [[function(tuple) return {os.time()} end]])
print('raises', try(s.create_index, s, 'x', {func = 'raises', parts = {{1, 'unsigned'}}}))
print('scalar', try(s.create_index, s, 'x', {func = 'scalar', parts = {{1, 'unsigned'}}}))
print('short', try(s.create_index, s, 'x', {func = 'short', parts = {{1, 'string'}, {2, 'string'}}}))
print('type', try(s.create_index, s, 'x', {func = 'short', parts = {{1, 'unsigned'}}}))
print('two', try(s.create_index, s, 'x', {func = 'two', parts = {{1, 'unsigned'}}}))
print('none', try(s.create_index, s, 'x', {func = 'none', parts = {{1, 'unsigned'}}}))
print('open', try(s.create_index, s, 'x', {func = 'open', parts = {{1, 'unsigned'}}}))
print('multikey one', try(s.create_index, s, 'x', {func = 'first', parts = {{1, 'unsigned'}}}))
box.schema.func.create('plain')
box.schema.func.create('unsure', {body = [[function(tuple) return {1} end]], is_sandboxed = true})
box.schema.func.create('free', {body = [[function(tuple) return {1} end]], is_deterministic = true})
for _, name in ipairs{'plain', 'unsure', 'free', 'nobody'} do
    print(name, try(s.create_index, s, 'x', {func = name, parts = {{1, 'unsigned'}}}))
end
print('hash', try(s.create_index, s, 'x', {type = 'hash', func = 'first', parts = {{1, 'string'}, {2, 'unsigned'}}}))
print('sparse', try(s.create_index, s, 'x', {func = 'first', parts = {{2, 'unsigned'}}}))
print('path', try(s.create_index, s, 'x', {func = 'first', parts = {{1, 'string', path = 'a'}, {2, 'unsigned'}}}))
local other = box.schema.space.create('other')
print('primary', try(other.create_index, other, 'pk', {func = 'first', parts = {{1, 'string'}, {2, 'unsigned'}}}))
print('drop', try(box.schema.func.drop, 'first'))
print(#s.index, s.index.x)
-- Later writes.
make('picky', [[function(tuple) if tuple[1] == 9 then error('nine') end return {tuple[1] * 2} end]])
local picky = s:create_index('picky', {func = 'picky', parts = {{1, 'unsigned'}}})
print(try(s.insert, s, {9, 'nine', 'n@n'}))
print(s:get(9), show(picky:get(2)))
picky:drop()
print(try(box.schema.func.drop, 'picky'))
box.begin()
s:insert{20, 'tom', 't@t'}
print('in a transaction', show(mails:get('t@t')))
box.rollback()
print(show(mails:get('t@t')), mails:len())
s:truncate()
print(mails:len(), first:len())
s:insert{5, 'eve', 'e@e'}
print(show(mails:get('E@E')))
os.exit(0)
