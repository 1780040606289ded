#!/usr/bin/env tarantool
-- Orders from placing to payment, and back.
local fio = require('fio')
local here = fio.dirname(fio.abspath(arg[0]))
package.path = here .. '/?.lua;' .. here .. '/../?.lua;' .. package.path

local tap = require('tap')
local fixture = require('fixture')

fixture.start()
local orders = require('shop.orders')
local worker = require('shop.worker')

local test = tap.test('orders')
test:plan(6)

local function stock(sku)
    return box.space.products:get(sku).stock
end

local function refused(subtest, said, func, ...)
    local ok, err = pcall(func, ...)
    subtest:ok(not ok and tostring(err):find(said, 1, true) ~= nil, 'refused: ' .. said)
end

test:test('an order takes from the stock', function(subtest)
    subtest:plan(5)
    local id, total = orders.place(1000, {{sku = 'apple', count = 2}, {sku = 'pear', count = 1}})
    subtest:is(total, 105, 'its total')
    subtest:is(stock('apple'), 98, 'apples')
    subtest:is(stock('pear'), 9, 'pears')
    subtest:is(box.space.reservations:count({id}), 2, 'a reservation for each line')
    subtest:is(box.space.customers:get(1000).orders, 1, 'the customer has one')
end)

test:test('an order that cannot be has changed nothing', function(subtest)
    subtest:plan(9)
    local before = box.space.orders:len()
    refused(subtest, 'only 3 of plum', orders.place, 1000, {{sku = 'apple', count = 1}, {sku = 'plum', count = 4}})
    refused(subtest, 'no product nut', orders.place, 1000, {{sku = 'apple', count = 1}, {sku = 'nut', count = 1}})
    refused(subtest, 'no customer 7', orders.place, 7, {{sku = 'apple', count = 1}})
    refused(subtest, 'at least one line', orders.place, 1000, {})
    refused(subtest, '0 is no count', orders.place, 1000, {{sku = 'apple', count = 0}})
    refused(subtest, '1.5 is no count', orders.place, 1000, {{sku = 'apple', count = 1.5}})
    subtest:is(stock('apple'), 98, 'all apples are there')
    subtest:is(box.space.orders:len(), before, 'there is no order')
    subtest:is(box.is_in_txn(), false, 'and no transaction')
end)

test:test('payment', function(subtest)
    subtest:plan(6)
    local id = orders.place(1001, {{sku = 'plum', count = 2}})
    subtest:is(orders.pay(id), 'paid', 'is taken')
    subtest:is(stock('plum'), 1, 'the goods are gone')
    subtest:is(box.space.reservations:count({id}), 0, 'without a reservation')
    subtest:ok(fixture.wait_for(function() return #worker.outbox == 1 end), 'a letter is written')
    subtest:is(worker.outbox[1], ('bob@example.org: order %d is paid'):format(tonumber(id)), 'to the customer')
    refused(subtest, 'is paid', orders.pay, id)
end)

test:test('cancelling', function(subtest)
    subtest:plan(4)
    local before = stock('pear')
    local id = orders.place(1001, {{sku = 'pear', count = 3}})
    subtest:is(orders.cancel(id), 'cancelled', 'is done')
    subtest:is(stock('pear'), before, 'the goods are back')
    refused(subtest, 'is cancelled', orders.cancel, id)
    subtest:is_deeply(orders.show(id).history, {'placed', 'cancelled'}, 'the journal has both')
end)

test:test('lists', function(subtest)
    subtest:plan(3)
    local of_bob = orders.of_customer(1001)
    subtest:is(#of_bob, 2, 'two of Bob')
    subtest:is(of_bob[1].status, 'cancelled', 'the newest first')
    subtest:is(box.space.orders.index.status:count({'paid'}), 1, 'one is paid')
end)

test:test('an order that is deleted', function(subtest)
    subtest:plan(2)
    local id = orders.place(1001, {{sku = 'pear', count = 1}})
    orders.cancel(id)
    box.space.orders:delete(id)
    subtest:is(box.space.customers:get(1001).orders, 2, 'is counted no more')
    local last = box.space.journal.index.order:max({id})
    subtest:is(last.after, nil, 'and its end is in the journal')
end)

fixture.finish(test)
