//! Tarantool's extensions as text: decimals, UUIDs, datetimes and intervals.
//!
//! Source: Tarantool 2.11's documentation, "MessagePack extensions" and "Module datetime".

use crate::decimal::Decimal;
use crate::field_type::extension;
use ladon_msgpack::{self as msgpack, Value};
use std::fmt::Write;

/// Positions of the hyphens in a UUID's text.
pub(crate) const HYPHENS: [usize; 4] = [8, 13, 18, 23];

const SECONDS_PER_DAY: i64 = 24 * 60 * 60;

/// Appends an extension; false if it is none that is known, or its bytes are damaged.
pub(super) fn write(out: &mut String, kind: i8, bytes: &[u8]) -> bool {
    let text = match kind {
        extension::DECIMAL => Decimal::unpack(bytes).map(|decimal| decimal.to_string()),
        extension::UUID => uuid(bytes),
        extension::DATETIME => datetime(bytes),
        extension::INTERVAL => interval(bytes),
        _ => None,
    };
    text.map(|text| out.push_str(&text)).is_some()
}

/// The text of a UUID's bytes.
pub fn uuid_text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(36);
    for byte in bytes {
        if HYPHENS.contains(&out.len()) {
            out.push('-');
        }
        for half in [byte >> 4, byte & 0x0f] {
            out.extend(char::from_digit(half.into(), 16));
        }
    }
    out
}

fn uuid(bytes: &[u8]) -> Option<String> {
    (bytes.len() == 16).then(|| uuid_text(bytes))
}

/// Seconds since 1970, and perhaps nanoseconds, minutes that local time is ahead, and the number of
/// a time zone, all from the lowest byte on. The zone is shown by its minutes.
fn datetime(bytes: &[u8]) -> Option<String> {
    let (seconds, tail) = bytes.split_first_chunk()?;
    let (nanoseconds, minutes) = match tail {
        [] => (0, 0),
        [n0, n1, n2, n3, m0, m1, _, _] => {
            (u32::from_le_bytes([*n0, *n1, *n2, *n3]), i16::from_le_bytes([*m0, *m1]))
        }
        _ => return None,
    };
    let local = i64::from_le_bytes(*seconds).checked_add(i64::from(minutes) * 60)?;
    let (days, of_day) = (local.div_euclid(SECONDS_PER_DAY), local.rem_euclid(SECONDS_PER_DAY));
    let (year, month, day) = date(days)?;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let mut out = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    // Writing to a `String` does not fail.
    let _ = match nanoseconds {
        0 => Ok(()),
        it if it % 1_000_000 == 0 => write!(out, ".{:03}", it / 1_000_000),
        it if it % 1000 == 0 => write!(out, ".{:06}", it / 1000),
        it => write!(out, ".{it:09}"),
    };
    let sign = if minutes < 0 { '-' } else { '+' };
    let _ = match minutes.unsigned_abs() {
        0 => write!(out, "Z"),
        it => write!(out, "{sign}{:02}{:02}", it / 60, it % 60),
    };
    Some(out)
}

/// Year, month and day in the Gregorian calendar of a number of days since 1970; `None` if it is
/// beyond what Tarantool has.
fn date(days: i64) -> Option<(i64, i64, i64)> {
    i32::try_from(days).ok()?;
    // Years begin in March here, so that the day that may be missing is the last.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    Some((year_of_era + era * 400 + i64::from(month <= 2), month, day))
}

/// The number of fields, and of each its number and value.
fn interval(bytes: &[u8]) -> Option<String> {
    const UNITS: [&str; 8] =
        ["years", "months", "weeks", "days", "hours", "minutes", "seconds", "nanoseconds"];
    const SECONDS: usize = 6;
    const ADJUST: u8 = 8;
    let (count, mut rest) = bytes.split_first()?;
    let mut values = [0i128; 8];
    for _ in 0..*count {
        let (field, after) = rest.split_first()?;
        rest = after;
        let value = match msgpack::read(&mut rest).ok()? {
            Value::Uint(value) => i128::from(value),
            Value::Int(value) => i128::from(value),
            _ => return None,
        };
        if *field != ADJUST {
            *values.get_mut(usize::from(*field))? = value;
        }
    }
    if !rest.is_empty() {
        return None;
    }
    let mut out = String::new();
    for (at, unit) in UNITS.iter().enumerate() {
        let value = values[at];
        let _ = match (value, out.is_empty()) {
            (0, false) => Ok(()),
            (0, true) if at != SECONDS => Ok(()),
            (_, true) => write!(out, "{value:+} {unit}"),
            (_, false) => write!(out, ", {value} {unit}"),
        };
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: i8, bytes: &[u8]) -> String {
        let mut out = String::new();
        if write(&mut out, kind, bytes) { out } else { "damaged".to_owned() }
    }

    #[test]
    fn extensions_look_as_in_tarantools_messages() {
        let datetime = |seconds: i64, nanoseconds: u32, minutes: i16| {
            let tail = [&nanoseconds.to_le_bytes()[..], &minutes.to_le_bytes(), &[0, 0]].concat();
            shown(4, &[&seconds.to_le_bytes()[..], &tail].concat())
        };
        assert_eq!(shown(4, &[0; 8]), "1970-01-01T00:00:00Z");
        assert_eq!(datetime(1_630_357_200, 0, 180), "2021-08-31T00:00:00+0300");
        assert_eq!(datetime(951_782_400, 123_000_000, 0), "2000-02-29T00:00:00.123Z");
        assert_eq!(datetime(951_868_799, 123_456_000, 0), "2000-02-29T23:59:59.123456Z");
        assert_eq!(datetime(-1, 1, -90), "1969-12-31T22:29:59.000000001-0130");
        assert_eq!(datetime(-62_167_219_200, 0, 0), "0000-01-01T00:00:00Z");
        assert_eq!(datetime(-62_198_755_200, 0, 0), "-001-01-01T00:00:00Z");
        assert_eq!(datetime(i64::MAX, 0, 0), "damaged");
        assert_eq!(shown(4, &[0; 9]), "damaged");
        let id = u128::to_be_bytes(0x1234_5678_9abc_def0_1122_3344_5566_7788);
        assert_eq!(shown(2, &id), "12345678-9abc-def0-1122-334455667788");
        assert_eq!(shown(1, &[0x01, 0x01, 0x5c]), "1.5");
        assert_eq!(shown(6, &[0]), "+0 seconds");
        assert_eq!(
            shown(6, &[3, 0, 1, 3, 0xcc, 200, 5, 0xd0, 0xb3]),
            "+1 years, 200 days, -77 minutes"
        );
        assert_eq!(shown(6, &[2, 1, 0xff, 8, 1]), "-1 months");
        assert_eq!(shown(6, &[1, 7, 5]), "+0 seconds, 5 nanoseconds");
        for damaged in [&[][..], &[1], &[1, 9, 1], &[1, 0, 0xc0], &[0, 0]] {
            assert_eq!(shown(6, damaged), "damaged");
        }
        assert_eq!(shown(9, &[0]), "damaged");
    }
}
