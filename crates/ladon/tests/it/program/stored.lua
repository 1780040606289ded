-- Money goes from one space to the other and back, by persistent functions.
box.cfg{listen = '127.0.0.1:' .. arg[1], wal_mode = 'write', log_level = 1}
for _, name in ipairs({'a', 'b'}) do
    local space = box.schema.space.create(name)
    space:create_index('pk')
    for id = 1, 10 do space:insert{id, 1000} end
end
box.schema.space.create('journal'):create_index('pk', {sequence = true})
box.schema.user.grant('guest', 'read,write,execute', 'universe')

local move = [[function(from, to, amount)
    box.space.%s:update(from, {{'-', 2, amount}})
    box.space.%s:update(to, {{'+', 2, amount}})
    return box.space.journal:insert{box.NULL, from, to, amount}[1]
end]]
box.schema.func.create('there', {body = move:format('a', 'b')})
box.schema.func.create('back', {body = move:format('b', 'a')})
box.schema.func.create('endless', {body = [[function()
    box.space.a:update(1, {{'+', 2, 1}})
    while true do pcall(function() while true do end end) end
end]]})
box.schema.func.create('large', {body = [[function()
    box.space.b:update(1, {{'+', 2, 1}})
    local text = 'x'
    while true do pcall(function() text = text .. text end) end
end]]})
box.schema.func.create('global', {body = [[function()
    box.space.a:update(2, {{'+', 2, 1}})
    return pcall(function() return os.exit() end)
end]]})
box.schema.func.create('keeps', {body = [[function()
    box.space.a.kept = 1
end]]})
box.schema.func.create('patterns', {body = [[function(n)
    return (('a'):rep(n)):find('.-.-.-.-b')
end]]})
box.schema.func.create('state', {body = [[function()
    local sum = 0
    for id = 1, 10 do
        sum = sum + box.space.a:get(id)[2] + box.space.b:get(id)[2]
    end
    return sum, box.space.journal:len()
end]]})
