//! Encodes values as in the files, and decodes them again.

use super::Tx;
use crate::item::ItemHead;
use crate::key::Key;
use crate::types;
use ladon_record::DbId;

impl Tx<'_> {
    /// A string has what it had besides its bytes.
    fn put_back_head(&mut self, db: DbId, key: Key<'_>, head: ItemHead) {
        let database = &mut self.locked.partition(key.hash).dbs[usize::from(db)];
        let local = database.table.local(key.hash.0);
        let Some(mut slot) = database.table.get_mut(local, key.bytes) else { return };
        let before = slot.get().bytes() as i64;
        slot.set_item(head);
        self.scratch.counters.bytes_delta += slot.get().bytes() as i64 - before;
    }

    /// Encodes every value of a database in the held partitions as in the files, and decodes it
    /// again (`DEBUG RELOAD`): whatever that form does not keep is lost. Nothing is logged, because
    /// the data stays the same. Returns the number of values.
    pub fn rebuild(&mut self, db: DbId) -> usize {
        let env = self.env();
        let mut count = 0;
        for index in self.locked.indexes() {
            let table = &self.locked.at(index).dbs[usize::from(db)].table;
            let mut keys: Vec<Vec<u8>> = Vec::new();
            table.for_each(|entry| keys.push(entry.key().to_vec()));
            for name in &keys {
                let key = Key { bytes: name, hash: env.hasher.hash(name) };
                let table = &self.locked.at(index).dbs[usize::from(db)].table;
                let Some(entry) = table.get(table.local(key.hash.0), name) else { continue };
                let (expire_at, kind) = (entry.expire_at(), types::kind_of(entry.value()));
                let mut body = Vec::new();
                types::encode_body(entry.value(), &mut body);
                let head = entry.item();
                self.remove(db, key);
                let decoded = types::decode_body(kind, &body, env, |value| {
                    self.put(db, key, value, expire_at);
                });
                assert!(decoded.is_some(), "what was encoded decodes");
                if head != ItemHead::default() {
                    self.put_back_head(db, key, head.of_changed());
                }
                count += 1;
            }
        }
        count
    }
}
