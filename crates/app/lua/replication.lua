-- `replication` of box.cfg: whom a server follows
-- (https://www.tarantool.io/en/doc/latest/reference/configuration/#replication).
local ladon = ...

local EXPECTED = 'expected host:service or /unix.socket'
-- How long to wait before a server is asked again.
local RETRY_S = 0.5

local function refuse(why)
    box.error(box.error.CFG, 'replication', why)
end

-- The addresses that an option has.
local function addresses(given)
    if given == nil then
        return {}
    end
    return type(given) == 'table' and given or {tostring(given)}
end

local function parsed(address)
    local found = require('uri').parse(tostring(address))
    if found == nil or found.unix == nil and (found.service == nil or found.service == '') then
        refuse(EXPECTED)
    end
    return found
end

-- Checks the form of what is given.
function ladon.check_replication(given)
    for _, address in ipairs(addresses(given)) do
        parsed(address)
    end
end

local function place(found)
    return found.unix ~= nil and found.unix or (found.host or 'localhost') .. ':' .. found.service
end

-- What a server says about itself.
local function ask(address, timeout)
    local connection = require('net.box').connect(tostring(address), {
        wait_connected = timeout, connect_timeout = timeout,
    })
    local is_done, found = connection.state == 'active', connection.error
    if is_done then
        is_done, found = pcall(connection.call, connection, 'box.info', {}, {timeout = timeout})
    end
    connection:close()
    return is_done and found or nil, tostring(found)
end

-- Where read replicas of the server at an address come, as `HOST PORT`.
local function place_to_follow(address, timeout)
    local found = parsed(address)
    local shown, stop = place(found), ladon.clock(1) + timeout
    local info, why = ask(address, timeout)
    while info == nil and ladon.clock(1) < stop do
        ladon.fiber.sleep(RETRY_S)
        info, why = ask(address, timeout)
    end
    if info == nil then
        refuse(('cannot ask %s: %s'):format(shown, why))
    elseif type(info) ~= 'table' or info.package ~= 'Ladon' then
        refuse(shown .. ' is no Ladon: its log cannot be followed')
    elseif info.resp == nil then
        refuse(shown .. ' has no port for clients of Redis, where read replicas come (--resp)')
    end
    local host, port = info.resp:match('^(.*):(%d+)$')
    host = host:match('^%[(.*)%]$') or host
    if host == '*' or host == '0.0.0.0' or host == '::' or host == '::*' then
        host = found.host or '127.0.0.1'
    end
    return host .. ' ' .. port
end

-- Whom a server with these options follows, as `HOST PORT`; the empty text for nobody.
function ladon.server_to_follow(options)
    local others, own = {}, options.listen and place(parsed(options.listen))
    for _, address in ipairs(addresses(options.replication)) do
        if place(parsed(address)) ~= own then
            others[#others + 1] = address
        end
    end
    if #others == 0 then
        return ''
    elseif #others > 1 then
        refuse('a server follows one other; a cluster is made with `ladon cluster create`')
    elseif not options.read_only then
        refuse('a server that follows another one takes no writes: read_only has to be true')
    end
    return place_to_follow(others[1], options.replication_connect_timeout)
end
