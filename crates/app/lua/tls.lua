-- TLS over the sockets of fibers: `secure` makes a connected socket one whose bytes are ciphered.
local ladon = ...

local PIECE = 16384
local EPROTO, ECONNRESET, EPIPE = 71, 104, 32

-- Sends what TLS has to say. False if that cannot be done in time.
local function send(socket, stop)
    local text = ladon.tls_output(socket.secure)
    while text ~= '' do
        if ladon.write_plain(socket, text, stop) == nil then
            return false
        end
        text = ladon.tls_output(socket.secure)
    end
    return true
end

-- What comes next: a text, empty at the end; nil if there is none in time, or an error.
local function receive(socket, stop)
    if socket.is_over then
        return ''
    end
    local text = ladon.read_plain(socket, PIECE, stop)
    if text == nil then
        return nil
    end
    local plain, is_over = ladon.tls_input(socket.secure, text)
    if plain == nil then
        -- An alert may tell the other side why.
        send(socket, stop)
        socket.last_error = text == '' and ECONNRESET or EPROTO
        socket.why = is_over
        return nil
    end
    socket.is_over = is_over
    return send(socket, stop) and plain or nil
end

-- As a plain socket's: some bytes, and none only at the end.
function ladon.read_secure(socket, stop)
    local text
    repeat
        text = receive(socket, stop)
    until text ~= '' or socket.is_over
    return text
end

function ladon.write_secure(socket, text, stop)
    for at = 1, #text, PIECE do
        if not ladon.tls_write(socket.secure, text:sub(at, at + PIECE - 1)) then
            socket.last_error = EPIPE
            return nil
        elseif not send(socket, stop) then
            return nil
        end
    end
    return #text
end

function ladon.close_secure(socket)
    local last = ladon.tls_close(socket.secure)
    if not socket.is_closed and last ~= '' then
        -- If there is no room for it, the other side has not read.
        ladon.sock_write(socket.number, last, 1)
    end
    socket.secure = nil
end

-- Does the handshake. Nil and why if that fails; without a text, the time is over. The third result is true if
-- the options cannot be used.
-- options: ca_file, ca_path, ssl_cert, ssl_key, trust ('name', 'authority', 'anybody').
function ladon.secure(socket, host, options, stop)
    local number, why = ladon.tls_new(
        host, options.ca_file, options.ca_path, options.ssl_cert, options.ssl_key, options.trust)
    if number == nil then
        return nil, why, true
    end
    socket.secure, socket.why = number, nil
    local is_going = send(socket, stop)
    while is_going and ladon.tls_is_handshaking(number) do
        local text = receive(socket, stop)
        is_going = text ~= nil and not socket.is_over
        socket.buffer = socket.buffer .. (text or '')
    end
    if not is_going then
        return nil, socket.why
    end
    return socket
end
