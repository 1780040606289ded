//! Values that a program broadcasts by key, and the clients that watch them.

use crate::client::schema_watchers::{SchemaWatchers, WatchingClient};
use crate::message::ThreadHandle;
use ladon_record::Lsn;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Keys that a program may broadcast.
const KEYS_MAX: usize = 10_000;

/// The events, by key.
#[derive(Default)]
pub struct Events(Mutex<HashMap<Box<[u8]>, Event>>);

#[derive(Default)]
struct Event {
    /// How often it was broadcast.
    version: u64,
    /// MessagePack; `None` before the first broadcast.
    value: Option<Arc<[u8]>>,
    watchers: SchemaWatchers,
    /// Clients that watch it.
    clients: usize,
}

/// What a client is to be told now: the value, and what it depends on.
pub type Told = (Option<Arc<[u8]>>, Lsn);

impl Events {
    /// A client watches a key for the first time (`is_new`), or has taken note of its value. Returns
    /// what it is to be told at once; otherwise it waits.
    pub fn watch(
        &self,
        key: &[u8],
        (client, is_new): (WatchingClient, bool),
        sync: u64,
    ) -> Option<Told> {
        let mut events = self.0.lock();
        let event = events.entry(key.into()).or_default();
        event.clients += usize::from(is_new);
        let (_, depends) = event.watchers.watch(client, sync, || event.version)?;
        Some((event.value.clone(), depends))
    }

    /// A client watches a key no longer.
    pub fn unwatch(&self, key: &[u8], client: u64) {
        let mut events = self.0.lock();
        let Some(event) = events.get_mut(key) else { return };
        event.watchers.unwatch(client);
        event.clients = event.clients.saturating_sub(1);
        if event.clients == 0 && event.version == 0 {
            events.remove(key);
        }
    }

    /// The value of a key, if there is one, and what it depends on.
    pub fn value(&self, key: &[u8]) -> Option<(Arc<[u8]>, Lsn)> {
        let events = self.0.lock();
        let event = events.get(key)?;
        Some((event.value.clone()?, event.watchers.changed()))
    }

    /// Sets a value and tells all who wait for it. `message` makes the bytes that a client is sent, of
    /// the value and the number of its request. Returns `false` if there are too many keys.
    pub fn broadcast(
        &self,
        threads: &[ThreadHandle],
        (key, value): (&[u8], &[u8]),
        depends: Lsn,
        message: impl Fn(&[u8], u64) -> Arc<[u8]>,
    ) -> bool {
        let mut events = self.0.lock();
        if events.len() >= KEYS_MAX && !events.contains_key(key) {
            return false;
        }
        let event = events.entry(key.into()).or_default();
        event.version += 1;
        event.value = Some(value.into());
        let version = event.version;
        event.watchers.tell(threads, depends, || version, |_, sync| message(value, sync));
        true
    }
}
