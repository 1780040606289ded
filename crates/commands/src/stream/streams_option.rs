//! The options of XREAD and XREADGROUP, up to the keys and ids that follow `STREAMS`.

use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_resp::parse_i64;
use std::ops::Range;

/// What the answers about all streams may have together (`MAXCOUNT` and `MAXSIZE`, Redis 8.10).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    entries: usize,
    /// Bytes of the entries' replies. The first entry may have more.
    bytes: usize,
    has_begun: bool,
}

impl Budget {
    const UNLIMITED: Budget = Budget { entries: usize::MAX, bytes: usize::MAX, has_begun: false };

    pub(super) fn is_limited(&self) -> bool {
        *self != Budget::UNLIMITED
    }

    /// Whether no further entry is answered.
    pub(super) fn is_spent(&self) -> bool {
        self.entries == 0
    }

    /// Whether an entry is answered whose reply has `bytes`; what was once refused ends the answer.
    #[inline]
    pub(super) fn admits(&mut self, bytes: impl FnOnce() -> usize) -> bool {
        if self.entries == 0 {
            return false;
        }
        if self.bytes != usize::MAX {
            let bytes = bytes();
            if bytes > self.bytes && self.has_begun {
                self.entries = 0;
                return false;
            }
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        self.has_begun = true;
        // The highest number is none.
        self.entries -= usize::from(self.entries != usize::MAX);
        true
    }
}

/// What the options say.
pub(super) struct Options<'a> {
    /// Maximum number of entries of each stream.
    pub(super) count: usize,
    /// What all streams together may answer.
    pub(super) budget: Budget,
    /// `None` without BLOCK; then when to give up, `None` for never.
    pub(super) block: Option<Option<u64>>,
    pub(super) group: Option<(&'a [u8], &'a [u8])>,
    pub(super) no_ack: bool,
    /// Since when an entry must be pending to be claimed, milliseconds.
    pub(super) claim_idle_ms: Option<u64>,
    /// Positions of the keys.
    pub(super) keys: Range<usize>,
}

impl<'a> Options<'a> {
    /// Reads the arguments of XREAD, or of XREADGROUP.
    pub(super) fn parse(
        args: &[&'a [u8]],
        is_group: bool,
        now_ms: u64,
    ) -> Result<Options<'a>, CommandError> {
        let mut options = Options {
            count: usize::MAX,
            budget: Budget::UNLIMITED,
            block: None,
            group: None,
            no_ack: false,
            claim_idle_ms: None,
            keys: 0..0,
        };
        let mut at = 1;
        while let Some(word) = args.get(at) {
            let more = &args[at + 1..];
            if is(word, "block") && !more.is_empty() {
                options.block = Some(args::timeout(more[0], now_ms)?);
                at += 2;
            } else if is(word, "count") && !more.is_empty() {
                let count = usize::try_from(args::integer(more[0])?).unwrap_or(0);
                // As in Redis, none at all means any number.
                options.count = if count == 0 { usize::MAX } else { count };
                at += 2;
            } else if is(word, "maxcount") && !more.is_empty() {
                options.budget.entries = positive(more[0])?;
                at += 2;
            } else if is(word, "maxsize") && !more.is_empty() {
                options.budget.bytes = positive(more[0])?;
                at += 2;
            } else if is(word, "streams") && !more.is_empty() {
                if !more.len().is_multiple_of(2) {
                    return Err(unbalanced(is_group));
                }
                options.keys = at + 1..at + 1 + more.len() / 2;
                break;
            } else if is(word, "group") && more.len() >= 2 {
                if !is_group {
                    return Err(CommandError::text(
                        "ERR The GROUP option is only supported by XREADGROUP. You called XREAD \
                         instead.",
                    ));
                }
                options.group = Some((more[0], more[1]));
                at += 3;
            } else if is(word, "claim") && !more.is_empty() {
                if !is_group {
                    return Err(CommandError::text(
                        "ERR The CLAIM option is only supported by XREADGROUP. You called XREAD \
                         instead.",
                    ));
                }
                options.claim_idle_ms = Some(min_idle(more[0])?);
                at += 2;
            } else if is(word, "noack") {
                if !is_group {
                    return Err(CommandError::text(
                        "ERR The NOACK option is only supported by XREADGROUP. You called XREAD \
                         instead.",
                    ));
                }
                options.no_ack = true;
                at += 1;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        options.check(is_group)?;
        Ok(options)
    }

    fn check(&self, is_group: bool) -> CommandResult {
        if self.keys.is_empty() {
            return Err(CommandError::Syntax);
        }
        if is_group && self.group.is_none() {
            return Err(CommandError::text("ERR Missing GROUP option for XREADGROUP"));
        }
        Ok(())
    }
}

fn positive(text: &[u8]) -> Result<usize, CommandError> {
    let error = "ERR value is out of range, must be positive";
    Ok(usize::try_from(args::integer_or(text, 1.., error)?).unwrap_or(usize::MAX))
}

fn min_idle(text: &[u8]) -> Result<u64, CommandError> {
    let number =
        parse_i64(text).ok_or(CommandError::text("ERR min-idle-time is not an integer"))?;
    u64::try_from(number)
        .map_err(|_| CommandError::text("ERR min-idle-time must be a positive integer"))
}

fn unbalanced(is_group: bool) -> CommandError {
    let (name, sign) = if is_group { ("xreadgroup", '>') } else { ("xread", '$') };
    CommandError::err(format_args!(
        "Unbalanced '{name}' list of streams: for each stream key an ID or '{sign}' must be \
         specified."
    ))
}

pub(super) fn keys_of_xread(args: &[&[u8]]) -> Range<usize> {
    keys(args, false)
}

pub(super) fn keys_of_xreadgroup(args: &[&[u8]]) -> Range<usize> {
    keys(args, true)
}

/// Positions of the keys; none where `Options::parse` finds an error before them.
fn keys(args: &[&[u8]], is_group: bool) -> Range<usize> {
    let mut at = 1;
    while let Some(word) = args.get(at) {
        let takes_one = ["block", "count", "maxcount", "maxsize"].iter().any(|it| is(word, it));
        if takes_one || is_group && is(word, "claim") {
            at += 2;
        } else if is_group && is(word, "group") {
            at += 3;
        } else if is_group && is(word, "noack") {
            at += 1;
        } else if is(word, "streams") {
            let first = at + 1;
            let more = args.len().saturating_sub(first);
            return first..first + more / 2;
        } else {
            break;
        }
    }
    2..2
}
