//! The sums of `digest` that are no cryptography: CRC-32C, MurmurHash3, and Guava's consistent hash.

use crate::cdata::{self, Integer};
use crate::stack::{Function, State, check_bytes, own, owned, raise};
use mlua::ffi::*;
use std::ffi::{CStr, c_int};

pub(crate) const FUNCTIONS: &[(&CStr, Function)] = &[
    (c"crc32", crc32),
    (c"murmur_new", murmur_new),
    (c"murmur_copy", murmur_copy),
    (c"murmur_update", murmur_update),
    (c"murmur_result", murmur_result),
    (c"guava", guava),
];

/// Castagnoli's polynomial, reflected.
const CRC_POLYNOMIAL: u32 = 0x82f6_3b78;

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ CRC_POLYNOMIAL } else { value >> 1 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
};

/// `crc32(sum so far, text) -> sum`, without the usual inversions.
unsafe extern "C-unwind" fn crc32(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let sum = lua_tonumber(state, 1) as u32;
        let sum = check_bytes(state, 2)
            .iter()
            .fold(sum, |sum, byte| sum >> 8 ^ CRC_TABLE[usize::from(sum as u8 ^ byte)]);
        lua_pushnumber(state, sum.into());
        1
    }
}

/// MurmurHash3 of 32 bits (<https://github.com/aappleby/smhasher>), fed in parts.
#[derive(Clone, Copy, Default)]
struct Murmur {
    hash: u32,
    length: u32,
    tail: [u8; 4],
    tail_length: usize,
}

impl Murmur {
    fn scramble(block: u32) -> u32 {
        block.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
    }

    fn update(&mut self, bytes: &[u8]) {
        self.length = self.length.wrapping_add(bytes.len() as u32);
        for byte in bytes {
            self.tail[self.tail_length] = *byte;
            self.tail_length += 1;
            if self.tail_length == 4 {
                let block = Self::scramble(u32::from_le_bytes(self.tail));
                let mixed = (self.hash ^ block).rotate_left(13);
                self.hash = mixed.wrapping_mul(5).wrapping_add(0xe654_6b64);
                (self.tail, self.tail_length) = ([0; 4], 0);
            }
        }
    }

    fn result(&self) -> u32 {
        let mut hash = self.hash;
        if self.tail_length > 0 {
            hash ^= Self::scramble(u32::from_le_bytes(self.tail));
        }
        hash ^= self.length;
        hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
        hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
        hash ^ hash >> 16
    }
}

unsafe fn murmur<'a>(state: State) -> &'a mut Murmur {
    // SAFETY: As for `stack`; the userdata is an argument, and so stays.
    unsafe {
        match owned::<Murmur>(state, 1) {
            Some(murmur) => &mut *murmur,
            None => raise(state, b"digest.murmur: wrong object"),
        }
    }
}

/// `murmur_new(seed) -> object`.
unsafe extern "C-unwind" fn murmur_new(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let hash = lua_tonumber(state, 1) as i64 as u32;
        (*own::<Murmur>(state)).hash = hash;
        1
    }
}

unsafe extern "C-unwind" fn murmur_copy(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let copied = *murmur(state);
        *own::<Murmur>(state) = copied;
        1
    }
}

/// `murmur_update(object, text)`.
unsafe extern "C-unwind" fn murmur_update(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let bytes = check_bytes(state, 2);
        murmur(state).update(bytes);
        0
    }
}

unsafe extern "C-unwind" fn murmur_result(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let result = murmur(state).result();
        lua_pushnumber(state, result.into());
        1
    }
}

/// `guava(key, buckets) -> bucket`: Guava's `consistentHash`. Each turn raises the candidate, so
/// there are some `ln(buckets)` of them.
unsafe extern "C-unwind" fn guava(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let mut key = match cdata::integer(state, 1) {
            Some(Integer::Signed(value)) => value as u64,
            Some(Integer::Unsigned(value)) => value,
            None if lua_type(state, 1) == LUA_TNUMBER => lua_tonumber(state, 1) as i64 as u64,
            None => raise(state, b"bad argument #1 to 'guava' (an integer expected)"),
        };
        if lua_type(state, 2) != LUA_TNUMBER {
            raise(state, b"bad argument #2 to 'guava' (a number expected)");
        }
        let buckets = lua_tonumber(state, 2) as i32;
        let mut candidate = 0_i32;
        loop {
            key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
            let fraction = ((key >> 33) as i32).wrapping_add(1) as f64 / 2_147_483_648.0;
            let next = (f64::from(candidate) + 1.0) / fraction;
            if next < 0.0 || next >= f64::from(buckets) {
                break;
            }
            candidate = next as i32;
        }
        lua_pushnumber(state, candidate.into());
        1
    }
}
