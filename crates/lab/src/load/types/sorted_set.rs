//! One sorted set. Members are numbered names, scores are whole numbers of eight digits, so that a
//! score has one way to be written.

use crate::load::data::write_digits;
use crate::load::question::{Question, ask};
use crate::load::random::mix;
use crate::load::words::Word::{Is, Open};
use crate::load::words::{
    INTEGER_BYTES_MAX, NAME_BULK_BYTES, NAME_BYTES, Pattern, array, bulk, bulk_number, integer,
    name,
};

use super::{MEMBERS_AT_ONCE, members_of};

const KEY: &str = "board";

/// What the server must hold.
#[derive(Debug)]
pub struct SortedSet {
    /// By member.
    scores: Vec<u32>,
    /// All scores that one [`zadd`] writes follow from the member and this.
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
pub fn fill(set: &SortedSet) -> impl Question {
    ask(
        set,
        set.count().div_ceil(MEMBERS_AT_ONCE),
        |set, about, to| {
            let members = members_of(about, set.count());
            array(2 + 2 * members.len(), to);
            bulk(b"ZADD", to);
            bulk(KEY.as_bytes(), to);
            for member in members {
                bulk_number(set.scores[member as usize].into(), to);
                bulk(&name(b'm', member), to);
            }
        },
        |set, about, to| integer(members_of(about, set.count()).len() as u64, to),
    )
}

/// `ZADD` of a new score for a member that is there. All scores are of one new version.
pub fn zadd(set: &mut SortedSet) -> impl Question {
    set.version += 1;
    set.unsorted = true;
    let request = Pattern::new(&[Is("ZADD"), Is(KEY), Open(SCORE_BYTES), Open(NAME_BYTES)]);
    let count = set.count();
    let write = move |set: &mut &mut SortedSet, about, to: &mut Vec<u8>| {
        let score = score(about, set.version);
        set.scores[about as usize] = score;
        let mut request = request.append(to);
        write_digits(score, request.word(0));
        request.word(1).copy_from_slice(&name(b'm', about));
    };
    ask(set, count, write, |_, _, to| integer(0, to))
}

/// `ZINCRBY` of a member that is there, by 1000 to 9999.
pub fn zincrby(set: &mut SortedSet) -> impl Question {
    set.unsorted = true;
    let request = Pattern::new(&[Is("ZINCRBY"), Is(KEY), Open(4), Open(NAME_BYTES)]);
    let count = set.count();
    let write = move |set: &mut &mut SortedSet, about, to: &mut Vec<u8>| {
        let score = &mut set.scores[about as usize];
        let increment = 1000 + (mix(u64::from(*score) << 32 | u64::from(about)) % 9000) as u32;
        *score += increment;
        let mut request = request.append(to);
        write_digits(increment, request.word(0));
        request.word(1).copy_from_slice(&name(b'm', about));
    };
    ask(set, count, write, |set, about, to| bulk_number(set.scores[about as usize].into(), to))
        .ordered()
}

/// A request about one member.
fn of_member(command: &str) -> Pattern {
    Pattern::new(&[Is(command), Is(KEY), Open(NAME_BYTES)])
}

/// `ZSCORE` of a member that is there.
pub fn zscore(set: &SortedSet) -> impl Question {
    ask(set, set.count(), of_member("ZSCORE").about(b'm'), |set, about, to| {
        bulk_number(set.scores[about as usize].into(), to);
    })
}

/// `ZRANK` of a member that is there.
pub fn zrank(set: &mut SortedSet) -> impl Question {
    set.sort();
    ask(&*set, set.count(), of_member("ZRANK").about(b'm'), |set, about, to| {
        integer(set.ranks[about as usize].into(), to);
    })
}

/// `ZRANGE` by rank: `length` members, not more than there are, from any rank on.
pub fn zrange(set: &mut SortedSet, length: u32) -> impl Question {
    set.sort();
    let length = length.min(set.count());
    let bulks = length as usize * NAME_BULK_BYTES;
    ask(
        &*set,
        set.count() - length + 1,
        move |_, about, to| {
            array(4, to);
            bulk(b"ZRANGE", to);
            bulk(KEY.as_bytes(), to);
            bulk_number(about.into(), to);
            bulk_number((about + length - 1).into(), to);
        },
        move |set, about, to| {
            array(length as usize, to);
            to.extend_from_slice(&set.bulks[about as usize * NAME_BULK_BYTES..][..bulks]);
        },
    )
    .answer_bytes_max(INTEGER_BYTES_MAX + bulks)
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
                zadd(&mut set).write(member, &mut requests);
                zincrby(&mut set).write(member, &mut requests);
                let score = set.scores[member as usize];
                assert_eq!(answer(&zscore(&set), member), format!("$8\r\n{score}\r\n"));
            }
            let mut order: Vec<u32> = (0..1000).collect();
            order.sort_by_key(|&member| (set.scores[member as usize], name(b'm', member)));
            for (rank, &member) in order.iter().enumerate() {
                assert_eq!(answer(&zrank(&mut set), member), format!(":{rank}\r\n"), "{round}");
            }
            let members = order[17..27].iter().map(|member| format!("$10\r\nm:{member:08}\r\n"));
            let range = "*10\r\n".to_owned() + &members.collect::<String>();
            assert_eq!(answer(&zrange(&mut set, 10), 17), range);
        }
        let last = zrange(&mut set, 10);
        assert_eq!(last.count(), 991);
    }

    #[test]
    fn scores_have_eight_digits() {
        assert!((0..10_000).all(|member| score(member, 7).to_string().len() == SCORE_BYTES));
    }
}
