#!/usr/bin/env tarantool
-- The handlers of HTTP requests, without a server.
local fio = require('fio')
local here = fio.dirname(fio.abspath(arg[0]))
package.path = here .. '/?.lua;' .. here .. '/../?.lua;' .. package.path

local tap = require('tap')
local fixture = require('fixture')

local json = require('json')

fixture.start()
local handlers = require('shop.handlers')

local test = tap.test('handlers')
test:plan(6)

-- Calls a handler as http.server does. Returns the status and the decoded body.
local function ask(name, options)
    options = options or {}
    local request = {
        stash = function(_, key) return (options.stash or {})[key] end,
        query_param = function(_, key) return (options.query or {})[key] end,
        json = function() return json.decode(options.body or '') end,
    }
    local response = handlers[name](request)
    return response.status, json.decode(response.body)
end

test:test('customers', function(subtest)
    subtest:plan(4)
    local status, body = ask('add_customer', {body = '{"email": "eve@example.org", "name": "Eve"}'})
    subtest:is(status, 201, 'is created')
    subtest:is_deeply(body, {id = 1002, email = 'eve@example.org', name = 'Eve', orders = 0}, 'as it was sent')
    status, body = ask('add_customer', {body = '{"email": "EVE@example.org", "name": "Eve"}'})
    subtest:is(status, 400, 'not twice')
    subtest:like(body.error, 'uplicate', 'the error says why')
end)

test:test('products', function(subtest)
    subtest:plan(5)
    local status = ask('put_product', {
        stash = {sku = 'fig'}, body = '{"name": "A fig", "price": 25, "stock": 7, "tags": ["fresh"]}',
    })
    subtest:is(status, 200, 'is put')
    subtest:is_deeply(box.space.products:get('fig').tags, {'fresh'}, 'with its tags')
    local _, body = ask('list_products', {query = {below = '30'}})
    subtest:is_deeply({body.products[1].sku, body.products[2].sku, #body.products}, {'plum', 'fig', 2}, 'below a price')
    subtest:is(ask('put_product', {stash = {sku = 'fig'}, body = '{"name": 1}'}), 400, 'a name is a text')
    subtest:is(ask('put_product', {stash = {sku = 'fig'}, body = 'nonsense'}), 400, 'a body is JSON')
end)

local id

test:test('orders', function(subtest)
    subtest:plan(5)
    local status, body = ask('place_order', {body = '{"customer": 1000, "lines": [{"sku": "apple", "count": 2}]}'})
    subtest:is(status, 201, 'is placed')
    subtest:is(body.total, 60, 'its total')
    id = body.id
    _, body = ask('show_order', {stash = {id = tostring(id)}})
    subtest:is_deeply(body.lines, {{'apple', 2}}, 'its lines')
    subtest:is(ask('show_order', {stash = {id = '999'}}), 404, 'there is no such order')
    subtest:is(ask('show_order', {stash = {id = 'x'}}), 400, 'that is no number')
end)

test:test('refused orders', function(subtest)
    subtest:plan(3)
    local status, body = ask('place_order', {body = '{"customer": 1000, "lines": [{"sku": "plum", "count": 9}]}'})
    subtest:is(status, 400, 'too many')
    subtest:is(body.error, 'only 3 of plum are left', 'the error says how many are left')
    subtest:is(ask('place_order', {body = '{"customer": 1000}'}), 400, 'no lines')
end)

test:test('payment', function(subtest)
    subtest:plan(3)
    local status, body = ask('pay_order', {stash = {id = tostring(id)}})
    subtest:is_deeply({status, body.status}, {200, 'paid'}, 'is taken')
    subtest:is(ask('cancel_order', {stash = {id = tostring(id)}}), 400, 'it cannot be cancelled')
    _, body = ask('list_orders', {stash = {id = '1000'}, query = {}})
    subtest:is_deeply(body.orders, {{id = id, status = 'paid', total = 60}}, 'the list has it')
end)

test:test('numbers', function(subtest)
    subtest:plan(2)
    local status, body = ask('stats')
    subtest:is(status, 200, 'are shown')
    subtest:is(body.orders, 1, 'one order')
end)

fixture.finish(test)
