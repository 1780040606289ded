//! Large values, commands that take long on them, and small GETs on other connections meanwhile.
//!
//! A reply of a million elements is judged in pieces as it comes in, a piece being a "key" of the
//! batch, so that judging it holds up the other connections for microseconds only.

use std::cell::RefCell;

use super::question::{Question, exactly};
use super::random::mix;
use super::words::{NAME_BULK_BYTES, array, bulk, bulk_number, integer, name};
use super::workload::{Check, LANE_OF_READS, LANE_OF_WRITES, Strings, Workload};

/// How large the values are.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Members of the sorted set.
    pub sorted_set: u32,
    /// Fields of the hash.
    pub hash: u32,
    /// Members of each of the two sets, half of which both have.
    pub set: u32,
    /// Elements of the list.
    pub list: u32,
}

/// A command that takes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `DEL` of the sorted set; only once, as it is gone then.
    DelSortedSet,
    /// `HGETALL`.
    Hgetall,
    /// `SMEMBERS` of the first set.
    Smembers,
    /// `ZRANGE 0 -1` of the sorted set.
    Zrange,
    /// `LRANGE 0 -1`.
    Lrange,
    /// `SUNIONSTORE` of the two sets, over what it stored the last time.
    Sunionstore,
    /// `SINTERSTORE` of them.
    Sinterstore,
    /// `ZUNIONSTORE` of them.
    Zunionstore,
    /// `SORT ALPHA STORE` of the list.
    Sort,
    /// `COPY` of the first set.
    Copy,
}

/// Keys of the values, and what loads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The sorted set, with scores in no order.
    SortedSet,
    /// The hash; each value has its field's number.
    Hash,
    /// The first set.
    FirstSet,
    /// The second set.
    SecondSet,
    /// The list, to be loaded over one connection.
    List,
}

impl Value {
    const fn key(self) -> &'static str {
        match self {
            Self::SortedSet => "large:zset",
            Self::Hash => "large:hash",
            Self::FirstSet => "large:set:1",
            Self::SecondSet => "large:set:2",
            Self::List => "large:list",
        }
    }
}

/// Loads a value, many elements with each request.
#[derive(Debug)]
pub struct Fill {
    value: Value,
    sizes: Sizes,
}

/// Elements that one request carries.
const ELEMENTS_AT_ONCE: u32 = 50;

impl Fill {
    /// Loads `value`, which is not there.
    #[must_use]
    pub const fn new(value: Value, sizes: Sizes) -> Self {
        Self { value, sizes }
    }

    const fn elements(&self) -> u32 {
        match self.value {
            Value::SortedSet => self.sizes.sorted_set,
            Value::Hash => self.sizes.hash,
            Value::FirstSet | Value::SecondSet => self.sizes.set,
            Value::List => self.sizes.list,
        }
    }

    fn range(&self, about: u32) -> std::ops::Range<u32> {
        let start = about * ELEMENTS_AT_ONCE;
        start..self.elements().min(start + ELEMENTS_AT_ONCE)
    }
}

impl Question for Fill {
    fn count(&self) -> u32 {
        self.elements().div_ceil(ELEMENTS_AT_ONCE)
    }

    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        let (command, words) = match self.value {
            Value::SortedSet => (&b"ZADD"[..], 2),
            Value::Hash => (&b"HSET"[..], 2),
            Value::FirstSet | Value::SecondSet => (&b"SADD"[..], 1),
            Value::List => (&b"RPUSH"[..], 1),
        };
        let range = self.range(about);
        array(2 + words * range.len(), to);
        bulk(command, to);
        bulk(self.value.key().as_bytes(), to);
        for number in range {
            match self.value {
                Value::SortedSet => {
                    bulk_number(mix(number.into()) % 100_000_000, to);
                    bulk(&name(b'm', number), to);
                }
                Value::Hash => {
                    bulk(&name(b'f', number), to);
                    bulk(&name(b'v', number), to);
                }
                Value::FirstSet => bulk(&name(b'm', number), to),
                Value::SecondSet => bulk(&name(b'm', number + self.sizes.set / 2), to),
                Value::List => bulk(&name(b'e', number), to),
            }
        }
    }

    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        let range = self.range(about);
        let added = if self.value == Value::List { range.end } else { range.len() as u32 };
        integer(added.into(), to);
    }

    fn answer_bytes_max(&self) -> usize {
        super::words::INTEGER_BYTES_MAX
    }
}

/// One connection that does commands one after the other, and others that `GET`.
pub struct Stall<'a> {
    gets: Strings<'a>,
    /// The connection with the commands.
    number: usize,
    sizes: Sizes,
    commands: Vec<Command>,
    /// Whether, after the first, another command should follow.
    more: Box<dyn Fn() -> bool + 'a>,
    asked: usize,
    deleted: bool,
    ended: bool,
    current: Command,
    request: Vec<u8>,
    /// Fields of the reply under way that have come, one bit each.
    seen: RefCell<Vec<u64>>,
    room: RefCell<Vec<u8>>,
}

/// Elements of a piece of a reply.
const PIECE: u32 = 64;
/// What is read at once: more than a piece, and judged in a fraction of a millisecond.
const RECEIVED_BYTES: usize = 64 << 10;

impl<'a> Stall<'a> {
    /// `gets` on all connections but `number`, which does `commands` in turn: each at most once if
    /// `more` is false by then, none if there are none.
    pub fn new(
        gets: Strings<'a>,
        number: usize,
        sizes: Sizes,
        commands: &[Command],
        more: impl Fn() -> bool + 'a,
    ) -> Self {
        Self {
            gets,
            number,
            sizes,
            commands: commands.to_vec(),
            more: Box::new(more),
            asked: 0,
            deleted: false,
            ended: false,
            current: Command::Hgetall,
            request: Vec::new(),
            seen: RefCell::default(),
            room: RefCell::default(),
        }
    }

    /// Whether the last command is answered and none follows.
    #[must_use]
    pub const fn ended(&self) -> bool {
        self.ended
    }

    /// How many commands were asked.
    #[must_use]
    pub const fn asked(&self) -> usize {
        self.asked
    }

    fn next_command(&mut self) -> Option<Command> {
        if self.asked > 0 && !(self.more)() {
            return None;
        }
        let deleted = self.deleted;
        let possible = |command: &&Command| !deleted || **command != Command::DelSortedSet;
        let turn = self.asked % self.commands.len().max(1);
        let (before, from) = self.commands.split_at(turn);
        let command = *from.iter().chain(before).find(possible)?;
        self.asked += 1;
        self.deleted |= command == Command::DelSortedSet;
        Some(command)
    }

    /// Pieces in which the reply to the current command comes.
    const fn pieces(&self) -> u32 {
        match self.current {
            Command::Hgetall | Command::Smembers | Command::Zrange | Command::Lrange => {
                1 + self.elements_of_reply().div_ceil(PIECE)
            }
            _ => 1,
        }
    }

    /// Elements of the reply to the current command; fields with their values where it has such.
    const fn elements_of_reply(&self) -> u32 {
        match self.current {
            Command::Hgetall => self.sizes.hash,
            Command::Smembers => self.sizes.set,
            Command::Zrange => self.sizes.sorted_set,
            Command::Lrange => self.sizes.list,
            _ => 0,
        }
    }

    /// One element of the reply to the current command.
    fn write_element(&self, number: u32, to: &mut Vec<u8>) {
        match self.current {
            Command::Hgetall => {
                bulk(&name(b'f', number), to);
                bulk(&name(b'v', number), to);
            }
            Command::Lrange => bulk(&name(b'e', number), to),
            _ => bulk(&name(b'm', number), to),
        }
    }

    /// The numbers of the elements in piece `piece` of `count`.
    fn elements(piece: u32, count: u32) -> std::ops::Range<u32> {
        let start = (piece - 1) * PIECE;
        start..count.min(start + PIECE)
    }

    fn write_piece(&self, piece: u32, to: &mut Vec<u8>) {
        match self.current {
            Command::DelSortedSet | Command::Copy => integer(1, to),
            Command::Sunionstore | Command::Zunionstore => {
                integer((self.sizes.set + self.sizes.set / 2).into(), to);
            }
            Command::Sinterstore => integer((self.sizes.set - self.sizes.set / 2).into(), to),
            Command::Sort => integer(self.sizes.list.into(), to),
            Command::Hgetall if piece == 0 => array(2 * self.sizes.hash as usize, to),
            _ if piece == 0 => array(self.elements_of_reply() as usize, to),
            // In any order but a list's; for messages.
            _ => {
                for number in Self::elements(piece, self.elements_of_reply()) {
                    self.write_element(number, to);
                }
            }
        }
    }

    /// Judges a piece of a reply in any order: so many elements, each right, none that came before.
    fn judge_each(&self, piece: u32, bytes: &[u8], room: &mut Vec<u8>) -> Check {
        let all = self.elements_of_reply();
        let count = Self::elements(piece, all).len();
        let names = if self.current == Command::Hgetall { 2 } else { 1 };
        let whole = count * names * NAME_BULK_BYTES;
        let Some(elements) = bytes.get(..whole) else { return Check::Incomplete };
        let mut seen = self.seen.borrow_mut();
        for element in elements.chunks_exact(names * NAME_BULK_BYTES) {
            let digits = std::str::from_utf8(&element[7..15]).unwrap_or_default();
            let Some(number) = digits.parse::<u32>().ok().filter(|&n| n < all) else {
                return Check::Wrong;
            };
            room.clear();
            self.write_element(number, room);
            let (word, bit) = (number as usize / 64, 1 << (number % 64));
            if *room != element || seen[word] & bit != 0 {
                return Check::Wrong;
            }
            seen[word] |= bit;
        }
        Check::Right(whole)
    }
}

impl Workload for Stall<'_> {
    fn batch(&mut self, connection: usize, keys: &mut Vec<u32>) -> &[u8] {
        if connection != self.number {
            return self.gets.batch(connection, keys);
        }
        self.request.clear();
        let Some(command) = self.next_command() else {
            self.ended = true;
            return &self.request;
        };
        self.current = command;
        let words: &[&str] = match command {
            Command::DelSortedSet => &["DEL", Value::SortedSet.key()],
            Command::Hgetall => &["HGETALL", Value::Hash.key()],
            Command::Smembers => &["SMEMBERS", Value::FirstSet.key()],
            Command::Zrange => &["ZRANGE", Value::SortedSet.key(), "0", "-1"],
            Command::Lrange => &["LRANGE", Value::List.key(), "0", "-1"],
            Command::Sunionstore => {
                &["SUNIONSTORE", "large:union", Value::FirstSet.key(), Value::SecondSet.key()]
            }
            Command::Sinterstore => {
                &["SINTERSTORE", "large:common", Value::FirstSet.key(), Value::SecondSet.key()]
            }
            Command::Zunionstore => {
                let (first, second) = (Value::FirstSet.key(), Value::SecondSet.key());
                &["ZUNIONSTORE", "large:scores", "2", first, second]
            }
            Command::Sort => &["SORT", Value::List.key(), "ALPHA", "STORE", "large:sorted"],
            Command::Copy => &["COPY", Value::FirstSet.key(), "large:copy", "REPLACE"],
        };
        array(words.len(), &mut self.request);
        for word in words {
            bulk(word.as_bytes(), &mut self.request);
        }
        let seen = self.seen.get_mut();
        seen.clear();
        let Sizes { hash, set, sorted_set, .. } = self.sizes;
        seen.resize(hash.max(set).max(sorted_set).div_ceil(64) as usize, 0);
        keys.extend(0..self.pieces());
        &self.request
    }

    fn check(&mut self, connection: usize, key: u32, bytes: &[u8]) -> Check {
        if connection != self.number {
            return self.gets.check(connection, key, bytes);
        }
        let mut room = self.room.borrow_mut();
        room.clear();
        let in_any_order = [Command::Hgetall, Command::Smembers, Command::Zrange];
        if in_any_order.contains(&self.current) && key > 0 {
            return self.judge_each(key, bytes, &mut room);
        }
        self.write_piece(key, &mut room);
        exactly(&room, bytes)
    }

    fn right_answer(&self, connection: usize, key: u32) -> Vec<u8> {
        if connection != self.number {
            return self.gets.right_answer(connection, key);
        }
        let mut answer = Vec::new();
        self.write_piece(key, &mut answer);
        answer
    }

    fn lane(&self, connection: usize) -> usize {
        if connection == self.number { LANE_OF_WRITES } else { LANE_OF_READS }
    }

    fn reply_bytes_max(&self) -> usize {
        RECEIVED_BYTES.max(self.gets.reply_bytes_max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::data::Data;
    use crate::load::workload::Mix;

    const SIZES: Sizes = Sizes { sorted_set: 10, hash: 100, set: 11, list: 100 };

    fn stall<'a>(data: &'a mut Data, commands: &[Command], more: bool) -> Stall<'a> {
        Stall::new(Strings::new(data, Mix::Get, 1, 1), 1, SIZES, commands, move || more)
    }

    #[test]
    fn commands_come_in_turn_and_the_delete_once() {
        let all = [Command::DelSortedSet, Command::Hgetall, Command::Lrange];
        let mut data = Data::new(1, 11, 8);
        let mut in_turn = stall(&mut data, &all, true);
        let asked: Vec<Command> = (0..6).filter_map(|_| in_turn.next_command()).collect();
        assert_eq!(asked[..3], all);
        assert_eq!(asked[3..].iter().filter(|&&command| command == all[0]).count(), 0);
        let mut data = Data::new(1, 11, 8);
        let mut once = stall(&mut data, &all[1..], false);
        assert!(!once.batch(1, &mut Vec::new()).is_empty() && !once.ended());
        assert!(once.batch(1, &mut Vec::new()).is_empty() && once.ended());
        assert_eq!(once.asked(), 1);
    }

    #[test]
    fn pairs_may_come_in_any_order_but_once() {
        let mut data = Data::new(1, 11, 8);
        let mut all = stall(&mut data, &[Command::Hgetall], true);
        let mut pieces = Vec::new();
        all.batch(1, &mut pieces);
        assert_eq!(pieces, [0, 1, 2]);
        assert_eq!(all.check(1, 0, b"*200\r\n$10"), Check::Right(6));
        let in_order = [all.right_answer(1, 1), all.right_answer(1, 2)].concat();
        let pair = |number: usize| in_order[number * 34..][..34].to_vec();
        let first: Vec<u8> = (36..100).rev().flat_map(pair).collect();
        assert_eq!(all.check(1, 1, &first[..first.len() - 1]), Check::Incomplete);
        assert_eq!(all.check(1, 1, &first), Check::Right(64 * 34));
        let again: Vec<u8> = (1..37).flat_map(pair).collect();
        assert_eq!(all.check(1, 2, &again), Check::Wrong, "36 came already");
        all.batch(1, &mut Vec::new());
        let mut wrong = all.right_answer(1, 1);
        wrong[64 * 34 - 3] ^= 1;
        assert_eq!(all.check(1, 1, &wrong), Check::Wrong);
        let mut data = Data::new(1, 11, 8);
        let mut members = stall(&mut data, &[Command::Smembers], true);
        members.batch(1, &mut Vec::new());
        let mut right = members.right_answer(1, 1);
        right.rotate_left(3 * NAME_BULK_BYTES);
        assert_eq!(members.check(1, 1, &right), Check::Right(11 * NAME_BULK_BYTES));
    }

    #[test]
    fn elements_must_come_in_order() {
        let mut data = Data::new(1, 11, 8);
        let mut list = stall(&mut data, &[Command::Lrange], true);
        list.batch(1, &mut Vec::new());
        let right = list.right_answer(1, 2);
        assert_eq!(right.len(), 36 * NAME_BULK_BYTES);
        assert_eq!(list.check(1, 2, &right), Check::Right(right.len()));
        assert_eq!(list.check(1, 1, &right), Check::Wrong);
        let mut data = Data::new(1, 11, 8);
        let mut stored = stall(&mut data, &[Command::Sunionstore], true);
        stored.batch(1, &mut Vec::new());
        assert_eq!(stored.check(1, 0, b":16\r\n"), Check::Right(5));
        for (command, reply) in [
            (Command::Sinterstore, &b":6\r\n"[..]),
            (Command::Zunionstore, b":16\r\n"),
            (Command::Sort, b":100\r\n"),
            (Command::Copy, b":1\r\n"),
            (Command::Smembers, b"*11\r\n"),
            (Command::Zrange, b"*10\r\n"),
        ] {
            let mut data = Data::new(1, 11, 8);
            let mut stored = stall(&mut data, &[command], true);
            stored.batch(1, &mut Vec::new());
            assert_eq!(stored.check(1, 0, reply), Check::Right(reply.len()), "{command:?}");
            assert_eq!(stored.check(1, 0, b":7\r\n"), Check::Wrong, "{command:?}");
        }
    }
}
