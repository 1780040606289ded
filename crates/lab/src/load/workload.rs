//! The requests, and the one right reply to each.

use super::data::Data;
use super::driver::LoadError;
use super::random::Random;
use super::template::Template;

/// A source of batches that also checks their replies. Users are numbered from 0; if each has its
/// own connection, that is the connection's number too.
pub trait Workload {
    /// Writes the next batch for user `user` and pushes one key per request on `keys` (below
    /// `u32::MAX`); the requests' bytes are returned. No request when there is nothing more to ask.
    fn batch(&mut self, user: usize, keys: &mut Vec<u32>) -> &[u8];

    /// Whose the first reply in `bytes` is, which are not empty.
    fn whose(&self, bytes: &[u8]) -> Whose {
        let _ = bytes;
        Whose::Next
    }

    /// Judges the bytes received since the last right reply as the answer to user `user`'s request
    /// about `key`.
    fn check(&mut self, user: usize, key: u32, bytes: &[u8]) -> Check;

    /// What the right answer would have been, for messages.
    fn right_answer(&self, user: usize, key: u32) -> Vec<u8>;

    /// What was asked, for messages.
    fn about(&self, user: usize, key: u32) -> String {
        let _ = user;
        format!("key {key}")
    }

    /// Which of the sample's latencies user `user` counts in, below [`super::sample::LANES`].
    fn lane(&self, user: usize) -> usize;

    /// The most bytes that the right answers to one batch take; a good guess is enough.
    fn reply_bytes_max(&self) -> usize;

    /// Does a little of the activity besides the users, over separate sockets. The driver calls it
    /// once per turn; the time it takes delays the users' replies.
    ///
    /// # Errors
    /// As the driver's: a wrong reply, a closed connection.
    fn beside(&mut self) -> Result<Beside, LoadError> {
        Ok(Beside::Nothing)
    }
}

/// What [`Workload::beside`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Nothing, and nothing is to be done.
    Nothing,
    /// Its sockets took and gave nothing: ask again within a millisecond.
    Waits,
    /// Something: ask again at once.
    Worked,
}

/// Whose a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The next request's, in the order of sending.
    Next,
    /// It says whose.
    Of {
        /// The user.
        user: usize,
        /// The number of its request within the batch.
        slot: usize,
    },
    /// Not enough bytes to tell.
    Incomplete,
    /// No request's.
    Nobody,
}

/// Judgement of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// A right reply of this many bytes.
    Right(usize),
    /// May become right with more bytes.
    Incomplete,
    /// Cannot become right.
    Wrong,
}

/// Which requests a [`Strings`] workload makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// `SET` of random keys.
    Set,
    /// `GET` of random keys.
    Get,
    /// Half of the connections `SET`, half `GET`, random keys. The writes repeat what the keys
    /// already hold, so that concurrent reads have one right answer.
    SetAndGet,
    /// `SET` of every key below `until`, once, in order.
    Load {
        /// The first key that is left out.
        until: u32,
    },
    /// `SET` of every key from `known` on, once, in order, on all connections but `prober`, which
    /// does `GET` of random keys below `known`. They must have been set before.
    Grow {
        /// The first key that is missing yet.
        known: u32,
        /// The connection that reads.
        prober: usize,
    },
    /// `SET` of random keys on all connections but `prober`, which does `GET`; the writes repeat
    /// what the keys hold already.
    Probe {
        /// The connection that reads.
        prober: usize,
    },
}

/// The lane of connections that write, where a workload has both.
pub const LANE_OF_WRITES: usize = 0;
/// The lane of connections that read, where a workload has both.
pub const LANE_OF_READS: usize = 1;

/// `SET` and `GET` over a [`Data`].
#[derive(Debug)]
pub struct Strings<'a> {
    data: &'a mut Data,
    mix: Mix,
    set: Template,
    get: Template,
    get_head: Vec<u8>,
    random: Random,
    next: u32,
}

/// The right answer to a plain `SET`.
const OK: &[u8] = b"+OK\r\n";

impl<'a> Strings<'a> {
    /// Batches of `depth` requests over `data`, keys by `seed`. The writes of [`Mix::Set`] carry a
    /// new version.
    #[must_use]
    pub fn new(data: &'a mut Data, mix: Mix, depth: usize, seed: u64) -> Self {
        if mix == Mix::Set {
            data.next_version();
        }
        Self {
            set: Template::new("SET", &[data.key_bytes(), data.value_bytes()], depth),
            get: Template::new("GET", &[data.key_bytes()], depth),
            get_head: format!("${}\r\n", data.value_bytes()).into_bytes(),
            random: Random::new(seed),
            next: if let Mix::Grow { known, .. } = mix { known } else { 0 },
            data,
            mix,
        }
    }

    /// Whether connection `connection` writes.
    #[inline]
    const fn writes(&self, connection: usize) -> bool {
        match self.mix {
            Mix::Set | Mix::Load { .. } => true,
            Mix::Get => false,
            Mix::SetAndGet => connection.is_multiple_of(2),
            Mix::Grow { prober, .. } | Mix::Probe { prober } => connection != prober,
        }
    }

    /// Whether all keys have been asked for in order.
    #[must_use]
    pub const fn loaded(&self) -> bool {
        self.next >= self.data.keys()
    }

    /// Requests in each batch of a connection: those that probe send one at a time.
    #[inline]
    const fn depth(&self, connection: usize) -> usize {
        match self.mix {
            Mix::Grow { prober, .. } | Mix::Probe { prober } if connection == prober => 1,
            _ => self.set.depth(),
        }
    }

    /// The next key to ask for; `None` when a load is through.
    #[inline]
    fn next_key(&mut self, connection: usize) -> Option<u32> {
        match self.mix {
            Mix::Grow { known, prober } if connection == prober => Some(self.random.below(known)),
            Mix::Load { until } => self.key_in_order(until),
            Mix::Grow { .. } => self.key_in_order(self.data.keys()),
            _ => Some(self.random.below(self.data.keys())),
        }
    }

    #[inline]
    fn key_in_order(&mut self, until: u32) -> Option<u32> {
        let key = self.next;
        self.next = key.saturating_add(1);
        (key < until).then_some(key)
    }

    fn check_value(&self, key: u32, bytes: &[u8]) -> Check {
        let head = self.get_head.len();
        let whole = head + self.data.value_bytes() + 2;
        if bytes.len() < whole {
            let known = bytes.len().min(head);
            return if bytes[..known] == self.get_head[..known] {
                Check::Incomplete
            } else {
                Check::Wrong
            };
        }
        let right = bytes[..head] == self.get_head
            && self.data.is_value_of(key, &bytes[head..whole - 2])
            && bytes[whole - 2..whole] == *b"\r\n";
        if right { Check::Right(whole) } else { Check::Wrong }
    }
}

impl Workload for Strings<'_> {
    #[inline]
    fn batch(&mut self, connection: usize, keys: &mut Vec<u32>) -> &[u8] {
        let writes = self.writes(connection);
        let mut count = 0;
        while count < self.depth(connection) {
            let Some(key) = self.next_key(connection) else { break };
            keys.push(key);
            if writes {
                self.data.write_key(key, self.set.argument(count, 0));
                let value = self.set.argument(count, 1);
                if matches!(self.mix, Mix::SetAndGet | Mix::Probe { .. }) {
                    self.data.write_same_value(key, value);
                } else {
                    self.data.write_new_value(key, value);
                }
            } else {
                self.data.write_key(key, self.get.argument(count, 0));
            }
            count += 1;
        }
        if writes { self.set.requests(count) } else { self.get.requests(count) }
    }

    #[inline]
    fn check(&mut self, connection: usize, key: u32, bytes: &[u8]) -> Check {
        if !self.writes(connection) {
            return self.check_value(key, bytes);
        }
        if bytes.starts_with(OK) {
            Check::Right(OK.len())
        } else if OK.starts_with(bytes) {
            Check::Incomplete
        } else {
            Check::Wrong
        }
    }

    fn right_answer(&self, connection: usize, key: u32) -> Vec<u8> {
        if self.writes(connection) {
            return OK.to_vec();
        }
        [&self.get_head, &self.data.value_of(key), b"\r\n".as_slice()].concat()
    }

    fn lane(&self, connection: usize) -> usize {
        if self.writes(connection) { LANE_OF_WRITES } else { LANE_OF_READS }
    }

    fn reply_bytes_max(&self) -> usize {
        self.set.depth() * OK.len().max(self.get_head.len() + self.data.value_bytes() + 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_asks_for_every_key_once() {
        let mut data = Data::new(10, 11, 8);
        let mut load = Strings::new(&mut data, Mix::Load { until: 10 }, 4, 0);
        let mut keys = Vec::new();
        while !load.batch(0, &mut keys).is_empty() {}
        assert_eq!(keys, (0..10).collect::<Vec<u32>>());
    }

    /// Keys that the last phase of writes left out hold an older version than the others.
    #[test]
    fn writes_beside_reads_change_no_value() {
        let mut data = Data::new(1000, 11, 8);
        Strings::new(&mut data, Mix::Set, 8, 1).batch(0, &mut Vec::new());
        let before: Vec<Vec<u8>> = (0..1000).map(|key| data.value_of(key)).collect();
        for mix in [Mix::SetAndGet, Mix::Probe { prober: 1 }] {
            let mut both = Strings::new(&mut data, mix, 8, 2);
            for connection in [0, 1].repeat(500) {
                both.batch(connection, &mut Vec::new());
            }
        }
        for (key, value) in before.iter().enumerate() {
            assert_eq!(&data.value_of(key as u32), value);
        }
    }

    #[test]
    fn growing_reads_only_what_is_there() {
        let mut data = Data::new(1000, 11, 8);
        let mut grow = Strings::new(&mut data, Mix::Grow { known: 10, prober: 2 }, 4, 0);
        let (mut written, mut read) = (Vec::new(), Vec::new());
        while !grow.loaded() {
            grow.batch(0, &mut written);
            grow.batch(1, &mut written);
            grow.batch(2, &mut read);
        }
        assert!(grow.batch(0, &mut written).is_empty());
        assert_eq!(written, (10..1000).collect::<Vec<u32>>());
        assert!(read.len() > 100 && read.iter().all(|&key| key < 10));
        assert_eq!((grow.lane(0), grow.lane(2)), (LANE_OF_WRITES, LANE_OF_READS));
    }

    #[test]
    fn replies_are_judged_at_every_length() {
        let mut data = Data::new(10, 11, 8);
        let mut get = Strings::new(&mut data, Mix::Get, 1, 0);
        let right = get.right_answer(0, 3);
        for length in 0..right.len() {
            assert_eq!(get.check(0, 3, &right[..length]), Check::Incomplete);
        }
        assert_eq!(get.check(0, 3, &right), Check::Right(right.len()));
        assert_eq!(get.check(0, 4, &right), Check::Wrong);
        assert_eq!(get.check(0, 3, b"$-1\r\n"), Check::Wrong);
        assert_eq!(get.check(0, 3, b"-"), Check::Wrong);
        let mut data = Data::new(10, 11, 8);
        let mut set = Strings::new(&mut data, Mix::Set, 1, 0);
        assert_eq!(set.check(0, 3, b"+O"), Check::Incomplete);
        assert_eq!(set.check(0, 3, b"+OK\r\n+OK"), Check::Right(5));
        assert_eq!(set.check(0, 3, b"-ERR no"), Check::Wrong);
    }
}
