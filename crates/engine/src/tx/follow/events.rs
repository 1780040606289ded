//! Keyspace events of what is followed. The log says what happened to which key and not which
//! command did it, so they are those of the plainest command that does the same: `set` for `INCR`,
//! `rpush` for `RPOPLPUSH`'s second half. What has expired or was evicted was removed: `del`,
//! `hdel`, `srem`.
//!
//! Nothing is read of an operation unless somebody wants events of its type.

use crate::events::EventClass;
use crate::key::Key;
use crate::tx::Tx;
use crate::types::hash::Item;
use crate::types::list::{self, End};
use crate::types::{set, sorted_set, stream, string, string_op};
use ladon_record::{DbId, ValueKind};

/// What is known of a key before a change, if somebody wants events.
#[derive(Clone, Copy)]
pub(super) struct KeyBefore {
    exists: bool,
    expire_at: u64,
    /// Of a string.
    length: usize,
}

fn class_of(kind: ValueKind) -> EventClass {
    match kind {
        ValueKind::String => EventClass::STRING,
        ValueKind::Set => EventClass::SET,
        ValueKind::Hash => EventClass::HASH,
        ValueKind::List => EventClass::LIST,
        ValueKind::SortedSet => EventClass::SORTED_SET,
        ValueKind::Stream => EventClass::STREAM,
    }
}

/// The plainest command that makes a value.
fn made_by(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::String => "set",
        ValueKind::Set => "sadd",
        ValueKind::Hash => "hset",
        ValueKind::List => "rpush",
        ValueKind::SortedSet => "zadd",
        ValueKind::Stream => "xadd",
    }
}

/// Of steps, each with its name: one after the other, those with the same name together.
struct Names(Vec<&'static str>);

impl Names {
    fn add(&mut self, name: &'static str) {
        if self.0.last() != Some(&name) {
            self.0.push(name);
        }
    }
}

impl Tx<'_> {
    /// Looks at a key whose value or expiry is about to change.
    pub(super) fn look_before(&self, db: DbId, key: Key<'_>) -> Option<KeyBefore> {
        let others = EventClass::CHANGED.0 | EventClass::SUBKEYS.0;
        if !self.keyspace.events.has(EventClass(!others)) {
            return None;
        }
        let partition = self.locked.look_at(crate::partition_of(key.hash));
        let table = &partition.dbs[usize::from(db)].table;
        let none = KeyBefore { exists: false, expire_at: 0, length: 0 };
        let Some(entry) = table.get(table.local(key.hash.0), key.bytes) else { return Some(none) };
        let length = string::bytes(entry.value()).map_or(0, |bytes| bytes.len());
        Some(KeyBefore { exists: true, expire_at: entry.expire_at(), length })
    }

    pub(super) fn notify_put(
        &mut self,
        (db, key): (DbId, Key<'_>),
        kind: ValueKind,
        expire_at: u64,
        before: Option<KeyBefore>,
    ) {
        let Some(before) = before else { return };
        self.notify(class_of(kind), made_by(kind), db, key);
        if expire_at != 0 && expire_at != before.expire_at {
            self.notify(EventClass::GENERIC, "expire", db, key);
        }
    }

    pub(super) fn notify_delete(&mut self, db: DbId, key: Key<'_>, before: Option<KeyBefore>) {
        if before.is_some_and(|before| before.exists) {
            self.notify(EventClass::GENERIC, "del", db, key);
        }
    }

    pub(super) fn notify_expiry(&mut self, db: DbId, key: Key<'_>, expire_at: u64) {
        let name = if expire_at == 0 { "persist" } else { "expire" };
        self.notify(EventClass::GENERIC, name, db, key);
    }

    pub(super) fn notify_update(
        &mut self,
        (db, key): (DbId, Key<'_>),
        kind: ValueKind,
        op: &[u8],
        before: Option<KeyBefore>,
    ) {
        let class = class_of(kind);
        let Some(before) = before.filter(|_| self.keyspace.events.has(class)) else { return };
        let mut names = Names(Vec::new());
        match kind {
            ValueKind::String => names.add(match string_op::decode_write_at(op) {
                Some((offset, _)) if offset == before.length => "append",
                Some(_) => "setrange",
                None => "set",
            }),
            ValueKind::Hash => return self.notify_fields(db, key, op),
            ValueKind::Set => set_names(op, &mut names),
            ValueKind::SortedSet => names.add(match op.first() {
                Some(&sorted_set::OP_REMOVE) => "zrem",
                _ => "zadd",
            }),
            ValueKind::List => list_names(op, &mut names),
            ValueKind::Stream => stream_names(op, &mut names),
        }
        for name in names.0 {
            self.notify(class, name, db, key);
        }
    }

    /// An event for each thing done, with the fields that it was done to.
    fn notify_fields(&mut self, db: DbId, key: Key<'_>, mut op: &[u8]) {
        let mut events: Vec<(&'static str, Vec<&[u8]>)> = Vec::new();
        while let Some(item) = Item::take(&mut op) {
            let (name, field) =
                (name_of(item, ["hset", "hdel", "hexpire", "hpersist"]), item.field());
            match events.iter_mut().find(|(known, _)| *known == name) {
                Some((_, fields)) => fields.push(field),
                None => events.push((name, vec![field])),
            }
        }
        for (name, fields) in events {
            let mut changed = self.changed_names(EventClass::HASH);
            changed.extend(fields);
            self.notify_of(EventClass::HASH, name, db, key, &changed);
        }
    }
}

/// The name of what an item does: sets, removes, gives a time, takes it.
fn name_of(item: Item<'_>, [set, remove, expire, persist]: [&'static str; 4]) -> &'static str {
    match item {
        Item::Set { .. } => set,
        Item::Remove { .. } => remove,
        Item::Expire { at: 0, .. } => persist,
        Item::Expire { .. } => expire,
    }
}

fn set_names(op: &[u8], names: &mut Names) {
    match op.split_first() {
        Some((&set::OP_REMOVE, _)) => names.add("srem"),
        Some((&set::OP_ITEMS, mut items)) => {
            while let Some(item) = Item::take(&mut items) {
                names.add(name_of(item, ["sadd", "srem", "sexpire", "spersist"]));
            }
        }
        _ => names.add("sadd"),
    }
}

fn list_names(mut op: &[u8], names: &mut Names) {
    while let Some(step) = list::Step::take(&mut op) {
        names.add(match step {
            list::Step::Push(End::Front, _) => "lpush",
            list::Step::Push(End::Back, _) => "rpush",
            list::Step::Pop(End::Front, _) => "lpop",
            list::Step::Pop(End::Back, _) => "rpop",
            list::Step::Set(..) => "lset",
            list::Step::Insert(..) => "linsert",
            list::Step::Remove(..) | list::Step::RemoveEach(_) => "lrem",
        });
    }
}

/// What readers do in a group is no event.
fn stream_names(mut op: &[u8], names: &mut Names) {
    use stream::Step;
    while let Some(step) = Step::take(&mut op) {
        names.add(match step {
            Step::Add { .. } => "xadd",
            Step::Remove { .. } => "xdel",
            Step::Trim { .. } => "xtrim",
            Step::SetId { .. } => "xsetid",
            Step::CreateGroup { .. } => "xgroup-create",
            Step::SetGroup { .. } => "xgroup-setid",
            Step::RemoveGroup { .. } => "xgroup-destroy",
            Step::RemoveConsumer { .. } => "xgroup-delconsumer",
            _ => continue,
        });
    }
}
