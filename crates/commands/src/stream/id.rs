//! Ids as arguments.

use ladon_engine::types::stream::StreamId;
use ladon_kernel::command::error::CommandError;
use ladon_resp::parse_i64;

const INVALID: CommandError =
    CommandError::text("ERR Invalid stream ID specified as stream command argument");

/// Longer arguments are no ids.
const TEXT_MAX: usize = 127;

/// An id in an argument of XADD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewId {
    /// `*`
    Automatic,
    /// `ms-*`
    OfTime(u64),
    /// `ms-seq`, or `ms`, which means `ms-0`.
    Given(StreamId),
}

/// An id: `ms-seq`, or `ms`, whose sequence number is then `missing_seq`.
#[inline]
pub(super) fn strict(text: &[u8], missing_seq: u64) -> Result<StreamId, CommandError> {
    match plain(text) {
        Some(id) => Ok(id),
        None => strict_of_any(text, missing_seq),
    }
}

fn strict_of_any(text: &[u8], missing_seq: u64) -> Result<StreamId, CommandError> {
    let text = checked(text)?;
    match text.iter().position(|&byte| byte == b'-') {
        Some(at) => Ok(StreamId::new(number(&text[..at])?, number(&text[at + 1..])?)),
        None => Ok(StreamId::new(number(text)?, missing_seq)),
    }
}

/// As `strict`, or `-` and `+` for the smallest and the largest.
pub(super) fn lenient(text: &[u8], missing_seq: u64) -> Result<StreamId, CommandError> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => strict(text, missing_seq),
    }
}

/// Several ids.
pub(super) fn all(texts: &[&[u8]]) -> Result<Vec<StreamId>, CommandError> {
    texts.iter().map(|text| strict(text, 0)).collect()
}

/// The id of an entry to add, other than `*`.
pub(super) fn new(text: &[u8]) -> Result<NewId, CommandError> {
    if let Some(id) = plain(text) {
        return Ok(NewId::Given(id));
    }
    let text = checked(text)?;
    if let Some(ms) = text.strip_suffix(b"-*")
        && !ms.contains(&b'-')
    {
        return Ok(NewId::OfTime(number(ms)?));
    }
    strict_of_any(text, 0).map(NewId::Given)
}

/// The lower bound of an interval, which an opening parenthesis excludes.
pub(super) fn first(text: &[u8]) -> Result<StreamId, CommandError> {
    match exclusive(text) {
        Some(text) => strict(text, 0)?
            .next()
            .ok_or(CommandError::text("ERR invalid start ID for the interval")),
        None => lenient(text, 0),
    }
}

/// The upper bound of an interval.
pub(super) fn last(text: &[u8]) -> Result<StreamId, CommandError> {
    match exclusive(text) {
        Some(text) => strict(text, u64::MAX)?
            .previous()
            .ok_or(CommandError::text("ERR invalid end ID for the interval")),
        None => lenient(text, u64::MAX),
    }
}

fn exclusive(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"(").filter(|rest| !rest.is_empty())
}

/// An id as the server writes it: two parts, which are digits alone. Almost all ids are.
fn plain(text: &[u8]) -> Option<StreamId> {
    let (ms, rest) = digits(text)?;
    let (seq, rest) = digits(rest.strip_prefix(b"-")?)?;
    rest.is_empty().then(|| StreamId::new(ms, seq))
}

/// The number at the beginning, and what follows it; `None` if it may not fit.
#[inline]
fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    // More digits may not fit into 64 bits.
    const DIGITS_MAX: usize = 19;
    let (mut number, mut length) = match text.first_chunk().and_then(|first| eight_digits(*first)) {
        Some(number) => (number, 8),
        None => (0u64, 0),
    };
    for byte in &text[length..] {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        length += 1;
    }
    (1..=DIGITS_MAX).contains(&length).then(|| (number, &text[length..]))
}

/// The number that eight digits make, all at once: times in milliseconds begin with as many.
#[inline]
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // The first digit is in the lowest byte. Digits become 0 to 9, all other bytes more.
    let digits = u64::from_le_bytes(text) ^ (EACH * u64::from(b'0'));
    // The sum of a byte over 9 reaches the byte's highest bit, unless the byte itself has it.
    if (digits.wrapping_add(EACH * (0x80 - 10)) | digits) & (EACH * 0x80) != 0 {
        return None;
    }
    // Joins neighbours: single digits to pairs, pairs to fours, fours to the number.
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

/// As C reads it: up to a zero byte.
fn checked(text: &[u8]) -> Result<&[u8], CommandError> {
    if text.len() > TEXT_MAX {
        return Err(INVALID);
    }
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    Ok(&text[..end])
}

/// A part of an id, as C's `strtoull` reads it: spaces, a plus sign and zeros may precede it.
fn number(text: &[u8]) -> Result<u64, CommandError> {
    const VERTICAL_TAB: u8 = 11;
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == VERTICAL_TAB;
    let spaces = text.iter().take_while(|byte| is_space(byte)).count();
    let digits = std::str::from_utf8(&text[spaces..]).ok();
    digits.and_then(|digits| digits.parse().ok()).ok_or(INVALID)
}

/// Arguments.
type Words<'s, 'a> = &'s [&'a [u8]];

/// The texts of as many ids as `number` says, and what follows them.
pub(super) fn counted<'s, 'a>(
    number: &[u8],
    words: Words<'s, 'a>,
) -> Result<(Words<'s, 'a>, Words<'s, 'a>), CommandError> {
    let number = parse_i64(number).and_then(|number| usize::try_from(number).ok());
    let number = number
        .filter(|number| *number > 0)
        .ok_or(CommandError::text("ERR Number of IDs must be a positive integer"))?;
    words
        .split_at_checked(number)
        .ok_or(CommandError::text("ERR The `numids` parameter must match the number of arguments"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        let id = |ms, seq| Ok(StreamId::new(ms, seq));
        for (text, expected) in [
            ("1-2", id(1, 2)),
            ("7", id(7, 9)),
            ("0-0", id(0, 0)),
            ("18446744073709551615-18446744073709551615", Ok(StreamId::MAX)),
            ("18446744073709551616-0", Err(INVALID)),
            ("9999999999999999999-1", id(9_999_999_999_999_999_999, 1)),
            ("000000000000000000001-1", id(1, 1)),
            ("1-99999999999999999999", Err(INVALID)),
            ("12345678-87654321", id(12_345_678, 87_654_321)),
            ("1700000000123-90909090909", id(1_700_000_000_123, 90_909_090_909)),
            ("1234567:-1", Err(INVALID)),
            ("/2345678-1", Err(INVALID)),
            ("12345\u{b1}78-1", Err(INVALID)),
            ("1-", Err(INVALID)),
            ("-1", Err(INVALID)),
            ("-", Err(INVALID)),
            ("+", Err(INVALID)),
            ("", Err(INVALID)),
            ("1-2-3", Err(INVALID)),
            ("1-*", Err(INVALID)),
            ("*", Err(INVALID)),
            ("a-1", Err(INVALID)),
            (" 1-+02", id(1, 2)),
            ("1 -1", Err(INVALID)),
            ("1--1", Err(INVALID)),
        ] {
            assert_eq!(strict(text.as_bytes(), 9), expected, "{text:?}");
        }
        assert_eq!(lenient(b"-", 3), id(0, 0));
        assert_eq!(lenient(b"+", 3), Ok(StreamId::MAX));
        assert_eq!(new(b"5-*"), Ok(NewId::OfTime(5)));
        assert_eq!(new(b"5-1"), Ok(NewId::Given(StreamId::new(5, 1))));
        assert_eq!(new(b"5-1-*"), Err(INVALID));
        assert_eq!(new(b"-*"), Err(INVALID));
        assert_eq!(first(b"(1-18446744073709551615"), id(2, 0));
        assert_eq!(last(b"(1"), id(1, u64::MAX - 1));
        assert_eq!(last(b"1"), id(1, u64::MAX));
        assert_eq!(last(b"(1-0"), id(0, u64::MAX));
        assert!(first(b"(18446744073709551615-18446744073709551615").is_err());
        assert!(last(b"(0-0").is_err());
        assert!(first(b"(-").is_err() && first(b"(").is_err() && first(b"(+").is_err());
        assert!(strict(&[b'1'; 128], 0).is_err());
    }
}
