-- Long answers and pushed values, and how many were made.
box.cfg{listen = '127.0.0.1:' .. arg[1], wal_mode = 'none', log_level = 1}
box.once('rights', function()
    box.schema.user.grant('guest', 'read,write,execute', 'universe')
end)

local begun, pushed = 0, 0

function long(number)
    begun = begun + 1
    return number, string.rep('x', 100000)
end

function pushes(count)
    for _ = 1, count do
        box.session.push(string.rep('x', 100000))
        pushed = pushed + 1
    end
    return pushed
end

function state()
    return begun, pushed
end
