//! When an item expires: seconds from now on, up to 30 days; since 1970 beyond; at once if negative.

/// A longer time is one since 1970.
const RELATIVE_SECONDS_MAX: i64 = 60 * 60 * 24 * 30;

/// When an item expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// At this time, Unix milliseconds; 0 for never.
    At(u64),
    /// It is gone at once.
    Gone,
}

impl Expiry {
    /// What the protocol says, at this time.
    pub(crate) fn of(exptime: i64, now_ms: u64) -> Expiry {
        let Ok(seconds) = u64::try_from(exptime) else { return Expiry::Gone };
        let milliseconds = seconds.saturating_mul(1000);
        match exptime {
            0 => Expiry::At(0),
            ..=RELATIVE_SECONDS_MAX => Expiry::At(now_ms + milliseconds),
            _ if milliseconds <= now_ms => Expiry::Gone,
            // Later times do not fit what replies say of them.
            _ => Expiry::At(milliseconds.min(u64::from(u32::MAX) * 1000)),
        }
    }

    /// As a time, where what has gone is one that has passed.
    pub(crate) fn as_ms(self) -> u64 {
        match self {
            Expiry::At(at) => at,
            Expiry::Gone => 1,
        }
    }
}

/// Seconds that are left of an item, rounded up; -1 if it does not expire.
pub(crate) fn seconds_left(expire_at: u64, now_ms: u64) -> i64 {
    match expire_at {
        0 => -1,
        at => at.saturating_sub(now_ms).div_ceil(1000) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative_up_to_30_days() {
        let now = 1_700_000_000_500;
        assert_eq!(Expiry::of(0, now), Expiry::At(0));
        assert_eq!(Expiry::of(-1, now), Expiry::Gone);
        assert_eq!(Expiry::of(2_592_000, now), Expiry::At(now + 2_592_000_000));
        assert_eq!(Expiry::of(2_592_001, now), Expiry::Gone);
        assert_eq!(Expiry::of(1_700_000_001, now), Expiry::At(1_700_000_001_000));
        assert_eq!(Expiry::of(1_700_000_000, now), Expiry::Gone);
        assert_eq!(Expiry::of(i64::MAX, now), Expiry::At(4_294_967_295_000));
        assert_eq!((seconds_left(0, now), seconds_left(now + 1, now)), (-1, 1));
        assert_eq!(seconds_left(now + 100_000, now), 100);
    }
}
