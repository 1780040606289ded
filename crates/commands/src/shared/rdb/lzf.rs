//! LZF, the compression of Redis' strings.
//!
//! ```text
//! 000LLLLL bytes              L + 1 literal bytes
//! LLLOOOOO O                  L + 2 bytes from O + 1 bytes before the end, L in 1..=6
//! 111OOOOO L O                as this, L + 9 bytes
//! ```

/// Restores `length` bytes; `None` if the input does not hold exactly these.
pub(super) fn decompress(mut input: &[u8], length: usize) -> Option<Vec<u8>> {
    // Three bytes make at most 264: memory grows with the input, not with what it announces.
    const EXPANDS_AT_MOST: usize = 88;
    if length > input.len().saturating_mul(EXPANDS_AT_MOST) {
        return None;
    }
    let mut out = Vec::with_capacity(length);
    while let Some((&first, rest)) = input.split_first() {
        if first < 0x20 {
            let (literal, rest) = rest.split_at_checked(usize::from(first) + 1)?;
            out.extend_from_slice(literal);
            input = rest;
        } else {
            let (count, rest) = match first >> 5 {
                7 => {
                    let (&more, rest) = rest.split_first()?;
                    (usize::from(more) + 9, rest)
                }
                count => (usize::from(count) + 2, rest),
            };
            let (&low, rest) = rest.split_first()?;
            let back = (usize::from(first & 0x1f) << 8 | usize::from(low)) + 1;
            let from = out.len().checked_sub(back)?;
            if out.len() + count > length {
                return None;
            }
            // What is copied may begin in what is being written.
            for at in from..from + count {
                out.push(out[at]);
            }
            input = rest;
        }
        if out.len() > length {
            return None;
        }
    }
    (out.len() == length).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_copies() {
        assert_eq!(decompress(b"\x02abc", 3).as_deref(), Some(&b"abc"[..]));
        assert_eq!(decompress(b"\x00a\x20\x00", 4).as_deref(), Some(&b"aaaa"[..]));
        assert_eq!(decompress(b"\x01ab\xe0\x01\x01", 12).as_deref(), Some(&b"abababababab"[..]));
        assert_eq!(decompress(b"", 0).as_deref(), Some(&b""[..]));
    }

    #[test]
    fn what_is_malformed_is_refused() {
        for (input, length) in [
            (&b"\x02ab"[..], 3),
            (b"\x02abc", 2),
            (b"\x02abc", 4),
            (b"\x00a\x20\x01", 4),
            (b"\x00a\x20\x00", 3),
            (b"\x00a\x20", 4),
            (b"\x00a\xe0", 10),
            (b"\x00a\xe0\x00", 10),
            (b"\x20\x00", 3),
            (b"\x00a", usize::MAX),
        ] {
            assert_eq!(decompress(input, length), None, "{input:?} to {length}");
        }
    }
}
