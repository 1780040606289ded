#!/usr/bin/env tarantool
-- The spaces, their indexes, sequences and triggers.
local fio = require('fio')
local here = fio.dirname(fio.abspath(arg[0]))
package.path = here .. '/?.lua;' .. here .. '/../?.lua;' .. package.path

local tap = require('tap')
local fixture = require('fixture')

fixture.start()
local schema = require('shop.schema')

local test = tap.test('schema')
test:plan(12)

local customers, products, orders = box.space.customers, box.space.products, box.space.orders

schema.apply()
test:is(box.space._schema:get('onceshop-schema-' .. schema.version) ~= nil, true, 'steps are noted')
test:is(customers:len(), 2, 'steps run once')

test:is(customers.index.email:get('ANN@example.org').id, 1000, 'addresses have no case')
local ok, err = pcall(customers.insert, customers, {box.NULL, 'Ann@Example.org', 'Ann again', 0})
test:is(ok, false, 'an address is there once')
test:is(err.code, box.error.TUPLE_FOUND, 'and the error says so')

local carl = customers:insert({box.NULL, '  carl@example.org ', 'Carl', 0})
test:is(carl.email, 'carl@example.org', 'blanks around an address are removed')
ok, err = pcall(customers.insert, customers, {box.NULL, 'nobody', 'Nobody', 0})
test:is(ok, false, 'what is no address is refused')
test:like(tostring(err), 'is no address', 'by the trigger')

local cheap = {}
for _, product in products.index.price:pairs({40}, {iterator = 'LT'}) do
    table.insert(cheap, product.sku)
end
test:is_deeply(cheap, {'apple', 'plum'}, 'products by price, dearest first')

ok, err = pcall(products.insert, products, {'nut', 'A nut', 'cheap', 1})
test:is(ok, false, 'a price is a number')
test:like(tostring(err), 'field 3', 'and the error names the field')

test:is(orders.index.customer.unique, true, 'an index with the number in it is unique')

fixture.finish(test)
