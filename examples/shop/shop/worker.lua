-- Does the jobs, one after the other.
local fiber = require('fiber')
local log = require('log')

local jobs = require('shop.jobs')

local worker = {
    -- What was sent, for those who look: a real one would speak to a mail server.
    outbox = {},
}

local doers = {}

function doers.mail(payload)
    local customer = box.space.customers:get(payload.customer)
    if customer == nil then
        error('the customer is gone', 0)
    end
    table.insert(worker.outbox, ('%s: order %d is paid'):format(customer.email, tonumber(payload.order)))
end

-- Takes one job and does it. False if there was none.
function worker.run_once(timeout)
    local job = jobs.take(timeout)
    if job == nil then
        return false
    end
    local doer = doers[job.kind]
    local ok, err = pcall(doer or error, doer and job.payload or 'nobody does ' .. job.kind)
    if ok then
        jobs.ack(job.id)
    else
        log.warn('job %d: %s', tonumber(job.id), tostring(err))
        jobs.release(job.id)
    end
    return true
end

function worker.start()
    local works = fiber.create(function()
        fiber.name('worker')
        while true do
            worker.run_once(10)
        end
    end)
    return {
        stop = function()
            if works:status() ~= 'dead' then
                works:cancel()
            end
        end,
    }
end

return worker
