-- A server that others follow: it listens at its argument, and has its own address in the list.
local own = '127.0.0.1:' .. arg[1]
box.cfg{log_level = 0, listen = own, replication = {'guest@' .. own}}
box.once('first', function()
    box.schema.user.grant('guest', 'super')
    local space = box.schema.space.create('s', {format = {{'id', 'unsigned'}, {'name', 'string', is_nullable = true}}})
    space:create_index('pk')
    space:insert({1, 'before'})
end)

function state()
    return 'ready'
end

function followers()
    local found = {}
    for id, one in pairs(box.info.replication) do
        if one.downstream ~= nil then
            table.insert(found, {id, one.downstream.status, one.downstream.vclock[1] == box.info.lsn})
        end
    end
    return found
end
