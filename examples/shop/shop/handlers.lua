-- What HTTP requests do. A handler takes a request of http.server, and returns a response.
local json = require('json')

local orders = require('shop.orders')
local jobs = require('shop.jobs')

local handlers = {}

local function respond(status, body)
    return {
        status = status,
        headers = {['content-type'] = 'application/json; charset=utf-8'},
        body = json.encode(body),
    }
end

-- What a handler raises is the client's fault if it is a text, and ours otherwise.
local function guarded(handler)
    return function(request)
        local ok, response = pcall(handler, request)
        if ok then
            return response
        elseif type(response) == 'string' or response.type == 'ClientError' then
            return respond(400, {error = tostring(response)})
        end
        return respond(500, {error = tostring(response)})
    end
end

local function body_of(request)
    local ok, body = pcall(request.json, request)
    if not ok or type(body) ~= 'table' then
        error('the body is no JSON object', 0)
    end
    return body
end

local function number_of(request, name)
    local number = tonumber(request:stash(name))
    if number == nil then
        error(name .. ' is no number', 0)
    end
    return number
end

handlers.add_customer = guarded(function(request)
    local body = body_of(request)
    local customer = box.space.customers:insert({box.NULL, body.email, body.name, 0})
    return respond(201, customer:tomap({names_only = true}))
end)

handlers.put_product = guarded(function(request)
    local body = body_of(request)
    local tuple, err = box.space.products:frommap({
        sku = request:stash('sku'), name = body.name, price = body.price, stock = body.stock, tags = body.tags,
    })
    if tuple == nil then
        error(tostring(err), 0)
    end
    return respond(200, box.space.products:replace(tuple):tomap({names_only = true}))
end)

-- ?below=PRICE&limit=COUNT, the cheapest first.
handlers.list_products = guarded(function(request)
    local below = tonumber(request:query_param('below') or math.huge)
    local limit = math.min(tonumber(request:query_param('limit') or 20), 100)
    local found = {}
    for _, product in box.space.products.index.price:pairs() do
        if #found >= limit or product.price >= below then
            break
        end
        table.insert(found, product:tomap({names_only = true}))
    end
    return respond(200, {products = found})
end)

handlers.place_order = guarded(function(request)
    local body = body_of(request)
    if type(body.lines) ~= 'table' then
        error('lines are missing', 0)
    end
    local id, total = orders.place(body.customer, body.lines)
    return respond(201, {id = id, total = total})
end)

handlers.show_order = guarded(function(request)
    local shown = orders.show(number_of(request, 'id'))
    if shown == nil then
        return respond(404, {error = 'there is no such order'})
    end
    return respond(200, shown)
end)

handlers.pay_order = guarded(function(request)
    return respond(200, {status = orders.pay(number_of(request, 'id'))})
end)

handlers.cancel_order = guarded(function(request)
    return respond(200, {status = orders.cancel(number_of(request, 'id'))})
end)

handlers.list_orders = guarded(function(request)
    local limit = tonumber(request:query_param('limit') or 10)
    return respond(200, {orders = orders.of_customer(number_of(request, 'id'), limit)})
end)

handlers.stats = guarded(function()
    return respond(200, {jobs = jobs.stats(), orders = box.space.orders:len()})
end)

return handlers
