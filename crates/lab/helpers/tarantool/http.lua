-- The web program within Tarantool, by its module http.server. `http_port` is set before this.
local http = require('http.server')

local function answer(request, what)
    if what == nil then
        return {status = 404}
    end
    return request:render({json = what})
end

local server = http.new('127.0.0.1', http_port, {log_requests = false, log_errors = true})

server:route({path = '/kv/*key', method = 'POST'}, function(request)
    local key = request:stash('key')
    box.space.kv:replace({key, request:read()})
    return answer(request, {key = key, value = box.space.kv:get(key)[2]})
end)

server:route({path = '/kv/*key', method = 'GET'}, function(request)
    local tuple = box.space.kv:get(request:stash('key'))
    return answer(request, tuple and {key = tuple[1], value = tuple[2]})
end)

server:route({path = '/kv/*key', method = 'DELETE'}, function(request)
    return answer(request, {existed = box.space.kv:delete(request:stash('key')) ~= nil})
end)

server:route({path = '/ready', method = 'GET'}, function()
    return {status = lab_is_ready() and 204 or 503}
end)

server:route({path = '/settings', method = 'GET'}, function(request)
    return answer(request, lab_settings())
end)

server:start()
