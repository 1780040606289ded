//! Fills a keyspace that no client uses yet with values from elsewhere. Nothing is logged: a
//! checkpoint makes the values durable.

use crate::key::Key;
use crate::keyspace::{Keyspace, Locks};
use crate::object::Object;
use crate::table::entry::ValueInit;
use crate::tx::put_entry;
use crate::types::string::{self, Form};
use ladon_record::{DbId, UnixMillis};

/// A value to be put.
pub enum FilledValue<'v> {
    /// A string.
    String(&'v [u8]),
    /// A value of any type.
    Object(Object),
}

/// What is known of a key beside its value.
#[derive(Clone, Copy, Debug, Default)]
pub struct FilledFacts {
    /// Unix milliseconds; 0 for never.
    pub expire_at: u64,
    /// How long nobody has used it.
    pub idle_s: Option<u64>,
    /// How often it is used, as a logarithm.
    pub frequency: Option<u8>,
}

/// Puts values into a keyspace.
pub struct Filling<'a> {
    keyspace: &'a Keyspace,
    now_ms: UnixMillis,
    bytes_delta: i64,
}

impl<'a> Filling<'a> {
    /// Begins. Keys count as used at `now_ms`, where nothing else is known.
    pub fn new(keyspace: &'a Keyspace, now_ms: UnixMillis) -> Filling<'a> {
        Filling { keyspace, now_ms, bytes_delta: 0 }
    }

    /// Begins to fetch the memory that [`Filling::put`] will look at for this key.
    pub fn prefetch(&self, db: DbId, name: &[u8]) {
        let guard = crossbeam_epoch::pin();
        self.keyspace.prefetch_bucket(db, self.keyspace.hash(name), &guard);
    }

    /// Puts a value, which has elements. Returns false, and puts nothing, if the key is there.
    pub fn put(
        &mut self,
        db: DbId,
        name: &[u8],
        value: FilledValue<'_>,
        facts: FilledFacts,
    ) -> bool {
        let key = Key { bytes: name, hash: self.keyspace.hash(name) };
        let mut held = self.keyspace.lock(Locks::One(key.hash));
        let partition = held.partition(key.hash);
        let table = &partition.dbs[usize::from(db)].table;
        if table.get(table.local(key.hash.0), name).is_some() {
            return false;
        }
        let access = self.keyspace.access_rules().at(self.now_ms);
        let word = access.of_use(facts.idle_s, facts.frequency).unwrap_or_else(|| access.first());
        let value = match value {
            FilledValue::String(bytes) => string::init(bytes, Form::Shortest),
            FilledValue::Object(object) => ValueInit::Object(Box::new(object)),
        };
        let delta = &mut self.bytes_delta;
        put_entry(self.keyspace, partition, db, key, value, facts.expire_at, |_| word, delta);
        true
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        self.keyspace.add_used_bytes(self.bytes_delta);
    }
}
