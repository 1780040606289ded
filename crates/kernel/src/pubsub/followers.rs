//! The clients of one thread that follow one name.

use super::fan_out::Delivery;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// A client that follows the name: where its connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Follower {
    pub slot: u32,
    /// Number of the first message to the thread that it gets.
    pub from: u64,
}

/// The clients that follow one name. Most names have one client, which takes no memory of its own:
/// a map would take some three hundred bytes.
#[derive(Debug, Default)]
pub(crate) enum Followers {
    #[default]
    Nobody,
    One(u64, Follower),
    #[expect(clippy::box_collection, reason = "a map here would make each name larger")]
    Many(Box<BTreeMap<u64, Follower>>),
}

impl Followers {
    pub fn insert(&mut self, client: u64, follower: Follower) {
        match self {
            Followers::Nobody => *self = Followers::One(client, follower),
            Followers::One(only, _) if *only == client => *self = Followers::One(client, follower),
            Followers::One(only, its) => {
                *self = Followers::Many(Box::new([(*only, *its), (client, follower)].into()));
            }
            Followers::Many(followers) => drop(followers.insert(client, follower)),
        }
    }

    pub fn remove(&mut self, client: u64) {
        match self {
            Followers::Nobody => {}
            Followers::One(only, _) if *only != client => {}
            Followers::One(..) => *self = Followers::Nobody,
            Followers::Many(followers) => {
                followers.remove(&client);
                if followers.is_empty() {
                    *self = Followers::Nobody;
                }
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Followers::Nobody)
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
        let mut find = |client: u64, follower: Follower| {
            if follower.from <= number {
                found.push(Delivery { client, slot: follower.slot });
            }
        };
        match self {
            Followers::Nobody => None,
            Followers::One(client, follower) => {
                if *client > after {
                    find(*client, *follower);
                }
                None
            }
            Followers::Many(followers) => {
                let (mut last, mut seen) = (after, 0);
                for (&client, &follower) in followers.range((Excluded(after), Unbounded)).take(max)
                {
                    (last, seen) = (client, seen + 1);
                    find(client, follower);
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
        let mut followers = Followers::default();
        let mut model = BTreeMap::new();
        let mut random = 1_u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (client, follower) = (
                random >> 33 & 3 | 1,
                Follower { slot: (random >> 40) as u32, from: random >> 50 & 7 },
            );
            if random >> 60 & 1 == 0 {
                followers.insert(client, follower);
                model.insert(client, follower);
            } else {
                followers.remove(client);
                model.remove(&client);
            }
            assert_eq!(followers.is_empty(), model.is_empty());
            for max in 1..3 {
                let (mut all, mut found, mut after) = (Vec::new(), Vec::new(), Some(0));
                while let Some(last) = after {
                    found.clear();
                    after = followers.find(last, max, 4, &mut found);
                    assert!(found.len() <= max);
                    all.append(&mut found);
                }
                let wanted = model.iter().filter(|(_, follower)| follower.from <= 4);
                let wanted =
                    wanted.map(|(&client, follower)| Delivery { client, slot: follower.slot });
                assert_eq!(all, wanted.collect::<Vec<_>>());
            }
        }
    }
}
