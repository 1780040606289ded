//! The text of the header `Date` (RFC 9110, section 5.6.7).

use ladon_platform::calendar::civil_date;
use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The text of the moment, made once a second.
#[derive(Debug, Default)]
pub(crate) struct Date {
    seconds: u64,
    text: String,
}

impl Date {
    /// Brings it up to date.
    pub(crate) fn update(&mut self) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if since.as_secs() != self.seconds || self.text.is_empty() {
            self.seconds = since.as_secs();
            self.text = text_of(self.seconds);
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// A moment in seconds of unix time.
fn text_of(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let (name, month) = (DAYS[(days % 7) as usize], MONTHS[month as usize - 1]);
    format!("{name}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

#[cfg(test)]
mod tests {
    use super::text_of;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (1_795_878_000, "Sat, 28 Nov 2026 15:00:00 GMT"),
            (4_102_444_799, "Thu, 31 Dec 2099 23:59:59 GMT"),
        ] {
            assert_eq!(text_of(seconds), expected);
        }
    }
}
