//! Lines of the server's log that somebody else could cause without end.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Lets so many lines through in a period, and counts the others.
#[derive(Debug)]
pub struct Seldom {
    most: u64,
    period: Duration,
    now: Mutex<Period>,
}

/// The present period.
#[derive(Debug, Default)]
struct Period {
    began_ms: u64,
    said: u64,
    left_out: u64,
}

impl Seldom {
    /// `most` lines in a `period`.
    pub const fn new(most: u64, period: Duration) -> Seldom {
        let now = Period { began_ms: 0, said: 0, left_out: 0 };
        Seldom { most, period, now: Mutex::new(now) }
    }

    /// Whether a line may be said now; if so, how many were left out before it.
    pub fn may_say(&self, now_ms: u64) -> Option<u64> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        // The clock may have been set back.
        if now_ms.abs_diff(now.began_ms) >= self.period.as_millis() as u64 {
            let left_out = now.left_out;
            *now = Period { began_ms: now_ms, said: 0, left_out };
        }
        if now.said >= self.most {
            now.left_out += 1;
            return None;
        }
        now.said += 1;
        Some(std::mem::take(&mut now.left_out))
    }
}

/// As the end of a line: how many were left out before it.
pub fn left_out(count: u64) -> String {
    match count {
        0 => String::new(),
        count => format!(" ({count} more like this were not shown)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_lines_in_a_period_and_a_count_of_the_others() {
        let seldom = Seldom::new(2, Duration::from_secs(10));
        let begin = 1_800_000_000_000;
        for (after_ms, expected) in [
            (0, Some(0)),
            (1, Some(0)),
            (2, None),
            (9_999, None),
            (10_000, Some(2)),
            (10_001, Some(0)),
            (10_002, None),
        ] {
            assert_eq!(seldom.may_say(begin + after_ms), expected, "{after_ms}");
        }
        assert_eq!(seldom.may_say(begin - 60_000), Some(1), "the clock was set back");
        assert_eq!(left_out(0), "");
        assert_eq!(left_out(3), " (3 more like this were not shown)");
    }
}
