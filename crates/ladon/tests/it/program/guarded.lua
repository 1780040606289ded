-- A space with triggers, written by clients of every dialect.
box.cfg{listen = '127.0.0.1:' .. arg[1], wal_mode = 'none', log_level = 1}
box.schema.user.grant('guest', 'read,write,execute', 'universe', nil, {if_not_exists = true})
local space = box.schema.space.create('orders', {
    if_not_exists = true,
    format = {{'id', 'unsigned'}, {'who', 'string'}, {'count', 'unsigned', is_nullable = true}},
})
space:create_index('pk', {if_not_exists = true})
box.space._space:update(space.id, {{'=', 6, {resp_prefix = 'order:'}}})
local called = 0
function watch()
    space:on_replace(function(old, new)
        called = called + 1
        if new ~= nil and new[2] == 'nobody' then
            error('nobody orders nothing')
        end
    end)
end
function unwatch()
    for _, trigger in ipairs(space:on_replace()) do
        space:on_replace(nil, trigger)
    end
end
function state()
    return called, space:count()
end
