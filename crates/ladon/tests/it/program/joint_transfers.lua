-- Money goes between keys and tuples, which others change as well: all of a transfer or nothing.
box.cfg{listen = '127.0.0.1:' .. arg[1], wal_mode = 'write', log_level = 1}
local call = box.resp.call
box.once('accounts', function()
    local accounts = box.schema.space.create('accounts')
    accounts:create_index('pk')
    for id = 1, 5 do
        accounts:insert{id, 1000}
        call('SET', 'account:' .. id, 1000)
    end
    box.schema.user.grant('guest', 'read,write,execute', 'universe')
end)

-- Until there is no conflict. Returns how many there were.
local function again(run)
    local conflicts = 0
    while true do
        local done = {pcall(box.atomic, run)}
        if done[1] then
            return conflicts, unpack(done, 2)
        end
        if done[2].code ~= box.error.TRANSACTION_CONFLICT then error(done[2]) end
        conflicts = conflicts + 1
    end
end

-- From the key to the tuple, by reading and writing: what another one does meanwhile must not be lost.
function transfer(from, to, amount)
    return (again(function()
        local key = 'account:' .. from
        local left = tonumber(call('GET', key)) - amount
        require('fiber').yield()
        call('SET', key, left)
        box.space.accounts:update(to, {{'+', 2, amount}})
        call('INCR', 'transfers')
    end))
end

function state()
    local _, sum, transfers = again(function()
        local sum = 0
        for id = 1, 5 do
            sum = sum + tonumber(call('GET', 'account:' .. id)) + box.space.accounts:get(id)[2]
        end
        return sum, tonumber(call('GET', 'transfers') or 0)
    end)
    return sum, transfers
end
