#!/usr/bin/env tarantool
-- The same over HTTP, where http.server is there.
local fio = require('fio')
local here = fio.dirname(fio.abspath(arg[0]))
package.path = here .. '/?.lua;' .. here .. '/../?.lua;' .. package.path

local tap = require('tap')
local fixture = require('fixture')

if not pcall(require, 'http.server') then
    print('TAP version 13')
    print('1..0 # SKIP http.server is not installed')
    os.exit(0)
end

local json = require('json')
local client = require('http.client').new()
local socket = require('socket')

-- A port that is free now.
local function free_port()
    local listener = socket.tcp_server('127.0.0.1', 0, function() end)
    local port = listener:name().port
    listener:close()
    return port
end

local port = free_port()
fixture.start({http_port = port})

local test = tap.test('http')
test:plan(9)

local function ask(method, path, body)
    local url = ('http://127.0.0.1:%d%s'):format(port, path)
    local response = client:request(method, url, body and json.encode(body), {timeout = 5})
    local is_json = (response.headers['content-type'] or ''):find('json', 1, true)
    return response.status, is_json and json.decode(response.body) or nil
end

local status, body = ask('POST', '/customers', {email = 'eve@example.org', name = 'Eve'})
test:is(status, 201, 'a customer')
local customer = body.id
test:is(ask('PUT', '/products/fig', {name = 'A fig', price = 25, stock = 7}), 200, 'a product')
_, body = ask('GET', '/products?below=26&limit=5')
test:is(#body.products, 2, 'two are cheap')
status, body = ask('POST', '/orders', {customer = customer, lines = {{sku = 'fig', count = 2}}})
test:is_deeply({status, body.total}, {201, 50}, 'an order')
local order = body.id
test:is(ask('POST', ('/orders/%d/pay'):format(order)), 200, 'is paid')
_, body = ask('GET', '/orders/' .. order)
test:is_deeply(body.history, {'placed', 'paid'}, 'its history')
_, body = ask('GET', ('/customers/%d/orders'):format(customer))
test:is(#body.orders, 1, 'the customer has one')
test:is(ask('GET', '/orders/999'), 404, 'no such order')
test:is(ask('DELETE', '/orders/1'), 405, 'no such method')

fixture.finish(test)
