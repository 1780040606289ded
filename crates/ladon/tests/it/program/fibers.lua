-- Fibers, channels, conditions: their order, their ends.
local fiber = require('fiber')
local function try(func, ...)
    local ok, err = pcall(func, ...)
    print(ok, (tostring(err):gsub('^.-:%d+: ', '')))
end

local log = {}
local function say(word) log[#log + 1] = tostring(word) end
local function flush() print(table.concat(log, ' ')) log = {} end

fiber.create(function() say('a') fiber.yield() say('c') end)
say('b') fiber.yield() fiber.yield() flush()
local f = fiber.new(function() say('new') end)
say('before') fiber.yield() flush()

-- Waits inside of everything that calls back.
fiber.create(function()
    pcall(function() fiber.sleep(0.001) say('pcall') end)
    local words = {3, 1, 2}
    table.sort(words, function(a, b) fiber.yield() return a < b end)
    say(table.concat(words, ','))
    say((('abc'):gsub('.', function(c) fiber.yield() return c:upper() end)))
    local object = setmetatable({}, {__index = function(_, key) fiber.yield() return key .. '!' end})
    say(object.key)
    local co = coroutine.wrap(function() fiber.yield() coroutine.yield(1) fiber.yield() coroutine.yield(2) end)
    say(co()) say(co())
    for word in (function() fiber.yield() return pairs{x = 1} end)() do say(word) end
end)
fiber.sleep(0.05) flush()

local j = fiber.new(function(a, b) fiber.sleep(0.001) return a + b, 'second' end, 1, 2)
j:set_joinable(true) print(j:join())
j = fiber.new(function() error('failed') end)
j:set_joinable(true) try(function() local ok, err = j:join() print(ok) error(err, 0) end)
try(fiber.join, fiber.create(function() fiber.sleep(0.01) end))

local c = fiber.create(function()
    local ok, err = pcall(fiber.sleep, 10) say(tostring(err))
    ok, err = pcall(fiber.testcancel) say(ok)
end)
print(c:status()) c:cancel() fiber.sleep(0.001) print(c:status()) flush()
local w = fiber.create(function() fiber.sleep(10) say('woken') end)
w:wakeup() fiber.sleep(0.001) flush()
print(fiber.find(w:id()), fiber.status(), fiber.self():name())
c = fiber.create(function() fiber.self().storage.x = 5 fiber.sleep(0.001) say(fiber.self().storage.x) end)
fiber.self():name('own') print(fiber.name()) fiber.sleep(0.005) flush()
try(fiber.create, 5) try(fiber.sleep, 'x') try(fiber.find, 'x')

local ch = fiber.channel(2)
print(ch:put(1), ch:put(2), ch:put(3, 0.001), ch:is_full(), ch:count(), ch:size())
print(ch:get(), ch:get(), ch:get(0.001), ch:is_empty())
fiber.create(function() for i = 1, 5 do ch:put(i) end end)
for i = 1, 5 do say(ch:get()) end flush()
local zero = fiber.channel()
fiber.create(function() say('put') zero:put('direct') say('taken') end)
say(zero:get()) fiber.yield() flush()
fiber.create(function() fiber.sleep(0.001) zero:close() end)
print(zero:get(), zero:is_closed())
try(zero.put, zero, 1)
try(zero.put, zero, 1)

local cond = fiber.cond()
for i = 1, 3 do fiber.create(function() cond:wait() say('cond' .. i) end) end
cond:signal() fiber.yield() say('|') cond:broadcast() fiber.yield() flush()
print(cond:wait(0.001))

-- Many at once, each with its own stack.
local sum, left = 0, 500
for i = 1, 500 do
    fiber.create(function()
        local function deep(n) if n == 0 then fiber.sleep(0.001) return 0 end return 1 + deep(n - 1) end
        local depth = deep(i % 50) sum = sum + depth left = left - 1
    end)
end
while left > 0 do fiber.sleep(0.001) end
print(sum)

-- What is over cannot be woken, but it can be joined.
local over = fiber.create(function() end)
print(over:status(), pcall(over.cancel, over))
print(pcall(over.wakeup, over))
print(pcall(fiber.kill, 12345))
-- Time stands still for a fiber that does not wait.
local time, clock = fiber.time(), fiber.clock()
local until_then = os.clock() + 0.01
while os.clock() < until_then do end
print(fiber.time() == time, fiber.clock() == clock, fiber.time64() == fiber.time64())
fiber.sleep(0.01)
print(fiber.time() > time, fiber.clock() > clock)
local joined = fiber.new(function() return 'joined' end)
joined:set_joinable(true)
fiber.yield()
print(pcall(joined.cancel, joined))
print(joined:join())
print(pcall(joined.cancel, joined))
os.exit(0)
