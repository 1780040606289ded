-- What every other file builds on: the types of cdata, the registry's entries, small helpers.
local ladon = ...
local ffi = require('ffi')

ffi.cdef([[
struct tuple { uint32_t size; uint32_t space; char data[?]; };
struct error { uint32_t number; };
]])

local registry = debug.getregistry()
registry['ladon.globals'] = _G
-- `box.NULL` is made with the modules that need no box.
local null = registry['ladon.null']
-- How tables that came as arrays and maps are shown.
registry['ladon.seq'] = {__serialize = 'seq'}
registry['ladon.map'] = {__serialize = 'map'}

local tuple = ffi.typeof('struct tuple')
ladon.set_tuple_type(tonumber(tuple), tuple, tuple(1))

ladon.null = null
ladon.tuple_type = tuple
-- Things that are known by name to natives.
ladon.registry = registry

-- Cdata that has a plain value to show, by what tells it. The value may be the payload of an
-- extension of MessagePack; its number follows.
local plain = {}

function ladon.add_plain(is, value)
    plain[#plain + 1] = {is, value}
end

registry['ladon.plain'] = function(object)
    for _, one in ipairs(plain) do
        if one[1](object) then
            return true, one[2](object)
        end
    end
    return false
end

-- Loads a module of the product when it is first required.
function ladon.module(name, load)
    package.preload[name] = load
end

-- What fibers have of their own, by number: their transactions' parts, and their objects.
ladon.open_transactions, ladon.fiber_objects = {}, {}

box = {NULL = null}

-- `pairs` and `ipairs` ask for `__pairs` and `__ipairs`, as Tarantool's LuaJIT does. Of cdata,
-- those of `ladon.iterate` know how.
local raw_pairs, raw_ipairs = pairs, ipairs
ladon.iterate = {}

local function metamethod(value, name)
    local kind = type(value)
    if kind == 'table' then
        local mt = debug.getmetatable(value)
        return mt and rawget(mt, name)
    elseif kind == 'cdata' then
        for is, func in raw_pairs(ladon.iterate) do
            if is(value) then
                return func
            end
        end
    end
end

function pairs(value)
    local func = metamethod(value, '__pairs')
    if func ~= nil then
        return func(value)
    end
    return raw_pairs(value)
end

function ipairs(value)
    local func = metamethod(value, '__ipairs')
    if func ~= nil then
        return func(value)
    end
    return raw_ipairs(value)
end
