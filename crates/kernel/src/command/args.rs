//! Reading arguments.

use crate::command::error::CommandError;
use ladon_resp::{LongDouble, parse_i64};
use std::ops::RangeBounds;

/// A 64-bit integer.
pub fn integer(bytes: &[u8]) -> Result<i64, CommandError> {
    parse_i64(bytes).ok_or(CommandError::NotInteger)
}

/// An integer within bounds; `ERR value is out of range` (with the bounds, as Redis) otherwise.
pub fn integer_in(bytes: &[u8], low: i64, high: i64) -> Result<i64, CommandError> {
    let value = integer(bytes)?;
    if value < low || value > high {
        return Err(match low {
            0 if high == i64::MAX => {
                CommandError::text("ERR value is out of range, must be positive")
            }
            _ => CommandError::OutOfRange,
        });
    }
    Ok(value)
}

/// An integer within two bounds, which the error names.
pub fn integer_between(bytes: &[u8], low: i64, high: i64) -> Result<i64, CommandError> {
    let value = integer(bytes)?;
    if (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(CommandError::err(format_args!(
        "value is out of range, value must between {low} and {high}"
    )))
}

/// The time (Unix milliseconds) at which this many milliseconds from now are over; `None` for zero,
/// which means never.
pub fn timeout(bytes: &[u8], now_ms: u64) -> Result<Option<u64>, CommandError> {
    const INVALID: CommandError =
        CommandError::text("ERR timeout is not an integer or out of range");
    let timeout_ms = parse_i64(bytes).ok_or(INVALID)?;
    let timeout_ms =
        u64::try_from(timeout_ms).map_err(|_| CommandError::text("ERR timeout is negative"))?;
    let until_ms = now_ms.saturating_add(timeout_ms);
    if until_ms > i64::MAX as u64 {
        return Err(CommandError::text("ERR timeout is out of range"));
    }
    Ok((timeout_ms != 0).then_some(until_ms))
}

/// As `timeout`, of seconds that need not be whole.
pub fn timeout_seconds(bytes: &[u8], now_ms: u64) -> Result<Option<u64>, CommandError> {
    const INVALID: CommandError = CommandError::text("ERR timeout is not a float or out of range");
    const RANGE: CommandError = CommandError::text("ERR timeout is out of range");
    let seconds = LongDouble::parse(bytes).ok_or(INVALID)?;
    let timeout_ms = seconds.ceil_thousandfold().ok_or(RANGE)?;
    let timeout_ms =
        u64::try_from(timeout_ms).map_err(|_| CommandError::text("ERR timeout is negative"))?;
    let until_ms = now_ms.saturating_add(timeout_ms);
    if until_ms > i64::MAX as u64 {
        return Err(RANGE);
    }
    Ok((timeout_ms != 0).then_some(until_ms))
}

/// An integer within `bounds`; everything else gets the same error `text`.
pub fn integer_or(
    bytes: &[u8],
    bounds: impl RangeBounds<i64>,
    text: &'static str,
) -> Result<i64, CommandError> {
    parse_i64(bytes).filter(|value| bounds.contains(value)).ok_or(CommandError::text(text))
}

/// A count that is not negative.
pub fn positive(bytes: &[u8]) -> Result<i64, CommandError> {
    integer_or(bytes, 0.., "ERR value is out of range, must be positive")
}

/// A scan's cursor.
pub fn cursor(bytes: &[u8]) -> Result<u64, CommandError> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.starts_with('+'));
    text.and_then(|text| text.parse().ok()).ok_or(CommandError::text("ERR invalid cursor"))
}

/// A 32-bit integer.
pub fn int32(bytes: &[u8]) -> Option<i32> {
    parse_i64(bytes).and_then(|value| value.try_into().ok())
}

/// Whether the argument is this word, whatever its case.
#[inline]
pub fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}
