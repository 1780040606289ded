-- The HTTP server, if the rock `http` is installed (it is a part of Ladon).
local log = require('log')

local handlers = require('shop.handlers')

local web = {}

local ROUTES = {
    {'POST', '/customers', handlers.add_customer},
    {'GET', '/customers/:id/orders', handlers.list_orders},
    {'GET', '/products', handlers.list_products},
    {'PUT', '/products/:sku', handlers.put_product},
    {'POST', '/orders', handlers.place_order},
    {'GET', '/orders/:id', handlers.show_order},
    {'POST', '/orders/:id/pay', handlers.pay_order},
    {'POST', '/orders/:id/cancel', handlers.cancel_order},
    {'GET', '/stats', handlers.stats},
}

-- The module, or nil without it.
function web.module()
    local ok, server = pcall(require, 'http.server')
    return ok and server or nil
end

-- Returns the server; nil, with a line in the log, if there is none.
function web.start(port)
    local module = web.module()
    if module == nil then
        log.warn('http.server is not installed: there is no HTTP')
        return nil
    end
    local server = module.new('127.0.0.1', port, {log_requests = false})
    for _, route in ipairs(ROUTES) do
        server:route({method = route[1], path = route[2]}, route[3])
    end
    server:start()
    return server
end

return web
