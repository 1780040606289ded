//! Delays that were observed: the source of `LATENCY`.
//!
//! An event is a name such as `command` or `fsync`. The code that observes a delay calls
//! [`LatencyEvents::note`].

use ladon_settings::Settings;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Entries that an event keeps, as in Redis.
const HISTORY_MAX: usize = 160;

/// A delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// When, Unix seconds.
    pub unix_seconds: u64,
    /// How long; the longest one of that second.
    pub milliseconds: u64,
}

/// An event's delays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Oldest first.
    pub delays: VecDeque<Delay>,
    /// The longest since the event was last reset.
    pub milliseconds_max: u64,
}

/// All events of a node.
#[derive(Debug)]
pub struct LatencyEvents {
    settings: Arc<Settings>,
    histories: Mutex<BTreeMap<String, History>>,
}

impl LatencyEvents {
    /// Without any delays yet. `latency-monitor-threshold` decides what counts as a delay.
    pub fn new(settings: Arc<Settings>) -> LatencyEvents {
        LatencyEvents { settings, histories: Mutex::default() }
    }

    /// Whether delays are recorded at all.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.settings.latency_monitor_threshold() != 0
    }

    /// Reports a duration, which is recorded if it is long enough.
    #[inline]
    pub fn note(&self, event: &str, milliseconds: u64, unix_seconds: u64) {
        let threshold = self.settings.latency_monitor_threshold();
        if threshold != 0 && milliseconds >= threshold {
            self.remember(event, milliseconds, unix_seconds);
        }
    }

    #[cold]
    fn remember(&self, event: &str, milliseconds: u64, unix_seconds: u64) {
        let mut histories = self.histories.lock();
        let history = histories.entry(event.to_owned()).or_default();
        history.milliseconds_max = history.milliseconds_max.max(milliseconds);
        match history.delays.back_mut() {
            Some(last) if last.unix_seconds == unix_seconds => {
                last.milliseconds = last.milliseconds.max(milliseconds);
            }
            _ => history.delays.push_back(Delay { unix_seconds, milliseconds }),
        }
        if history.delays.len() > HISTORY_MAX {
            history.delays.pop_front();
        }
    }

    /// An event's delays.
    pub fn history(&self, event: &str) -> Option<History> {
        self.histories.lock().get(event).cloned()
    }

    /// Every event that has delays.
    pub fn all(&self) -> Vec<(String, History)> {
        let histories = self.histories.lock();
        histories.iter().map(|(event, history)| (event.clone(), history.clone())).collect()
    }

    /// Forgets an event; whether there was one.
    pub fn reset(&self, event: &str) -> bool {
        self.histories.lock().remove(event).is_some()
    }

    /// Forgets all events; how many there were.
    pub fn reset_all(&self) -> usize {
        std::mem::take(&mut *self.histories.lock()).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_longest_of_each_second_and_not_too_many() {
        let settings = Arc::new(Settings::new());
        let events = LatencyEvents::new(Arc::clone(&settings));
        events.note("command", 1000, 1);
        assert_eq!(events.history("command"), None, "off by default");

        settings.set_many(&[("latency-monitor-threshold", "10")]).unwrap();
        for (milliseconds, second) in [(9, 1), (10, 1), (30, 1), (20, 1), (11, 2)] {
            events.note("command", milliseconds, second);
        }
        let history = events.history("command").unwrap();
        let seen: Vec<_> =
            history.delays.iter().map(|delay| (delay.unix_seconds, delay.milliseconds)).collect();
        assert_eq!(seen, [(1, 30), (2, 11)]);
        assert_eq!(history.milliseconds_max, 30);

        for second in 0..1000 {
            events.note("fsync", 10, second);
        }
        assert_eq!(events.history("fsync").unwrap().delays.len(), HISTORY_MAX);
        assert!(events.reset("fsync") && !events.reset("fsync"));
        assert_eq!(events.reset_all(), 1);
    }
}
