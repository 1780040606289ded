//! Hashes: packed fields or a table, by size and content as Redis chooses. Any field may expire.
//!
//! A hash that was converted to a table stays one. Nothing here reads a clock: a reader of a hash
//! removes expired fields first (`Collection::expire_due`), or hides them (`hiding.rs`).

mod collection;
mod field;
mod hiding;
pub(crate) mod item;
mod on_table;
mod packed;

#[cfg(test)]
mod tests;

use crate::prefetch::prefetch_bytes;
use crate::prefetch_target::AccessedPart;
use crate::table::bucket::BucketHint;
use crate::table::{Entries, Position, Table};
use crate::types::element_prefetch::ElementsAhead;
use crossbeam_epoch::Guard;
pub use field::Field;
use hiding::Hiding;
pub(crate) use item::Item;
use ladon_record::KeyHasher;
use on_table::{OnTable, field_of};
use packed::{Packed, PackedFields};

/// Up to where hashes stay packed.
#[derive(Clone, Copy, Debug)]
pub struct HashLimits {
    pub(crate) listpack_entries: usize,
    pub(crate) listpack_value: usize,
}

/// Fields with their values.
pub struct HashValue(Repr);

enum Repr {
    Packed(Packed),
    Table(Box<OnTable>),
    /// Fields have expired that may not be removed now.
    Hiding(Box<Hiding>),
}

impl std::fmt::Debug for HashValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HashValue({}, {} fields)", self.encoding(), self.len())
    }
}

impl HashValue {
    /// An empty hash of packed fields with room for so many bytes of names and values.
    pub fn with_room(fields: usize, bytes: usize) -> HashValue {
        HashValue(Repr::Packed(Packed::with_room(bytes + 2 * fields)))
    }

    /// An empty hash on a table.
    pub fn on_table() -> HashValue {
        HashValue(Repr::Table(Box::new(OnTable::new())))
    }

    /// A hash of entries that hold bytes and never expire.
    pub(crate) fn of_table(table: Table) -> HashValue {
        HashValue(Repr::Table(Box::new(OnTable::of(table))))
    }

    /// The table without the index of times; `None` if the fields are packed.
    pub(crate) fn into_table(self) -> Option<Table> {
        match self.0 {
            Repr::Packed(_) | Repr::Hiding(_) => None,
            Repr::Table(fields) => Some(fields.table),
        }
    }

    /// Whether the fields are in a table, as those of a large hash are.
    pub(crate) fn is_on_table(&self) -> bool {
        match &self.0 {
            Repr::Packed(_) => false,
            Repr::Table(_) => true,
            Repr::Hiding(hiding) => hiding.seen.is_on_table(),
        }
    }

    /// What `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        match &self.0 {
            Repr::Packed(packed) if packed.is_timed() => "listpackex",
            Repr::Packed(_) => "listpack",
            Repr::Table(_) => "hashtable",
            Repr::Hiding(hiding) => hiding.seen.encoding(),
        }
    }

    /// The fields that readers see.
    #[inline]
    fn seen(&self) -> &HashValue {
        match &self.0 {
            Repr::Hiding(hiding) => &hiding.seen,
            Repr::Packed(_) | Repr::Table(_) => self,
        }
    }

    /// A copy in the same form.
    fn copy(&self, hasher: &KeyHasher) -> HashValue {
        HashValue(match &self.0 {
            Repr::Packed(packed) => Repr::Packed(packed.clone()),
            Repr::Table(_) => {
                let mut copy = OnTable::new();
                for field in self.fields() {
                    copy.set(hasher, field.name, field.value, field.expire_at);
                }
                Repr::Table(Box::new(copy))
            }
            Repr::Hiding(hiding) => Repr::Hiding(Box::new(hiding.duplicate(hasher))),
        })
    }

    /// Number of fields.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Packed(packed) => packed.len(),
            Repr::Table(fields) => fields.table.len(),
            Repr::Hiding(hiding) => hiding.seen.len(),
        }
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The field's value.
    #[inline]
    pub fn get(&self, hasher: &KeyHasher, name: &[u8]) -> Option<&[u8]> {
        self.look(hasher, name).map(|(value, _)| value)
    }

    /// The field's value and when it expires, Unix milliseconds (0: never).
    #[inline]
    pub fn look(&self, hasher: &KeyHasher, name: &[u8]) -> Option<(&[u8], u64)> {
        match &self.0 {
            Repr::Packed(packed) => packed.find(name).map(|spot| (packed.value(&spot), spot.at)),
            Repr::Table(fields) => {
                fields.get(hasher, name).map(|field| (field.value, field.expire_at))
            }
            Repr::Hiding(hiding) => hiding.seen.look(hasher, name),
        }
    }

    /// See [`crate::Object::prefetch`].
    pub(crate) fn prefetch(&self, inside: AccessedPart, guard: &Guard) -> BucketHint {
        match (&self.0, inside) {
            (Repr::Table(fields), AccessedPart::Element(hash)) => {
                return fields.table.prefetch_bucket(hash.0, guard);
            }
            (Repr::Table(_), _) => {}
            (Repr::Packed(packed), _) => prefetch_bytes(packed.as_items()),
            (Repr::Hiding(hiding), _) => return hiding.seen.prefetch(inside, guard),
        }
        BucketHint::NONE
    }

    /// When the field expires, Unix milliseconds (0: never); `None` if there is no such field.
    pub fn expire_at(&self, hasher: &KeyHasher, name: &[u8]) -> Option<u64> {
        self.look(hasher, name).map(|(_, at)| at)
    }

    /// Gives the field a value and an expiry (0: never), whatever it had; whether it is new.
    pub fn set(
        &mut self,
        hasher: &KeyHasher,
        limits: HashLimits,
        name: &[u8],
        value: &[u8],
        at: u64,
    ) -> bool {
        if let Repr::Packed(packed) = &mut self.0 {
            if name.len() <= limits.listpack_value && value.len() <= limits.listpack_value {
                let is_new = match packed.find(name) {
                    Some(spot) => {
                        packed.replace(spot, value, at);
                        false
                    }
                    None => {
                        packed.push(name, value, at);
                        true
                    }
                };
                if packed.len() > limits.listpack_entries {
                    self.become_table(hasher);
                }
                return is_new;
            }
            self.become_table(hasher);
        }
        match &mut self.0 {
            Repr::Table(fields) => fields.set(hasher, name, value, at),
            Repr::Hiding(hiding) => {
                let is_new = hiding.set(hasher, limits, name, value, at);
                self.stop_hiding_nothing();
                is_new
            }
            Repr::Packed(_) => unreachable!("it has just become a table"),
        }
    }

    /// Changes when the field expires (0: never); whether there is such a field.
    pub fn set_expiry(&mut self, hasher: &KeyHasher, name: &[u8], at: u64) -> bool {
        match &mut self.0 {
            Repr::Packed(packed) => {
                let Some(spot) = packed.find(name) else { return false };
                let value = packed.value(&spot).to_vec();
                packed.replace(spot, &value, at);
                true
            }
            Repr::Table(fields) => fields.set_expiry(hasher, name, at),
            Repr::Hiding(hiding) => {
                let found = hiding.set_expiry(hasher, name, at);
                self.stop_hiding_nothing();
                found
            }
        }
    }

    /// Removes the field; whether it was there.
    pub fn remove(&mut self, hasher: &KeyHasher, name: &[u8]) -> bool {
        match &mut self.0 {
            Repr::Packed(packed) => match packed.find(name) {
                Some(spot) => {
                    packed.remove(spot);
                    true
                }
                None => false,
            },
            Repr::Table(fields) => fields.remove(hasher, name),
            Repr::Hiding(hiding) => {
                let found = hiding.remove(hasher, name);
                self.stop_hiding_nothing();
                found
            }
        }
    }

    /// Removes up to `max` fields that are due at `now` (Unix milliseconds); `visit` sees them.
    /// Returns how many. None may be hidden.
    pub(crate) fn expire_each(
        &mut self,
        hasher: &KeyHasher,
        now: u64,
        max: usize,
        visit: impl FnMut(Field<'_>),
    ) -> usize {
        match &mut self.0 {
            Repr::Packed(packed) => packed.expire_due(now, max, visit),
            Repr::Table(fields) => fields.expire_due(hasher, now, max, visit),
            Repr::Hiding(_) => unreachable!("nothing is removed while some is hidden"),
        }
    }

    /// Called before fields with these names and values are set: converts to a table at once if
    /// they are too many, or one is too long.
    pub fn expect(&mut self, hasher: &KeyHasher, limits: HashLimits, words: &[&[u8]]) {
        if !self.is_on_table()
            && (words.len() / 2 > limits.listpack_entries
                || words.iter().any(|word| word.len() > limits.listpack_value))
        {
            self.become_table(hasher);
        }
    }

    /// Every field once: packed ones in insertion order, those of a table in hash order.
    pub fn fields(&self) -> Fields<'_> {
        Fields(match &self.0 {
            Repr::Packed(packed) => Walk::Packed(packed.fields()),
            Repr::Table(fields) => Walk::Table(fields.table.entries()),
            Repr::Hiding(hiding) => return hiding.seen.fields(),
        })
    }

    /// The fields of a frozen hash from the position of another walk.
    pub fn fields_from(&self, from: Position) -> Fields<'_> {
        match &self.0 {
            Repr::Packed(_) | Repr::Hiding(_) => unreachable!("a frozen hash is on a table"),
            Repr::Table(fields) => Fields(Walk::Table(fields.table.entries_from(from))),
        }
    }

    /// A field chosen uniformly at random; `None` from an empty hash.
    pub fn random(&self, mut random: impl FnMut() -> u64) -> Option<Field<'_>> {
        match &self.seen().0 {
            Repr::Packed(packed) => {
                let index = (u128::from(random()) * packed.len() as u128) >> 64;
                packed.fields().nth(index as usize)
            }
            Repr::Table(fields) => fields.table.random(random).map(field_of),
            Repr::Hiding(_) => unreachable!("what is seen hides nothing"),
        }
    }

    /// Visits fields from a cursor (0 to begin) on, about `count` of them at least, unless the end
    /// comes first or `visit` returns that it is enough. Returns the next cursor, 0 at the end. A
    /// field that stays in the hash for the whole scan is visited at least once.
    pub fn scan(
        &self,
        hasher: &KeyHasher,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(Field<'_>) -> bool,
    ) -> u64 {
        match &self.seen().0 {
            Repr::Packed(packed) => {
                packed.fields().for_each(|field| {
                    visit(field);
                });
                0
            }
            Repr::Table(fields) => {
                fields.table.scan_from(hasher, cursor, count, |entry| visit(field_of(entry)))
            }
            Repr::Hiding(_) => unreachable!("what is seen hides nothing"),
        }
    }

    /// Frees slack memory.
    pub fn shrink_to_fit(&mut self) {
        if let Repr::Packed(packed) = &mut self.0 {
            packed.shrink_to_fit();
        }
    }

    pub(crate) fn become_table(&mut self, hasher: &KeyHasher) {
        if let Repr::Hiding(hiding) = &mut self.0 {
            return hiding.become_table(hasher);
        }
        if self.is_on_table() {
            return;
        }
        let mut table = OnTable::new();
        for field in self.fields() {
            table.set(hasher, field.name, field.value, field.expire_at);
        }
        self.0 = Repr::Table(Box::new(table));
    }
}

/// Walks over a hash.
pub struct Fields<'a>(Walk<'a>);

enum Walk<'a> {
    Packed(PackedFields<'a>),
    Table(Entries<'a>),
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        match &mut self.0 {
            Walk::Packed(fields) => fields.next(),
            Walk::Table(entries) => entries.next().map(field_of),
        }
    }
}

impl Fields<'_> {
    /// The position of the walk over a frozen hash, for [`HashValue::fields_from`].
    pub fn position(&self) -> Position {
        match &self.0 {
            Walk::Packed(_) => unreachable!("packed hashes are not frozen"),
            Walk::Table(entries) => entries.position(),
        }
    }
}

/// A hash being changed, together with the operation that the log gets.
pub struct HashEdit<'e> {
    pub(crate) hash: &'e mut HashValue,
    pub(crate) op: &'e mut Vec<u8>,
    pub(crate) hasher: &'e KeyHasher,
    pub(crate) limits: HashLimits,
}

impl HashEdit<'_> {
    /// The hash as it is now.
    pub fn hash(&self) -> &HashValue {
        self.hash
    }

    /// The field's value.
    #[inline]
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.hash.get(self.hasher, name)
    }

    /// See [`HashValue::look`].
    #[inline]
    pub fn look(&self, name: &[u8]) -> Option<(&[u8], u64)> {
        self.hash.look(self.hasher, name)
    }

    /// See [`HashValue::expire_at`].
    pub fn expire_at(&self, name: &[u8]) -> Option<u64> {
        self.hash.expire_at(self.hasher, name)
    }

    /// See [`HashValue::expect`].
    pub fn expect(&mut self, words: &[&[u8]]) {
        self.hash.expect(self.hasher, self.limits, words);
    }

    /// See [`HashValue::set`].
    #[inline]
    pub fn set(&mut self, name: &[u8], value: &[u8], at: u64) -> bool {
        Item::Set { field: name, value, at }.put(self.op);
        self.hash.set(self.hasher, self.limits, name, value, at)
    }

    /// See [`HashValue::set_expiry`].
    pub fn set_expiry(&mut self, name: &[u8], at: u64) -> bool {
        let found = self.hash.set_expiry(self.hasher, name, at);
        if found {
            Item::Expire { field: name, at }.put(self.op);
        }
        found
    }

    /// Sets fields without expiry, names and values alternating; returns how many are new.
    pub fn set_all(&mut self, pairs: &[[&[u8]; 2]]) -> usize {
        let mut ahead = ElementsAhead::of(pairs.len());
        let mut added = 0;
        for (at, [name, value]) in pairs.iter().enumerate() {
            self.fetch_ahead(&mut ahead, pairs.len(), at, |at| pairs[at][0]);
            added += usize::from(self.set(name, value, 0));
        }
        added
    }

    /// Removes fields; how many were there.
    pub fn remove_all(&mut self, names: &[&[u8]]) -> usize {
        let mut ahead = ElementsAhead::of(names.len());
        let mut removed = 0;
        for (at, name) in names.iter().enumerate() {
            self.fetch_ahead(&mut ahead, names.len(), at, |at| names[at]);
            removed += usize::from(self.remove(name));
        }
        removed
    }

    #[inline]
    fn fetch_ahead<'n>(
        &self,
        ahead: &mut Option<ElementsAhead>,
        count: usize,
        next: usize,
        name: impl Fn(usize) -> &'n [u8],
    ) {
        if let Some(ahead) = ahead {
            ahead.advance(count, next, |at, guard| {
                self.hash.prefetch(AccessedPart::Element(self.hasher.hash(name(at))), guard)
            });
        }
    }

    /// See [`HashValue::remove`].
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let found = self.hash.remove(self.hasher, name);
        if found {
            Item::Remove { field: name }.put(self.op);
        }
        found
    }
}
