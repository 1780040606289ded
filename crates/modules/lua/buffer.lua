-- buffer: memory that grows at its end and is read from its beginning
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/buffer/).
local ffi = require('ffi')

ffi.cdef([[
struct ibuf { char *buf; char *rpos; char *wpos; char *epos; size_t start; };
union c_register {
    size_t as_size_t; ssize_t as_ssize_t; void *as_void; int as_int; int64_t as_int64;
    uint64_t as_uint64; double as_double; char as_bytes[16]; char *as_char_ptr;
    const char *as_const_char_ptr;
};
]])
pcall(ffi.cdef, 'void *malloc(size_t size); void free(void *memory);')

-- What a buffer has at first, and what a program is told to read ahead.
local READAHEAD = 16320
local SIZE_MAX = 2 ^ 40

local methods = {}
local buffer_type = ffi.typeof('struct ibuf')

local function check(buffer, name)
    if not ffi.istype(buffer_type, buffer) then
        error(('Attempt to call method without object, use ibuf:%s()'):format(name), 3)
    end
end

local function check_size(buffer, size, name)
    check(buffer, name)
    if type(size) ~= 'number' or size < 0 or size > SIZE_MAX then
        error(('ibuf:%s: the size is a number that is not negative'):format(name), 3)
    end
end

function methods.capacity(buffer)
    check(buffer, 'capacity')
    return tonumber(buffer.epos - buffer.buf)
end

function methods.pos(buffer)
    check(buffer, 'pos')
    return tonumber(buffer.rpos - buffer.buf)
end

methods.used = function(buffer)
    return tonumber(buffer.wpos - buffer.rpos)
end

function methods.size(buffer)
    check(buffer, 'size')
    return methods.used(buffer)
end

function methods.unused(buffer)
    check(buffer, 'unused')
    return tonumber(buffer.epos - buffer.wpos)
end

function methods.reset(buffer)
    check(buffer, 'reset')
    buffer.rpos, buffer.wpos = buffer.buf, buffer.buf
end

function methods.recycle(buffer)
    check(buffer, 'recycle')
    ffi.C.free(buffer.buf)
    buffer.buf, buffer.rpos, buffer.wpos, buffer.epos = nil, nil, nil, nil
end

function methods.reserve(buffer, size)
    check_size(buffer, size, 'reserve')
    if methods.unused(buffer) >= size then
        return buffer.wpos
    end
    local used, capacity = methods.used(buffer), methods.capacity(buffer)
    if used + size > capacity then
        capacity = math.max(capacity * 2, tonumber(buffer.start))
        while capacity < used + size do
            capacity = capacity * 2
        end
        local place = ffi.cast('char *', ffi.C.malloc(capacity))
        if place == nil then
            error('not enough memory', 2)
        end
        ffi.copy(place, buffer.rpos, used)
        ffi.C.free(buffer.buf)
        buffer.buf, buffer.epos = place, place + capacity
    else
        -- What was read leaves enough room in front; the two places may overlap.
        ffi.copy(buffer.buf, ffi.string(buffer.rpos, used), used)
    end
    buffer.rpos, buffer.wpos = buffer.buf, buffer.buf + used
    return buffer.wpos
end

function methods.alloc(buffer, size)
    check_size(buffer, size, 'alloc')
    local place = methods.reserve(buffer, size)
    buffer.wpos = buffer.wpos + size
    return place
end

function methods.checksize(buffer, size)
    check_size(buffer, size, 'checksize')
    if methods.used(buffer) < size then
        error(('Attempt to read out of range bytes: needed=%d size=%d'):format(
            size, methods.used(buffer)), 2)
    end
    return buffer.rpos
end

function methods.read(buffer, size)
    check_size(buffer, size, 'read')
    local place = methods.checksize(buffer, size)
    buffer.rpos = buffer.rpos + size
    return place
end

ffi.metatype(buffer_type, {
    __gc = methods.recycle,
    __tostring = function()
        return '<ibuf>'
    end,
    __index = methods,
})

local buffer = {READAHEAD = READAHEAD, ffi = {}}

function buffer.ibuf(start)
    if start ~= nil and (type(start) ~= 'number' or start <= 0 or start > SIZE_MAX) then
        error('buffer.ibuf: the size is a number above zero', 2)
    end
    return buffer_type(nil, nil, nil, nil, start or READAHEAD)
end

-- Memory until the next call, for values that C functions write.
local STATIC_BYTES = 12288
local static = ffi.new('char[?]', STATIC_BYTES)
local static_used = 0

function buffer.static_alloc(kind, count)
    local size = (count or 1) * ffi.sizeof(kind)
    if size > STATIC_BYTES then
        return ffi.new(kind .. '[?]', count or 1)
    end
    -- Sixteen bytes are enough for the alignment of any type.
    if static_used + size > STATIC_BYTES then
        static_used = 0
    end
    local place = static + static_used
    static_used = static_used + math.ceil(size / 16) * 16
    return ffi.cast(kind .. ' *', place)
end

buffer.reg_array = ffi.new('union c_register[?]', 2)
buffer.reg1, buffer.reg2 = buffer.reg_array[0], buffer.reg_array[1]
buffer.IBUF_SHARED = buffer.ibuf()

return buffer
