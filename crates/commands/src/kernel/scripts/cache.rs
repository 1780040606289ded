//! The scripts of a node by their digest.
//!
//! `SCRIPT LOAD` keeps a script until `SCRIPT FLUSH`. Scripts that only `EVAL` brought are kept as
//! long as they are among the last used, as in Redis 7.4: a client that makes a new script for each
//! call must not fill the memory.

use crate::kernel::scripts::learnt::Learnt;
use crate::kernel::scripts::shebang::ScriptFlags;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// How many scripts are kept that nobody loaded: Redis' number.
const EVALUATED_MAX: usize = 500;

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
    /// `SCRIPT LOAD` brought it.
    loaded: AtomicBool,
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
}

/// All threads' scripts.
#[derive(Default)]
pub struct Cache {
    scripts: RwLock<HashMap<Digest, Arc<Script>>>,
    bytes: AtomicUsize,
    /// Counts the scripts that came, so that a use has a date without a clock.
    came: AtomicU64,
    /// Counts `SCRIPT FLUSH`.
    flushes: AtomicU64,
}

impl Cache {
    /// The script of this digest.
    pub fn find(&self, digest: &Digest) -> Option<Arc<Script>> {
        let found = self.scripts.read().get(digest).cloned();
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
        let mut scripts = self.scripts.write();
        let now = self.came.fetch_add(1, Relaxed) + 1;
        let script = scripts.entry(digest).or_insert_with(|| {
            self.bytes.fetch_add(body.len() + OVERHEAD_BYTES, Relaxed);
            Arc::new(Script {
                digest,
                body: body.into(),
                flags,
                learnt: Learnt::default(),
                loaded: AtomicBool::new(false),
                gone: AtomicBool::new(false),
                used: AtomicU64::new(now),
            })
        });
        let script = Arc::clone(script);
        if loaded {
            script.loaded.store(true, Relaxed);
        }
        if scripts.len() > EVALUATED_MAX {
            self.drop_oldest(&mut scripts);
        }
        script
    }

    /// Drops the script that was not used for the longest time, if too many were never loaded.
    fn drop_oldest(&self, scripts: &mut HashMap<Digest, Arc<Script>>) {
        let evaluated = || scripts.values().filter(|script| !script.loaded.load(Relaxed));
        if evaluated().count() <= EVALUATED_MAX {
            return;
        }
        let oldest = evaluated().min_by_key(|script| script.used.load(Relaxed));
        let Some(oldest) = oldest.map(|script| script.digest) else { return };
        if let Some(script) = scripts.remove(&oldest) {
            script.gone.store(true, Relaxed);
            self.bytes.fetch_sub(script.body.len() + OVERHEAD_BYTES, Relaxed);
        }
    }

    /// Removes all scripts; threads drop what they compiled when they next run one.
    pub fn flush(&self) {
        let mut scripts = self.scripts.write();
        for (_, script) in scripts.drain() {
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
        self.scripts.read().contains_key(digest)
    }

    /// Number of scripts.
    pub fn count(&self) -> usize {
        self.scripts.read().len()
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
}
