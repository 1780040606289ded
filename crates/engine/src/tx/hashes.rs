//! What a transaction does to hashes.

use super::Tx;
use crate::key::Key;
use crate::types::collection::WrongType;
use crate::types::hash::{HashEdit, HashValue};
use ladon_record::DbId;

impl Tx<'_> {
    /// Runs `edit` on the key's hash; `None` if there is none. An empty hash is removed with its
    /// key.
    #[inline]
    pub fn edit_hash<R>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        edit: impl FnOnce(&mut HashEdit<'_>) -> R,
    ) -> Result<Option<R>, WrongType> {
        let limits = self.keyspace.limits().of_hashes();
        self.change_value(db, key, |hash, op, env| {
            edit(&mut HashEdit { hash, op, hasher: env.hasher, limits })
        })
    }

    /// As `edit_hash`, creating the hash if there is none. `words` are the names and values,
    /// alternating, that will probably be set.
    #[inline]
    pub fn edit_or_create_hash<R>(
        &mut self,
        db: DbId,
        key: Key<'_>,
        words: &[&[u8]],
        edit: impl FnOnce(&mut HashEdit<'_>) -> R,
    ) -> Result<R, WrongType> {
        let limits = self.keyspace.limits().of_hashes();
        self.upsert_value(
            db,
            key,
            |_| HashValue::with_room(words.len() / 2, words.iter().map(|word| word.len()).sum()),
            |hash, op, env| {
                hash.expect(env.hasher, limits, words);
                edit(&mut HashEdit { hash, op, hasher: env.hasher, limits })
            },
        )
    }
}
