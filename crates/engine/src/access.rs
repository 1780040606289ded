//! The access word of an entry: when its key was last used, or how often.
//!
//! ```text
//! recency, modification   seconds, 20 bits: wraps after twelve days
//! frequency               minutes of the last use, 12 bits: wraps after 68 hours | counter, 8 bits
//! ```
//!
//! It needs no memory beyond the spare bits of an entry's head. The clocks wrap, so a longer idle
//! time appears shorter. Eviction looks at keys all the time and writes back the decayed counters
//! that it passes, so that the wrap does not mislead it.
//!
//! The counter is logarithmic, as in Morris (1978) and Redis: each use raises it with a probability
//! that falls with its value, and it falls by one after each period without use.

use crate::table::entry::ACCESS_MAX;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// What access words measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Tracking {
    /// When the key was last used.
    #[default]
    Recency = 0,
    /// When the key was last changed, or looked up in order to change it.
    Modification = 1,
    /// How often the key is used.
    Frequency = 2,
}

impl Tracking {
    fn from_u8(byte: u8) -> Tracking {
        match byte {
            1 => Tracking::Modification,
            2 => Tracking::Frequency,
            _ => Tracking::Recency,
        }
    }
}

/// What access words measure, and the parameters of their counters; shared by all threads.
#[derive(Debug)]
pub struct AccessRules {
    tracking: AtomicU8,
    log_factor: AtomicU32,
    decay_minutes: AtomicU32,
}

impl Default for AccessRules {
    fn default() -> Self {
        AccessRules {
            tracking: AtomicU8::new(Tracking::Recency as u8),
            log_factor: AtomicU32::new(10),
            decay_minutes: AtomicU32::new(1),
        }
    }
}

impl AccessRules {
    /// Changes the rules. Existing words are read under the new rules until their keys are used
    /// again. `log_factor`: the larger, the more uses each step of a counter takes.
    /// `decay_minutes`: minutes without use after which a counter loses one; 0 for never.
    pub fn set(&self, tracking: Tracking, log_factor: u32, decay_minutes: u32) {
        self.log_factor.store(log_factor, Relaxed);
        self.decay_minutes.store(decay_minutes, Relaxed);
        self.tracking.store(tracking as u8, Relaxed);
    }

    /// What words measure at present.
    pub fn tracking(&self) -> Tracking {
        Tracking::from_u8(self.tracking.load(Relaxed))
    }

    /// The word of a key after a use of it.
    #[inline]
    pub(crate) fn after(&self, unix_ms: u64, word: u32, how: Use, random: &mut u64) -> u32 {
        if self.tracking() == Tracking::Recency {
            return seconds(unix_ms);
        }
        self.after_other(unix_ms, word, how, random)
    }

    #[inline(never)]
    fn after_other(&self, unix_ms: u64, word: u32, how: Use, random: &mut u64) -> u32 {
        let now = self.at(unix_ms);
        match (now.tracking, how) {
            (_, Use::None) | (Tracking::Modification, Use::Read) => word,
            (Tracking::Frequency, _) => now.counted(word, random),
            _ => now.time,
        }
    }

    /// The rules at a moment in Unix milliseconds.
    #[inline]
    pub fn at(&self, unix_ms: u64) -> AccessNow {
        let tracking = self.tracking();
        if tracking != Tracking::Frequency {
            let time = seconds(unix_ms);
            return AccessNow { tracking, time, log_factor: 0, decay_minutes: 0 };
        }
        AccessNow {
            tracking,
            time: (unix_ms / 60_000) as u32 & MINUTES_MAX,
            log_factor: self.log_factor.load(Relaxed),
            decay_minutes: self.decay_minutes.load(Relaxed),
        }
    }
}

/// What a command does with a key that it looks up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Nothing that counts.
    None,
    Read,
    /// Changes it, or checks whether to change it.
    Change,
}

#[inline]
fn seconds(unix_ms: u64) -> u32 {
    (unix_ms / 1000) as u32 & ACCESS_MAX
}

const COUNTER_BITS: u32 = 8;
const COUNTER_MAX: u32 = (1 << COUNTER_BITS) - 1;
const MINUTES_MAX: u32 = ACCESS_MAX >> COUNTER_BITS;
/// Initial counter of a new key, so that eviction does not remove the key before it can be used
/// again.
const COUNTER_FIRST: u32 = 5;

/// The rules at one moment.
#[derive(Clone, Copy, Debug)]
pub struct AccessNow {
    tracking: Tracking,
    /// The present time, as in a word.
    time: u32,
    log_factor: u32,
    decay_minutes: u32,
}

impl AccessNow {
    /// What words tell.
    pub fn tracking(self) -> Tracking {
        self.tracking
    }

    /// The word of a new key.
    #[inline]
    pub(crate) fn first(self) -> u32 {
        match self.tracking {
            Tracking::Recency | Tracking::Modification => self.time,
            Tracking::Frequency => self.time << COUNTER_BITS | COUNTER_FIRST,
        }
    }

    /// The word of a key that was last used so many seconds ago, or is used so often; `None` where
    /// that is not what words tell.
    pub(crate) fn of_use(self, idle_s: Option<u64>, frequency: Option<u8>) -> Option<u32> {
        match self.tracking {
            Tracking::Recency | Tracking::Modification => {
                let idle = idle_s?.min(u64::from(ACCESS_MAX)) as u32;
                Some(self.time.wrapping_sub(idle) & ACCESS_MAX)
            }
            Tracking::Frequency => Some(self.time << COUNTER_BITS | u32::from(frequency?)),
        }
    }

    fn counted(self, word: u32, random: &mut u64) -> u32 {
        let counter = u32::from(self.frequency(word));
        let above = f64::from(counter.saturating_sub(COUNTER_FIRST));
        let chance = 1.0 / (above * f64::from(self.log_factor) + 1.0);
        let draw = (next_random(random) >> 11) as f64 / (1u64 << 53) as f64;
        let counter = if draw < chance { (counter + 1).min(COUNTER_MAX) } else { counter };
        self.time << COUNTER_BITS | counter
    }

    /// The word after decay; its time is the present.
    pub(crate) fn faded(self, word: u32) -> u32 {
        let counter = u32::from(self.frequency(word));
        if self.tracking != Tracking::Frequency || counter == word & COUNTER_MAX {
            return word;
        }
        // The minutes towards the next step are kept.
        let minutes = self.minutes_since(word) % self.decay_minutes.max(1);
        (self.time.wrapping_sub(minutes) & MINUTES_MAX) << COUNTER_BITS | counter
    }

    /// How strongly the key is a candidate for eviction: larger for keys used less often or longer
    /// ago.
    #[inline]
    pub(crate) fn staleness(self, word: u32) -> u64 {
        match self.tracking {
            Tracking::Recency | Tracking::Modification => u64::from(self.idle_seconds(word)),
            // Among equals, the key that was used longer ago.
            Tracking::Frequency => {
                u64::from(COUNTER_MAX - u32::from(self.frequency(word))) << 12
                    | u64::from(self.minutes_since(word))
            }
        }
    }

    /// Seconds since a key with this word was last used (or changed).
    #[inline]
    pub fn idle_seconds(self, word: u32) -> u32 {
        self.time.wrapping_sub(word) & ACCESS_MAX
    }

    /// A key's counter, 0 to 255.
    pub fn frequency(self, word: u32) -> u8 {
        let counter = word & COUNTER_MAX;
        let faded = self.minutes_since(word).checked_div(self.decay_minutes).unwrap_or(0);
        counter.saturating_sub(faded) as u8
    }

    fn minutes_since(self, word: u32) -> u32 {
        self.time.wrapping_sub(word >> COUNTER_BITS) & MINUTES_MAX
    }
}

/// SplitMix64: any state works, including zero.
pub(crate) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frequency_at(minutes: u64) -> AccessNow {
        let rules = AccessRules::default();
        rules.set(Tracking::Frequency, 10, 1);
        rules.at(minutes * 60_000)
    }

    /// Redis' documentation gives these values of its counter, by number of uses and factor.
    #[test]
    fn counters_grow_as_documented() {
        for (log_factor, uses, documented) in
            [(1, 100, 18), (1, 1000, 49), (10, 100, 10), (10, 1000, 18), (10, 100_000, 142)]
        {
            // Under Miri the longer ones would take hours, and do nothing else.
            if cfg!(miri) && uses > 100 {
                continue;
            }
            let rules = AccessRules::default();
            rules.set(Tracking::Frequency, log_factor, 1);
            let now = rules.at(5_000_000);
            let mut random = 7;
            let runs = 20;
            let mut sum = 0;
            for _ in 0..runs {
                let mut word = now.first();
                for _ in 0..uses {
                    word = rules.after(5_000_000, word, Use::Read, &mut random);
                }
                sum += u32::from(now.frequency(word));
            }
            let mean = f64::from(sum) / f64::from(runs);
            let error = (mean - f64::from(documented)).abs() / f64::from(documented);
            assert!(error < 0.2, "factor {log_factor}, {uses} uses: {mean}, not {documented}");
        }
    }

    #[test]
    fn counters_fade_and_what_has_faded_can_be_written_down() {
        let word = frequency_at(1000).first();
        assert_eq!(frequency_at(1003).frequency(word), 2);
        assert_eq!(frequency_at(1300).frequency(word), 0);
        // Unwritten, the clock's wrap would show it as fresh.
        assert_eq!(frequency_at(1000 + 4096).frequency(word), 5);
        let written = frequency_at(1300).faded(word);
        assert_eq!(frequency_at(1000 + 4096).frequency(written), 0);
        assert_eq!(frequency_at(1000).faded(word), word);
        assert!(frequency_at(1003).staleness(word) > frequency_at(1001).staleness(word));
    }

    #[test]
    fn words_are_made_of_what_another_server_told() {
        let now = AccessRules::default().at(5_000_000_000);
        assert_eq!(now.of_use(Some(77), Some(9)).map(|word| now.idle_seconds(word)), Some(77));
        assert_eq!(
            now.of_use(Some(u64::MAX), None).map(|it| now.idle_seconds(it)),
            Some(ACCESS_MAX)
        );
        assert_eq!(now.of_use(None, Some(9)), None);
        let often = frequency_at(1000);
        assert_eq!(often.of_use(Some(7), Some(200)).map(|word| often.frequency(word)), Some(200));
        assert_eq!(often.of_use(Some(7), None), None);
    }

    #[test]
    fn recency_is_seconds() {
        let now = AccessRules::default().at(5_000_000);
        assert_eq!(now.idle_seconds(now.first()), 0);
        let later = AccessRules::default().at(5_090_000);
        assert_eq!((later.idle_seconds(now.first()), later.staleness(now.first())), (90, 90));
        for (how, expected) in [(Use::Read, later), (Use::Change, later)] {
            let word = AccessRules::default().after(5_090_000, now.first(), how, &mut 0);
            assert_eq!(word, expected.first());
        }
    }

    #[test]
    fn modification_is_not_reading() {
        let rules = AccessRules::default();
        rules.set(Tracking::Modification, 0, 0);
        let word = rules.at(5_000_000).first();
        assert_eq!(rules.after(9_000_000, word, Use::Read, &mut 0), word);
        let changed = rules.after(9_000_000, word, Use::Change, &mut 0);
        assert_eq!(changed, rules.at(9_000_000).first());
    }
}
