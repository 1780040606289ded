#!/usr/bin/env tarantool
-- Clients of IPROTO: who may call what.
local fio = require('fio')
local here = fio.dirname(fio.abspath(arg[0]))
package.path = here .. '/?.lua;' .. here .. '/../?.lua;' .. package.path

local tap = require('tap')
local fixture = require('fixture')

local net_box = require('net.box')
local fio = require('fio')

local socket_path = fio.pathjoin(fio.tempdir(), 'shop.sock')
local app = fixture.start({listen = 'unix/:' .. socket_path})
app.tasks[3]:stop()

local test = tap.test('clients')
test:plan(7)

local web = net_box.connect('unix/:' .. socket_path, {user = 'web', password = 'web'})
test:is(web:ping(), true, 'the user web logs in')

local id, total = unpack({web:call('shop.place', {1000, {{sku = 'apple', count = 1}}})})
test:is(total, 30, 'an order is placed')
test:is(web:call('shop.pay', {id}), 'paid', 'and paid')
local job = web:call('shop.take_job', {5})
test:is(job.kind, 'mail', 'its job is taken')
test:is(web:call('shop.ack_job', {job.id}), true, 'and done')

local ok, err = pcall(web.call, web, 'box.space.orders:delete', {id})
test:ok(not ok and tostring(err):find('denied', 1, true) ~= nil, 'but nothing else is allowed')
ok = pcall(web.eval, web, 'return 1')
test:is(ok, false, 'nor any Lua')
web:close()

fixture.finish(test)
