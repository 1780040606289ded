//! Recounts memory, to check the accounts that are updated as data changes.

use super::Tx;
use crate::partition::Database;
use crate::table::entry::ValueRef;
use ladon_record::DbId;

impl Tx<'_> {
    /// Bytes that a database takes in the held partitions, value by value. If all partitions are
    /// held, the sum over all databases must equal [`Keyspace::used_bytes`].
    ///
    /// # Panics
    /// If something expires before the time that [`Keyspace::next_due`] returns, because it would
    /// never be removed.
    ///
    /// [`Keyspace::used_bytes`]: crate::Keyspace::used_bytes
    /// [`Keyspace::next_due`]: crate::Keyspace::next_due
    pub fn recount(&mut self, db: DbId) -> u64 {
        let mut bytes = 0;
        for index in self.locked.indexes() {
            let database = &self.locked.at(index).dbs[usize::from(db)];
            assert!(database.next_due() >= self.keyspace.next_due(index), "an expiry is forgotten");
            let Database { table, expires, element_expires, .. } = database;
            bytes += table.bytes() + expires.bytes() + element_expires.bytes();
            table.for_each(|entry| {
                if let ValueRef::Object(object) = entry.value() {
                    bytes += object.bytes();
                }
            });
        }
        bytes as u64
    }
}

#[cfg(test)]
mod tests {
    use crate::{Keyspace, KeyspaceOptions, Locks, Scratch};
    use ladon_record::Lsn;

    #[test]
    fn flushing_what_keys_have_left_is_accounted_for() {
        let keyspace = Keyspace::new(KeyspaceOptions { hash_seed: 5, databases: 1 });
        let mut scratch = Scratch::default();
        let mut tx = keyspace.begin(Locks::All, &mut scratch, 0);
        let key = tx.key(b"comes and goes");
        tx.put_string(0, key, b"value", 0);
        tx.delete(0, key);
        tx.flush(0);
        tx.flush(0);
        assert_eq!(tx.recount(0), 0);
        tx.commit(|_| Lsn(1));
        assert_eq!(scratch.counters.bytes_delta, 0);
    }
}
