-- A queue of jobs: ready, taken under a lease, buried after too many tries.
local fiber = require('fiber')
local log = require('log')

local jobs = {
    -- Seconds until a job that was taken, and not acknowledged, is given to somebody else.
    lease = 30,
    tries_max = 3,
}

local READY, TAKEN, BURIED = 'ready', 'taken', 'buried'

-- Those who wait for a job.
local came = fiber.cond()

-- Returns the job's number. Options: delay, in seconds.
function jobs.put(kind, payload, options)
    -- An empty table would be an array.
    payload = setmetatable(table.copy(payload), {__serialize = 'map'})
    local ready_at = fiber.time() + (options and options.delay or 0)
    local job = box.space.jobs:insert({box.NULL, READY, ready_at, kind, payload, 0, box.NULL})
    came:signal()
    return job.id
end

local function take_now(now)
    for _, job in box.space.jobs.index.state:pairs({READY}, {iterator = 'EQ'}) do
        if job.ready_at > now then
            return nil, job.ready_at
        end
        return box.space.jobs:update(job.id, {
            {'=', 'state', TAKEN}, {'=', 'lease_until', now + jobs.lease}, {'+', 'tries', 1},
        })
    end
end

-- The next job as a table; nil if none comes in so many seconds.
function jobs.take(timeout)
    local deadline = fiber.time() + (timeout or 0)
    while true do
        local now = fiber.time()
        local job, ready_at = take_now(now)
        if job ~= nil then
            return {id = job.id, kind = job.kind, payload = job.payload, tries = job.tries}
        elseif now >= deadline then
            return nil
        end
        came:wait(math.min(deadline, ready_at or deadline) - now)
        fiber.testcancel()
    end
end

local function taken(id)
    local job = box.space.jobs:get(id)
    if job == nil or job.state ~= TAKEN then
        error(('job %s is not taken'):format(tostring(id)), 0)
    end
    return job
end

-- The job is done.
function jobs.ack(id)
    taken(id)
    box.space.jobs:delete(id)
    return true
end

-- The job is to be done again, unless it was tried too often.
function jobs.release(id, delay)
    local job = taken(id)
    local state = job.tries >= jobs.tries_max and BURIED or READY
    box.space.jobs:update(id, {
        {'=', 'state', state}, {'=', 'ready_at', fiber.time() + (delay or 0)},
        {'=', 'lease_until', box.NULL},
    })
    came:signal()
    return state
end

-- Whoever has taken the job has not come back.
function jobs.lease_expired(job)
    log.warn('job %d was not acknowledged', tonumber(job.id))
    jobs.release(job.id)
end

-- Makes buried jobs ready again, at most so many. Returns how many.
function jobs.kick(count)
    local buried = box.space.jobs.index.state:select({BURIED}, {limit = count})
    for _, job in ipairs(buried) do
        box.space.jobs:update(job.id, {{'=', 'state', READY}, {'=', 'tries', 0}})
        came:signal()
    end
    return #buried
end

function jobs.stats()
    local by_state = box.space.jobs.index.state
    return {
        ready = by_state:count({READY}), taken = by_state:count({TAKEN}), buried = by_state:count({BURIED}),
    }
end

return jobs
