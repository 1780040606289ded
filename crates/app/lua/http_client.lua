-- http.client: requests to other servers; only the calling fiber waits
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/http/).
local ladon = ...

local HEAD_BYTES, BODY_BYTES, LINE_BYTES = 64 * 1024, 256 * 1024 * 1024, 4096
local REDIRECTS_MAX, IDLE_SECONDS = 10, 30
local CONNECTIONS = 8
local TIMEOUT = 365 * 86400

-- Statuses and reasons of what did not become a reply, as the real client has them.
local TIMED_OUT = {status = 408, reason = 'Timeout was reached'}
local NOT_CONNECTED = {status = 595, reason = "Couldn't connect to server"}
local NOT_SECURE = {status = 595, reason = 'SSL connect error'}
local NO_FILES = {status = 595, reason = 'Problem with the SSL CA cert (path? access rights?)'}
local NOT_TRUSTED = {status = 595, reason = 'SSL peer certificate or SSH remote key was not OK'}
local BROKEN = {status = 595, reason = 'Failure when receiving data from the peer'}

-- Options that change nothing here or there beyond what is done anyway.
local KNOWN = {
    headers = true, timeout = true, unix_socket = true, follow_location = true, verbose = true,
    keepalive_idle = true, keepalive_interval = true, max_header_name_length = true,
    ca_file = true, ca_path = true, ssl_cert = true, ssl_key = true, verify_host = true,
    verify_peer = true,
}
local PORTS = {http = 80, https = 443}

local function socket()
    return require('socket')
end

-- Parts of an address; nil and why if it cannot be used.
local function parse_url(url)
    local scheme, rest = url:match('^(%a[%w+.-]*)://(.*)$')
    if scheme == nil then
        scheme, rest = 'http', url
    end
    scheme = scheme:lower()
    if PORTS[scheme] == nil then
        return nil, ("http.client: '%s' is not supported, only http and https"):format(scheme)
    end
    local authority, target = rest:match('^([^/?#]*)([^#]*)')
    local user, place = authority:match('^(.*)@(.*)$')
    place = place or authority
    local host, port = place:match('^%[([%x:.]+)%]:?(%d*)$')
    if host == nil then
        host, port = place:match('^([^:]*):?(%d*)$')
    end
    if host == nil or host == '' or authority:find('[%z\1-\32\127]') then
        return nil, 'http.client: the URL has no host'
    end
    if target:sub(1, 1) ~= '/' then
        target = '/' .. target
    end
    -- A blank or a line break would end the request's line.
    target = target:gsub('[%z\1-\32\127]', function(char)
        return ('%%%02X'):format(char:byte())
    end)
    return {
        host = host, port = port == '' and PORTS[scheme] or tonumber(port), target = target,
        user = user, name = place, scheme = scheme,
    }
end

local function stop_of(timeout)
    return ladon.clock(1) + timeout
end

local function left_until(stop)
    return math.max(0, stop - ladon.clock(1))
end

-- The text that begins a request. Line breaks in values would begin other headers.
local function head_of(method, url, headers, body)
    local lines, seen = {('%s %s HTTP/1.1'):format(method, url.target)}, {}
    for name, value in pairs(headers or {}) do
        name = tostring(name)
        if not name:find('^[%w!#$%%&\'*+.^_`|~-]+$') then
            error(('http.client: %q is no name of a header'):format(name), 0)
        end
        seen[name:lower()] = true
        lines[#lines + 1] = name .. ': ' .. tostring(value):gsub('[\r\n%z]', ' ')
    end
    local function add(name, value)
        if not seen[name:lower()] then
            lines[#lines + 1] = name .. ': ' .. value
        end
    end
    add('Host', url.name)
    add('User-Agent', 'tarantool/' .. require('tarantool').version)
    add('Accept', '*/*')
    if url.user ~= nil then
        local pair = url.user:find(':', 1, true) and url.user or url.user .. ':'
        local text = require('digest').base64_encode(pair, {nowrap = true})
        add('Authorization', 'Basic ' .. text)
    end
    if body ~= nil then
        if not seen['transfer-encoding'] then
            add('Content-Length', tostring(#body))
        end
        add('Content-Type', 'application/x-www-form-urlencoded')
    end
    return table.concat(lines, '\r\n') .. '\r\n\r\n'
end

-- Reads the head of a reply, past those of a hundred.
local function read_head(connection, stop)
    while true do
        local text = connection:read(
            {delimiter = '\r\n\r\n', chunk = HEAD_BYTES}, left_until(stop))
        if text == nil then
            return nil, connection:errno() == 110 and TIMED_OUT or BROKEN
        end
        local is_good, length, status, reason, minor, headers, cookies =
            pcall(ladon.http_reply_head, text)
        if not is_good or length == nil then
            return nil, BROKEN
        end
        if status < 100 or status >= 200 then
            return {
                status = status, reason = reason, headers = headers, proto = {1, minor},
                set_cookie = cookies,
            }
        end
    end
end

local function read_exactly(connection, count, stop)
    local text = connection:read(count, left_until(stop))
    if text == nil or #text < count then
        return nil, connection:errno() == 110 and TIMED_OUT or BROKEN
    end
    return text
end

local function read_chunks(connection, stop)
    local parts, total = {}, 0
    while true do
        local line = connection:read({delimiter = '\r\n', chunk = LINE_BYTES}, left_until(stop))
        local digits = line and line:match('^(%x+)%s*;?[^\r\n]*\r\n$')
        if digits == nil or #digits > 8 then
            return nil, BROKEN
        end
        local count = tonumber(digits, 16)
        total = total + count
        if total > BODY_BYTES then
            error('http.client: the body is longer than 256 MiB', 0)
        end
        if count == 0 then
            break
        end
        local part, why = read_exactly(connection, count + 2, stop)
        if part == nil then
            return nil, why
        end
        parts[#parts + 1] = part:sub(1, count)
    end
    repeat
        local line = connection:read({delimiter = '\r\n', chunk = LINE_BYTES}, left_until(stop))
        if line == nil or line:sub(-2) ~= '\r\n' then
            return nil, BROKEN
        end
    until line == '\r\n'
    return table.concat(parts)
end

-- Reads until the other side closes.
local function read_rest(connection, stop)
    local parts, total = {}, 0
    while true do
        local text = connection:read(LINE_BYTES * 16, left_until(stop))
        if text == nil then
            return nil, connection:errno() == 110 and TIMED_OUT or BROKEN
        end
        if text == '' then
            return table.concat(parts)
        end
        total = total + #text
        if total > BODY_BYTES then
            error('http.client: the body is longer than 256 MiB', 0)
        end
        parts[#parts + 1] = text
    end
end

-- The body of a reply, and whether the connection can be used again.
local function read_body(connection, method, reply, stop)
    local headers = reply.headers
    local keeps = reply.proto[2] >= 1 and (headers.connection or ''):lower() ~= 'close'
    if method == 'HEAD' or reply.status == 204 or reply.status == 304 then
        return '', keeps
    end
    if (headers['transfer-encoding'] or ''):lower():find('chunked', 1, true) then
        local body, why = read_chunks(connection, stop)
        return body, body ~= nil and keeps or why
    end
    local length = headers['content-length']
    if length == nil then
        local body, why = read_rest(connection, stop)
        return body, body == nil and why or false
    end
    if not length:match('^%d+$') or #length > 15 then
        return nil, BROKEN
    end
    if tonumber(length) > BODY_BYTES then
        error('http.client: the body is longer than 256 MiB', 0)
    end
    if tonumber(length) == 0 then
        return '', keeps
    end
    local body, why = read_exactly(connection, tonumber(length), stop)
    return body, body ~= nil and keeps or why
end

local methods = {}
local Client = {__index = methods}

local function is_off(option)
    return option == false or option == 0
end

-- Whom a connection with TLS takes for the server.
local function trust_of(options)
    if is_off(options.verify_peer) then
        return 'anybody'
    end
    return is_off(options.verify_host) and 'authority' or 'name'
end

-- Connections that stand for each other.
local function key_of(url, options)
    local place = options.unix_socket or url.host .. ':' .. url.port
    if url.scheme == 'http' then
        return place
    end
    return table.concat({
        place, url.host, trust_of(options), options.ca_file or '', options.ca_path or '',
        options.ssl_cert or '', options.ssl_key or '',
    }, '\0')
end

-- Does the handshake on a new connection; what there is in place of one, if it fails.
local function secured(connection, url, options, stop)
    local is_good, done, why, is_mine = pcall(ladon.secure, connection, url.host, {
        ca_file = options.ca_file, ca_path = options.ca_path, ssl_cert = options.ssl_cert,
        ssl_key = options.ssl_key, trust = trust_of(options),
    }, stop)
    if is_good and done ~= nil then
        return connection
    end
    connection:close()
    if not is_good then
        error(done, 0)
    elseif why == nil and connection:errno() == 110 then
        return nil, TIMED_OUT
    end
    if is_mine then
        return nil, NO_FILES
    end
    local is_untrusted = why ~= nil and why:find('certificate', 1, true) ~= nil
    return nil, is_untrusted and NOT_TRUSTED or NOT_SECURE
end

-- A connection that is not in use, or a new one; the second result says which.
local function connection_of(client, url, options, stop)
    local idle = client.idle[key_of(url, options)]
    while idle ~= nil and #idle > 0 do
        local one = table.remove(idle)
        client.idle_count = client.idle_count - 1
        if ladon.clock(1) - one.since < IDLE_SECONDS then
            return one.connection, true
        end
        one.connection:close()
    end
    local host, port = url.host, url.port
    if options.unix_socket then
        host, port = 'unix/', options.unix_socket
    end
    local connection, _, number = socket().tcp_connect(host, port, left_until(stop))
    if connection == nil then
        return nil, number == 110 and TIMED_OUT or NOT_CONNECTED
    end
    if url.scheme == 'https' then
        local done, why = secured(connection, url, options, stop)
        return done, done == nil and why or false
    end
    return connection, false
end

local function keep(client, url, options, connection)
    if client.idle_count >= client.max_connections then
        connection:close()
        return
    end
    local key = key_of(url, options)
    client.idle[key] = client.idle[key] or {}
    table.insert(client.idle[key], {connection = connection, since = ladon.clock(1)})
    client.idle_count = client.idle_count + 1
end

-- One request and its reply. A kept connection that the other side has closed is tried anew.
local function exchange(client, method, url, body, options, stop)
    while true do
        local connection, is_kept = connection_of(client, url, options, stop)
        if connection == nil then
            return is_kept
        end
        local head = head_of(method, url, options.headers, body)
        local is_good, reply, why = pcall(function()
            if connection:write(head .. (body or ''), left_until(stop)) == nil then
                return nil, connection:errno() == 110 and TIMED_OUT or BROKEN
            end
            local reply, failed = read_head(connection, stop)
            if reply == nil then
                return nil, failed
            end
            local text, keeps = read_body(connection, method, reply, stop)
            if text == nil then
                return nil, keeps
            end
            reply.body = text
            return reply, keeps
        end)
        if is_good and reply ~= nil and why then
            keep(client, url, options, connection)
        else
            connection:close()
        end
        if not is_good then
            error(reply, 0)
        end
        if reply ~= nil then
            return reply
        end
        if not is_kept or why == TIMED_OUT then
            return why
        end
    end
end

-- The cookies of a reply by name: their values and options.
local function cookies_of(list)
    local shown = {}
    for _, text in ipairs(list) do
        local name, value, rest = text:match('^%s*([^=;%s]+)=([^;]*)(.*)$')
        if name ~= nil then
            local options = {}
            for option in rest:gmatch(';%s*([^;]+)') do
                options[#options + 1] = option
            end
            shown[name] = {value, options}
        end
    end
    return shown
end

local function follow(url, location)
    if location:find('^%a[%w+.-]*://') then
        return parse_url(location)
    end
    local base = ('%s://%s'):format(url.scheme, url.name)
    if location:sub(1, 1) == '/' then
        return parse_url(base .. location)
    end
    return parse_url(base .. url.target:match('^[^?]*/') .. location)
end

local function check_options(options)
    for name in pairs(options) do
        if not KNOWN[name] then
            error(('http.client: option %s is not supported'):format(tostring(name)), 4)
        end
    end
    for _, name in ipairs({'ca_file', 'ca_path', 'ssl_cert', 'ssl_key'}) do
        if options[name] ~= nil and type(options[name]) ~= 'string' then
            error(('http.client: %s is a path'):format(name), 4)
        end
    end
    if options.timeout ~= nil and type(options.timeout) ~= 'number' then
        error('http.client: timeout is a number of seconds', 4)
    end
end

local function perform(client, method, address, body, options)
    if type(method) ~= 'string' or type(address) ~= 'string' then
        error('request(method, url [, body, [options]])', 3)
    end
    options = options or {}
    check_options(options)
    local url, why = parse_url(address)
    if url == nil then
        error(why, 3)
    end
    local stop = stop_of(options.timeout or TIMEOUT)
    local follows = options.follow_location == nil or options.follow_location
    for _ = 0, REDIRECTS_MAX do
        client.counts.total_requests = client.counts.total_requests + 1
        local reply = exchange(client, method, url, body, options, stop)
        if reply.headers == nil then
            client.counts.failed_requests = client.counts.failed_requests + 1
            return {status = reply.status, reason = reply.reason}
        end
        local location = reply.headers.location
        local is_moved = reply.status >= 301 and reply.status <= 308 and reply.status ~= 304
        if not (follows and is_moved and location ~= nil) then
            reply.cookies, reply.set_cookie = cookies_of(reply.set_cookie), nil
            local counted = reply.status == 200 and 'http_200_responses' or 'http_other_responses'
            client.counts[counted] = client.counts[counted] + 1
            return reply
        end
        url, why = follow(url, location)
        if url == nil then
            error(why, 3)
        end
        if reply.status == 303 or method == 'POST' and reply.status < 303 then
            method, body = 'GET', nil
        end
    end
    return {status = 595, reason = 'Number of redirects hit maximum amount'}
end

function methods.request(client, method, url, body, options)
    return perform(client, type(method) == 'string' and method:upper(), url, body, options)
end

for _, name in ipairs({'get', 'head', 'delete', 'options', 'trace', 'connect'}) do
    methods[name] = function(client, url, options)
        return perform(client, name:upper(), url, nil, options)
    end
end
for _, name in ipairs({'post', 'put', 'patch'}) do
    methods[name] = function(client, url, body, options)
        return perform(client, name:upper(), url, body or '', options)
    end
end

function methods.stat(client)
    local shown = {active_requests = 0}
    for name, value in pairs(client.counts) do
        shown[name] = value
    end
    return shown
end

local module = {}

function module.new(options)
    options = options or {}
    return setmetatable({
        idle = {}, idle_count = 0, max_connections = options.max_connections or CONNECTIONS,
        counts = {
            total_requests = 0, failed_requests = 0, http_200_responses = 0,
            http_other_responses = 0,
        },
    }, Client)
end

local default
for name, method in pairs(methods) do
    module[name] = function(...)
        default = default or module.new()
        return method(default, ...)
    end
end

ladon.module('http.client', function()
    return module
end)
