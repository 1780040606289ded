//! Calls in a `return` of a program's own code, as the tail calls that they are in Tarantool.
//!
//! LuaJIT is built without them, for the sake of Redis' scripts (`.cargo/config.toml`): it compiles
//! `return f(x)` as a call whose results are returned. In the dump of a chunk (`lj_bcdump.h`) they
//! are changed in place, so that no instruction moves and lines stay right:
//!
//! ```text
//!   CALL A 0 C            CALLT A C
//!   RETM A 0              RETM, which is not reached
//!
//!   CALL A 0 C            MOV A A, which changes nothing
//!   UCLO -> end           UCLO -> end
//!   end: RETM A 0         end: CALLT A C
//! ```
//!
//! `CALLM` becomes `CALLMT` alike. No other source compiles to these instructions.

use crate::stack::{State, check_bytes, own, push_bytes};
use std::ffi::c_int;

/// Opcodes of this version of the format (`lj_bc.h`).
const VERSION: u8 = 2;
const MOV: u8 = 18;
const UCLO: u8 = 50;
const CALLM: u8 = 65;
const CALL: u8 = 66;
const CALLMT: u8 = 67;
const CALLT: u8 = 68;
const RETM: u8 = 73;

/// A jump's distance is stored with this added.
const JUMP_BIAS: i64 = 0x8000;

/// Flags of the format: the other order of bytes, and no lines.
const BIG_ENDIAN: u32 = 1;
const STRIPPED: u32 = 2;

/// Takes a number of 32 bits in ULEB128 from `at` on.
fn number(dump: &[u8], at: &mut usize) -> Option<u32> {
    let mut number = 0_u32;
    for shift in (0..u32::BITS).step_by(7) {
        let byte = *dump.get(*at)?;
        *at += 1;
        number |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Changes the calls of a dump; whether there was one. `None` if the dump is not understood.
fn change(dump: &mut [u8]) -> Option<bool> {
    if !dump.starts_with(b"\x1bLJ") || *dump.get(3)? != VERSION {
        return None;
    }
    let mut at = 4;
    let flags = number(dump, &mut at)?;
    if flags & BIG_ENDIAN != 0 {
        return None;
    }
    let is_stripped = flags & STRIPPED != 0;
    if !is_stripped {
        let name_bytes = number(dump, &mut at)? as usize;
        at = at.checked_add(name_bytes)?;
    }
    let mut has_changed = false;
    loop {
        let length = number(dump, &mut at)? as usize;
        if length == 0 {
            return Some(has_changed);
        }
        let function = dump.get_mut(at..at.checked_add(length)?)?;
        has_changed |= change_function(function, is_stripped)?;
        at += length;
    }
}

fn change_function(function: &mut [u8], is_stripped: bool) -> Option<bool> {
    // Flags, parameters, slots and upvalues.
    let mut at = 4;
    let (_constants, _numbers) = (number(function, &mut at)?, number(function, &mut at)?);
    let instructions = number(function, &mut at)? as usize;
    if !is_stripped && number(function, &mut at)? != 0 {
        let (_first_line, _lines) = (number(function, &mut at)?, number(function, &mut at)?);
    }
    let code = function.get_mut(at..at.checked_add(instructions.checked_mul(4)?)?)?;
    let (code, _) = code.as_chunks_mut::<4>();
    let mut has_changed = false;
    for place in 0..code.len() {
        let [opcode, base, arguments, 0] = code[place] else { continue };
        let tail = match opcode {
            CALL => [CALLT, base, arguments, 0],
            CALLM => [CALLMT, base, arguments, 0],
            _ => continue,
        };
        match code.get(place + 1) {
            Some([RETM, _, 0, 0]) => code[place] = tail,
            Some(&[UCLO, _, low, high]) => {
                let distance = i64::from(u16::from_le_bytes([low, high])) - JUMP_BIAS;
                let end = usize::try_from(place as i64 + 2 + distance).ok()?;
                let Some([RETM, _, 0, 0]) = code.get(end) else { continue };
                code[end] = tail;
                code[place] = [MOV, base, base, 0];
            }
            _ => continue,
        }
        has_changed = true;
    }
    Some(has_changed)
}

/// `with_tail_calls(dump)`: the dump with tail calls, or nil if it has none.
pub(crate) unsafe extern "C-unwind" fn with_tail_calls(state: State) -> c_int {
    // SAFETY: As for `stack`; Lua owns the copy.
    unsafe {
        let dump = check_bytes(state, 1);
        let copy = &mut *own::<Vec<u8>>(state);
        copy.extend_from_slice(dump);
        if change(copy) != Some(true) {
            return 0;
        }
        push_bytes(state, copy);
        1
    }
}
