-- Lines of a socket that arrive in pieces: what is read, and what stays for the next read.
local socket, fiber = require('socket'), require('fiber')
local port = tonumber(arg[1])
local PIECES = {'a\r', '\nb', '\r\n', 'cc', 'END', 'd\r\nrest'}
socket.tcp_server('127.0.0.1', port, function(client)
    for _, piece in ipairs(PIECES) do
        client:write(piece)
        fiber.sleep(0.02)
    end
end)
local client = socket.tcp_connect('127.0.0.1', port)
local function show(text)
    print((tostring(text):gsub('\r', '<'):gsub('\n', '>')))
end
show(client:read('\r\n'))
show(client:read({delimiter = {'\r\n', 'END'}}))
show(client:read({delimiter = {'\r\n', 'END'}}))
show(client:read({delimiter = '\r\n', chunk = 2}))
show(client:read('\r\n', 1))
show(client:read(2))
show(client:read('x'))
show(client:read('x'))

-- A line of 8 MB takes as long as its bytes.
local LINE = ('x'):rep(8 * 1024 * 1024)
socket.tcp_server('127.0.0.1', port + 1, function(other)
    other:write(LINE .. '\nend')
end)
local long = socket.tcp_connect('127.0.0.1', port + 1)
local began = fiber.time()
print(#long:read('\n'), fiber.time() - began < 10, long:read(3))
os.exit(0)
