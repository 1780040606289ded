//! Numbers as text.

use std::ffi::c_char;

/// Significant digits of a number, where an option asks for none that can be had.
const DIGITS_DEFAULT: i32 = 14;

/// Writes a number with so many significant digits (C's `%g`), `inf`, `-inf` or `nan`; returns the
/// length.
pub(crate) fn write_double(number: f64, digits: i32, room: &mut [u8; 64]) -> usize {
    let special: Option<&[u8]> = match number {
        _ if number.is_nan() => Some(b"nan"),
        f64::INFINITY => Some(b"inf"),
        f64::NEG_INFINITY => Some(b"-inf"),
        _ => None,
    };
    if let Some(text) = special {
        room[..text.len()].copy_from_slice(text);
        return text.len();
    }
    let digits = if (1..=16).contains(&digits) { digits } else { DIGITS_DEFAULT };
    // SAFETY: The length is given; 16 digits, a sign, a point and an exponent fit.
    let length = unsafe {
        libc::snprintf(room.as_mut_ptr().cast::<c_char>(), 64, c"%.*g".as_ptr(), digits, number)
    };
    usize::try_from(length).expect("a number can be printed").min(63)
}

/// The number that a text of digits, a point and an exponent is, as C's `strtod` reads it. Infinite
/// beyond the greatest.
pub(crate) fn read_double(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
