//! Which eight bytes of strings their hints show.
//!
//! Strings of one index often begin alike: `user:00000017`. If hints showed the first eight bytes,
//! all would be equal, and each comparison would wait for a tuple's memory. So they show what
//! follows a beginning that most strings share. Strings that come before all of those, and strings
//! that come after them, have a shared beginning of their own, and hints in a range of their own:
//!
//! ```text
//!                  shared       hint
//! strings before   "order:"     0 and the highest 60 bits of what follows
//! most strings     "user:00"    what follows, limited to the range between the two others
//! strings after    ""           f and the highest 60 bits of what follows
//! ```
//!
//! **Invariant:** of two strings, the smaller one has no larger hint, whatever is taken for shared:
//! a string that does not begin so comes before all that do, or after them.

use std::ops::Range;

/// A hint shows so many bytes.
const HINT_BYTES: usize = 8;
/// A hint of a string before or after most shows so many whole bytes.
const SIDE_HINT_BYTES: usize = 7;
/// A longer beginning is not looked for.
const SHARED_MAX: usize = 255;

/// The largest hint of a string before most.
const BEFORE_MAX: u64 = u64::MAX >> 4;
/// The smallest hint of a string after most.
const AFTER_MIN: u64 = 0xf << 60;

/// Which strings do not begin as most do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Those that come before all that do.
    Before,
    /// Those that come after all that do.
    After,
}

/// The beginnings that hints leave out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HintWindow {
    /// Of most strings. If it is empty, there are no others.
    shared: Box<[u8]>,
    /// Of strings before those.
    before: Box<[u8]>,
    /// Of strings after those.
    after: Box<[u8]>,
}

impl HintWindow {
    /// A window that suits `len` strings, and the numbers that will follow them. `string` returns
    /// the string of a rank; strings ascend.
    pub(crate) fn of<'a>(len: u64, string: impl Fn(u64) -> &'a [u8]) -> HintWindow {
        // A quarter at each end may begin otherwise: those have windows of their own.
        let (first, last) = (len / 4, len.saturating_sub(1) - len / 4);
        if len == 0 || first > last {
            return HintWindow::default();
        }
        let shared = beginning(string(first), string(last), HINT_BYTES);
        let mut window = HintWindow { shared, ..HintWindow::default() };
        for side in [Side::Before, Side::After] {
            window.choose_side(side, len, &string);
        }
        window
    }

    /// Chooses the beginning of the strings on one side, which suits them. Returns their ranks if
    /// their hints are others now.
    pub(crate) fn choose_side<'a>(
        &mut self,
        side: Side,
        len: u64,
        string: impl Fn(u64) -> &'a [u8],
    ) -> Option<Range<u64>> {
        let shared = &*self.shared;
        let ranks = match side {
            Side::Before => 0..first_rank(len, |rank| string(rank) >= shared),
            Side::After => {
                let is_after = |string: &[u8]| string > shared && !string.starts_with(shared);
                first_rank(len, |rank| is_after(string(rank)))..len
            }
        };
        let few = (ranks.end - ranks.start) / 64;
        let suited = match ranks.end.checked_sub(few + 1) {
            Some(last) if last >= ranks.start + few => {
                beginning(string(ranks.start + few), string(last), SIDE_HINT_BYTES)
            }
            _ => return None,
        };
        let own = match side {
            Side::Before => &mut self.before,
            Side::After => &mut self.after,
        };
        let is_other = *own != suited;
        *own = suited;
        is_other.then_some(ranks)
    }

    /// The side of strings with this hint, if they do not begin as most do.
    #[inline]
    pub(crate) fn side_of(&self, hint: u64) -> Option<Side> {
        match hint {
            _ if self.shared.is_empty() => None,
            ..=BEFORE_MAX => Some(Side::Before),
            AFTER_MIN.. => Some(Side::After),
            _ => None,
        }
    }

    /// The hint of a string.
    #[inline]
    pub(crate) fn hint(&self, string: &[u8]) -> u64 {
        if self.shared.is_empty() {
            return padded(string);
        }
        match string.strip_prefix(&*self.shared) {
            Some(rest) => padded(rest).clamp(BEFORE_MAX + 1, AFTER_MIN - 1),
            None if string < &*self.shared => shown_behind(&self.before, string) >> 4,
            None => AFTER_MIN | shown_behind(&self.after, string) >> 4,
        }
    }
}

/// The bytes that follow a beginning; the least and the greatest of strings that begin otherwise.
fn shown_behind(shared: &[u8], string: &[u8]) -> u64 {
    match string.strip_prefix(shared) {
        Some(rest) => padded(rest),
        None if string < shared => 0,
        None => u64::MAX,
    }
}

/// What strings from `first` to `last` begin with, if that is not of a number that `shown` bytes
/// can show more of.
fn beginning(first: &[u8], last: &[u8], shown: usize) -> Box<[u8]> {
    let pairs = first.iter().zip(last).take(SHARED_MAX);
    let common = pairs.take_while(|(a, b)| a == b).count();
    let digits = |bytes: &mut dyn Iterator<Item = &u8>| {
        bytes.take_while(|byte| byte.is_ascii_digit()).count()
    };
    // Where the strings differ within a number, other numbers will differ earlier: the window shows
    // all of the number, or its end if it is long.
    let number = common - digits(&mut first[..common].iter().rev());
    let number_end = number + digits(&mut first[number..].iter());
    let begin = number.max(common.min(number_end.saturating_sub(shown)));
    first[..begin].into()
}

/// The first rank of which something is true, if it is true of all that follow; `len` of none.
fn first_rank(len: u64, is_true: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_true(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The first eight bytes; zeros are appended to fewer, so a string may have the hint of a longer
/// one.
#[inline]
pub(crate) fn padded(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk::<HINT_BYTES>() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; HINT_BYTES];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(padded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(first: &str, last: &str, shared: &str) {
        let found = beginning(first.as_bytes(), last.as_bytes(), HINT_BYTES);
        assert_eq!(&*found, shared.as_bytes(), "{first} to {last}");
    }

    #[test]
    fn numbers_are_shown_from_their_beginning_or_up_to_their_end() {
        check("k:0000", "k:0063", "k:");
        check("key:0000000000000000", "key:0000000000000063", "key:00000000");
        check("key:0000000000000000", "key:0000000000999999", "key:00000000");
        check("key:0000000000000000", "key:9900000000000000", "key:");
        check("counter:1", "counter:999", "counter:");
        check("counter:100", "counter:199", "counter:");
        check("tenant-000001:invoice:1", "tenant-000099:invoice:9", "tenant-");
    }

    #[test]
    fn other_strings_are_shown_from_where_they_differ() {
        check("user:ada", "user:zoe", "user:");
        check("a", "b", "");
        check("", "b", "");
        check("same", "same", "same");
        let long = "x".repeat(300);
        check(&format!("{long}a"), &format!("{long}b"), &"x".repeat(SHARED_MAX));
    }

    #[test]
    fn hints_order_as_strings_do_whatever_is_shared() {
        let strings = [
            "",
            "\0",
            "a",
            "ab",
            "ab\0",
            "aba",
            "abb",
            "abbbbbbbbbbb",
            "abbbbbbbbbbc",
            "ac",
            "b",
            "\u{7f}",
            "b\u{1}",
            "b\u{10ffff}",
        ];
        let shared = ["", "a", "ab", "abb", "b", "zz"].map(|shared| shared.as_bytes());
        let windows = shared.iter().flat_map(|most| {
            let sides = shared.iter().flat_map(|one| shared.iter().map(move |other| (one, other)));
            sides.map(|(before, after)| HintWindow {
                shared: (*most).into(),
                before: (*before).into(),
                after: (*after).into(),
            })
        });
        for window in windows {
            for (a, b) in strings.iter().flat_map(|a| strings.iter().map(move |b| (a, b))) {
                let hints = [window.hint(a.as_bytes()), window.hint(b.as_bytes())];
                let agrees = if a <= b { hints[0] <= hints[1] } else { hints[0] >= hints[1] };
                assert!(agrees, "{a:?} {b:?} {window:?}");
            }
        }
    }

    #[test]
    fn strings_beside_most_have_a_window_of_their_own() {
        let names = |name: &str, count: u64| {
            (0..count).map(|number| format!("{name}:{number:010}")).collect::<Vec<_>>()
        };
        let strings = [names("order", 60), names("user", 300), names("visit", 60)].concat();
        let string = |rank: u64| strings[rank as usize].as_bytes();
        let window = HintWindow::of(strings.len() as u64, string);
        let shared = [&window.before, &window.shared, &window.after];
        assert_eq!(shared.map(|shared| &**shared), [b"order:000", &b"user:00"[..], b"visit:000"]);
        let hints = strings.iter().map(|string| window.hint(string.as_bytes()));
        assert!(hints.is_sorted_by(|a, b| a < b));
    }
}
