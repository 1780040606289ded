-- uuid: texts, bytes and comparison. Making one by chance is in src/uuid.rs.
local native = ...
local ffi = require('ffi')

local uuid_type = ffi.typeof('struct tt_uuid')
local bytes_type = ffi.typeof('uint8_t[16]')

local function is_uuid(value)
    return ffi.istype(uuid_type, value)
end

-- The places of the struct's bytes in the order of the text.
local TEXT_ORDER = ffi.abi('le') and {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15}
    or {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

-- The other order of the three numbers in front.
local SWAPPED = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15}

local function needs_swap(order)
    if order == nil or order == 'h' then
        return false
    elseif order == 'l' then
        return ffi.abi('be')
    elseif order == 'b' or order == 'n' then
        return ffi.abi('le')
    end
    error('invalid byteorder, valid is l, b, h, n', 4)
end

local function swapped(bytes)
    local result = {}
    for place = 1, 16 do
        result[place] = bytes:byte(SWAPPED[place] + 1)
    end
    return string.char(unpack(result))
end

local function to_bytes(self, order)
    if not is_uuid(self) then
        error('Usage: uuid:bin([byteorder])', 2)
    end
    local swap = needs_swap(order)
    local bytes = ffi.string(ffi.cast('const char *', self), 16)
    return swap and swapped(bytes) or bytes
end

local function from_bytes(bytes, order)
    if type(bytes) ~= 'string' or #bytes ~= 16 then
        error('frombin(bin, [byteorder])', 2)
    end
    if needs_swap(order) then
        bytes = swapped(bytes)
    end
    local self = uuid_type()
    ffi.copy(self, bytes, 16)
    return self
end

local function to_text(self)
    if not is_uuid(self) then
        error('Usage: uuid:str()', 2)
    end
    return native.text(self)
end

local function from_text(text)
    if type(text) ~= 'string' then
        error('fromstr(str)', 2)
    end
    if #text ~= 36 then
        return nil
    end
    local digits = text:match('^(%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-' ..
                              '%x%x%x%x%x%x%x%x%x%x%x%x)$')
    if digits == nil then
        return nil
    end
    local self = uuid_type()
    local target = ffi.cast('uint8_t *', self)
    local place = 1
    for pair in digits:gsub('-', ''):gmatch('..') do
        target[TEXT_ORDER[place]] = tonumber(pair, 16)
        place = place + 1
    end
    return self
end

local NIL = uuid_type()

local function is_nil(self)
    if not is_uuid(self) then
        error('Usage: uuid:isnil()', 2)
    end
    local words = ffi.cast('uint64_t *', self)
    return words[0] == 0 and words[1] == 0
end

local function equal(left, right)
    if not is_uuid(left) or not is_uuid(right) then
        return false
    end
    local a, b = ffi.cast('uint64_t *', left), ffi.cast('uint64_t *', right)
    return a[0] == b[0] and a[1] == b[1]
end

local function compare(left, right, less)
    if not is_uuid(left) or not is_uuid(right) then
        local other = is_uuid(left) and right or left
        error(('incorrect value to convert to uuid as %d argument'):format(
            other == left and 1 or 2), 3)
    end
    return less(native.text(left), native.text(right))
end

ffi.metatype(uuid_type, {
    __tostring = to_text,
    __eq = equal,
    __lt = function(left, right)
        return compare(left, right, function(a, b) return a < b end)
    end,
    __le = function(left, right)
        return compare(left, right, function(a, b) return a <= b end)
    end,
    __index = {isnil = is_nil, bin = to_bytes, str = to_text},
})

return setmetatable({
    NULL = NIL,
    new = native.new,
    fromstr = from_text,
    frombin = from_bytes,
    bin = function(order)
        return to_bytes(native.new(), order)
    end,
    str = function()
        return native.text(native.new())
    end,
    is_uuid = is_uuid,
}, {__call = native.new})
