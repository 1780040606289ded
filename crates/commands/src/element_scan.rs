//! What SSCAN and HSCAN have in common: the options and the shape of the reply.

use crate::args::{self, is};
use crate::error::CommandError;
use ladon_resp::Reply;
use ladon_settings::glob_match;

/// What a client asks for of a scan's page.
pub(crate) struct Options<'a> {
    /// Elements to look at, about.
    pub(crate) count: usize,
    pattern: Option<&'a [u8]>,
    /// Only the names.
    pub(crate) no_values: bool,
}

impl<'a> Options<'a> {
    /// Reads `MATCH pattern`, `COUNT count` and, where there are values, `NOVALUES`.
    pub(crate) fn parse(words: &[&'a [u8]], has_values: bool) -> Result<Self, CommandError> {
        const COUNT_DEFAULT: usize = 10;
        let mut options = Options { count: COUNT_DEFAULT, pattern: None, no_values: false };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if has_values && is(word, "NOVALUES") {
                options.no_values = true;
                continue;
            }
            let Some(value) = words.next() else { return Err(CommandError::Syntax) };
            if is(word, "COUNT") {
                let wanted = args::integer(value)?;
                if wanted < 1 {
                    return Err(CommandError::Syntax);
                }
                options.count = wanted as usize;
            } else if is(word, "MATCH") {
                options.pattern = Some(value).filter(|&pattern| pattern != b"*");
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }

    /// Whether an element with this name is asked for.
    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob_match(pattern, name, false))
    }
}

/// The page of a key that does not exist.
pub(crate) fn reply_empty(reply: &mut Reply<'_>) {
    reply.array(2);
    reply.bulk("0");
    reply.array(0);
}

/// Answers a page. `walk` writes the elements' words into the reply it is given and returns the
/// next cursor and the number of words.
pub(crate) fn reply_page(reply: &mut Reply<'_>, walk: impl FnOnce(&mut Reply<'_>) -> (u64, usize)) {
    // The cursor comes before the elements, but is known after them.
    let mut words = Vec::new();
    let (next, count) = walk(&mut Reply::new(&mut words, reply.proto()));
    reply.array(2);
    reply.bulk(next.to_string());
    reply.array(count);
    reply.raw(&words);
}
