//! A date and time as text: `2024-02-29T23:59:59.5+0100`.
//!
//! ```text
//! [ seconds since 1970: i64 | nanoseconds: i32 | offset in minutes: i16 | time zone: i16 ]
//! ```
//!
//! The second half is left out where it is zero. Source: Tarantool's documentation, "MessagePack
//! extensions".

use std::fmt::Write;

const DAY_SECONDS: i64 = 86_400;

/// The text of an extension's bytes; `None` if they are no date that has one.
pub(super) fn text(bytes: &[u8]) -> Option<String> {
    let (seconds, rest) = bytes.split_first_chunk::<8>()?;
    let (mut nanoseconds, mut offset) = (0, 0);
    if let Some((first, rest)) = rest.split_first_chunk::<4>() {
        nanoseconds = i32::from_le_bytes(*first);
        offset = i64::from(i16::from_le_bytes(*rest.first_chunk()?));
    }
    let local = i64::from_le_bytes(*seconds).checked_add(offset * 60)?;
    let (year, month, day) = date(local.div_euclid(DAY_SECONDS));
    let second = local.rem_euclid(DAY_SECONDS);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let mut out = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    // Writing to a `String` does not fail.
    if nanoseconds != 0 {
        let digits = format!("{nanoseconds:09}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
    if offset == 0 {
        out.push('Z');
    } else {
        let sign = if offset < 0 { '-' } else { '+' };
        let _ = write!(out, "{sign}{:02}{:02}", offset.abs() / 60, offset.abs() % 60);
    }
    Some(out)
}

/// Year, month and day of a day since 1970, in the Gregorian calendar.
fn date(days: i64) -> (i64, i64, i64) {
    // Eras of 400 years, from the first of March of the year 0 on.
    const ERA_DAYS: i64 = 146_097;
    const EPOCH_DAYS: i64 = 719_468;
    let shifted = days + EPOCH_DAYS;
    let (era, of_era) = (shifted.div_euclid(ERA_DAYS), shifted.rem_euclid(ERA_DAYS));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}
