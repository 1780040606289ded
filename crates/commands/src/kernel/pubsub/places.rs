//! The clients of one thread that follow one name.

use super::fan_out::Delivery;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// A connection's place in its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub slot: u32,
    /// Number of the first message to the thread that it gets.
    pub from: u64,
}

/// Clients and their places. Most names have one client, which takes no memory of its own: a map
/// would take some three hundred bytes.
#[derive(Debug, Default)]
pub(crate) enum Places {
    #[default]
    Nobody,
    One(u64, Place),
    #[expect(clippy::box_collection, reason = "a map here would make each name larger")]
    Many(Box<BTreeMap<u64, Place>>),
}

impl Places {
    pub fn insert(&mut self, client: u64, place: Place) {
        match self {
            Places::Nobody => *self = Places::One(client, place),
            Places::One(only, _) if *only == client => *self = Places::One(client, place),
            Places::One(only, its) => {
                *self = Places::Many(Box::new([(*only, *its), (client, place)].into()));
            }
            Places::Many(places) => drop(places.insert(client, place)),
        }
    }

    pub fn remove(&mut self, client: u64) {
        match self {
            Places::Nobody => {}
            Places::One(only, _) if *only != client => {}
            Places::One(..) => *self = Places::Nobody,
            Places::Many(places) => {
                places.remove(&client);
                if places.is_empty() {
                    *self = Places::Nobody;
                }
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Places::Nobody)
    }

    /// Puts those up to `max` clients after `after` that get the message with this number into
    /// `found`. Returns the last client if there may be more.
    pub fn find(
        &self,
        after: u64,
        max: usize,
        number: u64,
        found: &mut Vec<Delivery>,
    ) -> Option<u64> {
        let mut find = |client: u64, place: Place| {
            if place.from <= number {
                found.push(Delivery { client, slot: place.slot });
            }
        };
        match self {
            Places::Nobody => None,
            Places::One(client, place) => {
                if *client > after {
                    find(*client, *place);
                }
                None
            }
            Places::Many(places) => {
                let (mut last, mut seen) = (after, 0);
                for (&client, &place) in places.range((Excluded(after), Unbounded)).take(max) {
                    (last, seen) = (client, seen + 1);
                    find(client, place);
                }
                (seen == max).then_some(last)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_map_whose_clients_are_found_some_at_a_time() {
        let mut places = Places::default();
        let mut model = BTreeMap::new();
        let mut random = 1_u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (client, place) = (
                random >> 33 & 3 | 1,
                Place { slot: (random >> 40) as u32, from: random >> 50 & 7 },
            );
            if random >> 60 & 1 == 0 {
                places.insert(client, place);
                model.insert(client, place);
            } else {
                places.remove(client);
                model.remove(&client);
            }
            assert_eq!(places.is_empty(), model.is_empty());
            for max in 1..3 {
                let (mut all, mut found, mut after) = (Vec::new(), Vec::new(), Some(0));
                while let Some(last) = after {
                    found.clear();
                    after = places.find(last, max, 4, &mut found);
                    assert!(found.len() <= max);
                    all.append(&mut found);
                }
                let wanted = model.iter().filter(|(_, place)| place.from <= 4);
                let wanted = wanted.map(|(&client, place)| Delivery { client, slot: place.slot });
                assert_eq!(all, wanted.collect::<Vec<_>>());
            }
        }
    }
}
