//! Places along a street, ten metres or so from one to the next.

use crate::load::question::{Question, ask, exactly};
use crate::load::words::{
    INTEGER_BYTES_MAX, NAME_BULK_BYTES, NAME_BYTES, array, bulk, bulks, integer, name,
};
use crate::load::workload::Check;

/// What the server must hold, under one key.
#[derive(Debug)]
pub struct Street {
    places: u32,
}

const KEY: &[u8] = b"street";
/// The street's; along the equator a degree is the same everywhere.
const LATITUDE: &[u8] = b"0";
/// Degrees from one place to the next: 11.1 m.
const STEP: f64 = 0.0001;
/// Searched around a place, in metres: 20 places on either side, and no place at the edge.
const RADIUS: &[u8] = b"228";
const BESIDE: u32 = 20;
/// Places added by one request.
const TOGETHER: u32 = 100;

impl Street {
    /// `places` places, at least 100.
    #[must_use]
    pub fn new(places: u32) -> Self {
        // No more than go round.
        Self { places: places.clamp(TOGETHER, 1_000_000) / TOGETHER * TOGETHER }
    }

    fn longitude(place: u32) -> String {
        format!("{:.4}", f64::from(place) * STEP)
    }

    /// The first place found around `place`, and how many are.
    fn found(&self, place: u32) -> (u32, u32) {
        let first = place.saturating_sub(BESIDE);
        (first, (place + BESIDE).min(self.places - 1) - first + 1)
    }
}

/// `GEOADD` of all places.
pub fn fill(street: &Street) -> impl Question {
    let write = |_: &mut _, about, to: &mut Vec<u8>| {
        array(2 + 3 * TOGETHER as usize, to);
        bulk(b"GEOADD", to);
        bulk(KEY, to);
        for place in about * TOGETHER..(about + 1) * TOGETHER {
            bulk(Street::longitude(place).as_bytes(), to);
            bulk(LATITUDE, to);
            bulk(&name(b'g', place), to);
        }
    };
    ask(street, street.places / TOGETHER, write, |_, _, to| integer(TOGETHER.into(), to))
}

/// `GEOSEARCH` around a place: 41 of them, in any order.
#[derive(Debug)]
pub struct Geosearch<'a>(pub &'a Street);

impl Question for Geosearch<'_> {
    fn count(&self) -> u32 {
        self.0.places
    }

    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        let longitude = Street::longitude(about);
        let center: [&[u8]; 5] = [b"GEOSEARCH", KEY, b"FROMLONLAT", longitude.as_bytes(), LATITUDE];
        bulks(&[&center[..], &[b"BYRADIUS", RADIUS, b"m"]].concat(), to);
    }

    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        let (first, count) = self.0.found(about);
        array(count as usize, to);
        for place in first..first + count {
            bulk(&name(b'g', place), to);
        }
    }

    fn answer_bytes_max(&self) -> usize {
        INTEGER_BYTES_MAX + (2 * BESIDE as usize + 1) * NAME_BULK_BYTES
    }

    fn judge(&self, about: u32, bytes: &[u8], room: &mut Vec<u8>) -> Check {
        let (first, count) = self.0.found(about);
        array(count as usize, room);
        let head = match exactly(room, bytes) {
            Check::Right(head) => head,
            other => return other,
        };
        let whole = head + count as usize * NAME_BULK_BYTES;
        let Some(found) = bytes.get(head..whole) else { return Check::Incomplete };
        let mut seen = 0u64;
        for one in found.chunks_exact(NAME_BULK_BYTES) {
            let digits = &one[NAME_BULK_BYTES - 2 - (NAME_BYTES - 2)..NAME_BULK_BYTES - 2];
            let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
            let Some(place) = number.filter(|place| (first..first + count).contains(place)) else {
                return Check::Wrong;
            };
            room.clear();
            bulk(&name(b'g', place), room);
            if room != one {
                return Check::Wrong;
            }
            seen |= 1 << (place - first);
        }
        // As many as there are: none is missing unless another came twice.
        if seen.count_ones() == count { Check::Right(whole) } else { Check::Wrong }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_may_come_in_any_order_but_none_is_missing() {
        let street = Street::new(1000);
        let search = Geosearch(&street);
        for about in [0, 5, 500, 999] {
            let mut right = Vec::new();
            search.answer(about, &mut right);
            assert!(right.len() <= search.answer_bytes_max());
            let judge = |bytes: &[u8]| search.judge(about, bytes, &mut Vec::new());
            for length in 0..right.len() {
                assert_eq!(judge(&right[..length]), Check::Incomplete);
            }
            assert_eq!(judge(&right), Check::Right(right.len()));
            let head = right.iter().position(|&byte| byte == b'\n').unwrap() + 1;
            let mut turned = right.clone();
            turned[head..].rotate_left(3 * NAME_BULK_BYTES);
            assert_eq!(judge(&turned), Check::Right(right.len()));
            let mut twice = right.clone();
            twice.copy_within(head..head + NAME_BULK_BYTES, head + NAME_BULK_BYTES);
            assert_eq!(judge(&twice), Check::Wrong);
        }
    }
}
