//! The scripts of a node by their digest.
//!
//! `SCRIPT LOAD` keeps a script until `SCRIPT FLUSH`. Scripts that only `EVAL` brought are kept as
//! long as they are among the last used, as in Redis 7.4: a client that makes a new script for each
//! call must not fill the memory. What that costs does not depend on the number of loaded scripts.

use crate::scripts::learnt::Learnt;
use crate::scripts::shebang::ScriptFlags;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// How many scripts are kept that nobody loaded: Redis' number.
const EVALUATED_MAX: usize = 500;

/// Memory of the scripts that nobody loaded, at most; one of them is kept whatever its size.
const EVALUATED_BYTES_MAX: usize = 32 << 20;

/// Memory of a script besides its body.
const OVERHEAD_BYTES: usize = 200;

/// The SHA-1 of a script in lower-case hexadecimal digits.
pub type Digest = [u8; 40];

/// A script that threads may compile.
#[derive(Debug)]
pub struct Script {
    /// Its name.
    pub digest: Digest,
    /// Its source, without the first line if that declares flags.
    pub body: Box<[u8]>,
    /// What it declares.
    pub flags: ScriptFlags,
    /// The locks that it will need.
    pub learnt: Learnt,
    /// It left the cache.
    gone: AtomicBool,
    /// When it was last used: the cache's count of uses, about.
    used: AtomicU64,
}

impl Script {
    /// Whether it has left the cache: then its digest is unknown again.
    #[inline]
    pub fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    /// Its memory, about.
    pub fn bytes(&self) -> usize {
        self.body.len() + OVERHEAD_BYTES
    }
}

/// The scripts, and which of them were only evaluated.
#[derive(Default)]
struct Kept {
    all: HashMap<Digest, Arc<Script>>,
    /// Those that nobody loaded: few, so that the oldest may be searched for.
    evaluated: Vec<Arc<Script>>,
    evaluated_bytes: usize,
}

impl Kept {
    /// A script that was evaluated, and is loaded now, stays.
    fn stays(&mut self, script: &Arc<Script>) {
        if let Some(at) = self.evaluated.iter().position(|other| Arc::ptr_eq(other, script)) {
            self.evaluated.swap_remove(at);
            self.evaluated_bytes -= script.bytes();
        }
    }

    /// Takes out the script that was not used for the longest time, if there are too many of those
    /// that nobody loaded.
    fn take_oldest(&mut self) -> Option<Arc<Script>> {
        let count = self.evaluated.len();
        let too_many = count > EVALUATED_MAX || self.evaluated_bytes > EVALUATED_BYTES_MAX;
        if count < 2 || !too_many {
            return None;
        }
        // The newest one is the last: it stays even if others were used since it came.
        let older = self.evaluated[..count - 1].iter().enumerate();
        let (at, _) = older.min_by_key(|(_, script)| script.used.load(Relaxed))?;
        let oldest = self.evaluated.remove(at);
        self.evaluated_bytes -= oldest.bytes();
        self.all.remove(&oldest.digest);
        Some(oldest)
    }
}

/// All threads' scripts.
#[derive(Default)]
pub struct Cache {
    scripts: RwLock<Kept>,
    bytes: AtomicUsize,
    /// Counts the scripts that came, so that a use has a date without a clock.
    came: AtomicU64,
    /// Counts `SCRIPT FLUSH`.
    flushes: AtomicU64,
}

impl Cache {
    /// The script of this digest.
    pub fn find(&self, digest: &Digest) -> Option<Arc<Script>> {
        let found = self.scripts.read().all.get(digest).cloned();
        if let Some(script) = &found {
            self.touch(script);
        }
        found
    }

    /// Notes that a script was used.
    #[inline]
    pub fn touch(&self, script: &Script) {
        let now = self.came.load(Relaxed);
        if script.used.load(Relaxed) != now {
            script.used.store(now, Relaxed);
        }
    }

    /// Keeps a script that compiles; returns the one that was there first, if another thread was
    /// quicker.
    pub fn keep(
        &self,
        digest: Digest,
        body: &[u8],
        flags: ScriptFlags,
        loaded: bool,
    ) -> Arc<Script> {
        let mut kept = self.scripts.write();
        let now = self.came.fetch_add(1, Relaxed) + 1;
        if let Some(script) = kept.all.get(&digest).cloned() {
            if loaded {
                kept.stays(&script);
            }
            return script;
        }
        let script = Arc::new(Script {
            digest,
            body: body.into(),
            flags,
            learnt: Learnt::default(),
            gone: AtomicBool::new(false),
            used: AtomicU64::new(now),
        });
        self.bytes.fetch_add(script.bytes(), Relaxed);
        kept.all.insert(digest, Arc::clone(&script));
        if !loaded {
            kept.evaluated.push(Arc::clone(&script));
            kept.evaluated_bytes += script.bytes();
            while let Some(oldest) = kept.take_oldest() {
                oldest.gone.store(true, Relaxed);
                self.bytes.fetch_sub(oldest.bytes(), Relaxed);
            }
        }
        script
    }

    /// Removes all scripts; threads drop what they compiled when they next run one.
    pub fn flush(&self) {
        let mut kept = self.scripts.write();
        for script in std::mem::take(&mut *kept).all.into_values() {
            script.gone.store(true, Relaxed);
        }
        self.bytes.store(0, Relaxed);
        self.flushes.fetch_add(1, Release);
    }

    /// How often it was emptied.
    #[inline]
    pub fn flushes(&self) -> u64 {
        self.flushes.load(Acquire)
    }

    /// Whether a script of this digest is kept.
    pub fn has(&self, digest: &Digest) -> bool {
        self.scripts.read().all.contains_key(digest)
    }

    /// Number of scripts.
    pub fn count(&self) -> usize {
        self.scripts.read().all.len()
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(number: usize) -> Digest {
        format!("{number:040}").into_bytes().try_into().unwrap()
    }

    #[test]
    fn loaded_scripts_stay_and_others_go_by_their_last_use() {
        let cache = Cache::default();
        cache.keep(digest(0), b"0", ScriptFlags::UNDECLARED, true);
        for number in 1..=EVALUATED_MAX {
            cache.keep(digest(number), b"x", ScriptFlags::UNDECLARED, false);
        }
        assert_eq!(cache.count(), EVALUATED_MAX + 1);
        let second = cache.find(&digest(2)).unwrap();
        assert!(cache.find(&digest(1)).is_some());
        cache.keep(digest(501), b"x", ScriptFlags::UNDECLARED, false);
        assert!(cache.has(&digest(1)) && cache.has(&digest(2)) && !cache.has(&digest(3)));
        assert!(!second.is_gone());
        for number in 600..1200 {
            cache.keep(digest(number), b"x", ScriptFlags::UNDECLARED, false);
        }
        assert!(cache.has(&digest(0)) && second.is_gone());
        cache.flush();
        assert_eq!((cache.count(), cache.bytes(), cache.flushes()), (0, 0, 1));
    }

    #[test]
    fn evaluated_scripts_are_bounded_in_bytes_and_loaded_ones_are_not_searched() {
        let cache = Cache::default();
        let body = vec![b' '; 1 << 20];
        for number in 0..100 {
            cache.keep(digest(number), &body, ScriptFlags::UNDECLARED, false);
            assert!(cache.bytes() <= EVALUATED_BYTES_MAX);
            assert!(cache.has(&digest(number)));
        }
        // One that is larger than all may be is kept alone, until the next one comes.
        let body = vec![b' '; EVALUATED_BYTES_MAX];
        cache.keep(digest(100), &body, ScriptFlags::UNDECLARED, false);
        assert_eq!((cache.count(), cache.has(&digest(100))), (1, true));
        cache.keep(digest(101), b"x", ScriptFlags::UNDECLARED, false);
        assert_eq!((cache.count(), cache.has(&digest(101))), (1, true));
        // What is loaded after it was evaluated counts as loaded.
        cache.keep(digest(101), b"x", ScriptFlags::UNDECLARED, true);
        for number in 200..1200 {
            cache.keep(digest(number), b"x", ScriptFlags::UNDECLARED, true);
        }
        let kept = cache.scripts.read();
        assert_eq!((kept.evaluated.len(), kept.evaluated_bytes, kept.all.len()), (0, 0, 1001));
    }
}
