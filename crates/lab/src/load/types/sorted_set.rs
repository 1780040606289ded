//! One sorted set. Members are numbered names, scores are whole numbers of eight digits, so that a
//! score has one way to be written.

use crate::load::data::write_digits;
use crate::load::question::Question;
use crate::load::random::mix;
use crate::load::words::{
    INTEGER_BYTES_MAX, NAME_BULK_BYTES, NAME_BYTES, Pattern, Word, array, bulk, bulk_number,
    integer, name,
};

use super::{MEMBERS_AT_ONCE, members_of};

const KEY: &str = "board";

/// What the server must hold.
#[derive(Debug)]
pub struct SortedSet {
    /// By member.
    scores: Vec<u32>,
    /// All scores that one [`Zadd`] writes follow from the member and this.
    version: u32,
    /// Whether scores changed since [`Self::sort`].
    unsorted: bool,
    /// Rank by member.
    ranks: Vec<u32>,
    /// All members by rank, as bulk strings.
    bulks: Vec<u8>,
}

const SCORE_MIN: u32 = 10_000_000;
/// Increments have room above it before there are nine digits.
const SCORE_MAX: u32 = 90_000_000;
const SCORE_BYTES: usize = 8;

const fn score(member: u32, version: u32) -> u32 {
    SCORE_MIN
        + (mix((member as u64) << 32 | version as u64) % (SCORE_MAX - SCORE_MIN) as u64) as u32
}

impl SortedSet {
    /// `count` members.
    #[must_use]
    pub fn new(count: u32) -> Self {
        let scores = (0..count).map(|member| score(member, 0)).collect();
        Self { scores, version: 0, unsorted: true, ranks: Vec::new(), bulks: Vec::new() }
    }

    const fn count(&self) -> u32 {
        self.scores.len() as u32
    }

    /// Computes the ranks.
    fn sort(&mut self) {
        if !self.unsorted {
            return;
        }
        // Equal scores go by the members' bytes, which is by their numbers.
        let both = |(member, &score): (usize, &u32)| u64::from(score) << 32 | member as u64;
        let mut order: Vec<u64> = self.scores.iter().enumerate().map(both).collect();
        order.sort_unstable();
        self.ranks.resize(self.scores.len(), 0);
        self.bulks.clear();
        for (rank, both) in order.iter().enumerate() {
            let member = *both as u32;
            self.ranks[member as usize] = rank as u32;
            bulk(&name(b'm', member), &mut self.bulks);
        }
        self.unsorted = false;
    }
}

/// `ZADD` of new members, many at once.
#[derive(Debug)]
pub struct Fill<'a>(pub &'a SortedSet);

impl Question for Fill<'_> {
    fn count(&self) -> u32 {
        self.0.count().div_ceil(MEMBERS_AT_ONCE)
    }

    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        let members = members_of(about, self.0.count());
        array(2 + 2 * members.len(), to);
        bulk(b"ZADD", to);
        bulk(KEY.as_bytes(), to);
        for member in members {
            bulk_number(self.0.scores[member as usize].into(), to);
            bulk(&name(b'm', member), to);
        }
    }

    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        integer(members_of(about, self.0.count()).len() as u64, to);
    }
}

/// `ZADD` of a new score for a member that is there.
#[derive(Debug)]
pub struct Zadd<'a> {
    set: &'a mut SortedSet,
    request: Pattern,
}

impl<'a> Zadd<'a> {
    /// Every score that it writes is of one new version.
    #[must_use]
    pub fn new(set: &'a mut SortedSet) -> Self {
        set.version += 1;
        set.unsorted = true;
        let words =
            [Word::Is("ZADD"), Word::Is(KEY), Word::Open(SCORE_BYTES), Word::Open(NAME_BYTES)];
        Self { set, request: Pattern::new(&words) }
    }
}

impl Question for Zadd<'_> {
    fn count(&self) -> u32 {
        self.set.count()
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        let score = score(about, self.set.version);
        self.set.scores[about as usize] = score;
        let mut request = self.request.append(to);
        write_digits(score, request.word(0));
        request.word(1).copy_from_slice(&name(b'm', about));
    }

    #[inline]
    fn answer(&self, _: u32, to: &mut Vec<u8>) {
        integer(0, to);
    }
}

/// `ZINCRBY` of a member that is there, by 1000 to 9999.
#[derive(Debug)]
pub struct Zincrby<'a> {
    set: &'a mut SortedSet,
    request: Pattern,
}

impl<'a> Zincrby<'a> {
    /// Of any member.
    #[must_use]
    pub fn new(set: &'a mut SortedSet) -> Self {
        set.unsorted = true;
        let words = [Word::Is("ZINCRBY"), Word::Is(KEY), Word::Open(4), Word::Open(NAME_BYTES)];
        Self { set, request: Pattern::new(&words) }
    }
}

impl Question for Zincrby<'_> {
    const ORDERED: bool = true;

    fn count(&self) -> u32 {
        self.set.count()
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        let score = &mut self.set.scores[about as usize];
        let increment = 1000 + (mix(u64::from(*score) << 32 | u64::from(about)) % 9000) as u32;
        *score += increment;
        let mut request = self.request.append(to);
        write_digits(increment, request.word(0));
        request.word(1).copy_from_slice(&name(b'm', about));
    }

    #[inline]
    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        bulk_number(self.set.scores[about as usize].into(), to);
    }
}

/// `ZSCORE` of a member that is there.
#[derive(Debug)]
pub struct Zscore<'a> {
    set: &'a SortedSet,
    request: Pattern,
}

impl<'a> Zscore<'a> {
    /// Of any member.
    #[must_use]
    pub fn new(set: &'a SortedSet) -> Self {
        let words = [Word::Is("ZSCORE"), Word::Is(KEY), Word::Open(NAME_BYTES)];
        Self { set, request: Pattern::new(&words) }
    }
}

impl Question for Zscore<'_> {
    fn count(&self) -> u32 {
        self.set.count()
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        self.request.append(to).word(0).copy_from_slice(&name(b'm', about));
    }

    #[inline]
    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        bulk_number(self.set.scores[about as usize].into(), to);
    }
}

/// `ZRANK` of a member that is there.
#[derive(Debug)]
pub struct Zrank<'a> {
    set: &'a SortedSet,
    request: Pattern,
}

impl<'a> Zrank<'a> {
    /// Of any member.
    #[must_use]
    pub fn new(set: &'a mut SortedSet) -> Self {
        set.sort();
        let words = [Word::Is("ZRANK"), Word::Is(KEY), Word::Open(NAME_BYTES)];
        Self { set, request: Pattern::new(&words) }
    }
}

impl Question for Zrank<'_> {
    fn count(&self) -> u32 {
        self.set.count()
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        self.request.append(to).word(0).copy_from_slice(&name(b'm', about));
    }

    #[inline]
    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        integer(self.set.ranks[about as usize].into(), to);
    }
}

/// `ZRANGE` by rank.
#[derive(Debug)]
pub struct Zrange<'a> {
    set: &'a SortedSet,
    length: u32,
}

impl<'a> Zrange<'a> {
    /// Of `length` members, not more than there are, from any rank on.
    #[must_use]
    pub fn new(set: &'a mut SortedSet, length: u32) -> Self {
        set.sort();
        Self { length: length.min(set.count()), set }
    }
}

impl Question for Zrange<'_> {
    fn count(&self) -> u32 {
        self.set.count() - self.length + 1
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        array(4, to);
        bulk(b"ZRANGE", to);
        bulk(KEY.as_bytes(), to);
        bulk_number(about.into(), to);
        bulk_number((about + self.length - 1).into(), to);
    }

    #[inline]
    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        array(self.length as usize, to);
        let members = &self.set.bulks[about as usize * NAME_BULK_BYTES..];
        to.extend_from_slice(&members[..self.length as usize * NAME_BULK_BYTES]);
    }

    fn answer_bytes_max(&self) -> usize {
        INTEGER_BYTES_MAX + self.length as usize * NAME_BULK_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(question: &impl Question, about: u32) -> String {
        let mut answer = Vec::new();
        question.answer(about, &mut answer);
        assert!(answer.len() <= question.answer_bytes_max());
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn ranks_follow_every_change() {
        let mut set = SortedSet::new(1000);
        for round in 0..3 {
            let mut requests = Vec::new();
            for member in [3, 500, 999] {
                Zadd::new(&mut set).write(member, &mut requests);
                Zincrby::new(&mut set).write(member, &mut requests);
                let score = set.scores[member as usize];
                assert_eq!(answer(&Zscore::new(&set), member), format!("$8\r\n{score}\r\n"));
            }
            let mut order: Vec<u32> = (0..1000).collect();
            order.sort_by_key(|&member| (set.scores[member as usize], name(b'm', member)));
            for (rank, &member) in order.iter().enumerate() {
                assert_eq!(
                    answer(&Zrank::new(&mut set), member),
                    format!(":{rank}\r\n"),
                    "{round}"
                );
            }
            let members = order[17..27].iter().map(|member| format!("$10\r\nm:{member:08}\r\n"));
            let range = "*10\r\n".to_owned() + &members.collect::<String>();
            assert_eq!(answer(&Zrange::new(&mut set, 10), 17), range);
        }
        let last = Zrange::new(&mut set, 10);
        assert_eq!(last.count(), 991);
    }

    #[test]
    fn scores_have_eight_digits() {
        assert!((0..10_000).all(|member| score(member, 7).to_string().len() == SCORE_BYTES));
    }
}
