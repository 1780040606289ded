#!/usr/bin/env tarantool
-- Background fibers that look for what has expired.
local fio = require('fio')
local here = fio.dirname(fio.abspath(arg[0]))
package.path = here .. '/?.lua;' .. here .. '/../?.lua;' .. package.path

local tap = require('tap')
local fixture = require('fixture')

fixture.start({reservation_ttl = 0.2, pause = 0.02})
local expiry = require('shop.expiry')
local orders = require('shop.orders')

local test = tap.test('expiry')
test:plan(4)

test:test('an order that nobody pays', function(subtest)
    subtest:plan(4)
    local id = orders.place(1000, {{sku = 'plum', count = 3}, {sku = 'apple', count = 1}})
    subtest:is(box.space.products:get('plum').stock, 0, 'holds the goods')
    subtest:ok(fixture.wait_for(function() return box.space.orders:get(id).status == 'expired' end), 'expires')
    subtest:is(box.space.products:get('plum').stock, 3, 'the goods are back')
    subtest:is(box.space.reservations:len(), 0, 'without reservations')
end)

test:test('one that is paid in time', function(subtest)
    subtest:plan(1)
    local id = orders.place(1000, {{sku = 'plum', count = 1}})
    orders.pay(id)
    require('fiber').sleep(0.3)
    subtest:is(orders.show(id).status, 'paid', 'stays')
end)

test:test('many at once', function(subtest)
    subtest:plan(2)
    local space = box.schema.space.create('sessions', {format = {{'id', 'unsigned'}, {'expires_at', 'number'}}})
    space:create_index('primary')
    space:create_index('expires_at', {parts = {2}, unique = false})
    for id = 1, 250 do
        space:insert({id, id <= 230 and id or 1e12})
    end
    local gone = {}
    local task = expiry.start('sessions', {
        space = 'sessions', index = 'expires_at', pause = 0.01,
        on_expired = function(tuple)
            table.insert(gone, tuple.id)
            space:delete(tuple.id)
        end,
    })
    subtest:ok(fixture.wait_for(function() return space:len() == 20 end), 'all are removed in batches')
    task:stop()
    subtest:is(#gone, 230, 'each once')
end)

test:test('what fails is tried again', function(subtest)
    subtest:plan(2)
    local space, tries = box.space.sessions, 0
    space:insert({1000, 1})
    local task = expiry.start('sessions', {
        space = 'sessions', index = 'expires_at', pause = 0.01,
        on_expired = function(tuple)
            tries = tries + 1
            if tries < 3 then
                error('not now')
            end
            space:delete(tuple.id)
        end,
    })
    subtest:ok(fixture.wait_for(function() return space:get(1000) == nil end), 'until it is done')
    subtest:is(tries, 3, 'three times')
    task:stop()
end)

fixture.finish(test)
