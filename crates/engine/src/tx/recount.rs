//! Recounts memory, to check the accounts that are updated as data changes.

use super::Tx;
use crate::partition::Database;
use crate::table::entry::ValueRef;
use ladon_model::DbId;

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
