-- clock: the system's clocks, in seconds, or in nanoseconds as uint64_t.
local ffi = require('ffi')

pcall(ffi.cdef, 'struct timespec { long tv_sec; long tv_nsec; };')
pcall(ffi.cdef, 'int clock_gettime(int clock, struct timespec *time);')

-- Numbers of <time.h> on Linux.
local CLOCKS = {realtime = 0, monotonic = 1, proc = 2, thread = 3}

local time = ffi.new('struct timespec')
local clock = {}

for name, number in pairs(CLOCKS) do
    clock[name] = function()
        ffi.C.clock_gettime(number, time)
        return tonumber(time.tv_sec) + tonumber(time.tv_nsec) / 1e9
    end
    clock[name .. '64'] = function()
        ffi.C.clock_gettime(number, time)
        return time.tv_sec * 1000000000LL + time.tv_nsec
    end
end

clock.time = clock.realtime
clock.time64 = clock.realtime64

-- What a function answers, after the processor time in seconds that it took.
function clock.bench(func, ...)
    local start = clock.proc()
    local results = {0, func(...)}
    results[1] = clock.proc() - start
    return results
end

return clock
