//! The options of SORT.

use super::pattern::Pattern;
use ladon_kernel::command::args::{integer, is};
use ladon_kernel::command::error::CommandError;

pub(super) struct Options<'a> {
    pub(super) descending: bool,
    pub(super) alpha: bool,
    /// Offset and count; a negative count means no limit.
    pub(super) limit: (i64, i64),
    pub(super) by: Option<Pattern<'a>>,
    pub(super) get: Vec<Pattern<'a>>,
    pub(super) store: Option<&'a [u8]>,
    /// Whether it stores or is a script's: then the order of a set must not show.
    pub(super) hides_order: bool,
}

impl<'a> Options<'a> {
    pub(super) fn parse(args: &[&'a [u8]], may_store: bool) -> Result<Options<'a>, CommandError> {
        let mut options = Options {
            descending: false,
            alpha: false,
            limit: (0, -1),
            by: None,
            get: Vec::new(),
            store: None,
            hides_order: false,
        };
        let mut rest = &args[2..];
        while let [word, after @ ..] = rest {
            rest = match after {
                _ if is(word, "asc") || is(word, "desc") => {
                    options.descending = is(word, "desc");
                    after
                }
                _ if is(word, "alpha") => {
                    options.alpha = true;
                    after
                }
                [offset, count, after @ ..] if is(word, "limit") => {
                    options.limit = (integer(offset)?, integer(count)?);
                    after
                }
                [key, after @ ..] if may_store && is(word, "store") => {
                    (options.store, options.hides_order) = (Some(*key), true);
                    after
                }
                [pattern, after @ ..] if is(word, "by") => {
                    // A BY that disables sorting wins over any later one, as in Redis.
                    if !options.keeps_order() {
                        options.by = Some(Pattern::parse(pattern));
                    }
                    after
                }
                [pattern, after @ ..] if is(word, "get") => {
                    options.get.push(Pattern::parse(pattern));
                    after
                }
                _ => return Err(CommandError::Syntax),
            };
        }
        Ok(options)
    }

    /// The options for the elements alone; `None` if they name other keys.
    pub(super) fn without_keys(&self) -> Option<Options<'static>> {
        let by = match &self.by {
            None => None,
            Some(pattern) => Some(pattern.without_keys()?),
        };
        let get: Option<Vec<_>> = self.get.iter().map(Pattern::without_keys).collect();
        let (descending, alpha, limit) = (self.descending, self.alpha, self.limit);
        Some(Options {
            descending,
            alpha,
            limit,
            by,
            get: get?,
            store: None,
            hides_order: self.hides_order,
        })
    }

    /// BY a constant disables sorting.
    pub(super) fn keeps_order(&self) -> bool {
        matches!(self.by, Some(Pattern::Element | Pattern::Nothing))
    }
}

/// Position of the destination key, as `COMMAND GETKEYS` reports it: regardless of errors in the
/// options, and if there are several, the last.
pub(crate) fn target_position(args: &[&[u8]]) -> Option<usize> {
    let (mut at, mut found) = (2, None);
    while let Some(word) = args.get(at) {
        if is(word, "store") && at + 1 < args.len() {
            found = Some(at + 1);
            at += 1;
        } else if is(word, "limit") {
            at += 2;
        } else if is(word, "get") || is(word, "by") {
            at += 1;
        }
        at += 1;
    }
    found
}

/// Whether the command reads keys that it does not name.
pub(super) fn reaches_further(args: &[&[u8]]) -> bool {
    // Invalid options make it fail before it reads any key.
    Options::parse(args, true).is_ok_and(|options| {
        let mut patterns = options.by.iter().chain(&options.get);
        patterns.any(|pattern| matches!(pattern, Pattern::Keys { .. }))
    })
}
