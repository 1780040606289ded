//! Expiry times of fields and members, and the conditions for setting one.

use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::CommandError;

/// The latest time that Redis accepts, Unix milliseconds.
const AT_MAX: i64 = (1 << 46) - 1;

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    ms: i64,
    /// Relative to now, or to 1970.
    relative: bool,
}

impl Unit {
    pub(crate) const SECONDS: Unit = Unit { ms: 1000, relative: true };
    pub(crate) const MILLISECONDS: Unit = Unit { ms: 1, relative: true };
    pub(crate) const UNIX_SECONDS: Unit = Unit { ms: 1000, relative: false };
    pub(crate) const UNIX_MILLISECONDS: Unit = Unit { ms: 1, relative: false };

    /// The unit of an option.
    pub(crate) fn of_option(word: &[u8]) -> Option<Unit> {
        match word.to_ascii_uppercase().as_slice() {
            b"EX" => Some(Unit::SECONDS),
            b"PX" => Some(Unit::MILLISECONDS),
            b"EXAT" => Some(Unit::UNIX_SECONDS),
            b"PXAT" => Some(Unit::UNIX_MILLISECONDS),
            _ => None,
        }
    }

    /// The time in Unix milliseconds.
    pub(crate) fn moment(
        self,
        text: &[u8],
        now_ms: u64,
        command: &str,
    ) -> Result<u64, CommandError> {
        let time = args::integer(text)?;
        if time < 0 {
            return Err(CommandError::text("ERR invalid expire time, must be >= 0"));
        }
        let base = if self.relative { i64::try_from(now_ms).unwrap_or(i64::MAX) } else { 0 };
        time.checked_mul(self.ms)
            .and_then(|ms| ms.checked_add(base))
            .filter(|at| *at <= AT_MAX)
            .map(|at| at as u64)
            .ok_or_else(|| {
                CommandError::err(format_args!("invalid expire time in '{command}' command"))
            })
    }
}

/// Whether to change the present expiry (0: none).
pub(crate) type Condition = fn(old: u64, new: u64) -> bool;

/// `None`: the word is not a condition.
pub(crate) fn condition(word: &[u8]) -> Option<Condition> {
    if is(word, "NX") {
        Some(|old, _| old == 0)
    } else if is(word, "XX") {
        Some(|old, _| old != 0)
    } else if is(word, "GT") {
        // Never is later than any time.
        Some(|old, new| old != 0 && new > old)
    } else if is(word, "LT") {
        Some(|old, new| old == 0 || new < old)
    } else {
        None
    }
}
