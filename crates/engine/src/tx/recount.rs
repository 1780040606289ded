//! Counting memory anew, to check the accounts that are kept while data changes.

use super::Tx;
use crate::partition::Database;
use crate::table::entry::ValueRef;
use ladon_model::DbId;

impl Tx<'_> {
    /// Bytes that a database takes in the held partitions, value by value. With all of them held,
    /// those of all databases together are what [`Keyspace::used_bytes`] must say.
    ///
    /// # Panics
    /// When something expires before [`Keyspace::next_due`] says so: nobody would remove it.
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
