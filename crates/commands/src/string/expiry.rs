//! `EX`, `PX`, `EXAT` and `PXAT`: when a string expires.

use ladon_kernel::command::args::{integer, is};
use ladon_kernel::command::error::CommandError;

/// How the number is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Seconds from now.
    Ex,
    /// Milliseconds from now.
    Px,
    /// Unix seconds.
    ExAt,
    /// Unix milliseconds.
    PxAt,
}

/// An option with its number, which is not parsed yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expiry<'a> {
    unit: Unit,
    text: &'a [u8],
}

impl<'a> Expiry<'a> {
    pub(super) fn new(unit: Unit, text: &'a [u8]) -> Expiry<'a> {
        Expiry { unit, text }
    }

    /// The option that `word` and the next argument form, if there is a number and `present` is not
    /// of another kind. The last of several wins.
    pub(super) fn parse(
        word: &[u8],
        next: Option<&'a [u8]>,
        present: Option<Expiry<'a>>,
    ) -> Option<Expiry<'a>> {
        let unit = match word.len() {
            2 if is(word, "ex") => Unit::Ex,
            2 if is(word, "px") => Unit::Px,
            4 if is(word, "exat") => Unit::ExAt,
            4 if is(word, "pxat") => Unit::PxAt,
            _ => return None,
        };
        let fits = present.is_none_or(|present| present.unit == unit);
        next.filter(|_| fits).map(|text| Expiry { unit, text })
    }

    /// The time in Unix milliseconds; it may be past, but it is never 0.
    pub(super) fn at(self, now_ms: u64, command: &str) -> Result<u64, CommandError> {
        let number = integer(self.text)?;
        let in_ms = match self.unit {
            Unit::Ex | Unit::ExAt => number.checked_mul(1000),
            Unit::Px | Unit::PxAt => Some(number),
        };
        let base = match self.unit {
            Unit::Ex | Unit::Px => now_ms as i64,
            Unit::ExAt | Unit::PxAt => 0,
        };
        let at = in_ms.filter(|&ms| ms > 0).and_then(|ms| ms.checked_add(base));
        at.and_then(|at| u64::try_from(at).ok()).ok_or_else(|| {
            CommandError::err(format_args!("invalid expire time in '{command}' command"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_checked_for_sign_and_overflow() {
        let at = |unit, text: &str| Expiry::new(unit, text.as_bytes()).at(5_000, "set").ok();
        assert_eq!(at(Unit::Ex, "2"), Some(7_000));
        assert_eq!(at(Unit::Px, "2"), Some(5_002));
        assert_eq!(at(Unit::ExAt, "2"), Some(2_000));
        assert_eq!(at(Unit::PxAt, "2"), Some(2));
        for unit in [Unit::Ex, Unit::Px, Unit::ExAt, Unit::PxAt] {
            for text in ["0", "-1", "x", "9223372036854775808"] {
                assert_eq!(at(unit, text), None, "{unit:?} {text}");
            }
        }
        let max = i64::MAX;
        assert_eq!(at(Unit::Px, &max.to_string()), None);
        assert_eq!(at(Unit::PxAt, &max.to_string()), Some(max as u64));
        assert_eq!(at(Unit::Ex, &(max / 1000).to_string()), None);
        assert_eq!(at(Unit::ExAt, &(max / 1000 + 1).to_string()), None);
    }
}
