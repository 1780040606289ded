//! `LCS`: the longest common subsequence of two strings.
//!
//! The table of lengths is the textbook's: cell (i, j) says how long the longest common
//! subsequence of the first i bytes of one and the first j bytes of the other is. Walking back
//! from the last cell gives the subsequence, and its contiguous matches in the order in which
//! Redis lists them: last first.

use ladon_engine::types::string;
use ladon_engine::{Key, Tx};
use ladon_kernel::command::args::{integer, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::slices::Headed;
use ladon_record::DbId;
use ladon_resp::Reply;
use std::borrow::Cow;

#[derive(Clone, Copy, Default)]
struct Options {
    length_only: bool,
    matches: bool,
    match_length_min: u64,
    with_lengths: bool,
}

/// Bytes `a..a + length` of one string are bytes `b..b + length` of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Match {
    a: usize,
    b: usize,
    length: usize,
}

pub(super) fn lcs(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, keys) = (ctx.db(), [ctx.key(args[1]), ctx.key(args[2])]);
    let cell_bytes_max = ctx.node.settings.proto_max_bulk_len();
    let large = ctx.large_aside();
    let tx = ctx.tx();
    // Both lookups count, whatever the first one finds.
    let (a, b) = (read(tx, db, keys[0]), read(tx, db, keys[1]));
    let (Some(a), Some(b)) = (a, b) else {
        return Err(CommandError::text("ERR The specified keys must contain string values"));
    };
    let options = parse(&args[3..])?;
    if options.matches && options.length_only {
        return Err(CommandError::text(
            "ERR If you want both the length and indexes, please just use IDX.",
        ));
    }
    if a.len().max(b.len()) >= u32::MAX as usize - 1 {
        return Err(CommandError::text("ERR String too long for LCS"));
    }
    let cells = (a.len() as u64 + 1) * (b.len() as u64 + 1);
    if cells.checked_mul(size_of::<u32>() as u64).is_none_or(|bytes| bytes > cell_bytes_max) {
        return Err(CommandError::text(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    if cells / CELLS_LIKE_AN_ELEMENT >= large.elements() as u64 {
        ctx.reply_aside(move |_| {
            let answer = answer(&a, &b, &options);
            Box::new(Headed::new(move |reply| answer.write(reply, &options), ()))
        });
    } else {
        answer(&a, &b, &options).write(&mut ctx.reply, &options);
    }
    Ok(())
}

/// Cells of the table that are about as much work as an element of a collection.
const CELLS_LIKE_AN_ELEMENT: u64 = 64;

/// What is asked for.
enum Answer {
    Length(u32),
    Matches(Vec<Match>),
    Text(Vec<u8>),
}

fn answer(a: &[u8], b: &[u8], options: &Options) -> Answer {
    if options.length_only {
        return Answer::Length(Lengths::last_row(a, b)[b.len()]);
    }
    let matches = Lengths::new(a, b).matches(a, b);
    if options.matches {
        return Answer::Matches(matches);
    }
    Answer::Text(matches.iter().rev().flat_map(|m| &a[m.a..m.a + m.length]).copied().collect())
}

impl Answer {
    fn write(&self, reply: &mut Reply<'_>, options: &Options) {
        match self {
            Answer::Length(length) => reply.integer(i64::from(*length)),
            Answer::Matches(matches) => reply_matches(reply, matches, options),
            Answer::Text(text) => reply.bulk(text),
        }
    }
}

/// The key's string, empty if missing; `None` if the value is no string.
fn read(tx: &mut Tx<'_>, db: DbId, key: Key<'_>) -> Option<Vec<u8>> {
    match tx.read(db, key) {
        Some(entry) => string::bytes(entry.value()).map(Cow::into_owned),
        None => Some(Vec::new()),
    }
}

fn parse(mut words: &[&[u8]]) -> Result<Options, CommandError> {
    let mut options = Options::default();
    while let [word, rest @ ..] = words {
        words = rest;
        if is(word, "idx") {
            options.matches = true;
        } else if is(word, "len") {
            options.length_only = true;
        } else if is(word, "withmatchlen") {
            options.with_lengths = true;
        } else if is(word, "minmatchlen")
            && let [number, rest @ ..] = rest
        {
            options.match_length_min = integer(number)?.max(0) as u64;
            words = rest;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(options)
}

fn reply_matches(reply: &mut Reply<'_>, matches: &[Match], options: &Options) {
    let total: usize = matches.iter().map(|m| m.length).sum();
    let shown = matches.iter().filter(|m| m.length as u64 >= options.match_length_min);
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(shown.clone().count());
    for found in shown {
        reply.array(if options.with_lengths { 3 } else { 2 });
        for start in [found.a, found.b] {
            reply.array(2);
            reply.integer(start as i64);
            reply.integer((start + found.length - 1) as i64);
        }
        if options.with_lengths {
            reply.integer(found.length as i64);
        }
    }
    reply.bulk(b"len");
    reply.integer(total as i64);
}

/// The table, row by row: `a.len() + 1` rows of `b.len() + 1` cells.
struct Lengths {
    cells: Vec<u32>,
    width: usize,
}

impl Lengths {
    fn new(a: &[u8], b: &[u8]) -> Lengths {
        let width = b.len() + 1;
        let mut cells = vec![0; (a.len() + 1) * width];
        for (i, &byte) in a.iter().enumerate() {
            let (above, row) = cells[i * width..(i + 2) * width].split_at_mut(width);
            fill_row(byte, b, above, row);
        }
        Lengths { cells, width }
    }

    /// The last row alone, which needs no table.
    fn last_row(a: &[u8], b: &[u8]) -> Vec<u32> {
        let (mut above, mut row) = (vec![0; b.len() + 1], vec![0; b.len() + 1]);
        for &byte in a {
            fill_row(byte, b, &above, &mut row);
            std::mem::swap(&mut above, &mut row);
        }
        above
    }

    /// The matches, last first. If two ways are equally good, `b` is shortened first, as in Redis:
    /// clients see which one was taken.
    fn matches(&self, a: &[u8], b: &[u8]) -> Vec<Match> {
        let mut found: Vec<Match> = Vec::new();
        let (mut i, mut j) = (a.len(), b.len());
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                (i, j) = (i - 1, j - 1);
                match found.last_mut() {
                    Some(last) if last.a == i + 1 && last.b == j + 1 => {
                        *last = Match { a: i, b: j, length: last.length + 1 };
                    }
                    _ => found.push(Match { a: i, b: j, length: 1 }),
                }
            } else if self.cell(i - 1, j) > self.cell(i, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        found
    }

    fn cell(&self, i: usize, j: usize) -> u32 {
        self.cells[i * self.width + j]
    }
}

fn fill_row(byte: u8, b: &[u8], above: &[u32], row: &mut [u32]) {
    for (j, &other) in b.iter().enumerate() {
        row[j + 1] = if byte == other { above[j] + 1 } else { above[j + 1].max(row[j]) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Slow and obvious.
    fn longest(a: &[u8], b: &[u8]) -> usize {
        match (a, b) {
            ([], _) | (_, []) => 0,
            ([x, a2 @ ..], [y, b2 @ ..]) if x == y => 1 + longest(a2, b2),
            ([_, a2 @ ..], [_, b2 @ ..]) => longest(a2, b).max(longest(a, b2)),
        }
    }

    proptest! {
        #[test]
        fn finds_a_longest_common_subsequence(a in "[abc]{0,9}", b in "[abc]{0,9}") {
            let (a, b) = (a.as_bytes(), b.as_bytes());
            let lengths = Lengths::new(a, b);
            let expected = longest(a, b);
            prop_assert_eq!(lengths.cell(a.len(), b.len()) as usize, expected);
            prop_assert_eq!(Lengths::last_row(a, b)[b.len()] as usize, expected);
            let matches = lengths.matches(a, b);
            prop_assert_eq!(matches.iter().map(|m| m.length).sum::<usize>(), expected);
            for m in &matches {
                prop_assert_eq!(&a[m.a..m.a + m.length], &b[m.b..m.b + m.length]);
            }
            for pair in matches.windows(2) {
                prop_assert!(pair[1].a + pair[1].length <= pair[0].a);
                prop_assert!(pair[1].b + pair[1].length <= pair[0].b);
            }
        }
    }
}
