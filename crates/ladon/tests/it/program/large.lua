-- Answers of a megabyte, and how many of them were begun.
box.cfg{listen = '127.0.0.1:' .. arg[1], wal_mode = 'write', log_level = 1}
box.once('guest', function() box.schema.user.grant('guest', 'execute', 'universe') end)

local MEGABYTE = 1024 * 1024
local begun, pushed = 0, 0

function large(number)
    begun = begun + 1
    return number, string.rep('x', MEGABYTE)
end

-- All of them are made at the same time.
function large_later(number)
    begun = begun + 1
    require('fiber').sleep(0.3)
    return number, string.rep('x', 4 * MEGABYTE)
end

function pushes(count)
    for _ = 1, count do
        box.session.push(string.rep('x', MEGABYTE))
        pushed = pushed + 1
    end
    return count
end

function state() return begun, pushed end
