-- http.server: routes, requests, responses (https://github.com/tarantool/http has the interface).
local ladon = ...

local HEAD_BYTES, BODY_BYTES, CHUNK_LINE_BYTES = 4096, 64 * 1024 * 1024, 4096
local IDLE_SECONDS = 60

local REASONS = {
    [200] = 'Ok', [201] = 'Created', [202] = 'Accepted', [204] = 'No Content',
    [301] = 'Moved permanently', [302] = 'Found', [303] = 'See Other', [304] = 'Not Modified',
    [307] = 'Temporary Redirect', [400] = 'Bad Request', [401] = 'Unauthorized',
    [403] = 'Forbidden', [404] = 'Not Found', [405] = 'Method Not Allowed',
    [408] = 'Request Timeout', [409] = 'Conflict', [411] = 'Length Required',
    [413] = 'Request Entity Too Large', [422] = 'Unprocessable Entity',
    [431] = 'Request Header Fields Too Large', [500] = 'Internal Server Error',
    [501] = 'Not Implemented', [503] = 'Service Unavailable',
}

local function json()
    return require('json')
end

local function unescape(text, is_form)
    if is_form then
        text = text:gsub('%+', ' ')
    end
    return (text:gsub('%%(%x%x)', function(digits)
        return string.char(tonumber(digits, 16))
    end))
end

local function escape(text)
    return (tostring(text):gsub('[^%w%-%._~]', function(char)
        return ('%%%02X'):format(char:byte())
    end))
end

-- Parameters of a query or a form; several of one name are a table.
local function parse_form(text)
    local shown = {}
    for pair in (text or ''):gmatch('[^&;]+') do
        local name, value = pair:match('^([^=]*)=?(.*)$')
        name, value = unescape(name, true), unescape(value, true)
        local before = shown[name]
        if before == nil then
            shown[name] = value
        elseif type(before) == 'table' then
            before[#before + 1] = value
        else
            shown[name] = {before, value}
        end
    end
    return shown
end

-- Requests.
local request_methods = {}
local Request = {
    __index = request_methods,
    __tostring = function(request)
        return request.method .. ' ' .. request.path
    end,
}

function request_methods.header(request, name)
    return request.headers[name:lower()]
end

function request_methods.content_type(request)
    local value = request.headers['content-type']
    return value and value:match('^%s*([^;%s]*)')
end

function request_methods.query_param(request, name)
    request.query_params = request.query_params or parse_form(request.query)
    if name == nil then
        return request.query_params
    end
    return request.query_params[name]
end

function request_methods.read_cached(request)
    return request.body
end

function request_methods.read(request, what, timeout)
    local from = request.read_from or 1
    local stop = #request.body
    if type(what) == 'number' then
        stop = math.min(stop, from + what - 1)
    elseif type(what) == 'string' then
        local _, found = request.body:find(what, from, true)
        stop = found or stop
    end
    request.read_from = stop + 1
    return request.body:sub(from, stop)
end

function request_methods.json(request)
    return json().decode(request.body)
end

function request_methods.post_param(request, name)
    if request.post_params == nil then
        local kind = request:content_type()
        if kind == 'application/json' and request.body ~= '' then
            request.post_params = request:json()
        else
            request.post_params = parse_form(request.body)
        end
    end
    if name == nil then
        return request.post_params
    end
    return request.post_params[name]
end

function request_methods.param(request, name)
    if name == nil then
        local shown = {}
        for key, value in pairs(request:query_param()) do
            shown[key] = value
        end
        for key, value in pairs(request:post_param()) do
            shown[key] = value
        end
        return shown
    end
    local value = request:post_param(name)
    if value == nil then
        value = request:query_param(name)
    end
    return value
end

function request_methods.stash(request, name, value)
    if value ~= nil then
        request.stashes[name] = value
    end
    return request.stashes[name]
end

function request_methods.cookie(request, name, options)
    for key, value in (request.headers.cookie or ''):gmatch('%s*([^=;]+)=([^;]*)') do
        if key == name then
            value = value:match('^"(.*)"$') or value
            return options and options.raw and value or unescape(value)
        end
    end
end

-- The client's address is a field, and what a method of that name answers.
local Peer = {__call = function(peer)
    return peer
end}

function request_methods.request_line(request)
    local query = request.query ~= '' and '?' .. request.query or ''
    return ('%s %s%s HTTP/%d.%d'):format(
        request.method, request.path, query, request.proto[1], request.proto[2])
end

function request_methods.url_for(request, ...)
    return request.httpd:url_for(...)
end

function request_methods.redirect_to(request, name, ...)
    return {status = 302, headers = {location = request.httpd:url_for(name, ...) or name}}
end

function request_methods.render(request, options)
    options = options or {}
    local response = setmetatable({headers = {}, status = options.status or 200}, request.response)
    if options.text ~= nil then
        response.headers['content-type'] = 'text/plain; charset=utf-8'
        response.body = tostring(options.text)
    elseif options.data ~= nil then
        response.headers['content-type'] = 'application/octet-stream'
        response.body = tostring(options.data)
    elseif options.json ~= nil then
        response.headers['content-type'] = 'application/json; charset=utf-8'
        response.body = json().encode(options.json)
    else
        local text, name = request.endpoint and request.endpoint.template, 'template'
        if text == nil then
            local endpoint = request.endpoint or {}
            name = endpoint.file or options.file
            if name == nil and endpoint.controller ~= nil then
                name = ('%s/%s.html.el'):format(
                    endpoint.controller:gsub('%.', '/'), endpoint.action)
                options = table.copy(options)
                options.controller, options.action = endpoint.controller, endpoint.action
            end
            if name == nil then
                error('http.server: render needs text, data, json, or a route with a template', 2)
            end
            text = ladon.http_files.template(request.httpd, name)
        end
        response.headers['content-type'] = 'text/html; charset='
            .. (request.httpd.options.charset or 'utf-8')
        response.body = ladon.http_files.render(request.httpd, request, text, name, options)
    end
    return response
end

-- Responses.
local response_methods = {}
local Response = {__index = response_methods}

function response_methods.setcookie(response, cookie, options)
    local text = cookie.name .. '=' .. (options and options.raw and cookie.value or escape(cookie.value))
    if cookie.path then
        text = text .. ';path=' .. cookie.path
    end
    if cookie.domain then
        text = text .. ';domain=' .. cookie.domain
    end
    if cookie.expires then
        text = text .. ';expires=' .. cookie.expires
    end
    response.headers = response.headers or {}
    local list = response.headers['set-cookie']
    if list == nil then
        response.headers['set-cookie'] = {text}
    else
        list[#list + 1] = text
    end
    return response
end

function request_methods.iterate(_, gen, param, state)
    return setmetatable({body = {gen = gen, param = param, state = state}}, Response)
end

-- Servers.
local server_methods = {}
local Server = {__index = server_methods}

-- The pattern of a route's path, and the names of its stashes.
local function compile(path)
    local stashes, rest = {}, path
    if rest:sub(-1) == '/' and #rest > 1 then
        rest = rest:sub(1, -2)
    end
    local pattern = rest:gsub('[%-%.%+%[%]%(%)%$%^%%%?]', '%%%0')
    pattern = pattern:gsub('([:*])([%a_][%w_]*)', function(kind, name)
        stashes[#stashes + 1] = name
        return kind == ':' and '([^/]-)' or '(.-)'
    end)
    return '^' .. pattern .. '/?$', stashes
end

function server_methods.route(httpd, options, handler)
    if type(options) ~= 'table' or type(options.path) ~= 'string' then
        error("Usage: httpd:route({path = '/path', method = 'GET', name = 'name'}, handler)", 2)
    end
    local module, action
    if type(handler) == 'string' then
        module, action = handler:match('^(.*)#(.*)$')
        if module == nil then
            error("Wrong controller format '" .. handler .. "', must be 'module#action'", 2)
        end
        local named
        handler = function(request)
            if named == nil or httpd.options.cache_controllers == false then
                named = ladon.http_files.controller(httpd, module, action)
            end
            return named(request)
        end
    elseif handler == nil then
        handler = function(request)
            return request:render()
        end
    end
    for _, name in ipairs({'log_requests', 'log_errors'}) do
        if options[name] ~= nil and type(options[name]) ~= 'function' then
            error(("'%s' option should be a function"):format(name), 2)
        end
    end
    if type(handler) ~= 'function' and type(handler) ~= 'table' then
        error('http.server: a route needs a function or a controller', 2)
    end
    local path = options.path
    if path:sub(1, 1) ~= '/' then
        path = '/' .. path
    end
    local pattern, stashes = compile(path)
    local method = (options.method or 'ANY'):upper()
    local route = {
        path = path, method = method, name = options.name, pattern = pattern, stashes = stashes,
        sub = handler, template = options.template, file = options.file,
        controller = module, action = action,
        log_requests = options.log_requests, log_errors = options.log_errors,
    }
    if options.name then
        if httpd.named[options.name] then
            error(("Route with name '%s' is already exists"):format(options.name), 2)
        end
        httpd.named[options.name] = route
    end
    httpd.routes[#httpd.routes + 1] = route
    return httpd
end

function server_methods.delete(httpd, name)
    local route = httpd.named[name]
    httpd.named[name] = nil
    for at, one in ipairs(httpd.routes) do
        if one == route then
            table.remove(httpd.routes, at)
            return
        end
    end
end

-- The route of a path, and its stashes: one without stashes first, then the earliest. `nil, true`
-- if there are only routes for other methods.
function server_methods.match(httpd, method, path)
    local best, values, has_other = nil, nil, false
    for _, route in ipairs(httpd.routes) do
        local found = {path:match(route.pattern)}
        if found[1] ~= nil then
            local fits = route.method == 'ANY' or route.method == method
                or method == 'HEAD' and route.method == 'GET'
            if not fits then
                has_other = true
            elseif best == nil or #route.stashes < #best.stashes then
                best, values = route, found
            end
        end
    end
    if best == nil then
        return nil, has_other
    end
    local stash = {}
    for at, name in ipairs(best.stashes) do
        stash[name] = unescape(values[at])
    end
    return {endpoint = best, stash = stash}
end

function server_methods.url_for(httpd, name, arguments, query)
    local route = httpd.named[name]
    if route == nil then
        local is_whole = name:sub(1, 1) == '/' or name:find('^%a[%w+.-]*://')
        return is_whole and name or '/' .. name
    end
    local path = route.path:gsub('[:*]([%a_][%w_]*)', function(stash)
        return tostring(arguments and arguments[stash] or '')
    end)
    local parts = {}
    for key, value in pairs(type(query) == 'table' and query or {}) do
        parts[#parts + 1] = escape(key) .. '=' .. escape(value)
    end
    if type(query) == 'string' then
        parts[1] = query
    end
    return #parts > 0 and path .. '?' .. table.concat(parts, '&') or path
end

function server_methods.hook(httpd, name, func)
    if name ~= 'before_dispatch' and name ~= 'after_dispatch' then
        error('http.server: there is no hook ' .. tostring(name), 2)
    end
    httpd.hooks[name] = func
end

-- A function that templates see by this name; its first argument is the request.
function server_methods.helper(httpd, name, func)
    if func ~= nil and type(func) ~= 'function' then
        error("Wrong type for helper function: " .. type(func), 2)
    end
    httpd.helpers[name] = func
    return httpd
end

local function head_of(status, headers)
    local lines = {('HTTP/1.1 %d %s'):format(status, REASONS[status] or 'Unknown')}
    for name, value in pairs(headers) do
        for _, one in ipairs(type(value) == 'table' and value or {value}) do
            -- A line break in a value would begin another header.
            lines[#lines + 1] = name .. ': ' .. tostring(one):gsub('[\r\n]', ' ')
        end
    end
    return table.concat(lines, '\r\n') .. '\r\n\r\n'
end

-- Sends a response. Returns whether the connection can go on.
local function send(socket, request, response, keeps)
    if type(response) ~= 'table' then
        response = {status = 200, body = response ~= nil and tostring(response) or ''}
    end
    local headers = {}
    for name, value in pairs(response.headers or {}) do
        headers[tostring(name):lower()] = value
    end
    local status, body = response.status or 200, response.body
    local is_head = request ~= nil and request.method == 'HEAD'
    headers.server = headers.server or 'Ladon http'
    headers.connection = keeps and 'keep-alive' or 'close'
    headers['content-type'] = headers['content-type'] or 'text/plain; charset=utf-8'
    local gen, param, state
    if type(body) == 'function' then
        gen = body
    elseif type(body) == 'table' then
        gen, param, state = body.gen, body.param, body.state
        if gen == nil then
            body = json().encode(body)
        end
    end
    if gen == nil then
        body = body == nil and '' or tostring(body)
        headers['content-length'] = #body
        return socket:write(head_of(status, headers) .. (is_head and '' or body)) ~= nil and keeps
    end
    headers['transfer-encoding'] = 'chunked'
    if socket:write(head_of(status, headers)) == nil then
        return false
    end
    if is_head then
        return keeps
    end
    local value
    state, value = gen(param, state)
    while state ~= nil do
        local part = tostring(value == nil and state or value)
        if #part > 0 and socket:write(('%x\r\n%s\r\n'):format(#part, part)) == nil then
            return false
        end
        state, value = gen(param, state)
    end
    return socket:write('0\r\n\r\n') ~= nil and keeps
end

local function refuse(socket, status, text)
    send(socket, nil, {status = status, body = text or REASONS[status]}, false)
end

-- Reads a chunked body; nil and the status if it cannot be had.
local function read_chunked(httpd, socket)
    local parts, length = {}, 0
    while true do
        local line = socket:read({delimiter = '\r\n', chunk = CHUNK_LINE_BYTES}, httpd.idle)
        local digits = line and line:match('^(%x+)%s*;?[^\r\n]*\r\n$')
        if digits == nil or #digits > 8 then
            return nil, 400
        end
        local count = tonumber(digits, 16)
        if count == 0 then
            break
        end
        length = length + count
        if length > httpd.body_bytes then
            return nil, 413
        end
        local part = socket:read(count + 2, httpd.idle)
        if part == nil or #part < count + 2 or part:sub(-2) ~= '\r\n' then
            return nil, 400
        end
        parts[#parts + 1] = part:sub(1, count)
    end
    repeat
        local line = socket:read({delimiter = '\r\n', chunk = CHUNK_LINE_BYTES}, httpd.idle)
        if line == nil or line:sub(-2) ~= '\r\n' then
            return nil, 400
        end
    until line == '\r\n'
    return table.concat(parts)
end

local function read_body(httpd, socket, headers)
    local encoding, length = headers['transfer-encoding'], headers['content-length']
    if encoding ~= nil then
        -- Two lengths of one body are how requests are smuggled.
        if length ~= nil then
            return nil, 400
        end
        if encoding:lower() ~= 'chunked' then
            return nil, 501
        end
        if headers.expect == '100-continue' then
            socket:write('HTTP/1.1 100 Continue\r\n\r\n')
        end
        return read_chunked(httpd, socket)
    end
    if length == nil then
        return ''
    end
    if not length:match('^%d+$') or #length > 15 then
        return nil, 400
    end
    local count = tonumber(length)
    if count > httpd.body_bytes then
        return nil, 413
    end
    if count == 0 then
        return ''
    end
    if headers.expect == '100-continue' then
        socket:write('HTTP/1.1 100 Continue\r\n\r\n')
    end
    local body = socket:read(count, httpd.idle)
    if body == nil or #body < count then
        return nil, 400
    end
    return body
end

-- Reads a request; nil at the connection's end, nil and a status if it is none.
local function read_request(httpd, socket, peer)
    local text = ''
    while true do
        local most = text == '' and httpd.idle or httpd.options.header_timeout or httpd.idle
        local line = socket:read({delimiter = '\n', chunk = httpd.head_bytes}, most)
        if line == nil or line == '' then
            return nil
        end
        text = text .. line
        if #text > httpd.head_bytes then
            return nil, 431
        end
        if line == '\r\n' or line == '\n' then
            if text ~= line then
                break
            end
            -- Empty lines in front of a request are passed over.
            text = ''
        end
    end
    -- Lines that end otherwise are another way to smuggle.
    if text:find('[^\r]\n') then
        return nil, 400
    end
    local is_ok, length, method, target, minor, headers = pcall(ladon.http_head, text)
    if not is_ok or length == nil then
        return nil, 400
    end
    local body, status = read_body(httpd, socket, headers)
    if body == nil then
        return nil, status
    end
    local path, query = target:match('^([^?]*)%??(.*)$')
    return setmetatable({
        method = method, path = unescape(path), query = query, proto = {1, minor},
        headers = headers, body = body, httpd = httpd, stashes = {},
        response = Response, peer = setmetatable(table.copy(peer or {}), Peer),
    }, Request)
end

-- How a request, or an error of it, is logged: as its route says, or else the server.
local function logging_of(httpd, request, name)
    local found = request.endpoint or httpd:match(request.method, request.path)
    local route = found and (found.endpoint or found)
    return route and route[name] or httpd.options[name]
end

local function log_request(httpd, request)
    local how = logging_of(httpd, request, 'log_requests')
    if type(how) == 'function' then
        how('%s %s%s', request.method, request.path, request.query ~= '' and '?' .. request.query or '')
    elseif how ~= false then
        ladon.log(6, request.method .. ' ' .. request.path)
    end
end

local function log_error(httpd, request, text)
    local how = logging_of(httpd, request, 'log_errors')
    if type(how) == 'function' then
        how('%s', text)
    elseif how ~= false then
        ladon.log(2, text)
    end
end

local function wants_to_stay(request)
    for _, agent in ipairs(request.httpd.options.disable_keepalive or {}) do
        if request.headers['user-agent'] == agent then
            return false
        end
    end
    local connection = (request.headers.connection or ''):lower()
    if request.proto[2] == 0 then
        return connection:find('keep-alive', 1, true) ~= nil
    end
    return connection:find('close', 1, true) == nil
end

local function respond(httpd, request)
    if httpd.options.handler then
        return httpd.options.handler(httpd, request)
    end
    local found, has_other = httpd:match(request.method, request.path)
    if found == nil then
        local is_read = request.method == 'GET' or request.method == 'HEAD'
        local response = is_read and ladon.http_files.static(httpd, request.path) or nil
        return response or {status = has_other and 405 or 404}
    end
    request.endpoint, request.stashes = found.endpoint, found.stash
    if httpd.hooks.before_dispatch then
        httpd.hooks.before_dispatch(httpd, request)
    end
    local handler = found.endpoint.sub
    local response = handler(request)
    if httpd.hooks.after_dispatch then
        httpd.hooks.after_dispatch(request, response)
    end
    return response
end

local function serve(httpd, socket, peer)
    while not httpd.is_stopped do
        local request, status = read_request(httpd, socket, peer)
        if request == nil then
            if status ~= nil then
                refuse(socket, status)
            end
            return
        end
        log_request(httpd, request)
        local is_ok, response = pcall(respond, httpd, request)
        if box.is_in_txn() then
            box.rollback()
        end
        if not is_ok then
            log_error(httpd, request, tostring(response))
            local text = httpd.options.display_errors ~= false and tostring(response) or nil
            response = {status = 500, body = text or REASONS[500]}
        end
        if not send(socket, request, response, wants_to_stay(request)) then
            return
        end
    end
end

function server_methods.start(httpd)
    if httpd.listener ~= nil then
        error('httpd: already started', 2)
    end
    httpd.is_stopped = false
    local listener, why = require('socket').tcp_server(httpd.host, httpd.port, {
        name = 'http',
        handler = function(socket, peer)
            httpd.clients[socket] = true
            local is_ok, err = pcall(serve, httpd, socket, peer)
            httpd.clients[socket] = nil
            if not is_ok then
                error(err, 0)
            end
        end,
    })
    if listener == nil then
        error(("Can't create tcp_server: %s"):format(tostring(why)), 2)
    end
    httpd.listener = listener
    return httpd
end

function server_methods.stop(httpd)
    if httpd.listener == nil then
        error('httpd: already stopped', 2)
    end
    httpd.is_stopped = true
    httpd.listener:close()
    httpd.listener = nil
    for socket in pairs(httpd.clients) do
        socket:close()
    end
    return httpd
end

local OPTIONS = {
    max_header_size = 'number', max_body_size = 'number', header_timeout = 'number',
    idle_timeout = 'number', display_errors = 'boolean', log_requests = 'any', log_errors = 'any',
    handler = 'function', disable_keepalive = 'table', app_dir = 'string', charset = 'string',
    cache_controllers = 'boolean',
}

-- Files are read each time.
local WITHOUT_MEANING = {cache_templates = true, cache_static = true}

local function new(host, port, options)
    options = options or {}
    if type(options) ~= 'table' then
        error('options must be table not ' .. type(options), 2)
    end
    for name, value in pairs(options) do
        local expected = OPTIONS[name]
        if WITHOUT_MEANING[name] then
            ladon.log(4, ('http.server: %s has no meaning here'):format(name))
        elseif expected ~= nil and expected ~= 'any' and type(value) ~= expected then
            error(('http.server: %s has to be a %s'):format(name, expected), 2)
        elseif expected == nil then
            error('http.server: there is no option ' .. tostring(name), 2)
        end
    end
    return setmetatable({
        host = host, port = port, options = options, routes = {}, named = {}, hooks = {},
        clients = {}, is_stopped = true, helpers = {},
        app_dir = options.app_dir or '.', has_app_dir = options.app_dir ~= nil,
        head_bytes = options.max_header_size or HEAD_BYTES,
        body_bytes = options.max_body_size or BODY_BYTES,
        idle = options.idle_timeout or IDLE_SECONDS,
    }, Server)
end

-- Options with those of another table, which perhaps may not have others.
local function extend(base, over, is_strict)
    local made = table.copy(base)
    for name, value in pairs(over) do
        if is_strict and base[name] == nil then
            error('unknown option: ' .. tostring(name), 2)
        end
        made[name] = value
    end
    return made
end

ladon.module('http.server', function()
    return {new = new, internal = {extend = extend}}
end)
