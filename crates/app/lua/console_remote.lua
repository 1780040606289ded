-- What a console is connected to by console.connect: another console, by its text, or a server, by
-- IPROTO. Statements go there as they are, and answers come back as text.
local ladon = ...

local GREETING_BYTES, ANSWER_BYTES = 128, 64 * 1024 * 1024
-- What ends a statement of several lines for the other console.
local DELIMITER = '$EOF$'
local TIMEOUT = 10

local function not_connected()
    box.error(box.error.NO_CONNECTION)
end

-- A console that answers in text.
local text_methods = {}
local Text = {__index = text_methods}

function text_methods.read(remote)
    local ending = remote.format.name == 'lua' and ';' or '\n...\n'
    local text = remote.socket:read({delimiter = ending, chunk = ANSWER_BYTES})
    if text == nil or text:sub(-#ending) ~= ending then
        remote.state = 'error'
        error('Peer closed', 0)
    end
    return text
end

local function is_pushed(format, text)
    if format.name == 'lua' then
        return text:find('^%-%- Push') ~= nil
    end
    return text:find('^%%TAG !push!') ~= nil
end

function text_methods.ask(remote, line)
    if remote.socket:write(line .. '\n') == nil then
        remote.state = 'error'
        error('Peer closed', 0)
    end
    local text = remote:read()
    while is_pushed(remote.format, text) do
        remote.print(text)
        text = remote:read()
    end
    return text
end

function text_methods.eval(remote, line)
    return remote:ask(line .. DELIMITER)
end

function text_methods.close(remote)
    remote.socket:close()
end

local function text_remote(socket, state, print)
    local remote = setmetatable(
        {socket = socket, state = 'active', format = state.format, print = print}, Text)
    local format = state.format
    local options = (format.options or '') ~= '' and ',' .. format.options or ''
    remote:ask('\\set output ' .. format.name .. options)
    remote:ask(('require("console").delimiter(%q)'):format(DELIMITER))
    return remote
end

-- A server.
local server_methods = {}
local Server = {__index = server_methods}

function server_methods.eval(remote, line)
    local connection = remote.connection
    local is_good, text = pcall(
        connection.eval, connection, 'return require("console").eval(...)', {line})
    remote.state = connection.state
    if not is_good then
        error(text, 0)
    end
    return text
end

function server_methods.close(remote)
    remote.connection:close()
end

local function server_remote(place, options)
    local connection = require('net.box').connect(place.host, place.service, {
        user = place.login, password = place.login and (place.password or '') or nil,
        connect_timeout = options.timeout,
    })
    if connection.state ~= 'active' then
        error(connection.error or 'Connection is not established', 0)
    end
    local remote = setmetatable({connection = connection, state = 'active'}, Server)
    -- Whether the user may.
    local is_good, why = pcall(connection.eval, connection, 'return true')
    if not is_good then
        connection:close()
        error(why, 0)
    end
    return remote
end

-- Connects the console of `state`, whose pushed values are printed by `print`. An error that there is
-- no connection.
function ladon.console_remote(state, uri, options, print)
    local place = uri ~= nil and require('uri').parse(tostring(uri)) or nil
    if place == nil or place.service == nil then
        error('Usage: console.connect("[login:password@][host:]port")', 0)
    end
    local timeout = options.timeout or TIMEOUT
    local socket = require('socket').tcp_connect(place.host or 'localhost', place.service, timeout)
    local greeting = socket ~= nil and socket:read(GREETING_BYTES, timeout) or nil
    if greeting == nil or #greeting < GREETING_BYTES then
        if socket ~= nil then
            socket:close()
        end
        not_connected()
    end
    local remote
    if greeting:find('(Lua console)', 1, true) then
        remote = text_remote(socket, state, print)
    else
        socket:close()
        remote = server_remote(place, options)
    end
    remote.host, remote.port = place.host or 'localhost', place.service
    return remote
end
