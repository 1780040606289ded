//! The samples that are kept.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use tokio::sync::watch;

/// Ten minutes.
const SAMPLES_MAX: usize = 600;

/// The last samples, and the way to hear of the next.
pub(crate) struct History {
    samples: Mutex<VecDeque<Bytes>>,
    newest: watch::Sender<Bytes>,
}

impl Default for History {
    fn default() -> History {
        History { samples: Mutex::default(), newest: watch::Sender::new(Bytes::new()) }
    }
}

impl History {
    pub(crate) fn add(&self, sample: Bytes) {
        let mut samples = self.samples.lock();
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample.clone());
        drop(samples);
        self.newest.send_replace(sample);
    }

    /// Tells of each sample from now on.
    pub(crate) fn follow(&self) -> watch::Receiver<Bytes> {
        self.newest.subscribe()
    }

    /// All samples as a JSON array, oldest first.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let samples: Vec<Bytes> = self.samples.lock().iter().cloned().collect();
        let mut json = Vec::with_capacity(samples.iter().map(|it| it.len() + 1).sum::<usize>() + 2);
        json.push(b'[');
        for (number, sample) in samples.iter().enumerate() {
            if number > 0 {
                json.push(b',');
            }
            json.extend_from_slice(sample);
        }
        json.push(b']');
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_minutes_are_kept() {
        let history = History::default();
        assert_eq!(history.to_json(), b"[]");
        (0..=SAMPLES_MAX).for_each(|number| history.add(Bytes::from(number.to_string())));
        let json = String::from_utf8(history.to_json()).expect("text");
        assert!(json.starts_with("[1,2,") && json.ends_with(",600]"), "{json}");
    }
}
