-- An HTTP handler next to the data: what the published comparisons run.
box.cfg{wal_mode = 'write', log_level = 3}
box.once('visits', function()
    box.schema.space.create('visits'):create_index('pk', {parts = {1, 'string'}})
end)
local httpd = require('http.server').new('127.0.0.1', tonumber(arg[1]), {log_requests = false})
httpd:route({path = '/put/:key', method = 'POST'}, function(req)
    local tuple = box.space.visits:replace{req:stash('key'), req:json()}
    return req:render{json = {key = tuple[1], value = tuple[2]}}
end)
httpd:route({path = '/get/:key', method = 'GET', name = 'get'}, function(req)
    local tuple = box.space.visits:get(req:stash('key'))
    if tuple == nil then return {status = 404, body = 'no such key'} end
    return req:render{json = tuple[2]}
end)
httpd:route({path = '/count'}, function(req) return {body = tostring(box.space.visits:len())} end)
httpd:route({path = '/echo'}, function(req)
    return req:render{json = {
        a = req:param('a'), b = req:query_param('b'), cookie = req:cookie('c'), agent = req:header('X-Agent'),
        body = req:read(), path = req.path, method = req.method,
    }}
end)
httpd:route({path = '/stream'}, function(req)
    return req:iterate(function(_, at) if at < 3 then return at + 1, 'part' .. at .. '\n' end end, nil, 0)
end)
httpd:route({path = '/files/*rest'}, function(req)
    return req:redirect_to('get', {key = req:stash('rest')})
end)
httpd:route({path = '/fail'}, function() error('on purpose') end)
httpd:start()
