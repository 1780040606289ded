//! The options of SCAN, SSCAN, HSCAN and ZSCAN, and the shape of their replies.

use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::CommandError;
use ladon_resp::Reply;
use ladon_settings::Glob;
use std::cell::Cell;

/// Options that only some of them have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Also {
    /// No more than MATCH and COUNT.
    Nothing,
    /// NOVALUES, where there are values.
    NoValues,
    /// TYPE, of keys.
    Type,
}

/// The options of one scan request.
pub(crate) struct ScanOptions<'a> {
    /// Approximate number of keys or elements to examine.
    pub(crate) count: usize,
    glob: Option<Glob>,
    /// Steps that the pattern may still take in this page.
    steps_left: Cell<usize>,
    /// Only the names.
    pub(crate) no_values: bool,
    /// An unknown type name matches nothing.
    pub(crate) kind: Option<&'a [u8]>,
}

/// Default number of keys or elements to examine.
const COUNT_DEFAULT: usize = 10;

/// Maximum number of keys or elements examined for one request, whatever its COUNT: one or two
/// milliseconds. The rest is left for the next page.
pub(crate) const COUNT_MAX: usize = 10_000;

/// A page ends when it is longer than this.
const PAGE_BYTES: usize = 1 << 20;

/// A page ends when its pattern has taken more steps than this: some milliseconds.
const PAGE_STEPS: usize = 1 << 22;

impl<'a> ScanOptions<'a> {
    /// Reads `MATCH pattern`, `COUNT count` and the options in `also`.
    pub(crate) fn parse(words: &[&'a [u8]], also: Also) -> Result<Self, CommandError> {
        let mut options = ScanOptions {
            count: COUNT_DEFAULT,
            glob: None,
            steps_left: Cell::new(PAGE_STEPS),
            no_values: false,
            kind: None,
        };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if also == Also::NoValues && is(word, "NOVALUES") {
                options.no_values = true;
                continue;
            }
            let Some(value) = words.next() else { return Err(CommandError::Syntax) };
            if is(word, "COUNT") {
                let count = args::integer(value)?;
                let count = usize::try_from(count).ok().filter(|&count| count > 0);
                options.count = count.ok_or(CommandError::Syntax)?.min(COUNT_MAX);
            } else if is(word, "MATCH") {
                options.glob = (value != b"*").then(|| Glob::new(value, false));
            } else if also == Also::Type && is(word, "TYPE") {
                options.kind = Some(value);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }

    /// Whether a key or an element with this name matches.
    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        self.glob.as_ref().is_none_or(|glob| {
            let steps = glob.steps_max(name.len());
            self.steps_left.set(self.steps_left.get().saturating_sub(steps));
            glob.matches(name)
        })
    }

    /// Whether the page is not long enough yet.
    pub(crate) fn goes_on(&self, page: &Reply<'_>) -> bool {
        page.position() < PAGE_BYTES && self.steps_left.get() > 0
    }
}

/// The page of a key that does not exist.
pub(crate) fn reply_empty(reply: &mut Reply<'_>) {
    reply.array(2);
    reply.bulk("0");
    reply.array(0);
}

/// Replies with a page. `walk` writes the elements' words into the given reply and returns the next
/// cursor and the number of words.
pub(crate) fn reply_page(reply: &mut Reply<'_>, walk: impl FnOnce(&mut Reply<'_>) -> (u64, usize)) {
    // The cursor comes before the elements, but is known after them.
    let mut words = Vec::new();
    let (next, count) = walk(&mut Reply::new(&mut words, reply.proto()));
    reply.array(2);
    reply.bulk(next.to_string());
    reply.array(count);
    reply.raw(&words);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_count_asks_for_more_than_a_page() {
        for (count, page) in [("1", 1), ("1000", 1000), ("9223372036854775807", COUNT_MAX)] {
            let words: [&[u8]; 2] = [b"COUNT", count.as_bytes()];
            let options = ScanOptions::parse(&words, Also::Nothing);
            assert_eq!(options.map(|options| options.count).ok(), Some(page));
        }
    }
}
