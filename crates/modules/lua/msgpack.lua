-- msgpack: the part that works on memory of FFI
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/msgpack/).
local msgpack = ...
local ffi = require('ffi')

local encode, decode, decode_at = msgpack.encode, msgpack.decode, msgpack.decode_at
msgpack.decode_at = nil

local pointers = {[tonumber(ffi.typeof('char *'))] = true,
                  [tonumber(ffi.typeof('const char *'))] = true}

local function is_pointer(value)
    return type(value) == 'cdata' and pointers[tonumber(ffi.typeof(value))] or false
end

local function address(pointer)
    return tonumber(ffi.cast('uintptr_t', ffi.cast('const char *', pointer)))
end

-- encode(value) -> text, or encode(value, ibuf) -> the bytes that were added to the buffer.
function msgpack.encode(...)
    local count = select('#', ...)
    if count == 0 or count > 2 then
        error('msgpack.encode: a Lua object expected', 2)
    end
    local value, buffer = ...
    local text = encode(value)
    if buffer == nil then
        return text
    end
    if type(buffer) ~= 'cdata' then
        error('msgpack.encode: argument 2 must be of type "struct ibuf"', 2)
    end
    ffi.copy(buffer:alloc(#text), text, #text)
    return #text
end

local function decode_pointer(pointer, size, name)
    if size ~= nil and size < 0 then
        error(("bad argument #2 to '%s' (non-negative integer expected)"):format(name), 3)
    end
    local value, used = decode_at(address(pointer), size)
    return value, pointer + used
end

function msgpack.decode(text, at)
    if is_pointer(text) then
        if type(at) ~= 'number' then
            error("bad argument #2 to 'decode' (number expected)", 2)
        end
        return decode_pointer(text, at, 'decode')
    end
    if type(text) ~= 'string' then
        error('msgpack.decode: a Lua string or \'char *\' expected', 2)
    end
    return decode(text, at)
end

function msgpack.decode_unchecked(text, at)
    if is_pointer(text) then
        return decode_pointer(text, nil, 'decode_unchecked')
    end
    if type(text) ~= 'string' then
        error('msgpack.decode_unchecked: a Lua string or \'char *\' expected', 2)
    end
    return decode(text, at)
end

function msgpack.ibuf_decode(pointer)
    if pointer == nil then
        error('msgpack.ibuf_decode: rpos is null', 2)
    end
    local value, after = decode_pointer(pointer, nil, 'ibuf_decode')
    return after, value
end

-- The count that an array or a map begins with, and what follows it.
local function decode_header(name, fix, fix_count, first)
    return function(...)
        if select('#', ...) ~= 2 then
            error(('Usage: msgpack.%s(ptr, size)'):format(name), 2)
        end
        local pointer, size = ...
        if not is_pointer(pointer) then
            error(("msgpack.%s: 'char *' expected"):format(name), 2)
        end
        if type(size) ~= 'number' then
            error(("bad argument #2 to '%s' (number expected, got %s)"):format(
                name, type(size)), 2)
        end
        if size <= 0 then
            error(('msgpack.%s: non-positive size'):format(name), 2)
        end
        local bytes = ffi.cast('const uint8_t *', pointer)
        local length
        if bytes[0] >= fix and bytes[0] < fix + fix_count then
            return bytes[0] - fix, pointer + 1
        elseif bytes[0] == first then
            length = 2
        elseif bytes[0] == first + 1 then
            length = 4
        else
            error(('msgpack.%s: unexpected msgpack type'):format(name), 2)
        end
        if size < 1 + length then
            error(('msgpack.%s: unexpected end of buffer'):format(name), 2)
        end
        local count = 0
        for place = 1, length do
            count = count * 256 + bytes[place]
        end
        return count, pointer + 1 + length
    end
end

msgpack.decode_array_header = decode_header('decode_array_header', 0x90, 16, 0xdc)
msgpack.decode_map_header = decode_header('decode_map_header', 0x80, 16, 0xde)

return msgpack
