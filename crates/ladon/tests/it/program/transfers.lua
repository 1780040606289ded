-- Money goes from one account to another, and a journal says so: all of it or nothing.
box.cfg{listen = '127.0.0.1:' .. arg[1], wal_mode = 'write', log_level = 1}
box.once('accounts', function()
    local accounts = box.schema.space.create('accounts')
    accounts:create_index('pk')
    for id = 1, 10 do accounts:insert{id, 1000} end
    box.schema.space.create('journal'):create_index('pk', {sequence = true})
    box.schema.user.grant('guest', 'read,write,execute', 'universe')
end)

function transfer(from, to, amount)
    local accounts = box.space.accounts
    return box.atomic(function()
        accounts:update(from, {{'-', 2, amount}})
        require('fiber').yield()
        accounts:update(to, {{'+', 2, amount}})
        return box.space.journal:insert{nil, from, to, amount}[1]
    end)
end

function state()
    local sum = 0
    for _, account in box.space.accounts:pairs() do sum = sum + account[2] end
    return sum, box.space.journal:len()
end

function endless() while true do end end

-- Never waits for so many seconds.
function busy(seconds)
    local clock = require('clock')
    local stop = clock.monotonic() + seconds
    while clock.monotonic() < stop do end
    return 7
end

-- After a change of its own.
function stays()
    box.space.accounts:update(1, {{'+', 2, 0}})
    endless()
end

-- Catches what ends it, and goes on.
function stubborn()
    while true do
        pcall(function() while true do pcall(endless) end end)
    end
end

-- In a transaction that has written.
function stuck()
    box.begin()
    box.space.accounts:update(1, {{'+', 2, 1}})
    endless()
end
