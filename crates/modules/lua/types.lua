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
struct datetime {
    double epoch;
    int32_t nsec;
    int16_t tzoffset;
    int16_t tzindex;
};
struct interval {
    double sec;
    double min;
    double hour;
    double day;
    int32_t week;
    int32_t month;
    int32_t year;
    int32_t nsec;
    int32_t adjust;
};
]])

return {
    ffi.typeof('bool'), ffi.typeof('int8_t'), ffi.typeof('uint8_t'), ffi.typeof('int16_t'),
    ffi.typeof('uint16_t'), ffi.typeof('int32_t'), ffi.typeof('uint32_t'), ffi.typeof('int64_t'),
    ffi.typeof('uint64_t'), ffi.typeof('float'), ffi.typeof('double'), ffi.typeof('void *'),
    ffi.typeof('const char *'), ffi.typeof('char *'), ffi.typeof('struct tt_uuid'),
    ffi.typeof('ladon_decimal'), ffi.typeof('char'), ffi.typeof('struct datetime'),
    ffi.typeof('struct interval'),
}, ffi.typeof, ffi.cast('void *', 0)
