-- socket: TCP and unix sockets whose fibers wait
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/socket/).
local ladon = ...

local EAGAIN, EINPROGRESS, EINTR = 11, 115, 4
local CHUNK = 65536

local methods = {}
local Socket = {
    __index = methods,
    __tostring = function(socket)
        return 'fd ' .. socket.number
    end,
}

local function object(number)
    return setmetatable({number = number, buffer = '', last_error = 0}, Socket)
end

local function deadline(timeout)
    return timeout and ladon.clock(1) + timeout
end

local function left_until(stop)
    return stop and stop - ladon.clock(1)
end

local function note(socket, number)
    socket.last_error = number
    return nil
end

-- Waits until the socket may be ready; false if the time is over.
local function wait(socket, writes, stop)
    local left = left_until(stop)
    if left ~= nil and left <= 0 then
        return false
    end
    local is_ready = ladon.sock_wait(socket.number, writes, left)
    ladon.fiber.testcancel()
    return is_ready and not socket.is_closed
end

-- What there is to read now, at most `most` bytes: waits for it. Empty at the end, nil for an
-- error or when the time is over.
local function read_plain(socket, most, stop)
    while not socket.is_closed do
        local text, number = ladon.sock_read(socket.number, most)
        if text ~= nil then
            return text
        end
        if number ~= EAGAIN and number ~= EINTR then
            return note(socket, number)
        end
        if not wait(socket, false, stop) then
            return note(socket, 110)
        end
    end
    return note(socket, 9)
end

ladon.read_plain = read_plain

-- As above; of a socket with TLS, what it has deciphered.
local function read_some(socket, most, stop)
    if socket.secure ~= nil then
        return ladon.read_secure(socket, stop)
    end
    return read_plain(socket, most, stop)
end

local function take(socket, count)
    local text = socket.buffer:sub(1, count)
    socket.buffer = socket.buffer:sub(count + 1)
    return text
end

-- Where the first of the delimiters ends in a text.
local function find_end(text, delimiters)
    local first
    for _, delimiter in ipairs(delimiters) do
        local _, stop = text:find(delimiter, 1, true)
        if stop ~= nil and (first == nil or stop < first) then
            first = stop
        end
    end
    return first
end

local function longest_of(delimiters)
    local longest = 1
    for _, delimiter in ipairs(delimiters or {}) do
        longest = math.max(longest, #delimiter)
    end
    return longest
end

-- Reads on until the limit or a delimiter. Pieces are put together at the end, so that a long line
-- costs its length and not the square of it.
local function read_on(socket, limit, delimiters, stop)
    local longest = longest_of(delimiters)
    local pieces, length = {socket.buffer}, #socket.buffer
    local last = socket.buffer
    socket.buffer = ''
    local count
    repeat
        -- A delimiter may begin in the bytes before the newest piece.
        local tail = longest > 1 and last:sub(1 - longest) or ''
        local is_read, text = pcall(read_some, socket, CHUNK, stop)
        if not is_read or text == nil then
            socket.buffer = table.concat(pieces) .. socket.buffer
            return nil, not is_read and text or nil
        end
        pieces[#pieces + 1] = text
        length, last = length + #text, tail .. text
        local found = delimiters and find_end(last, delimiters)
        found = found and length - #last + found
        if text == '' then
            count = length
        elseif found and (not limit or found <= limit) then
            count = found
        elseif limit and length >= limit then
            count = limit
        end
    until count ~= nil
    socket.buffer = table.concat(pieces) .. socket.buffer
    return take(socket, count)
end

-- read(limit), read(delimiter), read({chunk|limit = n, delimiter|line = s}), each with a timeout.
function methods.read(socket, what, timeout)
    local limit, delimiters = nil, nil
    if type(what) == 'number' then
        limit = what
    elseif type(what) == 'string' then
        delimiters = {what}
    elseif type(what) == 'table' then
        limit = what.chunk or what.limit or what.size
        local delimiter = what.delimiter or what.line
        delimiters = type(delimiter) == 'string' and {delimiter} or delimiter
    else
        error('Usage: s:read(delimiter|chunk|{delimiter = x, chunk = x}, timeout)', 2)
    end
    local found = delimiters and find_end(socket.buffer, delimiters)
    if found and (not limit or found <= limit) then
        return take(socket, found)
    end
    if limit and #socket.buffer >= limit then
        return take(socket, limit)
    end
    local text, raised = read_on(socket, limit, delimiters, deadline(timeout))
    if raised ~= nil then
        error(raised, 0)
    end
    return text
end

function methods.sysread(socket, most)
    if #socket.buffer > 0 then
        return take(socket, most or CHUNK)
    end
    local text, number = ladon.sock_read(socket.number, most or CHUNK)
    if text == nil then
        return note(socket, number)
    end
    return text
end

function methods.recv(socket, most)
    return methods.sysread(socket, most)
end

local function write_plain(socket, text, stop)
    local sent = 0
    while sent < #text do
        if socket.is_closed then
            return note(socket, 9)
        end
        local count, number = ladon.sock_write(socket.number, text, sent + 1)
        if count ~= nil then
            sent = sent + count
        elseif number ~= EAGAIN and number ~= EINTR then
            return note(socket, number)
        elseif not wait(socket, true, stop) then
            return note(socket, 110)
        end
    end
    return #text
end
ladon.write_plain = write_plain

function methods.write(socket, text, timeout)
    -- Nobody sees what a crash could take back.
    ladon.pass_gate()
    local write = socket.secure ~= nil and ladon.write_secure or write_plain
    return write(socket, text, deadline(timeout))
end
methods.send = methods.write

function methods.syswrite(socket, text)
    ladon.pass_gate()
    local count, number = ladon.sock_write(socket.number, text, 1)
    if count == nil then
        return note(socket, number)
    end
    return count
end

function methods.readable(socket, timeout)
    return #socket.buffer > 0 or wait(socket, false, deadline(timeout))
end

function methods.writable(socket, timeout)
    return wait(socket, true, deadline(timeout))
end

function methods.wait(socket, timeout)
    return methods.readable(socket, timeout) and 'R' or ''
end

function methods.shutdown(socket, how)
    local names = {R = 0, W = 1, RW = 2, SHUT_RD = 0, SHUT_WR = 1, SHUT_RDWR = 2}
    return ladon.sock_shutdown(socket.number, names[how] or how or 2) or false
end

function methods.close(socket)
    if socket.is_closed then
        return false
    end
    if socket.secure ~= nil then
        ladon.close_secure(socket)
    end
    socket.is_closed = true
    ladon.sock_close(socket.number)
    if socket.path ~= nil then
        os.remove(socket.path)
    end
    return true
end

function methods.fd(socket)
    return socket.number
end

function methods.nonblock()
    return true
end

function methods.errno(socket)
    return socket.last_error
end

function methods.error(socket)
    local has, errno = pcall(require, 'errno')
    return socket.last_error ~= 0 and (has and errno.strerror(socket.last_error)
        or tostring(socket.last_error)) or nil
end

local function shown_name(host, port)
    if host == nil then
        return nil
    end
    if host == 'unix/' then
        return {host = host, port = port, family = 'AF_UNIX', type = 'SOCK_STREAM', protocol = 0}
    end
    return {
        host = host, port = port, family = host:find(':', 1, true) and 'AF_INET6' or 'AF_INET',
        type = 'SOCK_STREAM', protocol = 'tcp',
    }
end

function methods.name(socket)
    return shown_name(ladon.sock_name(socket.number, false))
end

function methods.peer(socket)
    return shown_name(ladon.sock_name(socket.number, true))
end

function methods.accept(socket)
    local number, failed = ladon.sock_accept(socket.number)
    if number == nil then
        return note(socket, failed)
    end
    return object(number)
end

local socket = {}

function socket.tcp_connect(host, port, timeout)
    if port == nil and type(host) == 'string' and not host:find('^/') then
        host, port = host:match('^(.*):(%d+)$')
    end
    local stop = deadline(timeout)
    local number, failed, text = ladon.sock_connect(host, tostring(port))
    if number == nil then
        box.error.set(box.error.new({code = 0, type = 'SocketError', reason = text}))
        return nil, text, failed
    end
    local made = object(number)
    if not wait(made, true, stop) then
        made:close()
        return nil, 'Connection timed out', 110
    end
    local what = ladon.sock_error(number)
    if what ~= 0 then
        made:close()
        local has, errno = pcall(require, 'errno')
        return nil, has and errno.strerror(what) or tostring(what), what
    end
    return made
end

-- Serves each connection in a fiber of its own. The server's object has `close` and `name`.
function socket.tcp_server(host, port, options, timeout)
    local handler, name = options, 'server'
    if type(options) == 'table' then
        handler, name = options.handler, options.name or name
    end
    if type(handler) ~= 'function' then
        error('Usage: socket.tcp_server(host, port, handler)', 2)
    end
    local number, failed, text = ladon.sock_listen(host, tostring(port))
    if number == nil then
        return nil, text, failed
    end
    local server = object(number)
    -- The path of a server goes with it.
    server.path = host == 'unix/' and tostring(port) or nil
    ladon.background(name, function()
        while not server.is_closed do
            local client = server:accept()
            if client ~= nil then
                ladon.background(name, function()
                    local is_ok, err = pcall(handler, client, client:peer())
                    client:close()
                    if not is_ok then
                        error(err, 0)
                    end
                end)
            elseif server.last_error == EAGAIN then
                wait(server, false, nil)
            elseif not server.is_closed then
                -- Too many open files: who comes waits in the system's queue.
                ladon.fiber_wait(0.1)
            end
        end
    end)
    return server, server:name()
end

-- The addresses of a name; only the calling fiber waits.
function socket.getaddrinfo(host, port, timeout, hints)
    if type(timeout) == 'table' then
        hints = timeout
    end
    if type(host) ~= 'string' then
        error('Usage: socket.getaddrinfo(host, port[, timeout][, hints])', 2)
    end
    local found = {ladon.sock_addresses(host, tostring(port or 0))}
    if found[1] == nil then
        return nil, found[3]
    end
    local wanted, shown = hints and hints.family, {}
    for at = 1, #found, 2 do
        local family = found[at]:find(':', 1, true) and 'AF_INET6' or 'AF_INET'
        if wanted == nil or wanted == family then
            shown[#shown + 1] = {
                host = found[at], port = found[at + 1], family = family, type = 'SOCK_STREAM',
                protocol = 'tcp',
            }
        end
    end
    return shown
end

local WAYS = {R = 1, W = 2, RW = 3, WR = 3}
local WAY_NAMES = {[0] = '', 'R', 'W', 'RW'}

-- Waits for any descriptor. The answer is a text or a number, as what was asked for.
function socket.iowait(fd, mode, timeout)
    local ways = type(mode) == 'number' and mode or WAYS[tostring(mode or 'RW'):upper()]
    if ways == nil or ways < 1 or ways > 3 then
        error('socket.iowait: a mode is R, W, RW, or a number from 1 to 3', 2)
    end
    local ready = fd == nil and 0 or ladon.fd_wait(fd, ways, timeout)
    if fd == nil then
        ladon.fiber_wait(timeout)
    end
    ladon.fiber.testcancel()
    return type(mode) == 'number' and ready or WAY_NAMES[ready]
end

ladon.socket_object = object
ladon.module('socket', function()
    return socket
end)
