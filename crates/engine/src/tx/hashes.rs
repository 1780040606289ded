//! What a transaction does to hashes.

use super::{Key, Tx};
use crate::types::collection::WrongType;
use crate::types::hash::{HashEdit, HashValue};
use ladon_model::DbId;

impl Tx<'_> {
    /// Runs `edit` on the key's hash; `None` if there is none. A hash that has become empty goes,
    /// and its key with it.
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

    /// As `edit_hash`, on a new hash where there is none. Names and values in turn, `words` are
    /// what is probably going to be set.
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
