-- http.client over TLS, of this server's own HTTP. Arguments: a port that speaks TLS, a plain one, and the
-- authority's file.
box.cfg{log_level = 0}
local client, fiber = require('http.client').new(), require('fiber')
local port, plain, ca = arg[1], arg[2], arg[3]
local base = 'https://localhost:' .. port .. '/v1/keys/'

local function show(name, reply)
    print(name, reply.status, reply.reason, reply.body and #reply.body)
end

local long = ('x'):rep(300000)
show('put', client:put(base .. 'k', long, {ca_file = ca}))
local reply = client:get(base .. 'k', {ca_file = ca})
print('get', reply.status, reply.body == long)
show('no authority', client:get(base .. 'k'))
show('another name', client:get('https://127.0.0.1:' .. port .. '/v1/keys/k', {ca_file = ca}))
show('any name', client:get('https://127.0.0.1:' .. port .. '/v1/keys/k', {ca_file = ca, verify_host = false}))
show('anybody', client:get(base .. 'k', {verify_peer = false}))
show('anybody', client:get(base .. 'k', {verify_peer = 0, verify_host = 0}))
show('no such file', client:get(base .. 'k', {ca_file = '/nothing/there'}))
show('a plain port', client:get('https://localhost:' .. plain .. '/', {ca_file = ca, timeout = 5}))
show('tls for a plain request', client:get('http://localhost:' .. port .. '/', {timeout = 5}))
print((select(2, pcall(client.get, client, base, {ca_file = 1})):gsub('^.-http', 'http')))
print((select(2, pcall(client.get, client, 'ftp://x/')):gsub('^.-http', 'http')))

-- A server that says nothing.
local silent = require('socket').tcp_server('127.0.0.1', 0, function() fiber.sleep(100) end)
local address = 'https://127.0.0.1:' .. silent:name().port
show('silent', client:get(address, {timeout = 0.3, verify_peer = false}))
-- One that ends in the middle.
local short = require('socket').tcp_server('127.0.0.1', 0, function(one) one:write('nonsense') end)
show('nonsense', client:get('https://127.0.0.1:' .. short:name().port, {timeout = 5, verify_peer = false}))

local done, channel = 0, fiber.channel(20)
for number = 1, 20 do
    fiber.create(function()
        for _ = 1, 5 do
            local key = base .. 'f' .. number
            client:put(key, ('y'):rep(number * 1000), {ca_file = ca})
            local length = #client:get(key, {ca_file = ca}).body
            done = done + length
        end
        channel:put(true)
    end)
end
for _ = 1, 20 do channel:get() end
print('together', done)
os.exit(0)
