//! Which eight bytes of strings their hints show.
//!
//! Strings of one index often begin alike: `user:00000017`. If hints showed the first eight bytes,
//! all would be equal, and each comparison would wait for a tuple's memory. So they show what
//! follows a beginning that the strings share:
//!
//! ```text
//! shared   "user:00"
//! hint     "user:00000017" -> "000017\0\0",  "order:5" -> all zeros,  "user:1" -> all ones
//! ```
//!
//! **Invariant:** of two strings, the smaller one has no larger hint, whatever is taken for shared:
//! a string that does not begin so comes before all that do, or after them.

/// A hint shows so many bytes.
const HINT_BYTES: usize = 8;
/// A longer beginning is not looked for.
const SHARED_MAX: usize = 255;

/// The beginning that hints leave out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HintWindow {
    shared: Box<[u8]>,
}

impl HintWindow {
    /// A window that suits strings from `first` to `last`, and the numbers that will follow them.
    pub(crate) fn between(first: &[u8], last: &[u8]) -> HintWindow {
        let pairs = first.iter().zip(last).take(SHARED_MAX);
        let common = pairs.take_while(|(a, b)| a == b).count();
        let digits = |bytes: &mut dyn Iterator<Item = &u8>| {
            bytes.take_while(|byte| byte.is_ascii_digit()).count()
        };
        // Where the strings differ within a number, other numbers will differ earlier: the window
        // shows all of the number, or its end if it is long.
        let number = common - digits(&mut first[..common].iter().rev());
        let number_end = number + digits(&mut first[number..].iter());
        let begin = number.max(common.min(number_end.saturating_sub(HINT_BYTES)));
        HintWindow { shared: first[..begin].into() }
    }

    /// The hint of a string.
    #[inline]
    pub(crate) fn hint(&self, string: &[u8]) -> u64 {
        if self.shared.is_empty() {
            return padded(string);
        }
        match string.strip_prefix(&*self.shared) {
            Some(rest) => padded(rest),
            None if string < &*self.shared => 0,
            None => u64::MAX,
        }
    }
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
        let window = HintWindow::between(first.as_bytes(), last.as_bytes());
        assert_eq!(&*window.shared, shared.as_bytes(), "{first} to {last}");
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
        ];
        for shared in ["", "a", "ab", "abb", "b", "zz"] {
            let window = HintWindow { shared: shared.as_bytes().into() };
            for (a, b) in strings.iter().flat_map(|a| strings.iter().map(move |b| (a, b))) {
                let hints = [window.hint(a.as_bytes()), window.hint(b.as_bytes())];
                let agrees = if a <= b { hints[0] <= hints[1] } else { hints[0] >= hints[1] };
                assert!(agrees, "{a:?} {b:?} {shared:?}");
            }
        }
    }
}
