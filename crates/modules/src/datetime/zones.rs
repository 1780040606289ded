//! Time zones: the names that Tarantool knows, with their numbers, and the offsets of those that the
//! time zone database has.

use jiff::Timestamp;
use jiff::tz::{Dst, TimeZone};
use std::collections::HashMap;
use std::sync::LazyLock;

/// What a zone's name says of its offset.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// So many minutes ahead.
    Fixed(i16),
    /// The time zone database has it.
    Database,
    Ambiguous,
    /// Tarantool has a number for it, and does not read it.
    Unread,
}

/// A name, and its number.
struct Zone {
    number: i16,
    kind: Kind,
}

struct Zones {
    /// By name in lower case.
    by_name: HashMap<String, Zone>,
    /// The name of each number.
    names: HashMap<i16, &'static str>,
    /// Every name as it is written.
    all: Vec<(&'static str, i16)>,
}

/// `NUMBER NAME KIND [MINUTES]` of a line.
fn line_of(line: &'static str) -> Option<(i16, &'static str, &'static str, i16)> {
    let mut parts = line.split(' ');
    let (number, name, kind) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
    Some((number, name, kind, parts.next().and_then(|text| text.parse().ok()).unwrap_or(0)))
}

static ZONES: LazyLock<Zones> = LazyLock::new(|| {
    let mut zones = Zones { by_name: HashMap::new(), names: HashMap::new(), all: Vec::new() };
    let lines = include_str!("zones.txt").lines().filter(|line| !line.starts_with('#'));
    for (number, name, kind, minutes) in lines.filter_map(line_of) {
        if kind != "a" {
            zones.names.insert(number, name);
        }
        let kind = match kind {
            "?" => Kind::Ambiguous,
            "!" => Kind::Unread,
            "o" | "a" => Kind::Database,
            _ => Kind::Fixed(minutes),
        };
        zones.by_name.insert(name.to_ascii_lowercase(), Zone { number, kind });
        zones.all.push((name, number));
    }
    zones
});

/// Why a name is none of a zone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NoZone {
    Unknown,
    Ambiguous,
    Unread,
}

/// A zone at a moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Found {
    pub(super) minutes: i16,
    pub(super) number: i16,
    /// Bytes of the name.
    pub(super) length: usize,
}

/// The zone that a text names, at a moment in seconds; `None` if it does not begin with a letter.
pub(super) fn named(text: &[u8], seconds: i64) -> Result<Option<Found>, NoZone> {
    let is_of_name = |byte: &&u8| byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'_' | b'-');
    if !text.first().is_some_and(u8::is_ascii_alphabetic) {
        return Ok(None);
    }
    let length = text.iter().take_while(is_of_name).count();
    let name = String::from_utf8_lossy(text).to_ascii_lowercase();
    let Some(zone) = ZONES.by_name.get(name.as_str()) else { return Err(NoZone::Unknown) };
    let minutes = match zone.kind {
        Kind::Fixed(minutes) => minutes,
        Kind::Ambiguous => return Err(NoZone::Ambiguous),
        Kind::Unread => return Err(NoZone::Unread),
        Kind::Database => match at(&name, seconds) {
            Some((minutes, _)) => minutes,
            None => return Err(NoZone::Unknown),
        },
    };
    Ok(Some(Found { minutes, number: zone.number, length }))
}

/// The name of a number.
pub(super) fn name_of(number: i16) -> Option<&'static str> {
    ZONES.names.get(&number).copied()
}

/// Every name with its number.
pub(super) fn all() -> &'static [(&'static str, i16)] {
    &ZONES.all
}

/// Minutes ahead of a zone of the database at a moment, and whether that is summer time.
pub(super) fn of_number(number: i16, seconds: i64) -> Option<(i16, bool)> {
    at(name_of(number)?, seconds)
}

fn at(name: &str, seconds: i64) -> Option<(i16, bool)> {
    let zone = TimeZone::get(name).ok()?;
    let found = zone.to_offset_info(moment(seconds));
    Some((minutes(found.offset().seconds()), found.dst() == Dst::Yes))
}

fn minutes(seconds: i32) -> i16 {
    i16::try_from(seconds / 60).unwrap_or(0)
}

/// A moment that the database can be asked for: rules repeat every 400 years.
fn moment(seconds: i64) -> Timestamp {
    const CYCLE: i64 = 146_097 * 86_400;
    let last = Timestamp::MAX.as_second() - CYCLE;
    let seconds =
        if seconds > last { last - CYCLE + (seconds - last).rem_euclid(CYCLE) } else { seconds };
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MIN)
}

/// Seconds and nanoseconds of now, and minutes that the machine's zone is ahead.
pub(super) fn now() -> (i64, i32, i16) {
    let now = Timestamp::now();
    let offset = TimeZone::system().to_offset(now);
    // Tarantool's clock has microseconds.
    (now.as_second(), now.subsec_nanosecond() / 1000 * 1000, minutes(offset.seconds()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_their_offsets() {
        let minutes =
            |name: &str, seconds| named(name.as_bytes(), seconds).map(|it| it.map(|it| it.minutes));
        assert_eq!(minutes("MSK", 0), Ok(Some(180)));
        assert_eq!(minutes("Europe/Moscow", 1_140_000_000), Ok(Some(180)));
        assert_eq!(minutes("europe/moscow", 1_150_000_000), Ok(Some(240)));
        assert_eq!(minutes("America/New_York", 185_542_587_187_200), Ok(Some(-240)));
        assert_eq!(minutes("AT", 0), Err(NoZone::Ambiguous));
        assert_eq!(minutes("XXX", 0), Err(NoZone::Unknown));
        assert_eq!(minutes("+03", 0), Ok(None));
        assert_eq!(name_of(947), Some("Europe/Moscow"));
    }

    #[test]
    fn the_database_has_every_zone() {
        let missing: Vec<_> = ZONES
            .by_name
            .iter()
            .filter(|(name, zone)| zone.kind == Kind::Database && at(name, 0).is_none())
            .collect();
        assert!(missing.is_empty(), "{:?}", missing.iter().map(|it| it.0).collect::<Vec<_>>());
    }
}
