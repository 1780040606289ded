//! One kind of request, what its one right answer is, and a workload that asks it again and again.

use std::cell::RefCell;

use super::random::Random;
use super::words::INTEGER_BYTES_MAX;
use super::workload::{Check, LANE_OF_READS, Workload};

/// A request that can be made about things numbered from 0, and the judge of its replies.
pub trait Question {
    /// How many things it can be about.
    fn count(&self) -> u32;

    /// Whether the answer depends on the order of requests about one thing. Then only one
    /// connection asks about it, and never twice in one batch.
    fn is_ordered(&self) -> bool {
        false
    }

    /// Appends the request about thing `about`, and notes what it changes.
    fn write(&mut self, about: u32, to: &mut Vec<u8>);

    /// Appends the right answer to the last request about thing `about`.
    fn answer(&self, about: u32, to: &mut Vec<u8>);

    /// The most bytes that an answer takes; by default, of one that is an integer.
    fn answer_bytes_max(&self) -> usize {
        INTEGER_BYTES_MAX
    }

    /// Judges received bytes as the answer; `room` is empty space to write the right one into.
    #[inline]
    fn judge(&self, about: u32, bytes: &[u8], room: &mut Vec<u8>) -> Check {
        self.answer(about, room);
        exactly(room, bytes)
    }
}

/// A [`Question`] made of two functions over a model of what the server holds: see [`ask`].
pub struct Ask<M, W, A> {
    model: M,
    count: u32,
    is_ordered: bool,
    answer_bytes_max: usize,
    write: W,
    answer: A,
}

/// A question about `count` things. `write` is [`Question::write`] and `answer` is
/// [`Question::answer`], both over `model`.
#[must_use]
pub const fn ask<M, W, A>(model: M, count: u32, write: W, answer: A) -> Ask<M, W, A>
where
    W: FnMut(&mut M, u32, &mut Vec<u8>),
    A: Fn(&M, u32, &mut Vec<u8>),
{
    let answer_bytes_max = INTEGER_BYTES_MAX;
    Ask { model, count, is_ordered: false, answer_bytes_max, write, answer }
}

impl<M, W, A> Ask<M, W, A> {
    /// The answer depends on the order of requests: see [`Question::is_ordered`].
    #[must_use]
    pub fn ordered(self) -> Self {
        Self { is_ordered: true, ..self }
    }

    /// Answers take up to this many bytes.
    #[must_use]
    pub fn answer_bytes_max(self, bytes: usize) -> Self {
        Self { answer_bytes_max: bytes, ..self }
    }
}

impl<M, W, A> Question for Ask<M, W, A>
where
    W: FnMut(&mut M, u32, &mut Vec<u8>),
    A: Fn(&M, u32, &mut Vec<u8>),
{
    fn count(&self) -> u32 {
        self.count
    }

    fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        (self.write)(&mut self.model, about, to);
    }

    #[inline]
    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        (self.answer)(&self.model, about, to);
    }

    fn answer_bytes_max(&self) -> usize {
        self.answer_bytes_max
    }
}

/// Judges `bytes` where they can only begin with `right`.
#[inline]
#[must_use]
pub fn exactly(right: &[u8], bytes: &[u8]) -> Check {
    let known = bytes.len().min(right.len());
    if bytes[..known] != right[..known] {
        Check::Wrong
    } else if known == right.len() {
        Check::Right(known)
    } else {
        Check::Incomplete
    }
}

/// What a batch asks about.
enum Order {
    /// Anything.
    Random(Random),
    /// Things that belong to the connection: number `connection`, and every `clients`-th after it.
    Own { random: Random, clients: u32 },
    /// Everything once.
    Once { next: u32 },
}

/// A [`Question`] as a workload.
pub struct Asking<Q> {
    question: Q,
    order: Order,
    depth: u32,
    requests: Vec<u8>,
    /// Space for right answers, kept from reply to reply.
    room: RefCell<Vec<u8>>,
}

impl<Q: Question> Asking<Q> {
    /// Batches of `depth` requests about random things, without end.
    ///
    /// # Panics
    /// When there are too few things for `clients` connections to have `depth` of their own each
    /// (see [`things_min`]), or none.
    #[must_use]
    pub fn at_random(question: Q, depth: usize, clients: usize, seed: u64) -> Self {
        let random = Random::new(seed);
        let order = if question.is_ordered() {
            assert!(question.count() >= things_min(clients, depth), "too few things to ask about");
            Order::Own { random, clients: u32::try_from(clients).unwrap_or(u32::MAX) }
        } else {
            assert!(question.count() > 0, "nothing to ask about");
            Order::Random(random)
        };
        Self::new(question, order, depth)
    }

    /// Batches of `depth` requests about everything, once, in order.
    #[must_use]
    pub fn all_in_order(question: Q, depth: usize) -> Self {
        Self::new(question, Order::Once { next: 0 }, depth)
    }

    fn new(question: Q, order: Order, depth: usize) -> Self {
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        Self { question, order, depth, requests: Vec::new(), room: RefCell::default() }
    }

    /// What request `index` of a batch is about.
    #[inline]
    fn next(&mut self, connection: usize, index: u32) -> Option<u32> {
        let count = self.question.count();
        match &mut self.order {
            Order::Random(random) => Some(random.below(count)),
            Order::Own { random, clients } => {
                // Each request of a batch has a slice of the connection's things for itself.
                let slice = count / *clients / self.depth;
                let row = index * slice + random.below(slice);
                Some(row * *clients + connection as u32)
            }
            Order::Once { next } => {
                let about = *next;
                *next = about.saturating_add(1);
                (about < count).then_some(about)
            }
        }
    }
}

/// How many things an ordered question needs at least.
#[must_use]
pub fn things_min(clients: usize, depth: usize) -> u32 {
    u32::try_from(clients.saturating_mul(depth)).unwrap_or(u32::MAX)
}

impl<Q: Question> Workload for Asking<Q> {
    #[inline]
    fn batch(&mut self, connection: usize, keys: &mut Vec<u32>) -> &[u8] {
        self.requests.clear();
        for index in 0..self.depth {
            let Some(about) = self.next(connection, index) else { break };
            self.question.write(about, &mut self.requests);
            keys.push(about);
        }
        &self.requests
    }

    #[inline]
    fn check(&mut self, _: usize, key: u32, bytes: &[u8]) -> Check {
        let mut room = self.room.borrow_mut();
        room.clear();
        self.question.judge(key, bytes, &mut room)
    }

    fn right_answer(&self, _: usize, key: u32) -> Vec<u8> {
        let mut answer = Vec::new();
        self.question.answer(key, &mut answer);
        answer
    }

    fn lane(&self, _: usize) -> usize {
        LANE_OF_READS
    }

    fn reply_bytes_max(&self) -> usize {
        self.depth as usize * self.question.answer_bytes_max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo(u32);

    impl Question for Echo {
        fn count(&self) -> u32 {
            self.0
        }

        fn is_ordered(&self) -> bool {
            true
        }

        fn write(&mut self, about: u32, to: &mut Vec<u8>) {
            to.extend_from_slice(&about.to_le_bytes());
        }

        fn answer(&self, about: u32, to: &mut Vec<u8>) {
            to.extend_from_slice(format!(":{about}\r\n").as_bytes());
        }

        fn answer_bytes_max(&self) -> usize {
            16
        }
    }

    #[test]
    fn ordered_questions_belong_to_one_connection_and_repeat_in_no_batch() {
        let (clients, depth) = (5, 7);
        let mut asking = Asking::at_random(Echo(40), depth, clients, 1);
        let mut seen = [None; 40];
        for _ in 0..1000 {
            for connection in 0..clients {
                let mut keys = Vec::new();
                asking.batch(connection, &mut keys);
                assert_eq!(keys.len(), depth);
                for &key in &keys {
                    assert_eq!(*seen[key as usize].get_or_insert(connection), connection);
                }
                keys.sort_unstable();
                keys.dedup();
                assert_eq!(keys.len(), depth);
            }
        }
        assert_eq!(things_min(clients, depth), 35);
    }

    #[test]
    fn all_in_order_asks_once() {
        let mut asking = Asking::all_in_order(Echo(10), 4);
        let mut keys = Vec::new();
        while !asking.batch(keys.len() % 3, &mut keys).is_empty() {}
        assert_eq!(keys, (0..10).collect::<Vec<u32>>());
    }

    #[test]
    fn judged_at_every_length() {
        let right = b":123\r\n";
        for length in 0..right.len() {
            assert_eq!(exactly(right, &right[..length]), Check::Incomplete);
        }
        assert_eq!(exactly(right, b":123\r\n:1"), Check::Right(6));
        assert_eq!(exactly(right, b":12\r\n"), Check::Wrong);
        assert_eq!(exactly(right, b":124\r\n"), Check::Wrong);
    }
}
