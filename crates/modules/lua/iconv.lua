-- iconv: texts from one encoding to another, by the system's library
-- (https://www.tarantool.io/en/doc/latest/reference/reference_lua/uri/).
local ffi = require('ffi')
local errno = require('errno')

pcall(ffi.cdef, [[
typedef struct iconv *iconv_t;
iconv_t iconv_open(const char *to, const char *from);
void iconv_close(iconv_t converter);
size_t iconv(iconv_t converter, const char **from, size_t *from_bytes, char **to,
             size_t *to_bytes);
]])

local ROOM = 4096
local FAILED = ffi.cast('size_t', -1)

local function convert(converter, text)
    if type(text) ~= 'string' then
        error('iconv: a text is needed', 2)
    end
    local from, left = ffi.new('const char *[1]', {text}), ffi.new('size_t[1]', #text)
    local room = ffi.new('char[?]', ROOM)
    local to, free = ffi.new('char *[1]'), ffi.new('size_t[1]')
    local parts = {}
    while left[0] > 0 do
        to[0], free[0] = room, ROOM
        local result = ffi.C.iconv(converter, from, left, to, free)
        local code = ffi.errno()
        parts[#parts + 1] = ffi.string(room, ROOM - tonumber(free[0]))
        if result == FAILED and code ~= errno.E2BIG then
            -- The next text begins anew.
            ffi.C.iconv(converter, nil, nil, nil, nil)
            if code == errno.EINVAL then
                error('Invalid multibyte sequence', 2)
            elseif code == errno.EILSEQ then
                error('Incomplete multibyte sequence', 2)
            end
            error('Unknown conversion error: ' .. errno.strerror(code), 2)
        end
    end
    return table.concat(parts)
end

ffi.metatype('struct iconv', {
    __call = convert,
    __tostring = function(converter)
        return ('iconv: %p'):format(converter)
    end,
})

local iconv = {}

function iconv.new(to, from)
    if type(to) ~= 'string' or type(from) ~= 'string' then
        error('Usage: iconv.new("CP1251", "KOI8-R")', 2)
    end
    local converter = ffi.C.iconv_open(to, from)
    if ffi.cast('size_t', converter) == FAILED then
        error('iconv: ' .. errno.strerror(ffi.errno()), 2)
    end
    return ffi.gc(converter, ffi.C.iconv_close)
end

return iconv
