//! Moments and intervals as text, and texts of ISO 8601 as moments.

use super::calendar::{
    DAY, checked_day_of, date, day_of, day_of_week_date, days_in_month, is_leap,
};
use super::zones::{self, NoZone};
use super::{Interval, Moment};
use std::fmt::{self, Write};

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = self.local();
        let (year, month, day) = date(local.div_euclid(DAY));
        let of_day = local.rem_euclid(DAY);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.nanoseconds != 0 {
            f.write_char('.')?;
            write_fraction(f, self.nanoseconds)?;
        }
        match zones::name_of(self.zone) {
            Some(name) if name.len() == 1 => f.write_str(name),
            Some(name) => write!(f, " {name}"),
            None if self.minutes == 0 => f.write_char('Z'),
            None => write_offset(f, self.minutes),
        }
    }
}

/// Three, six or nine digits, the fewest that are exact.
pub(super) fn write_fraction(out: &mut dyn Write, nanoseconds: i32) -> fmt::Result {
    match nanoseconds {
        it if it % 1_000_000 == 0 => write!(out, "{:03}", it / 1_000_000),
        it if it % 1000 == 0 => write!(out, "{:06}", it / 1000),
        it => write!(out, "{it:09}"),
    }
}

/// Hours and minutes with a sign.
pub(super) fn write_offset(out: &mut dyn Write, minutes: i16) -> fmt::Result {
    let sign = if minutes < 0 { '-' } else { '+' };
    let minutes = minutes.unsigned_abs();
    write!(out, "{sign}{:02}{:02}", minutes / 60, minutes % 60)
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |number: f64| number as i64;
        let parts = [
            (i64::from(self.year), "years"),
            (i64::from(self.month), "months"),
            (i64::from(self.week), "weeks"),
            (whole(self.day), "days"),
            (whole(self.hour), "hours"),
            (whole(self.min), "minutes"),
            (whole(self.sec), "seconds"),
            (i64::from(self.nsec), "nanoseconds"),
        ];
        let mut is_first = true;
        for (value, unit) in parts {
            match (value, is_first) {
                (0, false) => continue,
                (0, true) if unit != "seconds" => continue,
                (_, true) => write!(f, "{value:+} {unit}")?,
                (_, false) => write!(f, ", {value} {unit}")?,
            }
            is_first = false;
        }
        Ok(())
    }
}

/// A text that is taken apart from its beginning.
#[derive(Clone, Copy)]
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn digits(self) -> usize {
        self.0.iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    /// A number of exactly so many digits, of those that are there.
    fn number(&mut self, digits: usize) -> Option<i64> {
        let (taken, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        let text = std::str::from_utf8(taken).ok()?;
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
    }

    fn byte(&mut self, byte: u8) -> Option<()> {
        let rest = self.0.strip_prefix(&[byte])?;
        self.0 = rest;
        Some(())
    }

    /// The rest, if it does not go on with a digit.
    fn end(self) -> Option<Rest<'a>> {
        (self.digits() == 0).then_some(self)
    }
}

/// The day of a date at a text's beginning, and the bytes that it has: of the calendar, of the year,
/// of a week or of a quarter, with or without hyphens; years of other than four digits with a sign
/// and hyphens.
pub(super) fn parse_date(text: &[u8]) -> Option<(i64, usize)> {
    let mut rest = Rest(text);
    let is_negative = rest.byte(b'-').is_some();
    let digits = rest.digits();
    let (day, left) = match digits {
        4 if !is_negative => of_short_year(rest)?,
        7 if !is_negative && !text[7..].starts_with(b"-") => {
            let year = rest.number(4)?;
            (of_year(year, rest.number(3)?)?, rest)
        }
        8 if !is_negative => {
            let (year, month, day) = (rest.number(4)?, rest.number(2)?, rest.number(2)?);
            (checked_day_of(year, month, day)?, rest)
        }
        1..=7 => {
            let year = rest.number(digits)? * if is_negative { -1 } else { 1 };
            rest.byte(b'-')?;
            let month = rest.number(2)?;
            rest.byte(b'-')?;
            (checked_day_of(year, month, rest.number(2)?)?, rest)
        }
        _ => return None,
    };
    Some((day, text.len() - left.end()?.0.len()))
}

/// A date whose year has four digits and something else behind them.
fn of_short_year(mut rest: Rest<'_>) -> Option<(i64, Rest<'_>)> {
    let year = rest.number(4)?;
    let has_hyphens = rest.byte(b'-').is_some();
    let hyphen = |rest: &mut Rest<'_>| if has_hyphens { rest.byte(b'-') } else { Some(()) };
    let day = if rest.byte(b'W').is_some() {
        let week = rest.number(2)?;
        hyphen(&mut rest)?;
        day_of_week_date(year, week, rest.number(1)?)?
    } else if rest.byte(b'Q').is_some() {
        let quarter = rest.number(1)?;
        hyphen(&mut rest)?;
        of_quarter(year, quarter, rest.number(2)?)?
    } else if has_hyphens && rest.digits() == 3 {
        of_year(year, rest.number(3)?)?
    } else {
        let month = rest.number(2)?;
        rest.byte(b'-')?;
        checked_day_of(year, month, rest.number(2)?)?
    };
    Some((day, rest))
}

fn of_year(year: i64, day: i64) -> Option<i64> {
    (1..=365 + i64::from(is_leap(year))).contains(&day).then(|| day_of(year, 1, day))
}

fn of_quarter(year: i64, quarter: i64, day: i64) -> Option<i64> {
    let first = (1..=4).contains(&quarter).then_some(quarter * 3 - 2)?;
    let days: i64 = (first..first + 3).map(|month| days_in_month(year, month)).sum();
    (1..=days).contains(&day).then(|| day_of(year, first, day))
}

/// Seconds and nanoseconds of a day, and the bytes that they have.
fn parse_time(text: &[u8]) -> Option<(i64, i32, usize)> {
    let mut rest = Rest(text);
    let mut parts = [0; 3];
    parts[0] = rest.number(2)?;
    let has_colons = rest.0.first() == Some(&b':');
    let mut count = 1;
    while count < 3 {
        let mut next = rest;
        if has_colons && next.byte(b':').is_none() || !has_colons && next.digits() == 0 {
            break;
        }
        parts[count] = next.number(2)?;
        (rest, count) = (next, count + 1);
    }
    let rest_of_number = if has_colons || count == 3 { rest.digits() } else { 0 };
    if rest_of_number > 0 {
        return None;
    }
    let mut nanoseconds = 0;
    if count == 3 && (rest.byte(b'.').is_some() || rest.byte(b',').is_some()) {
        nanoseconds = fraction(&mut rest)?;
    }
    let [hour, minute, second] = parts;
    let is_midnight = hour == 24 && minute == 0 && second == 0 && nanoseconds == 0;
    let is_time = is_midnight || hour <= 23 && minute <= 59 && second <= 59;
    let seconds = hour * 3600 + minute * 60 + second;
    is_time.then(|| (seconds, nanoseconds, text.len() - rest.0.len()))
}

/// Nanoseconds of one digit or more; what follows the ninth is left off.
fn fraction(rest: &mut Rest<'_>) -> Option<i32> {
    let digits = rest.digits();
    if digits == 0 {
        return None;
    }
    let kept = digits.min(9);
    let value = rest.number(kept)? * 10_i64.pow(9 - kept as u32);
    rest.0 = &rest.0[digits - kept..];
    i32::try_from(value).ok()
}

/// Minutes of an offset at a text's beginning, and its bytes: `Z`, `+h`, `+hh`, `+hmm`, `+hhmm`,
/// `+h:mm` or `+hh:mm`.
pub(super) fn parse_offset(text: &[u8]) -> Option<(i16, usize)> {
    let mut rest = Rest(text);
    if rest.byte(b'Z').is_some() || rest.byte(b'z').is_some() {
        return Some((0, 1));
    }
    let sign = match rest.byte(b'-') {
        Some(()) => -1,
        None => rest.byte(b'+').map(|()| 1)?,
    };
    let (hours, minutes) = match rest.digits() {
        digits @ (1 | 2) => {
            let hours = rest.number(digits)?;
            let mut next = rest;
            if next.byte(b':').is_some() && next.digits() >= 2 {
                rest = next;
                (hours, rest.number(2)?)
            } else {
                (hours, 0)
            }
        }
        digits @ (3 | 4) => (rest.number(digits - 2)?, rest.number(2)?),
        _ => return None,
    };
    let is_offset = hours <= 23 && minutes <= 59;
    is_offset.then(|| ((sign * (hours * 60 + minutes)) as i16, text.len() - rest.0.len()))
}

/// Why a text is no moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NoMoment {
    Damaged,
    Zone(NoZone),
}

/// Minutes, number and bytes of a zone or an offset; no bytes if there is none.
pub(super) fn parse_zone(text: &[u8], seconds: i64) -> Result<(Option<i16>, i16, usize), NoZone> {
    Ok(match zones::named(text, seconds)? {
        Some(found) => (Some(found.minutes), found.number, found.length),
        None => match parse_offset(text) {
            Some((minutes, length)) => (Some(minutes), 0, length),
            None => (None, 0, 0),
        },
    })
}

/// A moment at a text's beginning, and its bytes: a date, perhaps with a time behind `T` or a space,
/// and a zone. The zone given holds in place of that of the text, the offset if there is none.
pub(super) fn parse(
    text: &[u8],
    zone: Option<&[u8]>,
    minutes: i16,
) -> Result<(Moment, usize), NoMoment> {
    let (day, mut taken) = parse_date(text).ok_or(NoMoment::Damaged)?;
    let mut moment = Moment { seconds: day * DAY, nanoseconds: 0, minutes, zone: 0 };
    let mut of_day = 0;
    if let Some(between) = text.get(taken) {
        if !matches!(between, b'T' | b't' | b' ') {
            return Err(NoMoment::Damaged);
        }
        taken += 1;
        if taken < text.len() {
            let (seconds, nanoseconds, length) =
                parse_time(&text[taken..]).ok_or(NoMoment::Damaged)?;
            (of_day, moment.nanoseconds, taken) = (seconds, nanoseconds, taken + length);
        }
    }
    let local = day * DAY + of_day;
    if zone.is_some() || taken < text.len() {
        let has_space = zone.is_none() && text[taken..].starts_with(b" ");
        taken += usize::from(has_space);
        let suffix = zone.unwrap_or(&text[taken..]);
        let base = local - i64::from(minutes) * 60;
        let (found, number, length) = parse_zone(suffix, base).map_err(NoMoment::Zone)?;
        moment.zone = number;
        moment.minutes = found.unwrap_or(minutes);
        taken += if zone.is_none() { length } else { 0 };
    }
    moment.seconds = local - i64::from(moment.minutes) * 60;
    Ok((moment, taken))
}
