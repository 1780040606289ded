//! UUIDs and dates as texts, and lists and maps as values.
//!
//! Source: Tarantool 2.11's documentation, "MessagePack extensions" and "SQL: data types".

use crate::budget::Budget;
use crate::convert::text_of;
use crate::error::{self, Error};
use crate::functions::Around;
use crate::value::Value;
use ladon_msgpack::{self as msgpack, Value as Packed, write};
use ladon_space::{FieldType, extension};

const SECONDS_PER_DAY: i64 = 24 * 60 * 60;

/// A value of an extension.
fn extended(kind: i8, payload: &[u8]) -> Value {
    let mut bytes = Vec::with_capacity(payload.len() + 3);
    write::ext(&mut bytes, kind, payload);
    Value::Raw(bytes.into())
}

/// The UUID of 16 bytes.
pub(crate) fn uuid_of_bytes(bytes: &[u8]) -> Option<Value> {
    (bytes.len() == 16).then(|| extended(extension::UUID, bytes))
}

/// The UUID that a text is: 32 digits with hyphens behind the 8th, 12th, 16th and 20th.
pub(crate) fn parse_uuid(text: &[u8]) -> Option<Value> {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    let is_shaped = text.len() == 36
        && text.iter().enumerate().all(|(at, byte)| match HYPHENS.contains(&at) {
            true => *byte == b'-',
            false => byte.is_ascii_hexdigit(),
        });
    let digits: String = text.iter().filter(|it| **it != b'-').map(|it| char::from(*it)).collect();
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| is_shaped)?;
    uuid_of_bytes(&number.to_be_bytes())
}

/// The bytes of an extension's value.
pub(crate) fn payload(value: &Value, kind: i8) -> Option<&[u8]> {
    let Value::Raw(bytes) = value else { return None };
    match msgpack::read(&mut { &bytes[..] }) {
        Ok(Packed::Ext(found, payload)) if found == kind => Some(payload),
        _ => None,
    }
}

/// `UUID()` and `UUID(4)`: a random one.
pub(crate) fn uuid(arguments: &[Value], around: &Around, _: &Budget) -> Result<Value, Error> {
    const VERSION: i128 = 4;
    /// Odd, so that no two numbers become one: a statement's UUIDs differ in both halves.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    match arguments.first() {
        None | Some(Value::Int(VERSION)) => {}
        Some(Value::Null) => return Err(error::mismatch("NULL", "integer")),
        Some(Value::Int(version)) => {
            let message =
                format!("Function UUID does not support versions other than {VERSION}: {version}");
            return Err(error::make(error::UNSUPPORTED, message));
        }
        Some(other) => return Err(error::mismatch(&other.shown(), "integer")),
    }
    // The version is 4, the variant 2.
    let [high, low] = [around.random, around.random_too ^ around.random.wrapping_mul(SPREAD)];
    let high = high & !0xf000 | 0x4000;
    let low = low & !(0b11 << 62) | 0b10 << 62;
    let number = u128::from(high) << 64 | u128::from(low);
    Ok(extended(extension::UUID, &number.to_be_bytes()))
}

/// `NOW()`: the date and time, in UTC.
pub(crate) fn now(_: &[Value], around: &Around, _: &Budget) -> Result<Value, Error> {
    let (seconds, millis) = (around.now_ms / 1000, around.now_ms % 1000);
    Ok(datetime(seconds as i64, millis as u32 * 1_000_000, 0))
}

/// Days since 1970 of a date in the Gregorian calendar; `None` if there is no such day.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    const LENGTHS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = LENGTHS.get(usize::try_from(month - 1).ok()?)? + i64::from(is_leap && month == 2);
    if !(1..=length).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the day that may be missing is the last.
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Reads so many digits.
fn digits(text: &mut &[u8], count: usize) -> Option<i64> {
    let (found, rest) = text.split_at_checked(count)?;
    *text = rest;
    found.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
    })
}

fn takes(text: &mut &[u8], byte: u8) -> bool {
    let is_it = text.first() == Some(&byte);
    *text = &text[usize::from(is_it)..];
    is_it
}

/// The nanoseconds of `.123`; none without a point.
fn fraction(text: &mut &[u8]) -> Option<i64> {
    if !takes(text, b'.') && !takes(text, b',') {
        return Some(0);
    }
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&count) {
        return None;
    }
    Some(digits(text, count)? * 10i64.pow(9 - count as u32))
}

/// The minutes that local time is ahead: `Z`, `+03`, `+03:00` or `+0300`; 0 if there is nothing.
fn zone(text: &mut &[u8]) -> Option<i64> {
    const MINUTES_MAX: i64 = 14 * 60;
    const MINUTES_MIN: i64 = -12 * 60;
    if text.is_empty() || takes(text, b'Z') {
        return Some(0);
    }
    let sign = if takes(text, b'-') {
        -1
    } else if takes(text, b'+') {
        1
    } else {
        return None;
    };
    let hours = digits(text, 2)?;
    let minutes = match text.is_empty() {
        true => 0,
        false => {
            takes(text, b':');
            digits(text, 2).filter(|minutes| *minutes < 60)?
        }
    };
    let ahead = sign * (hours * 60 + minutes);
    (MINUTES_MIN..=MINUTES_MAX).contains(&ahead).then_some(ahead)
}

/// The date and time that a text is: `2001-01-01T01:02:03.5+0300`, or a date alone.
pub(crate) fn parse_datetime(text: &[u8]) -> Option<Value> {
    let mut text = text;
    let year = digits(&mut text, 4)?;
    let month = takes(&mut text, b'-').then(|| digits(&mut text, 2))??;
    let day = takes(&mut text, b'-').then(|| digits(&mut text, 2))??;
    let (mut second, mut nanoseconds, mut ahead) = (0, 0, 0);
    if !text.is_empty() {
        if !takes(&mut text, b'T') && !takes(&mut text, b't') && !takes(&mut text, b' ') {
            return None;
        }
        let hours = digits(&mut text, 2).filter(|it| *it < 24)?;
        let minutes = takes(&mut text, b':').then(|| digits(&mut text, 2))??;
        let seconds = match takes(&mut text, b':') {
            true => digits(&mut text, 2)?,
            false => 0,
        };
        if minutes > 59 || seconds > 59 {
            return None;
        }
        second = hours * 3600 + minutes * 60 + seconds;
        nanoseconds = fraction(&mut text)?;
        ahead = zone(&mut text).filter(|_| text.is_empty())?;
    }
    let seconds = days(year, month, day)? * SECONDS_PER_DAY + second - ahead * 60;
    Some(datetime(seconds, nanoseconds as u32, ahead as i16))
}

/// Seconds since 1970, nanoseconds, and the minutes that local time is ahead.
fn datetime(seconds: i64, nanoseconds: u32, ahead: i16) -> Value {
    let mut bytes = seconds.to_le_bytes().to_vec();
    if nanoseconds != 0 || ahead != 0 {
        bytes.extend(nanoseconds.to_le_bytes());
        bytes.extend(ahead.to_le_bytes());
        // The number of a time zone.
        bytes.extend([0, 0]);
    }
    extended(extension::DATETIME, &bytes)
}

/// A date in UTC, as equal ones may be of several time zones; any other value as it is.
pub(crate) fn canonical(value: &Value) -> Value {
    let Some(bytes) = payload(value, extension::DATETIME) else { return value.clone() };
    let seconds = bytes.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes));
    datetime(seconds, nanoseconds_of(bytes), 0)
}

fn nanoseconds_of(datetime: &[u8]) -> u32 {
    let bytes = datetime.get(8..12);
    bytes.map_or(0, |it| u32::from_le_bytes([it[0], it[1], it[2], it[3]]))
}

/// `[a, b]`.
pub(crate) fn array(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    let mut bytes = Vec::new();
    write::array(&mut bytes, arguments.len() as u32);
    arguments.iter().for_each(|value| value.pack(&mut bytes));
    limited(bytes)
}

/// `{a: b, c: d}`; of equal keys the last one counts.
pub(crate) fn map(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    let mut pairs: Vec<(&Value, &Value)> = Vec::new();
    for pair in arguments.chunks_exact(2) {
        let (key, value) = (&pair[0], &pair[1]);
        let is_key =
            matches!(key, Value::Int(_) | Value::Str(_)) || payload(key, extension::UUID).is_some();
        if !is_key {
            return Err(error::mismatch(&key.shown(), "integer, string or uuid"));
        }
        pairs.push((key, value));
    }
    let mut places = std::collections::HashMap::new();
    for (at, (key, _)) in pairs.iter().enumerate() {
        let mut bytes = Vec::new();
        key.pack(&mut bytes);
        places.insert(bytes, at);
    }
    let mut last: Vec<usize> = places.into_values().collect();
    last.sort_unstable();
    let mut bytes = Vec::new();
    write::map(&mut bytes, last.len() as u32);
    for at in last {
        pairs[at].0.pack(&mut bytes);
        pairs[at].1.pack(&mut bytes);
    }
    limited(bytes)
}

fn limited(bytes: Vec<u8>) -> Result<Value, Error> {
    if bytes.len() > crate::functions::BYTES_MAX {
        return Err(error::execute("string or blob too big"));
    }
    Ok(Value::Raw(bytes.into()))
}

/// `value[key]`: an item of a list, from 1 on, or of a map; null if there is none.
pub(crate) fn item(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    let (of, key) = (&arguments[0], &arguments[1]);
    let Value::Raw(bytes) = of else {
        return Err(error::execute("Selecting is only possible from map and array values"));
    };
    let mut rest = &bytes[..];
    match msgpack::read(&mut rest)? {
        Packed::Array(count) => {
            let Value::Int(place) = key else { return Ok(Value::Null) };
            if !(1..=i128::from(count)).contains(place) {
                return Ok(Value::Null);
            }
            for _ in 1..*place {
                msgpack::take(&mut rest)?;
            }
            Ok(Value::unpack(msgpack::take(&mut rest)?))
        }
        Packed::Map(count) => {
            for _ in 0..count {
                let found = Value::unpack(msgpack::take(&mut rest)?);
                let value = msgpack::take(&mut rest)?;
                if found.kind() == key.kind() && found.order(key, |a, b| a.cmp(b)).is_eq() {
                    return Ok(Value::unpack(value));
                }
            }
            Ok(Value::Null)
        }
        _ => Err(error::execute("Selecting is only possible from map and array values")),
    }
}

/// The value of an extension that a text or bytes become by CAST.
pub(crate) fn cast(value: &Value, kind: FieldType) -> Option<Value> {
    match (value, kind) {
        (Value::Str(text), FieldType::Uuid) => parse_uuid(text),
        (Value::Bin(bytes), FieldType::Uuid) => uuid_of_bytes(bytes),
        (Value::Str(text), FieldType::Datetime) => parse_datetime(text),
        (Value::Raw(_), _) if value.kind() == Some(kind) => Some(value.clone()),
        _ => None,
    }
}

/// `DATE_PART(part, datetime)`.
pub(crate) fn date_part(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    let (part, moment) = (&arguments[0], &arguments[1]);
    if part.is_null() || moment.is_null() {
        return Ok(Value::Null);
    }
    let Some(bytes) = payload(moment, extension::DATETIME) else {
        return Err(error::mismatch(&moment.shown(), "datetime"));
    };
    let name = String::from_utf8_lossy(&text_of(part)).to_ascii_lowercase();
    // The text has the local time: `YYYY-MM-DDThh:mm:ss`.
    let text = moment.shown();
    let mut rest = text.as_bytes();
    let fields = || -> Option<[i64; 6]> {
        let mut found = [0; 6];
        for (at, field) in found.iter_mut().enumerate() {
            *field = digits(&mut rest, if at == 0 { 4 } else { 2 })?;
            rest = rest.get(1..).unwrap_or_default();
        }
        Some(found)
    };
    let seconds = bytes.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes));
    let tail = |at: usize| bytes.get(at..at + 2).map_or(0, |it| i16::from_le_bytes([it[0], it[1]]));
    let nanoseconds = nanoseconds_of(bytes);
    let ahead = i64::from(tail(12));
    let Some([year, month, day, hour, minute, second]) = { fields }() else {
        return Err(error::unsupported("DATE_PART of years before 0 or after 9999"));
    };
    let local_days = (seconds + ahead * 60).div_euclid(SECONDS_PER_DAY);
    Ok(Value::Int(i128::from(match name.as_str() {
        "millennium" => (year + 999).div_euclid(1000),
        "century" => (year + 99).div_euclid(100),
        "decade" => year.div_euclid(10),
        "year" => year,
        "quarter" => (month + 2) / 3,
        "month" => month,
        "week" => week(local_days, year),
        "day" => day,
        // 1970 began on a Thursday.
        "dow" => (local_days + 4).rem_euclid(7),
        "isodow" => (local_days + 3).rem_euclid(7) + 1,
        "doy" => local_days - days(year, 1, 1).unwrap_or(local_days) + 1,
        "hour" => hour,
        "minute" => minute,
        "second" => second,
        "millisecond" => i64::from(nanoseconds) / 1_000_000,
        "microsecond" => i64::from(nanoseconds) / 1_000,
        "nanosecond" => i64::from(nanoseconds),
        "epoch" => seconds,
        "timezone_offset" => ahead,
        _ => {
            let message = format!("Invalid field name for DATE_PART: '{name}'");
            return Err(error::execute(&message));
        }
    })))
}

/// The number of the week that a day is in, as ISO 8601 counts them: that of its Thursday.
fn week(day: i64, year: i64) -> i64 {
    let thursday = day - (day + 3).rem_euclid(7) + 3;
    let first = |year| days(year, 1, 1).unwrap_or(day);
    let of = [year - 1, year, year + 1].into_iter().rfind(|year| first(*year) <= thursday);
    (thursday - first(of.unwrap_or(year))) / 7 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_shown() {
        for (text, shown) in [
            ("2001-01-01", "2001-01-01T00:00:00Z"),
            ("2021-08-31T00:00:00+0300", "2021-08-31T00:00:00+0300"),
            ("2000-02-29 23:59:59.123456Z", "2000-02-29T23:59:59.123456Z"),
            ("1969-12-31T22:29:59.000000001-01:30", "1969-12-31T22:29:59.000000001-0130"),
            ("2001-01-01T01:02", "2001-01-01T01:02:00Z"),
        ] {
            let value = parse_datetime(text.as_bytes()).expect(text);
            assert_eq!(value.shown(), shown);
        }
        for text in [
            "2001-02-29",
            "2001-13-01",
            "2001-01-01T24:00:00",
            "2001-01-01T00:00:00+15",
            "x",
            "2001-01-01Q",
        ] {
            assert!(parse_datetime(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn parts_of_dates() {
        let part = |name: &str, text: &str| {
            let moment = parse_datetime(text.as_bytes()).expect(text);
            let budget = Budget::new(100, 1 << 10, Box::new(|| None));
            date_part(&[Value::text(name), moment], &Around::default(), &budget)
                .expect(name)
                .shown()
        };
        for (name, text, expected) in [
            ("year", "2001-03-04T05:06:07.089Z", "2001"),
            ("millisecond", "2001-03-04T05:06:07.089Z", "89"),
            ("doy", "2001-03-04", "63"),
            ("dow", "2001-03-04", "0"),
            ("isodow", "2001-03-04", "7"),
            ("week", "2001-01-01", "1"),
            ("week", "2021-01-03", "53"),
            ("week", "2024-12-30", "1"),
            ("hour", "2001-03-04T05:06:07+03:00", "5"),
            ("epoch", "1970-01-01T03:00:00+03:00", "0"),
            ("century", "2000-01-01", "20"),
            ("century", "2001-01-01", "21"),
        ] {
            assert_eq!(part(name, text), expected, "{name} of {text}");
        }
    }

    #[test]
    fn uuids_are_read() {
        let text = "12345678-9abc-def0-1122-334455667788";
        assert_eq!(parse_uuid(text.as_bytes()).expect("a UUID").shown(), text);
        for text in [
            "",
            "1",
            "123456789-abc-def0-1122-334455667788",
            "+2345678-9abc-def0-1122-334455667788",
        ] {
            assert!(parse_uuid(text.as_bytes()).is_none(), "{text}");
        }
    }
}
