//! Which keys take most time and traffic: what `HOTKEYS` answers from.
//!
//! Every thread counts for itself, in a table of limited size that from time to time keeps only its
//! largest counts. A key that takes a noticeable part of the whole is never among those that go.
//! Nothing is counted, and commands of a batch share its time, while nobody looks.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Counts that a thread keeps for each metric, and twice as many before it drops the smallest.
const COUNTS_KEPT: usize = 512;

/// Bytes of names that a thread keeps for each metric, likewise.
const NAME_BYTES_KEPT: usize = 512 << 10;

/// Keys with longer names are not counted.
const NAME_BYTES_MAX: usize = 16 << 10;

/// What is to be counted.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The time of commands.
    pub cpu: bool,
    /// The bytes of requests and replies.
    pub net: bool,
    /// One in so many commands is counted.
    pub ratio: u64,
    /// When it ends by itself, Unix milliseconds.
    pub until_ms: u64,
}

/// What was asked for, and when.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    /// What is counted.
    pub request: Request,
    /// Keys that are shown of each metric.
    pub shown: usize,
    /// When it began, Unix milliseconds.
    pub started_ms: u64,
    /// When it ended before its time, Unix milliseconds.
    pub stopped_ms: Option<u64>,
    /// The process' time until it began, or its share since then once it ended: user's and
    /// system's.
    pub cpu: [Duration; 2],
}

impl Session {
    /// When it ended, or would end now.
    pub fn end_ms(&self, now_ms: u64) -> u64 {
        self.stopped_ms.unwrap_or(now_ms.min(self.request.until_ms))
    }

    /// Whether commands are counted.
    pub fn is_active(&self, now_ms: u64) -> bool {
        self.stopped_ms.is_none() && now_ms < self.request.until_ms
    }
}

/// A node's counts.
#[derive(Debug)]
pub struct HotKeys {
    /// The present session, or the last.
    pub session: Mutex<Option<Session>>,
    is_on: AtomicBool,
    by_thread: Vec<Mutex<Option<Counts>>>,
}

/// What a thread has counted, or all of them.
#[derive(Clone, Debug)]
pub struct Counts {
    request: Request,
    /// Nanoseconds, by key.
    pub cpu: TopKeys,
    /// Bytes, by key.
    pub net: TopKeys,
    /// Time of all commands.
    pub all_nanoseconds: u64,
    /// Bytes of all commands.
    pub all_bytes: u64,
    random: u64,
}

impl Counts {
    fn new(request: Request, seed: u64) -> Counts {
        Counts {
            request,
            cpu: TopKeys::default(),
            net: TopKeys::default(),
            all_nanoseconds: 0,
            all_bytes: 0,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    /// Whether this command is one of those that are counted.
    fn is_sampled(&mut self) -> bool {
        // Xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.is_multiple_of(self.request.ratio)
    }
}

impl HotKeys {
    pub(crate) fn new(threads: usize) -> HotKeys {
        let by_thread = (0..threads.max(1)).map(|_| Mutex::default()).collect();
        HotKeys { session: Mutex::default(), is_on: AtomicBool::new(false), by_thread }
    }

    /// Whether commands are counted.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Begins to count, from nothing.
    pub fn start(&self, request: Request) {
        for (seed, counts) in (1..).zip(&self.by_thread) {
            *counts.lock() = Some(Counts::new(request, seed));
        }
        self.is_on.store(true, Relaxed);
    }

    /// Counts no more.
    pub fn stop(&self) {
        self.is_on.store(false, Relaxed);
    }

    /// Forgets the counts.
    pub fn clear(&self) {
        self.by_thread.iter().for_each(|counts| *counts.lock() = None);
    }

    /// Counts a command, for its keys alike.
    #[cold]
    pub(crate) fn count<'a>(
        &self,
        thread: usize,
        keys: impl Iterator<Item = &'a [u8]> + Clone,
        (nanoseconds, bytes): (u64, u64),
        now_ms: u64,
    ) {
        let mut counts = self.by_thread[thread % self.by_thread.len()].lock();
        let Some(counts) = &mut *counts else { return };
        if now_ms >= counts.request.until_ms {
            return self.stop();
        }
        counts.all_nanoseconds += nanoseconds;
        counts.all_bytes += bytes;
        let share = keys.clone().count() as u64;
        if share == 0 || !counts.is_sampled() {
            return;
        }
        for key in keys {
            if counts.request.cpu {
                counts.cpu.add(key, nanoseconds / share);
            }
            if counts.request.net {
                counts.net.add(key, bytes / share);
            }
        }
    }

    /// The counts of all threads together; `None` if nothing was started.
    pub fn total(&self) -> Option<Counts> {
        let mut total: Option<Counts> = None;
        for counts in &self.by_thread {
            let Some(counts) = counts.lock().clone() else { continue };
            let Some(total) = &mut total else {
                total = Some(counts);
                continue;
            };
            total.all_nanoseconds += counts.all_nanoseconds;
            total.all_bytes += counts.all_bytes;
            for (sum, part) in [(&mut total.cpu, counts.cpu), (&mut total.net, counts.net)] {
                for (key, amount) in part.amounts {
                    *sum.amounts.entry(key).or_default() += amount;
                }
            }
        }
        total
    }
}

/// The keys with the largest amounts, and some others.
#[derive(Clone, Debug, Default)]
pub struct TopKeys {
    amounts: HashMap<Box<[u8]>, u64>,
    name_bytes: usize,
}

impl TopKeys {
    fn add(&mut self, key: &[u8], amount: u64) {
        if let Some(present) = self.amounts.get_mut(key) {
            *present += amount;
            return;
        }
        if key.len() > NAME_BYTES_MAX {
            return;
        }
        if self.amounts.len() >= 2 * COUNTS_KEPT
            || self.name_bytes + key.len() > 2 * NAME_BYTES_KEPT
        {
            self.shrink();
        }
        self.name_bytes += key.len();
        self.amounts.insert(key.into(), amount);
    }

    /// Drops the smaller half.
    fn shrink(&mut self) {
        let mut all: Vec<(Box<[u8]>, u64)> = self.amounts.drain().collect();
        all.sort_unstable_by_key(|(_, amount)| std::cmp::Reverse(*amount));
        self.name_bytes = 0;
        for (key, amount) in all.into_iter().take(COUNTS_KEPT) {
            self.name_bytes += key.len();
            if self.name_bytes > NAME_BYTES_KEPT {
                self.name_bytes -= key.len();
                break;
            }
            self.amounts.insert(key, amount);
        }
    }

    /// The `count` largest, the largest first.
    pub fn largest(self, count: usize) -> Vec<(Box<[u8]>, u64)> {
        let mut all: Vec<_> = self.amounts.into_iter().filter(|(_, amount)| *amount != 0).collect();
        all.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all.truncate(count);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: Request = Request { cpu: true, net: true, ratio: 1, until_ms: u64::MAX };

    #[test]
    fn what_is_hot_is_found_among_very_many_in_little_memory() {
        let hot_keys = HotKeys::new(3);
        hot_keys.start(REQUEST);
        for at in 0..200_000u64 {
            let cold = format!("cold {at}");
            let hot = format!("hot {}", at % 10);
            let key = if at % 5 == 0 { hot.as_bytes() } else { cold.as_bytes() };
            let amounts = (if at % 10 == 0 { 30 } else { 20 }, at % 5 + 1);
            hot_keys.count(at as usize / 7, [key].into_iter(), amounts, 0);
        }
        for counts in &hot_keys.by_thread {
            assert!(counts.lock().as_ref().unwrap().cpu.amounts.len() <= 2 * COUNTS_KEPT);
        }
        let total = hot_keys.total().unwrap();
        assert_eq!(total.all_nanoseconds, 20_000 * 30 + 180_000 * 20);
        let names: Vec<_> = total.cpu.largest(2).into_iter().map(|(key, _)| key).collect();
        assert_eq!(names, [b"hot 0"[..].into(), b"hot 5"[..].into()]);
    }

    #[test]
    fn names_are_bounded_and_amounts_shared() {
        let hot_keys = HotKeys::new(1);
        hot_keys.start(Request { net: false, until_ms: 10, ..REQUEST });
        for at in 0..1000u32 {
            let mut key = vec![b'x'; NAME_BYTES_MAX];
            key[..4].copy_from_slice(&at.to_le_bytes());
            hot_keys.count(0, [&key[..]].into_iter(), (100, 100), 9);
        }
        hot_keys.count(0, [&vec![b'x'; NAME_BYTES_MAX + 1][..]].into_iter(), (1 << 40, 0), 9);
        hot_keys.count(0, [&b"a"[..], b"b"].into_iter(), (2000, 0), 9);
        let total = hot_keys.total().unwrap();
        assert!(total.cpu.name_bytes <= 2 * NAME_BYTES_KEPT);
        let largest = total.cpu.largest(2);
        assert_eq!(largest, [(b"a"[..].into(), 1000), (b"b"[..].into(), 1000)]);
        assert!(total.net.largest(9).is_empty(), "not asked for");
        // Its time is over.
        assert!(hot_keys.is_on());
        hot_keys.count(0, [&b"a"[..]].into_iter(), (1, 1), 10);
        assert!(!hot_keys.is_on());
        hot_keys.clear();
        assert!(hot_keys.total().is_none());
    }
}
