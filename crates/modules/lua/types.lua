-- The C types of values that Rust and Lua share. Run once per state; returns a type or a value for
-- each name that src/cdata.rs asks for.
local ffi = require('ffi')

ffi.cdef([[
struct tt_uuid {
    uint32_t time_low;
    uint16_t time_mid;
    uint16_t time_hi_and_version;
    uint8_t clock_seq_hi_and_reserved;
    uint8_t clock_seq_low;
    uint8_t node[6];
};
typedef struct {
    uint64_t low;
    uint64_t high;
    int32_t exponent;
    int32_t negative;
} ladon_decimal;
]])

return {
    ffi.typeof('bool'), ffi.typeof('int8_t'), ffi.typeof('uint8_t'), ffi.typeof('int16_t'),
    ffi.typeof('uint16_t'), ffi.typeof('int32_t'), ffi.typeof('uint32_t'), ffi.typeof('int64_t'),
    ffi.typeof('uint64_t'), ffi.typeof('float'), ffi.typeof('double'), ffi.typeof('void *'),
    ffi.typeof('const char *'), ffi.typeof('char *'), ffi.typeof('struct tt_uuid'),
    ffi.typeof('ladon_decimal'), ffi.typeof('char'),
}, ffi.typeof, ffi.cast('void *', 0)
