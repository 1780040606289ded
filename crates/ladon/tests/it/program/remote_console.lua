-- A console that is connected to others.
local console, socket, yaml = require('console'), require('socket'), require('yaml')
local port = tonumber(arg[1])
box.cfg{listen = port, log = 'own.log'}
local function failed(func, ...)
    local _, text = pcall(func, ...)
    print((tostring(text):gsub('^.-:%d+: ', '')))
end
failed(console.connect, '127.0.0.1:' .. port)
failed(console.ac, true)
failed(console.on_start, 1)
local server = console.listen('127.0.0.1:' .. port + 1)
local client = socket.tcp_connect('127.0.0.1', port + 1)
print(#client:read(128))
local function ask(line)
    client:write(line .. '\n')
    local text = client:read('\n...\n', 5)
    local value = text and yaml.decode(text)[1]
    if type(value) == 'table' then
        value = value.error
    end
    -- A fiber's number is not the same everywhere.
    local shown = line:find('fiber', 1, true) and type(value) or tostring(value):gsub('^.*:%d+: ', '')
    print((line:gsub('127.0.0.1:%d%d%d%d+', 'PLACE')), shown)
    return value
end
ask("require('console').connect('127.0.0.1:1')")
ask("require('console').connect('127.0.0.1:" .. port .. "')")
box.schema.user.create('test', {password = 'pass'})
box.schema.user.grant('test', 'execute', 'universe')
local own = ask("require('fiber').id()")
ask("require('console').connect('test:pass@127.0.0.1:" .. port .. "')")
print(ask("require('fiber').id()") ~= own)
ask('box.session.user()')
ask("error('test', 0)")
ask('1 +')
client:write('~.\n')
print(ask("require('fiber').id()") == own)
ask('box.session.user()')
local left
console.on_client_disconnect(function() left = true end)
ask("require('console').connect('127.0.0.1:" .. port + 1 .. "')")
ask('2 + 2')
print(ask("require('fiber').id()") ~= own)
client:close()
require('fiber').sleep(0.1)
console.on_client_disconnect(nil)
server:close()
os.exit(0)
