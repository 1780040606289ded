-- Who may call a function of _func, by its object.
box.cfg{wal_mode = 'write', log_level = 0, listen = '127.0.0.1:' .. arg[1]}
box.schema.func.create('secret', {body = 'function() return 1 end', language = 'LUA'})
box.schema.func.create('named')
function named() return 2 end
box.schema.user.create('reader')
box.schema.user.grant('reader', 'read', 'universe')
box.schema.user.create('caller')
box.schema.user.grant('caller', 'execute', 'function', 'secret')
local function try(name)
    local ok, value = pcall(function() return box.func[name]:call() end)
    print(box.session.effective_user(), name, ok, tostring(value))
end
for _, user in ipairs({'admin', 'guest', 'reader', 'caller'}) do
    for _, name in ipairs({'secret', 'named'}) do
        box.session.su(user, try, name)
    end
end
os.exit(0)
