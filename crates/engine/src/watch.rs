//! Watched keys: notifies clients that a key was touched (`WATCH`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Set once a watched key was touched; shared by a client and the partitions it watches in.
#[derive(Debug, Default)]
pub struct WatchFlag(AtomicBool);

impl WatchFlag {
    /// Whether a watched key was touched.
    ///
    /// Reliable under the locks of the watched keys, which is where `EXEC` asks.
    pub fn is_touched(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Says that a watched key was touched.
    pub fn touch(&self) {
        self.0.store(true, Relaxed);
    }
}

/// What a transaction that may be taken back keeps from watchers until its commit.
#[derive(Default)]
pub(crate) struct Untold {
    /// To be touched.
    pub(crate) flags: Vec<Arc<WatchFlag>>,
    /// Watchers that have learned whether their key is expired, as they were before.
    pub(crate) before: Vec<WatcherBefore>,
}

/// A watcher as it was.
pub(crate) struct WatcherBefore {
    key: Box<[u8]>,
    flag: Arc<WatchFlag>,
    expired: bool,
}

impl Untold {
    /// Sets the watcher's knowledge, and notes what it was.
    fn set_expired(untold: &mut Option<&mut Untold>, key: &[u8], watcher: &mut Watcher, new: bool) {
        if let Some(untold) = untold {
            let (flag, expired) = (Arc::clone(&watcher.flag), watcher.expired);
            untold.before.push(WatcherBefore { key: key.into(), flag, expired });
        }
        watcher.expired = new;
    }

    fn touch(untold: &mut Option<&mut Untold>, watcher: &Watcher) {
        match untold {
            Some(untold) => untold.flags.push(Arc::clone(&watcher.flag)),
            None => watcher.flag.touch(),
        }
    }
}

struct Watcher {
    flag: Arc<WatchFlag>,
    /// The key had already expired when it was watched, so its removal is not a change.
    expired: bool,
}

type Map = HashMap<Box<[u8]>, Vec<Watcher>>;

/// One database's watched keys within one partition. One word while there are no watchers, so that
/// the check needs no extra cache line.
#[derive(Default)]
pub(crate) struct Watched(Option<Box<Map>>);

impl Watched {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn add(&mut self, key: &[u8], flag: &Arc<WatchFlag>, expired: bool) {
        let map = self.0.get_or_insert_default();
        // Nearly always the only one.
        let watchers = map.entry(key.into()).or_insert_with(|| Vec::with_capacity(1));
        if !watchers.iter().any(|watcher| Arc::ptr_eq(&watcher.flag, flag)) {
            watchers.push(Watcher { flag: Arc::clone(flag), expired });
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8], flag: &Arc<WatchFlag>) {
        let Some(map) = &mut self.0 else { return };
        if let Some(watchers) = map.get_mut(key) {
            watchers.retain(|watcher| !Arc::ptr_eq(&watcher.flag, flag));
            if watchers.is_empty() {
                map.remove(key);
            }
        }
        if map.is_empty() {
            self.0 = None;
        }
    }

    /// The key was changed, or removed when `exists` is false. With `untold`, the watchers' clients
    /// do not see it yet.
    pub(crate) fn touch(&mut self, key: &[u8], exists: bool, mut untold: Option<&mut Untold>) {
        let Some(watchers) = self.0.as_mut().and_then(|map| map.get_mut(key)) else { return };
        for watcher in watchers {
            if watcher.expired && !exists {
                Untold::set_expired(&mut untold, key, watcher, false);
            } else {
                Untold::touch(&mut untold, watcher);
            }
        }
    }

    /// Any key may have changed.
    pub(crate) fn touch_all(&mut self) {
        for watcher in self.0.iter().flat_map(|map| map.values()).flatten() {
            watcher.flag.touch();
        }
    }

    /// Keys, and for each watcher whether it takes its key for expired.
    #[cfg(test)]
    pub(crate) fn states(&self) -> Vec<(Vec<u8>, bool)> {
        let map = self.0.iter().flat_map(|map| map.iter());
        let states = map.flat_map(|(key, all)| all.iter().map(|it| (key.to_vec(), it.expired)));
        let mut states: Vec<_> = states.collect();
        states.sort();
        states
    }

    /// Takes back what a watcher learned.
    pub(crate) fn restore(&mut self, before: &WatcherBefore) {
        let watchers = self.0.as_mut().and_then(|map| map.get_mut(&before.key));
        let watchers = watchers.into_iter().flatten();
        for watcher in watchers.filter(|watcher| Arc::ptr_eq(&watcher.flag, &before.flag)) {
            watcher.expired = before.expired;
        }
    }

    /// All data is replaced: for each watched key, `before` returns whether it exists so far,
    /// `after` whether it will. With `untold`, the watchers' clients do not see it yet.
    pub(crate) fn replace_all(
        &mut self,
        mut before: impl FnMut(&[u8]) -> bool,
        mut after: impl FnMut(&[u8]) -> Presence,
        mut untold: Option<&mut Untold>,
    ) {
        for (key, watchers) in self.0.iter_mut().flat_map(|map| map.iter_mut()) {
            let (before, after) = (before(key), after(key));
            if !before && after == Presence::Missing {
                continue;
            }
            for watcher in watchers {
                match (watcher.expired, after) {
                    // An expired key counts as removed.
                    (true, Presence::Missing) => {
                        Untold::set_expired(&mut untold, key, watcher, false);
                    }
                    (true, Presence::Expired) => {}
                    (false, Presence::Expired) if !before => {
                        Untold::set_expired(&mut untold, key, watcher, true);
                    }
                    _ => Untold::touch(&mut untold, watcher),
                }
            }
        }
    }
}

/// Whether a key exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Missing,
    /// It has expired, but has not been removed.
    Expired,
    Live,
}
