-- errno: called, it answers the last error's number, or sets it; indexed, it answers the numbers.
local codes = ...
local ffi = require('ffi')

pcall(ffi.cdef, 'char *strerror(int code);')

local function strerror(code)
    if code == nil then
        code = ffi.errno()
    else
        code = tonumber(code)
    end
    return ffi.string(ffi.C.strerror(code))
end

return setmetatable({strerror = strerror}, {
    __index = codes,
    __newindex = function()
        error("Can't create new errno constants", 2)
    end,
    __call = function(_, ...)
        return ffi.errno(...)
    end,
})
