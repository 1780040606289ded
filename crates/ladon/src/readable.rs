//! Bytes and times as a person reads them.

use ladon_platform::calendar::civil_date;
use std::fmt;

/// Bytes in quotes, everything unusual escaped as in redis-cli; cut after `bytes_max`.
pub struct Quoted<'a> {
    /// What to show.
    pub bytes: &'a [u8],
    /// How much of it.
    pub bytes_max: usize,
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.bytes[..self.bytes.len().min(self.bytes_max)];
        write!(f, "\"{}\"", shown.escape_ascii())?;
        match self.bytes.len() - shown.len() {
            0 => Ok(()),
            more => write!(f, " and {more} bytes more"),
        }
    }
}

/// Milliseconds since the Unix epoch as `2026-11-21T02:50:42.123Z`.
pub struct Time(pub u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_date(self.0 / 86_400_000);
        let ms = self.0 % 86_400_000;
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        write!(f, ".{:03}Z", ms % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Time(ms).to_string(), text);
        }
    }

    #[test]
    fn bytes_are_escaped_and_cut() {
        let quoted = Quoted { bytes: b"a\"\x00\n", bytes_max: 9 };
        assert_eq!(quoted.to_string(), r#""a\"\x00\n""#);
        let cut = Quoted { bytes: b"abcdef", bytes_max: 2 };
        assert_eq!(cut.to_string(), r#""ab" and 4 bytes more"#);
    }
}
