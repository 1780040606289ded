-- Background fibers that look for tuples whose time has come, along an index on it.
local fiber = require('fiber')
local log = require('log')

local expiry = {}

local BATCH = 100

local Task = {}
Task.__index = Task

-- Handles the expired, a batch at a time. Returns how many there were.
function Task:run_once(now)
    local index = box.space[self.space].index[self.index]
    -- NULL, which never expires, comes before all numbers.
    local expired = index:select({0}, {iterator = 'GE', limit = BATCH})
    local handled = 0
    for _, tuple in ipairs(expired) do
        if tuple[self.index_field] > now then
            break
        end
        local ok, err = pcall(self.on_expired, tuple)
        if not ok then
            log.error('%s: %s', self.name, tostring(err))
        end
        handled = handled + 1
    end
    self.handled = self.handled + handled
    return handled
end

function Task:stop()
    if self.fiber ~= nil and self.fiber:status() ~= 'dead' then
        self.fiber:cancel()
    end
    self.fiber = nil
end

-- Options: space, index (whose first part is the time), on_expired(tuple), pause.
function expiry.new(name, options)
    local index = box.space[options.space].index[options.index]
    return setmetatable({
        name = name, space = options.space, index = options.index, index_field = index.parts[1].fieldno,
        on_expired = options.on_expired, pause = options.pause or 1, handled = 0,
    }, Task)
end

function expiry.start(name, options)
    local task = expiry.new(name, options)
    task.fiber = fiber.create(function()
        fiber.name('expiry:' .. name, {truncate = true})
        while true do
            -- Others have their turn between two batches.
            local is_full = task:run_once(fiber.time()) == BATCH
            fiber.sleep(is_full and 0 or task.pause)
        end
    end)
    return task
end

return expiry
