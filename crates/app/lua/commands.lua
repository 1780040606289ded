-- box.resp: commands of Redis on the keys beside the spaces.
local ladon = ...

local ADMIN = 1
local command = ladon.command

box.resp = {}

-- Runs a command, which is a transaction of its own, or a part of the fiber's. A reply that is an error is
-- raised.
function box.resp.call(name, ...)
    if type(name) ~= 'string' then
        error('Usage: box.resp.call(command, ...)', 2)
    end
    local user = ladon.user() == ADMIN and 'admin' or box.session.effective_user()
    if user == nil then
        box.error(box.error.NO_SUCH_USER, tostring(ladon.user()))
    end
    return command(user, name, ...)
end
