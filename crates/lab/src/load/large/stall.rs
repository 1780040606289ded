//! Commands that take long, and small GETs on other connections meanwhile.
//!
//! A reply of a million elements is judged in pieces as it comes in, a piece being a "key" of the
//! batch, so that judging it holds up the other connections for microseconds only.

use std::cell::RefCell;

use super::{Command, RENAMED, SHORT, SHORT_BYTES, Sizes, Value};
use crate::load::question::exactly;
use crate::load::words::{NAME_BULK_BYTES, array, bulk, bulk_head, integer, name};
use crate::load::workload::{Check, LANE_OF_READS, LANE_OF_WRITES, Strings, Workload};

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
    /// The name that the renamed hash has, of the two.
    renamed: usize,
    ended: bool,
    current: Command,
    request: Vec<u8>,
    /// Fields of the reply under way that have come, one bit each.
    seen: RefCell<Vec<u64>>,
    room: RefCell<Vec<u8>>,
}

/// Elements of a piece of a reply.
const PIECE: u32 = 64;
/// Bytes of a piece of a string.
const PIECE_BYTES: u32 = 16 << 10;
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
            renamed: 0,
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
            // Head, bytes, line's end.
            Command::GetString => 2 + self.sizes.string.div_ceil(PIECE_BYTES),
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
            Command::DelSortedSet | Command::Copy | Command::CopyString => integer(1, to),
            Command::Bitop => integer(self.sizes.string.into(), to),
            // As many ones as bits; and behind them the first zero.
            Command::Bitcount | Command::Bitpos => integer(8 * u64::from(self.sizes.string), to),
            Command::Lpos => integer((self.sizes.list - 1).into(), to),
            Command::Rename | Command::SetString => to.extend_from_slice(b"+OK\r\n"),
            Command::Lcs => integer(SHORT_BYTES.into(), to),
            Command::GetString if piece == 0 => bulk_head(self.sizes.string as usize, to),
            Command::GetString => {
                let start = u64::from(piece - 1) * u64::from(PIECE_BYTES);
                let rest = u64::from(self.sizes.string).saturating_sub(start);
                if rest == 0 {
                    to.extend_from_slice(b"\r\n");
                } else {
                    to.resize(to.len() + rest.min(PIECE_BYTES.into()) as usize, 0xff);
                }
            }
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
        let last;
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
            Command::Bitop => {
                let (first, second) = (Value::FirstString.key(), Value::SecondString.key());
                &["BITOP", "AND", "large:bits", first, second]
            }
            Command::Bitcount => &["BITCOUNT", Value::FirstString.key()],
            Command::Bitpos => &["BITPOS", Value::FirstString.key(), "0"],
            Command::CopyString => {
                &["COPY", Value::FirstString.key(), "large:string:copy", "REPLACE"]
            }
            Command::GetString => &["GET", Value::FirstString.key()],
            Command::SetString => {
                array(3, &mut self.request);
                bulk(b"SET", &mut self.request);
                bulk(Value::FirstString.key().as_bytes(), &mut self.request);
                bulk(&vec![0xff; self.sizes.string as usize], &mut self.request);
                keys.push(0);
                return &self.request;
            }
            Command::Lpos => {
                last = String::from_utf8_lossy(&name(b'e', self.sizes.list - 1)).into_owned();
                &["LPOS", Value::List.key(), &last]
            }
            Command::Rename => {
                self.renamed = 1 - self.renamed;
                &["RENAME", RENAMED[1 - self.renamed], RENAMED[self.renamed]]
            }
            Command::Lcs => &["LCS", SHORT[0], SHORT[1], "LEN"],
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

    const SIZES: Sizes = Sizes { sorted_set: 10, hash: 100, set: 11, list: 100, string: 20_000 };

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
    fn a_long_string_is_judged_in_pieces() {
        let mut data = Data::new(1, 11, 8);
        let mut get = stall(&mut data, &[Command::GetString], true);
        let mut pieces = Vec::new();
        get.batch(1, &mut pieces);
        assert_eq!(pieces, [0, 1, 2, 3]);
        let whole: Vec<u8> = (1..4).flat_map(|piece| get.right_answer(1, piece)).collect();
        assert_eq!(whole, [&[0xff; 20_000][..], b"\r\n"].concat());
        assert_eq!(get.check(1, 2, &[0xff; 3615]), Check::Incomplete);
        assert_eq!(get.check(1, 2, &[0xff; 4000]), Check::Right(3616));
        assert_eq!(get.check(1, 1, b"\xff\xff\r\n"), Check::Wrong);
        let mut data = Data::new(1, 11, 8);
        let mut rename = stall(&mut data, &[Command::Rename], true);
        let first = rename.batch(1, &mut Vec::new()).to_vec();
        let second = rename.batch(1, &mut Vec::new()).to_vec();
        assert_ne!(first, second);
        assert_eq!(rename.batch(1, &mut Vec::new()), first);
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
            (Command::Bitop, b":20000\r\n"),
            (Command::Bitcount, b":160000\r\n"),
            (Command::Bitpos, b":160000\r\n"),
            (Command::CopyString, b":1\r\n"),
            (Command::GetString, b"$20000\r\n"),
            (Command::Lpos, b":99\r\n"),
            (Command::Rename, b"+OK\r\n"),
            (Command::SetString, b"+OK\r\n"),
            (Command::Lcs, b":5000\r\n"),
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
