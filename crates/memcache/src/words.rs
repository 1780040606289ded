//! Words of a line: separated by spaces, and by nothing else.

/// The words of a line, without its end.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    line.split(|&byte| byte == b' ').filter(|word| !word.is_empty())
}

/// The line without `\r\n` or `\n`.
pub(crate) fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// An unsigned decimal number.
pub(crate) fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() || word.len() > 20 {
        return None;
    }
    word.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit <= 9).then_some(())?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A decimal number with a sign or without.
pub(crate) fn signed(word: &[u8]) -> Option<i64> {
    match word.strip_prefix(b"-") {
        Some(digits) => i64::try_from(number(digits)?).ok().map(|number| -number),
        None => i64::try_from(number(word)?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_all_of_a_word() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for word in [&b""[..], b"-1", b"+1", b"1x", b" 1", b"18446744073709551616"] {
            assert_eq!(number(word), None, "{word:?}");
        }
        assert_eq!((signed(b"-7"), signed(b"7"), signed(b"--7")), (Some(-7), Some(7), None));
        assert_eq!(signed(b"-9223372036854775808"), None);
    }

    #[test]
    fn words_are_between_spaces() {
        let of = |line: &'static [u8]| words(without_end(line)).collect::<Vec<_>>();
        assert_eq!(of(b"  get  a\tb c \r\n"), [&b"get"[..], b"a\tb", b"c"]);
        assert_eq!(of(b"\n"), Vec::<&[u8]>::new());
    }
}
