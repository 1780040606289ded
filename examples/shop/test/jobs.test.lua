#!/usr/bin/env tarantool
-- The queue.
local fio = require('fio')
local here = fio.dirname(fio.abspath(arg[0]))
package.path = here .. '/?.lua;' .. here .. '/../?.lua;' .. package.path

local tap = require('tap')
local fixture = require('fixture')

local fiber = require('fiber')

local app = fixture.start({pause = 0.02})
local jobs = require('shop.jobs')
-- No job is to be done by itself.
app.tasks[3]:stop()

local test = tap.test('jobs')
test:plan(7)

test:test('first come, first served', function(subtest)
    subtest:plan(5)
    jobs.put('a', {n = 1})
    jobs.put('b', {n = 2})
    local first, second = jobs.take(), jobs.take()
    subtest:is_deeply({first.kind, first.payload.n, first.tries}, {'a', 1, 1}, 'the first')
    subtest:is(second.kind, 'b', 'the second')
    subtest:isnil(jobs.take(), 'there is no third')
    subtest:is_deeply(jobs.stats(), {ready = 0, taken = 2, buried = 0}, 'both are taken')
    jobs.ack(first.id)
    jobs.ack(second.id)
    subtest:is(box.space.jobs:len(), 0, 'and done')
end)

test:test('who waits gets what comes', function(subtest)
    subtest:plan(3)
    local got = fiber.channel(2)
    for _ = 1, 2 do
        fiber.create(function() got:put(jobs.take(10)) end)
    end
    fiber.sleep(0.01)
    jobs.put('c', {})
    jobs.put('d', {})
    local one, other = got:get(5), got:get(5)
    subtest:ok(one ~= nil and other ~= nil, 'both get one')
    subtest:isnt(one.id, other.id, 'each another')
    subtest:is(jobs.ack(one.id) and jobs.ack(other.id), true, 'both are done')
end)

test:test('a delay', function(subtest)
    subtest:plan(3)
    jobs.put('late', {}, {delay = 0.1})
    subtest:isnil(jobs.take(), 'not yet')
    local began = fiber.time()
    local job = jobs.take(5)
    subtest:is(job.kind, 'late', 'it comes')
    subtest:ok(fiber.time() - began > 0.05, 'when it is time')
    jobs.ack(job.id)
end)

test:test('too many tries', function(subtest)
    subtest:plan(4)
    jobs.put('hard', {})
    local states = {}
    for try = 1, 3 do
        states[try] = jobs.release(jobs.take(1).id)
    end
    subtest:is_deeply(states, {'ready', 'ready', 'buried'}, 'it is buried at last')
    subtest:isnil(jobs.take(), 'nobody gets it')
    subtest:is(jobs.kick(10), 1, 'it is kicked')
    local job = jobs.take()
    subtest:is(job.tries, 1, 'and tried again')
    jobs.ack(job.id)
end)

test:test('who takes a job and goes', function(subtest)
    subtest:plan(2)
    jobs.lease = 0.05
    jobs.put('left', {})
    jobs.take()
    local again = jobs.take(5)
    subtest:is(again and again.tries, 2, 'leaves it to the next')
    jobs.lease = 30
    jobs.ack(again.id)
    subtest:is(box.space.jobs:len(), 0, 'which does it')
end)

test:test('what is not taken', function(subtest)
    subtest:plan(2)
    subtest:ok(not pcall(jobs.ack, 12345), 'there is no such job')
    local id = jobs.put('e', {})
    subtest:ok(not pcall(jobs.release, id), 'nobody has it')
    jobs.ack(jobs.take().id)
end)

test:test('in a transaction', function(subtest)
    subtest:plan(1)
    box.begin()
    jobs.put('never', {})
    box.rollback()
    subtest:isnil(jobs.take(), 'that is taken back, there is no job')
end)

fixture.finish(test)
