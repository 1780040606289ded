//! Clients that want to hear of the next version of the spaces' definitions.

use crate::message::{Message, ThreadHandle};
use ladon_record::Lsn;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Who watches, by client.
#[derive(Default)]
pub struct SchemaWatchers(Mutex<Watchers>);

#[derive(Default)]
struct Watchers {
    clients: HashMap<u64, Watcher>,
    /// The LSN of the last change.
    changed: Lsn,
}

struct Watcher {
    thread: usize,
    slot: u32,
    /// The number of the request by which it watches, which events carry.
    sync: u64,
    /// The version that it was told last.
    told: u64,
    /// It has taken note of that, and waits for another.
    waits: bool,
}

/// A client: its number, its thread, and its slot there.
pub type WatchingClient = (u64, usize, u32);

impl SchemaWatchers {
    /// A client watches, or has taken note of what it was told. Returns the LSN that the version
    /// `now` depends on if the client is to be told that at once; otherwise it waits.
    pub fn watch(
        &self,
        (client, thread, slot): WatchingClient,
        sync: u64,
        now: impl FnOnce() -> u64,
    ) -> Option<(u64, Lsn)> {
        let mut watchers = self.0.lock();
        // Under the lock: who changes definitions takes it afterwards.
        let version = now();
        let changed = watchers.changed;
        let watcher = watchers.clients.get_mut(&client);
        if let Some(watcher) = watcher {
            watcher.waits = watcher.told == version;
            (watcher.told, watcher.sync) = (version, sync);
            return (!watcher.waits).then_some((version, changed));
        }
        let watcher = Watcher { thread, slot, sync, told: version, waits: false };
        watchers.clients.insert(client, watcher);
        Some((version, changed))
    }

    /// The LSN that the present version depends on.
    pub fn changed(&self) -> Lsn {
        self.0.lock().changed
    }

    /// A client watches no longer.
    pub fn unwatch(&self, client: u64) {
        self.0.lock().clients.remove(&client);
    }

    /// Definitions have changed: tells all who wait. `version` reads the version, and `event` makes
    /// the bytes that a client is sent, of the version and the number of its request.
    pub fn tell(
        &self,
        threads: &[ThreadHandle],
        depends: Lsn,
        version: impl FnOnce() -> u64,
        event: impl Fn(u64, u64) -> Arc<[u8]>,
    ) {
        let mut watchers = self.0.lock();
        watchers.changed = watchers.changed.max(depends);
        if watchers.clients.is_empty() {
            return;
        }
        let version = version();
        let waiting = watchers.clients.iter_mut().filter(|(_, it)| it.waits && it.told != version);
        for (client, watcher) in waiting {
            (watcher.told, watcher.waits) = (version, false);
            let (client, slot, bytes) = (*client, watcher.slot, event(version, watcher.sync));
            threads[watcher.thread].send(Message::Deliver { client, slot, bytes, depends });
        }
    }
}
