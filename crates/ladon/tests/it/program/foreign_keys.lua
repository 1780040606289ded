-- Foreign keys in formats, by names of spaces. Tarantool 2.6 has none.
box.cfg{wal_mode = 'write', log_level = 0}
local parent = box.schema.space.create('parent', {format = {{'id', 'unsigned'}}})
parent:create_index('pk')
local function child(name, key)
    return pcall(box.schema.space.create, name, {format = {
        {name = 'id', type = 'unsigned'},
        {name = 'of', type = 'unsigned', is_nullable = true, foreign_key = key},
    }})
end
print(child('lost', {space = 'nosuch', field = 'id'}))
print(child('wrong', 'parent'))
for name, key in pairs({
    named = {key_of_one = {space = 'parent', field = 'id'}},
    alone = {space = 'parent', field = 'id'},
    numbered = {space = parent.id, field = 'id'},
    own = {space = 'own', field = 'id'},
}) do
    assert(child(name, key))
end
for _, name in ipairs({'named', 'alone', 'numbered', 'own'}) do
    local space = box.space[name]
    space:create_index('pk')
    local keys = space:format()[2].foreign_key
    local key = next(keys)
    print(name, key == tostring(parent.id) and 'its number' or key, keys[key].space == parent.id, keys[key].field)
    local ok, why = pcall(space.insert, space, {1, 7})
    print(ok, why)
end
parent:insert({7})
box.space.own:insert({8})
print(box.space.named:insert({2, 7}), box.space.own:insert({9, 8}))
print((pcall(parent.delete, parent, 7)))
os.exit(0)
