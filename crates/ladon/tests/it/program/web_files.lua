-- A server of pages with templates, files and controllers, and its client.
io.stdout:setvbuf('no')
local port = tonumber(arg[1])
local server, client = require('http.server'), require('http.client')
local fiber, fio, json = require('fiber'), require('fio'), require('json')

local folder = fio.tempdir()
for _, name in ipairs({'templates', 'public/css', 'controllers'}) do
    fio.mktree(fio.pathjoin(folder, name))
end
local function write(name, text)
    local file = fio.open(fio.pathjoin(folder, name), {'O_WRONLY', 'O_CREAT'}, tonumber('644', 8))
    file:write(text)
    file:close()
end
write('templates/list.html.el', [[
<ul>
% for _, item in ipairs(items) do
<li class="<%= up(item) %>"><%== item %></li>
% end
</ul> <%= title %> <%= id %>
]])
write('public/css/page.css', 'body {}')
write('controllers/main.lua', [[return {index = function(request)
    return request:render({text = 'controller ' .. request:stash('id')})
end, page = function(request)
    return request:render({title = request:request_line()})
end}]])
fio.mktree(fio.pathjoin(folder, 'templates/main'))
write('templates/main/page.html.el', '<%= controller %>#<%= action %> <%= title %>')
write('secret', 'not for the world')

local httpd = server.new('127.0.0.1', port, {app_dir = folder, log_requests = false})
httpd:helper('up', function(request, text)
    return text:upper() .. request.method
end)
httpd:route({path = '/list/:id', file = 'list.html.el'}, function(request)
    return request:render({items = {'a<', 'b'}, title = '"T"'})
end)
httpd:route({path = '/hi', template = 'Hi <%= name %>!'}, function(request)
    return request:render({name = '<x>'})
end)
httpd:route({path = '/plain', template = 'just <% local x = 5 %><%= x %>'})
httpd:route({path = '/broken', template = '<% nonsense nonsense %>'})
httpd:route({path = '/controlled/:id'}, 'main#index')
httpd:route({path = '/page'}, 'main#page')
httpd:route({path = '/no_action'}, 'main#absent')
httpd:route({path = '/no_module'}, 'absent#absent')
httpd:route({path = '/peer'}, function(request)
    return request:render({json = {request.peer.host, request:peer().host, request:param()}})
end)
httpd:route({path = '/echo', method = 'POST'}, function(request)
    local headers = {['x-method'] = request.method, ['set-cookie'] = {'a=1; path=/', 'b=2'}}
    return {status = 201, headers = headers, body = request:read()}
end)
httpd:route({path = '/moved'}, function()
    return {status = 302, headers = {location = '/hi'}}
end)
httpd:route({path = '/round'}, function()
    return {status = 302, headers = {location = '/round'}}
end)
httpd:route({path = '/slow'}, function()
    fiber.sleep(1)
    return {status = 200, body = 'slow'}
end)
httpd:route({path = '/parts'}, function(request)
    return request:iterate(function(_, number)
        if number < 3 then
            return number + 1, 'part' .. number
        end
    end, nil, 0)
end)
httpd:start()

local base = 'http://127.0.0.1:' .. port
local function show(reply)
    print(reply.status, reply.reason, reply.body, reply.headers and reply.headers['content-type'])
end
for _, path in ipairs({'/list/7', '/hi', '/plain', '/controlled/9', '/css/page.css', '/../secret',
                       '/%2e%2e/secret', '/css', '/none', '/moved', '/parts'}) do
    show(client.get(base .. path))
end
for _, path in ipairs({'/page?a=1', '/no_action', '/peer'}) do
    show(client.get(base .. path, {headers = {['content-type'] = 'application/json'}}))
end
print(client.get(base .. '/no_module').body:match('^Can.t load module .absent.'))
print(httpd:url_for('none'), httpd:url_for('/none'), httpd:url_for('http://h/none'))
print(pcall(httpd.route, httpd, {path = '/x', log_requests = true}))
print(client.get(base .. '/broken').status, client.get(base .. '/round').reason)
local reply = client.post(base .. '/echo', 'hello', {headers = {['X-A'] = 'b\r\nX-Evil: 1'}})
show(reply)
print(reply.headers['x-method'], reply.cookies.a[1], reply.cookies.a[2][1], reply.cookies.b[1])
show(client.get(base .. '/moved', {follow_location = false}))
show(client.get(base .. '/slow', {timeout = 0.2}))
show(client.head(base .. '/hi'))
show(client.put(base .. '/echo', 'x'))
show(client.request('GET', '127.0.0.1:' .. port .. '/hi'))
for _, arguments in ipairs({{'ftp://x/'}, {base, {low_speed_time = 1}}, {}, {base, {timeout = 'x'}},
                            {base, {headers = {['a b'] = 1}}}, {'http://'}}) do
    print((select(2, pcall(client.get, unpack(arguments))):gsub('^builtin/[%w_.:]+ ', '')))
end
local stat = client.stat()
print(stat.total_requests, stat.http_200_responses, stat.failed_requests)

-- Fibers that share two connections.
local mine, done = client.new({max_connections = 2}), 0
local fibers = {}
for number = 1, 20 do
    fibers[number] = fiber.new(function()
        for _ = 1, 20 do
            if mine:get(base .. '/hi').status == 200 then
                done = done + 1
            end
        end
    end)
    fibers[number]:set_joinable(true)
end
for _, one in ipairs(fibers) do
    one:join()
end
print('fetched', done)
httpd:stop()
show(client.get(base .. '/hi'))
print(json.encode(require('socket').getaddrinfo('127.0.0.1', 80)[1].host))
fio.rmtree(folder)
os.exit(0)
