//! `datetime`: moments with a time zone, and intervals, as cdata.
//!
//! ```text
//!   calendar.rs  days <-> dates        text.rs    ISO 8601, and how values are shown
//!   zones.rs     names and offsets     format.rs  strftime and strptime
//! ```
//!
//! Names, ranges and messages are those of Tarantool 2.11; the Lua side is lua/datetime.lua.

mod calendar;
mod format;
mod text;
mod zones;

use crate::cdata::{self, Type};
use crate::stack::{State, check_bytes, own, push_bytes, push_functions, raise, run_chunk};
use calendar::{Adjust, DAY, DAYS_MAX, DAYS_MIN};
use ladon_msgpack::{Value, read, write};
use mlua::ffi::*;
use std::ffi::{c_int, c_void};
use std::io::Write as _;
use text::NoMoment;
use zones::NoZone;

/// A moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Moment {
    /// Since 1970, in UTC.
    seconds: i64,
    nanoseconds: i32,
    /// Minutes that local time is ahead.
    minutes: i16,
    /// The number of its zone, 0 if it has an offset alone.
    zone: i16,
}

impl Moment {
    /// Seconds since 1970 of the local clock.
    fn local(&self) -> i64 {
        self.seconds + i64::from(self.minutes) * 60
    }
}

/// The payload of the cdata `struct datetime`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Stored {
    epoch: f64,
    nsec: i32,
    tzoffset: i16,
    tzindex: i16,
}

/// The payload of the cdata `struct interval`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Interval {
    sec: f64,
    min: f64,
    hour: f64,
    day: f64,
    week: i32,
    month: i32,
    year: i32,
    nsec: i32,
    adjust: i32,
}

/// Bytes of a datetime in MessagePack, at most.
pub const DATETIME_BYTES_MAX: usize = 16;
/// Bytes of an interval in MessagePack, at most: nine fields.
pub const INTERVAL_BYTES_MAX: usize = 1 + 9 * 10;

/// The datetime at `index`, whose type the caller has looked at. A program may have written to it by
/// the FFI: what is beyond the calendar is its end.
pub(crate) unsafe fn at(state: State, index: c_int) -> Moment {
    // SAFETY: As for `stack`; the payload is a `Stored`.
    let stored = unsafe { lua_topointer(state, index).cast::<Stored>().read() };
    Moment {
        seconds: (stored.epoch.floor() as i64).clamp(DAYS_MIN * DAY, DAYS_MAX * DAY + DAY - 1),
        nanoseconds: stored.nsec.clamp(0, 999_999_999),
        minutes: stored.tzoffset.clamp(-720, 840),
        zone: stored.tzindex,
    }
}

/// The interval at `index`, whose type the caller has looked at.
pub(crate) unsafe fn interval_at(state: State, index: c_int) -> Interval {
    // SAFETY: As for `stack`; the payload is an `Interval`.
    unsafe { lua_topointer(state, index).cast::<Interval>().read() }
}

/// Writes a moment to the payload of a datetime.
unsafe fn put(target: *mut c_void, moment: &Moment) {
    let stored = Stored {
        epoch: moment.seconds as f64,
        nsec: moment.nanoseconds,
        tzoffset: moment.minutes,
        tzindex: moment.zone,
    };
    // SAFETY: The caller's payload is that of a datetime.
    unsafe { target.cast::<Stored>().write(stored) };
}

/// The datetime at `index` as the payload of MessagePack's extension 4: seconds, and, unless all of
/// them are zero, nanoseconds, minutes and the zone's number, the lowest byte first. `None` if there
/// is none.
///
/// # Safety
/// The state has to be live, with the types of [`crate::preload`], and the index valid.
pub unsafe fn datetime_to_payload(
    state: *mut lua_State,
    index: c_int,
    payload: &mut [u8; DATETIME_BYTES_MAX],
) -> Option<usize> {
    // SAFETY: As promised.
    let moment = unsafe {
        cdata::payload(state, index, Type::Datetime)?;
        at(state, index)
    };
    payload[..8].copy_from_slice(&moment.seconds.to_le_bytes());
    if moment.nanoseconds == 0 && moment.minutes == 0 && moment.zone == 0 {
        return Some(8);
    }
    payload[8..12].copy_from_slice(&moment.nanoseconds.to_le_bytes());
    payload[12..14].copy_from_slice(&moment.minutes.to_le_bytes());
    payload[14..].copy_from_slice(&moment.zone.to_le_bytes());
    Some(16)
}

/// Pushes the datetime that a payload of MessagePack's extension 4 means; pushes nothing and answers
/// `false` if it means none.
///
/// # Safety
/// The state has to be live, with the types of [`crate::preload`]. May raise an error of Lua.
pub unsafe fn push_datetime_payload(state: *mut lua_State, payload: &[u8]) -> bool {
    let Some(moment) = of_payload(payload) else { return false };
    // SAFETY: As promised.
    unsafe { put(cdata::push_new(state, Type::Datetime), &moment) };
    true
}

fn of_payload(payload: &[u8]) -> Option<Moment> {
    let (seconds, tail) = payload.split_first_chunk()?;
    let seconds = i64::from_le_bytes(*seconds);
    let mut moment = Moment { seconds, nanoseconds: 0, minutes: 0, zone: 0 };
    match tail {
        [] => {}
        [n0, n1, n2, n3, m0, m1, z0, z1] => {
            moment.nanoseconds = i32::from_le_bytes([*n0, *n1, *n2, *n3]);
            moment.minutes = i16::from_le_bytes([*m0, *m1]);
            moment.zone = i16::from_le_bytes([*z0, *z1]);
        }
        _ => return None,
    }
    let is_sound = (DAYS_MIN * DAY..=DAYS_MAX * DAY + DAY - 1).contains(&seconds)
        && (0..1_000_000_000).contains(&moment.nanoseconds)
        && (-720..=840).contains(&moment.minutes)
        && (moment.zone == 0 || zones::name_of(moment.zone).is_some());
    is_sound.then_some(moment)
}

/// The interval at `index` as the payload of MessagePack's extension 6: how many fields are not
/// zero, and each one's number and value. `None` if there is none.
///
/// # Safety
/// As for [`datetime_to_payload`].
pub unsafe fn interval_to_payload(
    state: *mut lua_State,
    index: c_int,
    payload: &mut [u8; INTERVAL_BYTES_MAX],
) -> Option<usize> {
    // SAFETY: As promised.
    let interval = unsafe {
        cdata::payload(state, index, Type::Interval)?;
        interval_at(state, index)
    };
    let mut out = Vec::with_capacity(INTERVAL_BYTES_MAX);
    out.push(0);
    for (number, value) in (0_u8..).zip(interval.fields()) {
        if value != 0 {
            out[0] += 1;
            out.push(number);
            write::int(&mut out, value);
        }
    }
    payload[..out.len()].copy_from_slice(&out);
    Some(out.len())
}

/// As [`push_datetime_payload`], for extension 6.
///
/// # Safety
/// As for [`push_datetime_payload`].
pub unsafe fn push_interval_payload(state: *mut lua_State, payload: &[u8]) -> bool {
    let Some(interval) = Interval::of_payload(payload) else { return false };
    // SAFETY: As promised; the new cdata has room for an `Interval`.
    unsafe { cdata::push_new(state, Type::Interval).cast::<Interval>().write(interval) };
    true
}

impl Interval {
    /// The fields in the order of their numbers.
    fn fields(&self) -> [i64; 9] {
        let Interval { sec, min, hour, day, week, month, year, nsec, adjust } = *self;
        let [day, hour, min, sec] = [day, hour, min, sec].map(|value| value as i64);
        [year.into(), month.into(), week.into(), day, hour, min, sec, nsec.into(), adjust.into()]
    }

    fn of_payload(payload: &[u8]) -> Option<Interval> {
        let (count, mut rest) = payload.split_first()?;
        let mut fields = [0_i64; 9];
        for _ in 0..*count {
            let (number, after) = rest.split_first()?;
            rest = after;
            *fields.get_mut(usize::from(*number))? = match read(&mut rest).ok()? {
                Value::Uint(value) => i64::try_from(value).ok()?,
                Value::Int(value) => value,
                _ => return None,
            };
        }
        let [year, month, week, day, hour, min, sec, nsec, adjust] = fields;
        let small = |value: i64| i32::try_from(value).ok();
        let adjust = Adjust::of(adjust)? as i32;
        let (week, month, year, nsec) = (small(week)?, small(month)?, small(year)?, small(nsec)?);
        let [day, hour, min, sec] = [day, hour, min, sec].map(|value| value as f64);
        rest.is_empty().then_some(Interval { sec, min, hour, day, week, month, year, nsec, adjust })
    }
}

/// A moment and an interval together, in the `direction` 1 or -1.
///
/// # Errors
/// Whether the sum is beyond the calendar's beginning or its end.
fn sum(moment: &Moment, direction: i64, interval: &Interval) -> Result<Moment, bool> {
    let within = |value: i128, from: i64, to: i64| match value {
        it if it < from.into() => Err(false),
        it if it > to.into() => Err(true),
        it => Ok(it as i64),
    };
    let [year, month, week, day, hour, min, sec, nsec, adjust] = interval.fields();
    let adjust = Adjust::of(adjust).unwrap_or(Adjust::Limit);
    let local = moment.local();
    let mut at = local.div_euclid(DAY);
    for months in [year.saturating_mul(12), month] {
        within(i128::from(at) + i128::from(direction * months) * 30, DAYS_MIN, DAYS_MAX)?;
        at = calendar::add_months(at, direction * months, adjust);
    }
    for days in [week.saturating_mul(7), day] {
        at = within(i128::from(at) + i128::from(direction) * i128::from(days), DAYS_MIN, DAYS_MAX)?;
    }
    let (first, last) = (DAYS_MIN * DAY, DAYS_MAX * DAY + DAY - 1);
    let mut seconds = at * DAY + local.rem_euclid(DAY);
    for (count, size) in [(hour, 3600), (min, 60), (sec, 1)] {
        let change = i128::from(direction) * i128::from(count) * size;
        seconds = within(i128::from(seconds) + change, first, last)?;
    }
    let nanoseconds = i64::from(moment.nanoseconds) + direction * nsec;
    seconds += nanoseconds.div_euclid(1_000_000_000);
    within(seconds.into(), first, last)?;
    let minutes = zones::of_number(moment.zone, seconds).map_or(moment.minutes, |it| it.0);
    Ok(Moment {
        seconds: seconds - i64::from(minutes) * 60,
        nanoseconds: nanoseconds.rem_euclid(1_000_000_000) as i32,
        minutes,
        zone: moment.zone,
    })
}

/// The integer at `index`; what is beyond 53 bits is not asked for by the Lua side.
unsafe fn integer(state: State, index: c_int) -> i64 {
    // SAFETY: As for `stack`.
    unsafe { lua_tonumber(state, index) as i64 }
}

/// Pushes integers, and says how many.
unsafe fn push_all(state: State, numbers: &[i64]) -> c_int {
    for number in numbers {
        // SAFETY: As for `stack`.
        unsafe { lua_pushnumber(state, *number as f64) };
    }
    numbers.len() as c_int
}

/// `day(year, month, day)` since 1970, or nil.
unsafe extern "C-unwind" fn day(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let found =
            calendar::checked_day_of(integer(state, 1), integer(state, 2), integer(state, 3));
        push_all(state, found.as_slice())
    }
}

/// `date(day)`: year, month, day, the days of the year and of the week so far.
unsafe extern "C-unwind" fn date(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let day = integer(state, 1);
        let (year, month, of_month) = calendar::date(day);
        let (of_year, of_week) = (calendar::day_of_year(day), calendar::day_of_week(day) % 7 + 1);
        push_all(state, &[year, month, of_month, of_year, of_week])
    }
}

/// `days_in_month(year, month)`.
unsafe extern "C-unwind" fn days_in_month(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe { push_all(state, &[calendar::days_in_month(integer(state, 1), integer(state, 2))]) }
}

/// Pushes nil, and why there is no zone or moment.
unsafe fn push_failure(state: State, why: NoMoment) -> c_int {
    let text: &[u8] = match why {
        NoMoment::Zone(NoZone::Ambiguous) => b" - ambiguous timezone",
        NoMoment::Zone(NoZone::Unread) => b" - nyi timezone",
        _ => b"",
    };
    // SAFETY: As for `stack`.
    unsafe {
        lua_pushnil(state);
        push_bytes(state, text);
    }
    2
}

/// `zone(name, seconds)`: minutes and number, or nil and why.
unsafe extern "C-unwind" fn zone(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        match text::parse_zone(check_bytes(state, 1), integer(state, 2)) {
            Ok((Some(minutes), number, _)) => push_all(state, &[minutes.into(), number.into()]),
            Ok((None, ..)) => push_failure(state, NoMoment::Damaged),
            Err(why) => push_failure(state, NoMoment::Zone(why)),
        }
    }
}

/// `zones()`: a table of names to numbers and of numbers to names.
unsafe extern "C-unwind" fn zones_table(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        lua_createtable(state, 0, 2 * zones::all().len() as c_int);
        for (name, number) in zones::all() {
            push_bytes(state, name.as_bytes());
            lua_pushnumber(state, f64::from(*number));
            lua_settable(state, -3);
            if let Some(name) = zones::name_of(*number) {
                push_bytes(state, name.as_bytes());
                lua_rawseti(state, -2, (*number).into());
            }
        }
        1
    }
}

/// The datetime at `index`, or an error.
unsafe fn check_moment(state: State, index: c_int) -> Moment {
    // SAFETY: As for `stack`.
    unsafe {
        if cdata::payload(state, index, Type::Datetime).is_none() {
            raise(state, b"datetime is expected");
        }
        at(state, index)
    }
}

unsafe fn check_interval(state: State, index: c_int) -> Interval {
    // SAFETY: As for `stack`.
    unsafe {
        if cdata::payload(state, index, Type::Interval).is_none() {
            raise(state, b"interval is expected");
        }
        interval_at(state, index)
    }
}

/// `isdst(datetime)`.
unsafe extern "C-unwind" fn is_dst(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let moment = check_moment(state, 1);
        let found = zones::of_number(moment.zone, moment.seconds);
        lua_pushboolean(state, found.is_some_and(|it| it.1).into());
        1
    }
}

/// `text(datetime)` or `text(interval)`.
unsafe extern "C-unwind" fn text_of(state: State) -> c_int {
    // A datetime has 30 characters and a zone's name, an interval eight numbers with their units.
    let mut room = [0_u8; 320];
    let mut rest = &mut room[..];
    // SAFETY: As for `stack`; nothing here has to be dropped.
    unsafe {
        let written = match cdata::payload(state, 1, Type::Interval) {
            Some(_) => write!(rest, "{}", interval_at(state, 1)),
            None => write!(rest, "{}", check_moment(state, 1)),
        };
        written.expect("320 bytes");
        let left = rest.len();
        push_bytes(state, &room[..room.len() - left]);
        1
    }
}

/// `format(datetime, format)`.
unsafe extern "C-unwind" fn formatted(state: State) -> c_int {
    // SAFETY: As for `stack`; Lua owns the text.
    unsafe {
        let (moment, format) = (check_moment(state, 1), check_bytes(state, 2));
        let out = &mut *own::<String>(state);
        format::format(out, &moment, format);
        push_bytes(state, out.as_bytes());
        1
    }
}

/// Pushes a new datetime, and the bytes that it had.
unsafe fn push_parsed(state: State, moment: &Moment, length: usize) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        put(cdata::push_new(state, Type::Datetime), moment);
        lua_pushnumber(state, length as f64);
    }
    2
}

/// `parse(text, zone or nil, minutes)`: a datetime and its bytes, or nil and why.
unsafe extern "C-unwind" fn parse(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let zone = (lua_type(state, 2) == LUA_TSTRING).then(|| check_bytes(state, 2));
        let minutes = integer(state, 3) as i16;
        match text::parse(check_bytes(state, 1), zone, minutes) {
            Ok((moment, length)) => push_parsed(state, &moment, length),
            Err(why) => push_failure(state, why),
        }
    }
}

/// `parse_by(text, format)`: a datetime and its bytes, or nil.
unsafe extern "C-unwind" fn parse_by(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        match format::parse(check_bytes(state, 1), check_bytes(state, 2)) {
            Some((moment, length)) => push_parsed(state, &moment, length),
            None => 0,
        }
    }
}

/// `parse_date(text)`: a datetime and its bytes, or nil.
unsafe extern "C-unwind" fn parse_date(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let Some((day, length)) = text::parse_date(check_bytes(state, 1)) else { return 0 };
        let moment = Moment { seconds: day * DAY, nanoseconds: 0, minutes: 0, zone: 0 };
        push_parsed(state, &moment, length)
    }
}

/// `parse_offset(text)`: minutes, or nil if the text is none as a whole.
unsafe extern "C-unwind" fn parse_offset(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let text = check_bytes(state, 1);
        match text::parse_offset(text) {
            Some((minutes, length)) if length == text.len() => push_all(state, &[minutes.into()]),
            _ => 0,
        }
    }
}

/// `add(datetime, 1 or -1, interval)` changes the datetime. False and whether the end of the
/// calendar is what is in the way, if one is.
unsafe extern "C-unwind" fn add(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let (moment, interval) = (check_moment(state, 1), check_interval(state, 3));
        match sum(&moment, integer(state, 2), &interval) {
            Ok(moment) => {
                put(lua_topointer(state, 1).cast_mut(), &moment);
                lua_pushboolean(state, 1);
                1
            }
            Err(is_end) => {
                lua_pushboolean(state, 0);
                lua_pushboolean(state, is_end.into());
                2
            }
        }
    }
}

/// `now()`: a datetime.
unsafe extern "C-unwind" fn now(state: State) -> c_int {
    let (seconds, nanoseconds, minutes) = zones::now();
    // SAFETY: As for `stack`.
    unsafe {
        let moment = Moment { seconds, nanoseconds, minutes, zone: 0 };
        put(cdata::push_new(state, Type::Datetime), &moment);
    }
    1
}

/// Pushes the module.
pub(crate) unsafe fn open(state: State) {
    // SAFETY: As for `stack`.
    unsafe {
        push_functions(
            state,
            &[
                (c"add", add),
                (c"date", date),
                (c"day", day),
                (c"days_in_month", days_in_month),
                (c"format", formatted),
                (c"isdst", is_dst),
                (c"now", now),
                (c"parse", parse),
                (c"parse_by", parse_by),
                (c"parse_date", parse_date),
                (c"parse_offset", parse_offset),
                (c"text", text_of),
                (c"zone", zone),
                (c"zones", zones_table),
            ],
        );
        run_chunk(state, include_str!("../../lua/datetime.lua"), c"@builtin/datetime.lua");
    }
}
