-- The part of the environment that is Lua itself. Errors of commands are tables, as in Redis.
local raw_call, is_stopped, redis = ...
local error, type, tostring = error, type, tostring
local getinfo = debug.getinfo

local function where()
    for level = 3, 12 do
        local info = getinfo(level, 'Sl')
        if not info then return 'user_script', 1 end
        if info.short_src == 'user_script' then return info.short_src, info.currentline end
    end
    return 'user_script', 1
end

redis.call = function(...)
    local failed, value = raw_call(...)
    if failed then
        value.source, value.line = where()
        error(value, 0)
    end
    return value
end

redis.pcall = function(...)
    local failed, value = raw_call(...)
    if failed then
        value.source, value.line = where()
    end
    return value
end

redis.error_reply = function(text)
    if type(text) ~= 'string' then
        return { err = 'wrong number or type of arguments' }
    end
    if text:sub(1, 1) ~= '-' then
        if not text:find(' ') then text = 'ERR ' .. text end
    else
        text = text:sub(2)
    end
    return { err = text }
end

redis.status_reply = function(text)
    return { ok = text }
end

-- A stopped script must not go on because something caught the stop.
local function checked(...)
    if is_stopped() then error('stopped', 0) end
    return ...
end
local pcall, xpcall, resume = pcall, xpcall, coroutine.resume
local create, unpack = coroutine.create, unpack
_G.pcall = function(...) return checked(pcall(...)) end
_G.xpcall = function(...) return checked(xpcall(...)) end
coroutine.resume = function(...) return checked(resume(...)) end
coroutine.wrap = function(body)
    local thread = create(body)
    local function pass(ok, ...)
        if not ok then error(..., 0) end
        return ...
    end
    return function(...) return pass(checked(resume(thread, ...))) end
end

local function protect(name)
    local library = rawget(_G, name)
    local proxy = setmetatable({}, {
        __index = library,
        __newindex = function() error('Attempt to modify a readonly table', 2) end,
        __metatable = false,
    })
    rawset(_G, name, proxy)
end

setmetatable(_G, {
    __newindex = function(_, name)
        error('Attempt to modify a readonly table', 2)
    end,
    __index = function(_, name)
        error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
    end,
    __metatable = false,
})
for _, name in ipairs { 'redis', 'string', 'table', 'math', 'coroutine', 'bit', 'os' } do
    if name == 'os' then rawset(_G, 'os', { clock = os.clock }) end
    protect(name)
end
for _, name in ipairs { 'io', 'debug', 'package', 'require', 'module', 'dofile', 'loadfile', 'print', 'jit', 'ffi', 'newproxy', 'gcinfo', 'getfenv', 'setfenv', 'collectgarbage_off' } do
    rawset(_G, name, nil)
end
