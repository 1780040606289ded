//! `decimal`: numbers of 38 digits, as a cdata with operators.

mod functions;
mod value;

use crate::cdata::{self, Integer, Type};
use crate::stack::{Function, State, bytes, never, push_bytes, push_functions, raise, run_chunk};
use mlua::ffi::*;
use std::cmp::Ordering;
use std::ffi::{CStr, c_int};
use std::io::Write as _;
use value::{Decimal, Failed};

/// The payload of the cdata: `struct ladon_decimal` of `lua/types.lua`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Stored {
    low: u64,
    high: u64,
    exponent: i32,
    negative: i32,
}

/// Bytes of a decimal in MessagePack, at most: a scale of two bytes, 38 digits and the sign.
pub const PAYLOAD_BYTES_MAX: usize = 24;

/// The decimal at `index`, whose type the caller has looked at.
pub(crate) unsafe fn at(state: State, index: c_int) -> Decimal {
    // SAFETY: As for `stack`; the payload is a `Stored`. A program may have written to it by the
    // FFI, so what is no decimal becomes zero.
    let stored = unsafe { lua_topointer(state, index).cast::<Stored>().read() };
    let coefficient = u128::from(stored.high) << 64 | u128::from(stored.low);
    let exponent = stored.exponent;
    let sound = coefficient < 10_u128.pow(value::DIGITS_MAX)
        && (-value::SCALE_MAX..value::DIGITS_MAX as i32).contains(&exponent);
    if sound {
        Decimal { coefficient, exponent, negative: stored.negative != 0 }
    } else {
        Decimal::ZERO
    }
}

unsafe fn push(state: State, value: Decimal) {
    // SAFETY: As for `stack`; the new cdata has room for a `Stored`.
    unsafe {
        cdata::push_new(state, Type::Decimal).cast::<Stored>().write(Stored {
            low: value.coefficient as u64,
            high: (value.coefficient >> 64) as u64,
            exponent: value.exponent,
            negative: value.negative.into(),
        });
    }
}

/// The decimal at `index` as the payload of MessagePack's extension 1: its scale as an integer, then
/// its digits, two a byte, with the sign (`c` or `d`) in the last half. `None` if there is none.
///
/// # Safety
/// The state has to be live, with the types of [`crate::preload`], and the index valid.
pub unsafe fn decimal_to_payload(
    state: *mut lua_State,
    index: c_int,
    payload: &mut [u8; PAYLOAD_BYTES_MAX],
) -> Option<usize> {
    // SAFETY: As promised.
    let value = unsafe {
        cdata::payload(state, index, Type::Decimal)?;
        at(state, index)
    };
    let zeros = if value.is_zero() { 0 } else { value.exponent.max(0) as u32 };
    let mut digits = value.coefficient * 10_u128.pow(zeros);
    payload[0] = value.scale() as u8;
    let length = value::digits_of_u128(digits) as usize / 2 + 1;
    let mut low = if value.negative { 0x0d } else { 0x0c };
    for byte in payload[1..=length].iter_mut().rev() {
        let high = (digits % 10) as u8;
        *byte = high << 4 | low;
        low = (digits / 10 % 10) as u8;
        digits /= 100;
    }
    Some(length + 1)
}

/// Pushes the decimal that a payload of MessagePack's extension 1 means; pushes nothing and answers
/// `false` if it means none.
///
/// # Safety
/// The state has to be live, with the types of [`crate::preload`]. May raise an error of Lua.
pub unsafe fn push_decimal_payload(state: *mut lua_State, payload: &[u8]) -> bool {
    let Some(value) = from_payload(payload) else { return false };
    // SAFETY: As promised.
    unsafe { push(state, value) };
    true
}

fn from_payload(payload: &[u8]) -> Option<Decimal> {
    let (scale, digits) = match *payload {
        [scale @ 0..=0x7f, ref rest @ ..] => (i32::from(scale), rest),
        [scale @ 0xe0..=0xff, ref rest @ ..] => (i32::from(scale as i8), rest),
        [0xcc, scale, ref rest @ ..] => (i32::from(scale), rest),
        [0xd0, scale, ref rest @ ..] => (i32::from(scale as i8), rest),
        _ => return None,
    };
    let (last, before) = digits.split_last()?;
    let negative = match last & 15 {
        0x0a | 0x0c | 0x0e | 0x0f => false,
        0x0b | 0x0d => true,
        _ => return None,
    };
    let halves = before.iter().flat_map(|byte| [byte >> 4, byte & 15]).chain([last >> 4]);
    let mut coefficient = 0_u128;
    for digit in halves {
        if digit > 9 {
            return None;
        }
        coefficient = coefficient.checked_mul(10)?.checked_add(digit.into())?;
    }
    let value = Decimal { coefficient, exponent: -scale, negative };
    let number = num_bigint::BigUint::from(coefficient);
    let rounded = Decimal::rounded(negative, &number, (-scale).into()).ok()?;
    (rounded.coefficient == value.coefficient).then_some(rounded)
}

/// The argument at `index` as a decimal: one, a number, a 64-bit integer, or a text.
unsafe fn argument(state: State, index: c_int) -> Decimal {
    let mut room = [0_u8; 64];
    // SAFETY: As for `stack`; nothing here has to be dropped.
    unsafe {
        let parsed = match lua_type(state, index) {
            LUA_TNUMBER => number(lua_tonumber(state, index), &mut room),
            LUA_TSTRING => bytes(state, index).and_then(Decimal::parse),
            cdata::LUA_TCDATA => match cdata::look(state, cdata::types(state), index) {
                Some((Type::Decimal, _)) => Some(at(state, index)),
                Some((Type::Float, payload)) => {
                    number(payload.cast::<f32>().read().into(), &mut room)
                }
                Some((Type::Double, payload)) => number(payload.cast::<f64>().read(), &mut room),
                _ => match cdata::integer(state, index) {
                    Some(integer) => Some(from_integer(integer)),
                    None => wrong_type(state, index),
                },
            },
            _ => wrong_type(state, index),
        };
        match parsed {
            Some(value) => value,
            None => never(luaL_error(
                state,
                c"incorrect value to convert to decimal as %d argument".as_ptr(),
                index,
            )),
        }
    }
}

unsafe fn wrong_type(state: State, index: c_int) -> ! {
    // SAFETY: As for `stack`.
    unsafe {
        never(luaL_error(
            state,
            c"expected decimal, number or string as %d argument".as_ptr(),
            index,
        ))
    }
}

/// A double has 15 digits that are its own.
fn number(value: f64, room: &mut [u8; 64]) -> Option<Decimal> {
    let length = crate::numbers::write_double(value, 15, room);
    Decimal::parse(&room[..length])
}

fn from_integer(integer: Integer) -> Decimal {
    let (size, negative) = match integer {
        Integer::Signed(value) => (value.unsigned_abs(), value < 0),
        Integer::Unsigned(value) => (value, false),
    };
    Decimal { coefficient: size.into(), exponent: 0, negative }
}

unsafe fn answer(state: State, result: Result<Decimal, Failed>) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        match result {
            Ok(value) => {
                push(state, value);
                1
            }
            Err(Failed) => raise(state, b"decimal operation failed"),
        }
    }
}

unsafe fn need(state: State, least: c_int, usage: &CStr) {
    // SAFETY: As for `stack`.
    unsafe {
        if lua_gettop(state) < least {
            never(luaL_error(state, c"usage: decimal.%s".as_ptr(), usage.as_ptr()));
        }
    }
}

/// Defines functions of one argument.
macro_rules! unary {
    ($($name:ident, $usage:expr, $operation:expr;)*) => { $(
        unsafe extern "C-unwind" fn $name(state: State) -> c_int {
            // SAFETY: As for `stack`; nothing here has to be dropped.
            unsafe {
                need(state, 1, $usage);
                let operation: fn(Decimal) -> Result<Decimal, Failed> = $operation;
                let value = argument(state, 1);
                answer(state, operation(value))
            }
        }
    )* };
}

unary! {
    new, c"new(value)", Ok;
    abs, c"abs(decimal)", |value| Ok(value.abs());
    exp, c"exp(decimal)", Decimal::exp;
    ln, c"ln(decimal)", Decimal::ln;
    log10, c"log10(decimal)", Decimal::log10;
    sqrt, c"sqrt(decimal)", Decimal::sqrt;
    negate, c"minus(decimal)", |value| Ok(value.negated());
}

/// Defines operators.
macro_rules! binary {
    ($($name:ident, $operation:expr;)*) => { $(
        unsafe extern "C-unwind" fn $name(state: State) -> c_int {
            // SAFETY: As for `stack`; nothing here has to be dropped.
            unsafe {
                let (left, right) = (argument(state, 1), argument(state, 2));
                answer(state, $operation(left, right))
            }
        }
    )* };
}

binary! {
    add, Decimal::add;
    subtract, Decimal::subtract;
    multiply, Decimal::multiply;
    divide, Decimal::divide;
    power, Decimal::power;
    remainder, Decimal::remainder;
}

unsafe fn is_nothing(state: State, index: c_int) -> bool {
    // SAFETY: As for `stack`.
    unsafe { lua_type(state, index) == LUA_TNIL || cdata::is_null(state, index) }
}

unsafe extern "C-unwind" fn equal(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let equal = if is_nothing(state, 1) || is_nothing(state, 2) {
            false
        } else {
            argument(state, 1).compare(argument(state, 2)) == Ordering::Equal
        };
        lua_pushboolean(state, equal.into());
        1
    }
}

unsafe fn compared(state: State) -> Ordering {
    // SAFETY: As for `stack`.
    unsafe {
        if is_nothing(state, 1) || is_nothing(state, 2) {
            raise(state, b"attempt to compare decimal with nil");
        }
        argument(state, 1).compare(argument(state, 2))
    }
}

unsafe extern "C-unwind" fn less(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        lua_pushboolean(state, (compared(state) == Ordering::Less).into());
        1
    }
}

unsafe extern "C-unwind" fn less_or_equal(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        lua_pushboolean(state, (compared(state) != Ordering::Greater).into());
        1
    }
}

/// The argument at 1, which has to be a decimal.
unsafe fn check(state: State) -> Decimal {
    // SAFETY: As for `stack`.
    unsafe {
        if lua_type(state, 1) != cdata::LUA_TCDATA {
            raise(state, b"expected cdata as 1 argument");
        }
        if cdata::payload(state, 1, Type::Decimal).is_none() {
            raise(state, b"expected decimal as 1 argument");
        }
        at(state, 1)
    }
}

unsafe extern "C-unwind" fn is_decimal(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        need(state, 1, c"is_decimal(value)");
        let is_one = cdata::payload(state, 1, Type::Decimal).is_some();
        lua_pushboolean(state, is_one.into());
        1
    }
}

unsafe extern "C-unwind" fn precision(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        need(state, 1, c"precision(decimal)");
        lua_pushnumber(state, check(state).precision().into());
        1
    }
}

unsafe extern "C-unwind" fn scale(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        need(state, 1, c"scale(decimal)");
        lua_pushnumber(state, check(state).scale().into());
        1
    }
}

unsafe extern "C-unwind" fn trim(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        need(state, 1, c"trim(decimal)");
        let value = check(state);
        answer(state, Ok(value.trim()))
    }
}

unsafe extern "C-unwind" fn round(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        need(state, 2, c"round(decimal, scale)");
        let value = check(state);
        answer(state, Ok(value.round(lua_tonumber(state, 2) as i32)))
    }
}

unsafe extern "C-unwind" fn rescale(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        need(state, 2, c"rescale(decimal, scale)");
        let value = check(state);
        answer(state, Ok(value.rescale(lua_tonumber(state, 2) as i32)))
    }
}

unsafe extern "C-unwind" fn to_string(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let mut room = [0_u8; 96];
        let mut rest = &mut room[..];
        write!(rest, "{}", check(state)).expect("38 digits, 38 zeros and two signs fit");
        let length = 96 - rest.len();
        push_bytes(state, &room[..length]);
        1
    }
}

const FUNCTIONS: &[(&CStr, Function)] = &[
    (c"new", new),
    (c"abs", abs),
    (c"exp", exp),
    (c"ln", ln),
    (c"log10", log10),
    (c"sqrt", sqrt),
    (c"is_decimal", is_decimal),
    (c"precision", precision),
    (c"scale", scale),
    (c"trim", trim),
    (c"round", round),
    (c"rescale", rescale),
    (c"minus", negate),
    (c"add", add),
    (c"subtract", subtract),
    (c"multiply", multiply),
    (c"divide", divide),
    (c"power", power),
    (c"remainder", remainder),
    (c"equal", equal),
    (c"less", less),
    (c"less_or_equal", less_or_equal),
    (c"tostring", to_string),
];

/// Pushes the module.
pub(crate) unsafe fn open(state: State) {
    // SAFETY: As for `stack`.
    unsafe {
        push_functions(state, FUNCTIONS);
        run_chunk(state, include_str!("../lua/decimal.lua"), c"@builtin/decimal.lua");
    }
}
