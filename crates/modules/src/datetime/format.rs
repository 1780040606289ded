//! `strftime` and `strptime` of the C library's locale, with `%f` for fractions of a second.

use super::calendar::{DAY, checked_day_of, date, day_of, day_of_week, day_of_year, week_of};
use super::text::{write_fraction, write_offset};
use super::{Moment, zones};
use std::fmt::{self, Write};

const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// What a conversion is short for.
fn short_for(conversion: u8) -> Option<&'static [u8]> {
    Some(match conversion {
        b'+' => b"%a %b %e %H:%M:%S %Z %Y",
        b'c' => b"%a %b %e %H:%M:%S %Y",
        b'D' | b'x' => b"%m/%d/%y",
        b'F' => b"%Y-%m-%d",
        b'R' => b"%H:%M",
        b'r' => b"%I:%M:%S %p",
        b'T' | b'X' => b"%H:%M:%S",
        b'v' => b"%e-%b-%Y",
        _ => return None,
    })
}

/// A moment's local parts.
struct Parts<'a> {
    moment: &'a Moment,
    local: i64,
    day: i64,
    year: i64,
    month: i64,
    of_month: i64,
    hour: i64,
}

impl Parts<'_> {
    /// Days since the last Sunday.
    fn weekday(&self) -> i64 {
        day_of_week(self.day) % 7
    }

    fn year_day(&self) -> i64 {
        day_of_year(self.day) - 1
    }
}

/// Appends a moment by a format; what is no conversion is written as it is.
pub(super) fn format(out: &mut String, moment: &Moment, format: &[u8]) {
    let local = moment.local();
    let day = local.div_euclid(DAY);
    let (year, month, of_month) = date(day);
    let hour = local.rem_euclid(DAY) / 3600;
    let parts = Parts { moment, local, day, year, month, of_month, hour };
    // Writing to a `String` does not fail.
    let _ = write(out, &parts, format);
}

fn write(out: &mut String, parts: &Parts<'_>, mut rest: &[u8]) -> fmt::Result {
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            let end = rest.iter().position(|byte| *byte == b'%').unwrap_or(rest.len());
            out.push_str(&String::from_utf8_lossy(&[&[*byte], &rest[..end]].concat()));
            rest = &rest[end..];
            continue;
        }
        // Modifiers of locales change nothing.
        while let [b'E' | b'O', after @ ..] = rest {
            rest = after;
        }
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let width = std::str::from_utf8(&rest[..digits]).ok().and_then(|text| text.parse().ok());
        match rest.get(digits) {
            Some(b'f') => {
                write_nanoseconds(
                    out,
                    parts,
                    if digits == 0 { None } else { Some(width.unwrap_or(9)) },
                )?;
                rest = &rest[digits + 1..];
            }
            // A width is known to fractions alone.
            _ if digits > 0 => {
                out.push_str(&String::from_utf8_lossy(&rest[..digits]));
                rest = &rest[digits..];
            }
            Some(conversion) => {
                rest = &rest[1..];
                match short_for(*conversion) {
                    Some(longer) => write(out, parts, longer)?,
                    None => convert(out, parts, *conversion)?,
                }
            }
            None => out.push('%'),
        }
    }
    Ok(())
}

/// Digits of the nanoseconds: so many, nine at most; the fewest that are exact without a width.
fn write_nanoseconds(out: &mut String, parts: &Parts<'_>, width: Option<usize>) -> fmt::Result {
    match width {
        None | Some(0) => write_fraction(out, parts.moment.nanoseconds),
        Some(width) => {
            let digits = format!("{:09}", parts.moment.nanoseconds);
            out.write_str(&digits[..width.min(9)])
        }
    }
}

fn convert(out: &mut String, parts: &Parts<'_>, conversion: u8) -> fmt::Result {
    let &Parts { moment, local, day, year, month, of_month, hour } = parts;
    let (weekday, year_day) = (parts.weekday(), parts.year_day());
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    let month_name = MONTHS[(month - 1) as usize];
    match conversion {
        b'A' => out.write_str(WEEKDAYS[weekday as usize]),
        b'a' => out.write_str(&WEEKDAYS[weekday as usize][..3]),
        b'B' => out.write_str(month_name),
        b'b' | b'h' => out.write_str(&month_name[..3]),
        b'C' => write!(out, "{:02}", year.div_euclid(100)),
        b'd' => write!(out, "{of_month:02}"),
        b'e' => write!(out, "{of_month:2}"),
        b'G' => write!(out, "{:04}", week_of(day).0),
        b'g' => write!(out, "{:02}", week_of(day).0.rem_euclid(100)),
        b'H' => write!(out, "{hour:02}"),
        b'I' => write!(out, "{twelve:02}"),
        b'j' => write!(out, "{:03}", year_day + 1),
        b'k' => write!(out, "{hour:2}"),
        b'l' => write!(out, "{twelve:2}"),
        b'M' => write!(out, "{:02}", local.rem_euclid(3600) / 60),
        b'm' => write!(out, "{month:02}"),
        b'n' => out.write_char('\n'),
        b'p' => out.write_str(if hour >= 12 { "PM" } else { "AM" }),
        b'S' => write!(out, "{:02}", local.rem_euclid(60)),
        b's' => write!(out, "{local}"),
        b't' => out.write_char('\t'),
        b'U' => write!(out, "{:02}", (year_day + 7 - weekday) / 7),
        b'u' => write!(out, "{}", day_of_week(day)),
        b'V' => write!(out, "{:02}", week_of(day).1),
        b'W' => write!(out, "{:02}", (year_day + 7 - (weekday + 6) % 7) / 7),
        b'w' => write!(out, "{weekday}"),
        b'Y' => write!(out, "{year:04}"),
        b'y' => write!(out, "{:02}", year.rem_euclid(100)),
        b'Z' => out.write_str(zones::name_of(moment.zone).unwrap_or("")),
        b'z' => write_offset(out, moment.minutes),
        other => out.write_char(char::from(other)),
    }
}

/// What `parse` has found so far.
#[derive(Default)]
struct Found {
    century: Option<i64>,
    year: Option<i64>,
    month: Option<i64>,
    of_month: Option<i64>,
    /// From 0 on.
    year_day: Option<i64>,
    weekday: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanoseconds: i32,
    seconds: Option<i64>,
    minutes: i16,
    zone: i16,
    /// A zone's name, whose offset depends on the rest.
    zone_name: Option<Vec<u8>>,
}

/// A moment by a format, and the bytes of the text that it took.
pub(super) fn parse(text: &[u8], format: &[u8]) -> Option<(Moment, usize)> {
    let mut found = Found::default();
    let mut rest = text;
    read(&mut rest, format, &mut found)?;
    let local = found.local()?;
    if let Some(name) = &found.zone_name {
        let zone = zones::named(name, local).ok()??;
        (found.minutes, found.zone) = (zone.minutes, zone.number);
    }
    let seconds = match found.seconds {
        Some(seconds) => seconds,
        None => local - i64::from(found.minutes) * 60,
    };
    let (nanoseconds, minutes, zone) = (found.nanoseconds, found.minutes, found.zone);
    Some((Moment { seconds, nanoseconds, minutes, zone }, text.len() - rest.len()))
}

impl Found {
    /// Local seconds; what was not said is as in Tarantool.
    fn local(&self) -> Option<i64> {
        let year = match (self.century, self.year) {
            (None, None) => None,
            (None, Some(year)) => Some(if year < 69 { year + 2000 } else { year + 1900 }),
            (Some(century), year) => Some(century * 100 + year.unwrap_or(0)),
        };
        let day = match (year, self.month, self.of_month, self.year_day) {
            (None, None, None, Some(year_day)) => year_day,
            (None, None, None, None) => self.weekday.map_or(0, |weekday| (weekday - 4) % 7),
            (Some(year), None, None, Some(year_day)) => day_of(year, 1, year_day + 1),
            (year, month, day, _) => {
                checked_day_of(year.unwrap_or(1900), month.unwrap_or(1), day.unwrap_or(1))?
            }
        };
        Some(day * DAY + self.hour * 3600 + self.minute * 60 + self.second)
    }
}

/// Takes spaces.
fn skip_spaces(text: &mut &[u8]) {
    while let [byte, after @ ..] = text {
        if !byte.is_ascii_whitespace() {
            break;
        }
        *text = after;
    }
}

/// Takes a number of at most so many digits, one at least.
fn number(text: &mut &[u8], digits_max: usize) -> Option<i64> {
    let digits = text.iter().take(digits_max).take_while(|byte| byte.is_ascii_digit()).count();
    let (taken, rest) = text.split_at(digits);
    *text = rest;
    std::str::from_utf8(taken).ok()?.parse().ok()
}

/// Takes a number within bounds.
fn within(text: &mut &[u8], digits_max: usize, from: i64, to: i64) -> Option<i64> {
    number(text, digits_max).filter(|value| (from..=to).contains(value))
}

/// Takes one of these names, or the first three letters of one.
fn one_of(text: &mut &[u8], names: &[&str]) -> Option<i64> {
    let starts = |name: &str| {
        text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
    };
    let found = names.iter().position(|name| starts(name)).map(|at| (at, names[at].len()));
    let (at, length) =
        found.or_else(|| names.iter().position(|name| starts(&name[..3])).map(|at| (at, 3)))?;
    *text = &text[length..];
    Some(at as i64)
}

fn read(text: &mut &[u8], mut format: &[u8], found: &mut Found) -> Option<()> {
    while let Some((byte, after)) = format.split_first() {
        format = after;
        if *byte != b'%' {
            if byte.is_ascii_whitespace() {
                skip_spaces(text);
            } else {
                *text = text.strip_prefix(&[*byte])?;
            }
            continue;
        }
        while let [b'E' | b'O', after @ ..] = format {
            format = after;
        }
        let digits = format.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (conversion, after) = format[digits..].split_first()?;
        if digits > 0 && *conversion != b'f' {
            return None;
        }
        format = after;
        match short_for(*conversion) {
            Some(longer) => read(text, longer, found)?,
            None => read_one(text, *conversion, found)?,
        }
    }
    Some(())
}

/// Whether there is nothing for a part that may be absent.
fn is_absent(text: &[u8]) -> bool {
    text.first().is_none_or(u8::is_ascii_whitespace)
}

fn read_one(text: &mut &[u8], conversion: u8, found: &mut Found) -> Option<()> {
    match conversion {
        b'%' => *text = text.strip_prefix(b"%")?,
        b'C' => found.century = Some(number(text, 2)?),
        b'j' => found.year_day = Some(within(text, 3, 1, 366)? - 1),
        b'f' => {
            let before = text.len();
            let value = number(text, 9)?;
            found.nanoseconds = (value * 10_i64.pow(9 - (before - text.len()) as u32)) as i32;
        }
        b'M' | b'S' if is_absent(text) => {}
        b'M' => found.minute = within(text, 2, 0, 59)?,
        b'S' => found.second = within(text, 2, 0, 60)?,
        b'H' => found.hour = within(text, 2, 0, 23)?,
        b'I' => found.hour = within(text, 2, 1, 12)?,
        b'k' | b'l' => {
            let is_padded = matches!(text.first(), Some(b' ' | b'\t'));
            *text = &text[usize::from(is_padded)..];
            let (from, to) = if conversion == b'k' { (0, 23) } else { (1, 12) };
            found.hour = within(text, if is_padded { 1 } else { 2 }, from, to)?;
        }
        b'p' => read_half(text, found)?,
        b'A' | b'a' => found.weekday = Some(one_of(text, &WEEKDAYS)?),
        b'U' | b'W' => drop(within(text, 2, 0, 53)?),
        b'u' => found.weekday = Some(within(text, 1, 1, 7)? % 7),
        b'w' => found.weekday = Some(within(text, 1, 0, 6)?),
        b'd' | b'e' => {
            if conversion == b'e' && text.first().is_some_and(u8::is_ascii_whitespace) {
                *text = &text[1..];
            }
            found.of_month = Some(within(text, 2, 1, 31)?);
        }
        b'B' | b'b' | b'h' => found.month = Some(one_of(text, &MONTHS)? + 1),
        b'm' => found.month = Some(within(text, 2, 1, 12)?),
        b's' => found.seconds = Some(signed(text, 18)?),
        b'G' | b'g' | b'Y' | b'y' if is_absent(text) => {}
        b'G' | b'Y' => {
            let year = signed(text, 7)?;
            (found.century, found.year) = (Some(year.div_euclid(100)), Some(year.rem_euclid(100)));
        }
        b'g' | b'y' => found.year = Some(number(text, 2)?),
        b'Z' => {
            let length = text
                .iter()
                .take_while(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'_'))
                .count();
            found.zone_name = (length > 0).then(|| text[..length].to_vec());
            *text = &text[length..];
        }
        b'z' => read_offset(text, found)?,
        b'n' | b't' => skip_spaces(text),
        _ => return None,
    }
    Some(())
}

/// `AM` or `PM`, behind the hour.
fn read_half(text: &mut &[u8], found: &mut Found) -> Option<()> {
    let half = text.get(..2)?;
    match (half.to_ascii_uppercase().as_slice(), found.hour) {
        (_, 13..) => return None,
        (b"AM", hour) => found.hour = hour % 12,
        (b"PM", hour) => found.hour = hour % 12 + 12,
        _ => return None,
    }
    *text = &text[2..];
    Some(())
}

fn signed(text: &mut &[u8], digits_max: usize) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(rest) => {
            *text = rest;
            number(text, digits_max).map(|value| -value)
        }
        None => number(text, digits_max),
    }
}

/// `Z`, or a sign and two or four digits, from -1200 to +1400.
fn read_offset(text: &mut &[u8], found: &mut Found) -> Option<()> {
    if let Some(rest) = text.strip_prefix(b"Z") {
        (*text, found.minutes) = (rest, 0);
        return Some(());
    }
    let (sign, rest) = match text {
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    *text = rest;
    let digits = text.iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
    let value = match digits {
        2 => number(text, 2)? * 100,
        4 => number(text, 4)?,
        _ => return None,
    };
    let most = if sign < 0 { 1200 } else { 1400 };
    if value > most || value % 100 >= 60 {
        return None;
    }
    found.minutes = (sign * (value / 100 * 60 + value % 100)) as i16;
    Some(())
}
