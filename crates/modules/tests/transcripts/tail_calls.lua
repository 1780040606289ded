-- Calls in a `return` take no room, and their frames are gone.
local TIMES = 300000

local function plain(left)
    if left == 0 then
        return 'plain'
    end
    return plain(left - 1)
end
print(plain(TIMES))

local function spread(left, ...)
    if left == 0 then
        return select('#', ...), ...
    end
    return spread(left - 1, ...)
end
print(spread(TIMES, 1, nil, 'x'))

local object = {}
function object:method(left)
    if left == 0 then
        return 'method'
    end
    return self:method(left - 1)
end
print(object:method(TIMES))

-- Upvalues are closed before the call, in the middle of a function and behind it.
local kept = {}
local function closing(left)
    local own = left
    if left == 0 then
        return 'closing'
    end
    local function get()
        return own
    end
    kept[1] = get
    if left % 2 == 0 then
        return closing(left - 1)
    end
    return closing(left - 1)
end
print(closing(TIMES), kept[1]())

local function early(left, func)
    if left == 0 then
        return 'early'
    elseif func ~= nil then
        return early(left - 1, nil)
    end
    local seen = left
    return early(left - 1, function() return seen end)
end
print(early(TIMES))

print(loadstring([[
    local function loop(left) if left == 0 then return 'loadstring' end return loop(left - 1) end
    return loop(...)
]])(TIMES))
local parts = {'local function loop(left) if left == 0 then return "load" end ',
               'return loop(left - 1) end return loop(...)'}
print(load(function() return table.remove(parts, 1) end)(TIMES))

local text = loadstring('local x = ... return tostring(x)', '=given')
print(text(1), setfenv(text, {tostring = function() return 'own' end})(1))

-- Values of the caller's caller.
local function name_of_caller()
    return (debug.getlocal(2, 1))
end
local function tail(one)
    return name_of_caller(one)
end
local function around(outer)
    local found = tail(outer)
    return found
end
print(around(1))
local function not_tail(one)
    local found = name_of_caller(one)
    return found
end
print(not_tail(1))

-- What is no tail call.
local function two()
    return 1, 2
end
print((function() return (two()) end)())
print((function() return 0, two() end)())
print((function() return two() + 1 end)())
print((function(...) return ... end)(1, nil, 3))
print(pcall(function() return error('raised', 0) end))
print(pcall(function() return nil + 1 end))
