-- fiber: threads of a program that take turns
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/fiber/).
local ladon = ...

local CLOCK_REALTIME, CLOCK_MONOTONIC = 0, 1

local fiber = {}
-- Fibers that are not over, by number.
local alive = ladon.fiber_objects

local methods = {}
local Fiber = {
    __index = methods,
    __tostring = function(self)
        return 'fiber: ' .. self.number
    end,
    __serialize = function(self)
        return {id = self.number, name = self.label, status = methods.status(self)}
    end,
}

local function new_object(number, label)
    return setmetatable({
        number = number,
        label = label,
        storage = {},
        is_cancelled = false,
        is_joinable = false,
        is_over = false,
    }, Fiber)
end

-- The fiber that runs. Those that serve requests get an object when it is asked for.
local function self()
    local number = ladon.current()
    local object = alive[number]
    if object == nil then
        object = new_object(number, 'main')
        alive[number] = object
    end
    return object
end

-- Raised in a fiber that was cancelled, at its next wait.
local function cancelled()
    box.error({code = 0, type = 'FiberIsCancelled', reason = 'fiber is cancelled'})
end

local function check_cancelled()
    local object = alive[ladon.current()]
    if object ~= nil and object.is_cancelled then
        cancelled()
    end
end

-- Waits for `seconds` (nil: without end) or a wake-up, whose kind is returned.
local function wait(seconds)
    local is_woken = ladon.wait(seconds)
    check_cancelled()
    return is_woken
end
ladon.fiber_wait = wait

local function log_error(object, text)
    ladon.log(2, tostring(text))
end

-- The end of a fiber: whoever joins it gets what it returned.
local function finish(object, is_ok, ...)
    ladon.leave_transaction()
    object.is_over = true
    if object.is_joinable then
        object.results = {n = select('#', ...), is_ok, ...}
        object.results.n = object.results.n + 1
        for _, number in ipairs(object.joiners or {}) do
            ladon.wake(number)
        end
    elseif not is_ok then
        local err = ...
        local is_end = ladon.is_error(err) and err.type == 'FiberIsCancelled'
        if not is_end then
            log_error(object, err)
        end
    end
    alive[object.number] = nil
    object.storage = nil
end

local function spawn(at_once, func, ...)
    if type(func) ~= 'function' then
        error('fiber.create(function, ...): bad arguments', 3)
    end
    local object = new_object(nil, 'lua')
    local arguments, count = {...}, select('#', ...)
    local number = ladon.spawn(function()
        object.number = ladon.current()
        alive[object.number] = object
        finish(object, pcall(func, unpack(arguments, 1, count)))
    end, at_once)
    object.number = number
    if not object.is_over then
        alive[number] = object
    end
    return object
end

function fiber.create(func, ...)
    return spawn(true, func, ...)
end

function fiber.new(func, ...)
    return spawn(false, func, ...)
end

fiber.self = self

function fiber.id(object)
    return (object or self()).number
end

function fiber.yield()
    ladon.give_way()
    check_cancelled()
end

function fiber.sleep(seconds)
    if type(seconds) ~= 'number' then
        error('fiber.sleep(delay): bad arguments', 2)
    end
    if seconds <= 0 then
        ladon.give_way()
    else
        -- A wake-up ends it, as in Tarantool.
        ladon.wait(seconds)
    end
    check_cancelled()
end

-- The time as a fiber sees it: it stays the same until the fiber has let others run, as that of
-- Tarantool's loop of events does.
local function clock_of_fibers(clock)
    local of, slice, time
    return function()
        local number = ladon.current()
        local switches = ladon.switches(number)
        if number ~= of or switches ~= slice then
            of, slice, time = number, switches, ladon.clock(clock)
        end
        return time
    end
end

fiber.time, fiber.clock = clock_of_fibers(CLOCK_REALTIME), clock_of_fibers(CLOCK_MONOTONIC)

function fiber.time64()
    return require('ffi').cast('uint64_t', fiber.time() * 1e6)
end

function fiber.clock64()
    return require('ffi').cast('uint64_t', fiber.clock() * 1e6)
end

local function dead()
    error('the fiber is dead', 0)
end

-- One that is over is still there until it is joined, if it can be.
local function check_there(object)
    if object.is_over and (not object.is_joinable or object.is_joined) then
        dead()
    end
end

local function object_of(id, usage)
    if type(id) == 'table' and getmetatable(id) == Fiber then
        return id
    end
    if type(id) ~= 'number' then
        error(usage .. ': bad arguments', 3)
    end
    return alive[id]
end

function fiber.find(id)
    return alive[tonumber(id)]
end

function fiber.status(object)
    return methods.status(object or self())
end

function fiber.kill(id)
    methods.cancel(object_of(id, 'fiber.kill(id)') or dead())
end
fiber.cancel = fiber.kill

function fiber.wakeup(id)
    methods.wakeup(object_of(id, 'fiber.wakeup(id)') or dead())
end

function fiber.testcancel()
    check_cancelled()
end

function fiber.name(...)
    local first = ...
    if type(first) == 'table' and getmetatable(first) == Fiber then
        return methods.name(...)
    end
    return methods.name(self(), ...)
end

function fiber.join(object, timeout)
    return methods.join(object, timeout)
end

function fiber.set_joinable(object, is_joinable)
    methods.set_joinable(object, is_joinable)
end

function fiber.info(options)
    local shown = {}
    for number, object in pairs(alive) do
        shown[number] = {
            fid = number, name = object.label, csw = ladon.switches(number),
        }
    end
    return shown
end

function methods.id(object)
    return object.number
end

function methods.name(object, label, options)
    if label == nil then
        if object.is_over then
            error('the fiber is dead', 2)
        end
        return object.label
    end
    label = tostring(label)
    if #label > 255 then
        if options == nil or not options.truncate then
            error('Illegal parameters, name is too long', 2)
        end
        label = label:sub(1, 255)
    end
    object.label = label
end

function methods.status(object)
    if object.is_over then
        return 'dead'
    end
    return object.number == ladon.current() and 'running' or 'suspended'
end

function methods.csw(object)
    return ladon.switches(object.number)
end

function methods.cancel(object)
    check_there(object)
    if object.is_over then
        return
    end
    object.is_cancelled = true
    if object.number == ladon.current() then
        cancelled()
    end
    ladon.wake(object.number)
end

function methods.wakeup(object)
    check_there(object)
    ladon.wake(object.number)
end

function methods.testcancel()
    check_cancelled()
end

function methods.set_joinable(object, is_joinable)
    object.is_joinable = is_joinable
end

function methods.join(object, timeout)
    if not object.is_joinable then
        error('the fiber is not joinable', 2)
    end
    if object.is_joined then
        error('the fiber is already joined', 2)
    end
    local stop = timeout and ladon.clock(CLOCK_MONOTONIC) + timeout
    while object.results == nil do
        object.joiners = object.joiners or {}
        table.insert(object.joiners, ladon.current())
        local left = stop and stop - ladon.clock(CLOCK_MONOTONIC)
        if left and left <= 0 then
            return false, box.error.new(box.error.TIMEOUT)
        end
        wait(left)
    end
    object.is_joined = true
    local results = object.results
    return unpack(results, 1, results.n)
end

-- Waiting in a row: `list` has the numbers of the fibers.
local function stand_in(list, seconds)
    local number = ladon.current()
    list[#list + 1] = number
    local is_ok, is_woken = pcall(wait, seconds)
    for at, one in ipairs(list) do
        if one == number then
            table.remove(list, at)
            break
        end
    end
    if not is_ok then
        error(is_woken, 0)
    end
    return is_woken
end

local function wake_first(list)
    local number = table.remove(list, 1)
    if number ~= nil then
        ladon.wake(number)
    end
end

local function deadline(seconds)
    return seconds and ladon.clock(CLOCK_MONOTONIC) + seconds
end

local function left_until(stop)
    return stop and stop - ladon.clock(CLOCK_MONOTONIC)
end

-- Channels: values pass from fiber to fiber, in order.
local channel_methods = {}
local Channel = {
    __index = channel_methods,
    __tostring = function(channel)
        return string.format('channel: %d', channel.is_open and 0 or 1)
    end,
}

function fiber.channel(size)
    if size ~= nil and (type(size) ~= 'number' or size < 0) then
        error('fiber.channel(size): negative size', 2)
    end
    return setmetatable({
        most = size or 0, first = 1, behind = 1, values = {}, readers = {}, writers = {},
        -- Values of writers that wait, in their order.
        offered = {}, is_open = true,
    }, Channel)
end

local function length(channel)
    return channel.behind - channel.first
end

function channel_methods.put(channel, value, timeout)
    if not channel.is_open then
        return false
    end
    local stop = deadline(timeout)
    local offer = {value = value}
    local has_reader = channel.waiting ~= nil and channel.waiting > length(channel)
    if length(channel) < channel.most or has_reader then
        channel.values[channel.behind] = offer
        channel.behind = channel.behind + 1
        wake_first(channel.readers)
        return true
    end
    channel.offered[#channel.offered + 1] = offer
    while not offer.is_taken do
        local left = left_until(stop)
        local is_ok, is_woken = true, false
        if left == nil or left > 0 then
            is_ok, is_woken = pcall(stand_in, channel.writers, left)
        end
        if not offer.is_taken and (not is_ok or not is_woken or not channel.is_open) then
            for at, one in ipairs(channel.offered) do
                if one == offer then
                    table.remove(channel.offered, at)
                    break
                end
            end
            if not is_ok then
                error(is_woken, 0)
            end
            return false
        end
    end
    return true
end

-- Moves what a writer offers into the room that there is now.
local function admit(channel)
    local offer = table.remove(channel.offered, 1)
    if offer ~= nil then
        offer.is_taken = true
        channel.values[channel.behind] = offer
        channel.behind = channel.behind + 1
        wake_first(channel.writers)
    end
end

function channel_methods.get(channel, timeout)
    local stop = deadline(timeout)
    while true do
        if length(channel) == 0 then
            admit(channel)
        end
        if length(channel) > 0 then
            local offer = channel.values[channel.first]
            channel.values[channel.first] = nil
            channel.first = channel.first + 1
            if length(channel) < channel.most then
                admit(channel)
            end
            return offer.value
        end
        if not channel.is_open then
            return nil
        end
        local left = left_until(stop)
        if left ~= nil and left <= 0 then
            return nil
        end
        channel.waiting = (channel.waiting or 0) + 1
        local is_ok, is_woken = pcall(stand_in, channel.readers, left)
        channel.waiting = channel.waiting - 1
        if not is_ok then
            error(is_woken, 0)
        end
    end
end

function channel_methods.close(channel)
    channel.is_open = false
    channel.values, channel.first, channel.behind = {}, 1, 1
    while #channel.readers > 0 do
        wake_first(channel.readers)
    end
    while #channel.writers > 0 do
        wake_first(channel.writers)
    end
end

function channel_methods.count(channel)
    return length(channel)
end

function channel_methods.size(channel)
    return channel.most
end

function channel_methods.is_full(channel)
    return length(channel) >= channel.most
end

function channel_methods.is_empty(channel)
    return length(channel) == 0
end

function channel_methods.has_readers(channel)
    return #channel.readers > 0
end

function channel_methods.has_writers(channel)
    return #channel.writers > 0
end

function channel_methods.is_closed(channel)
    return not channel.is_open
end

-- Conditions.
local cond_methods = {}
local Cond = {
    __index = cond_methods,
    __tostring = function()
        return 'cond'
    end,
}

function fiber.cond()
    return setmetatable({waiting = {}}, Cond)
end

function cond_methods.wait(cond, timeout)
    if timeout ~= nil and type(timeout) ~= 'number' then
        error('Usage: cond:wait([timeout])', 2)
    end
    local is_woken = stand_in(cond.waiting, timeout)
    if not is_woken then
        box.error.set(box.error.new(box.error.TIMEOUT))
    end
    return is_woken
end

function cond_methods.signal(cond)
    wake_first(cond.waiting)
end

function cond_methods.broadcast(cond)
    while #cond.waiting > 0 do
        wake_first(cond.waiting)
    end
end

-- A fiber of the product, whose end is nobody's.
function ladon.background(label, func, ...)
    local object = spawn(true, func, ...)
    object.label = label
    return object
end

ladon.fiber = fiber
ladon.fiber_self = self
ladon.module('fiber', function()
    return fiber
end)

-- Called when a request ends: if somebody has asked for its fiber, there is an object.
function ladon.end_request()
    local object = alive[ladon.current()]
    if object ~= nil then
        object.is_over = true
        alive[object.number] = nil
    end
end

-- Asked for from outside: a fiber that waits ends at its next wait.
ladon.registry['ladon.kill'] = function(number)
    local object = alive[number]
    if object == nil then
        if ladon.switches(number) == 0 then
            return
        end
        -- It serves a request, and nobody has asked for it.
        object = new_object(number, 'main')
        alive[number] = object
    end
    methods.cancel(object)
end

-- A fiber was ended by an error in each of its instructions, those of its end among them.
ladon.registry['ladon.ended'] = function()
    local object = alive[ladon.current()]
    if object ~= nil and not object.is_over then
        finish(object, pcall(cancelled))
    else
        ladon.leave_transaction()
    end
end
