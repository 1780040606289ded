//! Sets: sorted integers, packed members, or a table, by size and content as Redis chooses. Any
//! member may expire.
//!
//! A set is converted only from integers to packed members to a table; it becomes smaller again
//! when a command stores it anew. The first time that a member gets converts it as well
//! (`timed.rs`); sets without times pay nothing for those with times. Nothing here reads a clock: a
//! reader of a set removes expired members first (`Collection::expire_due`).

mod collection;
pub mod edit;
mod ints;
mod member;
mod packed;
mod timed;

#[cfg(test)]
mod tests;

pub(crate) use collection::{OP_ADD, OP_ITEMS, OP_REMOVE, put_member};
pub use member::{Member, Members};

use crate::prefetch::prefetch_bytes;
use crate::prefetch_target::AccessedPart;
use crate::table::bucket::BucketHint;
use crate::table::entry::ValueInit;
use crate::table::{Position, Table};
use crate::types::collection::Collection;
use crate::types::hash::HashValue;
use crate::types::integer::parse_int;
use crossbeam_epoch::Guard;
use ints::Ints;
use ladon_record::KeyHasher;
use member::Walk;
use packed::Packed;

/// Sizes up to which sets stay packed.
#[derive(Clone, Copy, Debug)]
pub struct SetLimits {
    pub(crate) intset_entries: usize,
    pub(crate) listpack_entries: usize,
    pub(crate) listpack_value: usize,
}

/// A set of distinct members.
pub struct SetValue(Repr);

enum Repr {
    Ints(Ints),
    Packed(Packed),
    Table(Box<Table>),
    /// Some member has, or had, a time: a hash whose values are empty.
    Timed(Box<HashValue>),
}

const NO_VALUE: ValueInit<'static> = ValueInit::Bytes { bytes: &[], grown: false };

impl std::fmt::Debug for SetValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SetValue({}, {} members)", self.encoding(), self.len())
    }
}

impl SetValue {
    /// An empty set fit for `first` and about `expected` members.
    pub fn for_members(first: &[u8], expected: usize, limits: SetLimits) -> SetValue {
        if expected <= limits.intset_entries && parse_int(first).is_some() {
            SetValue::of_ints()
        } else if expected <= limits.listpack_entries {
            SetValue::packed()
        } else {
            SetValue::table()
        }
    }

    /// An empty set that keeps integers as such.
    pub fn of_ints() -> SetValue {
        SetValue(Repr::Ints(Ints::new()))
    }

    /// An empty set of packed members.
    pub fn packed() -> SetValue {
        SetValue(Repr::Packed(Packed::default()))
    }

    /// An empty set on a table.
    pub fn table() -> SetValue {
        SetValue(Repr::Table(Box::new(Table::new(0))))
    }

    /// What `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        match &self.0 {
            Repr::Ints(_) => "intset",
            Repr::Packed(_) => "listpack",
            Repr::Table(_) => "hashtable",
            Repr::Timed(hash) => hash.encoding(),
        }
    }

    /// Whether the members are kept as integers.
    pub fn is_of_ints(&self) -> bool {
        matches!(self.0, Repr::Ints(_))
    }

    /// Whether the members are in a table, as those of a large set are.
    pub fn is_on_table(&self) -> bool {
        match &self.0 {
            Repr::Table(_) => true,
            Repr::Timed(hash) => hash.is_on_table(),
            Repr::Ints(_) | Repr::Packed(_) => false,
        }
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Ints(ints) => ints.len(),
            Repr::Packed(packed) => packed.len(),
            Repr::Table(table) => table.len(),
            Repr::Timed(hash) => hash.len(),
        }
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory beyond the value itself.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Repr::Ints(ints) => ints.bytes(),
            Repr::Packed(packed) => packed.bytes(),
            Repr::Table(table) => size_of::<Table>() + table.bytes(),
            Repr::Timed(hash) => size_of::<HashValue>() + Collection::bytes(&**hash),
        }
    }

    /// Whether `member` is in the set.
    #[inline]
    pub fn contains(&self, hasher: &KeyHasher, member: &[u8]) -> bool {
        match &self.0 {
            Repr::Ints(ints) => parse_int(member).is_some_and(|int| ints.contains(int)),
            Repr::Packed(packed) => packed.contains(member),
            Repr::Table(table) => table.get(hasher.hash(member).0, member).is_some(),
            Repr::Timed(hash) => hash.look(hasher, member).is_some(),
        }
    }

    /// As `contains`, for another set's member.
    #[inline]
    pub fn has(&self, hasher: &KeyHasher, member: Member<'_>) -> bool {
        match (&self.0, member) {
            (Repr::Ints(ints), Member::Int(int)) => ints.contains(int),
            _ => member.with_bytes(|bytes| self.contains(hasher, bytes)),
        }
    }

    /// See [`crate::Object::prefetch`].
    pub(crate) fn prefetch(&self, inside: AccessedPart, guard: &Guard) -> BucketHint {
        match (&self.0, inside) {
            (Repr::Table(table), AccessedPart::Element(hash)) => {
                return table.prefetch_bucket(hash.0, guard);
            }
            (Repr::Table(_), _) => {}
            (Repr::Packed(packed), _) => prefetch_bytes(packed.as_bytes()),
            (Repr::Ints(ints), _) => ints.prefetch(),
            (Repr::Timed(hash), _) => return hash.prefetch(inside, guard),
        }
        BucketHint::NONE
    }

    /// Adds a member, which does not expire; returns whether it was new. One that was there keeps
    /// its time.
    pub fn add(&mut self, hasher: &KeyHasher, limits: SetLimits, member: &[u8]) -> bool {
        match &mut self.0 {
            Repr::Ints(ints) => {
                if let Some(int) = parse_int(member) {
                    let added = ints.insert(int);
                    if added && ints.len() > limits.intset_entries {
                        self.become_table(hasher);
                    }
                    return added;
                }
                if ints.len() < limits.listpack_entries
                    && member.len() <= limits.listpack_value
                    && digits_max(ints) <= limits.listpack_value
                {
                    self.become_packed();
                } else {
                    self.become_table(hasher);
                }
                self.add(hasher, limits, member)
            }
            Repr::Packed(packed) => {
                if packed.contains(member) {
                    return false;
                }
                if packed.len() < limits.listpack_entries && member.len() <= limits.listpack_value {
                    packed.push(member);
                    return true;
                }
                self.become_table(hasher);
                self.add(hasher, limits, member)
            }
            Repr::Table(table) => {
                let hash = hasher.hash(member).0;
                if table.get(hash, member).is_some() {
                    return false;
                }
                table.insert(hasher, hash, member, 0, NO_VALUE, 0);
                true
            }
            Repr::Timed(hash) => {
                let is_new = hash.look(hasher, member).is_none();
                if is_new {
                    hash.set(hasher, limits.of_timed(), member, &[], 0);
                }
                is_new
            }
        }
    }

    /// Called before about `expected` members are added: converts to a table at once if they are
    /// many.
    pub fn expect(&mut self, hasher: &KeyHasher, limits: SetLimits, expected: usize) {
        let most = match &self.0 {
            Repr::Ints(_) => limits.intset_entries,
            Repr::Packed(_) | Repr::Timed(_) => limits.listpack_entries,
            Repr::Table(_) => return,
        };
        if expected > most {
            self.become_table(hasher);
        }
    }

    /// Removes a member; returns whether it existed.
    pub fn remove(&mut self, hasher: &KeyHasher, member: &[u8]) -> bool {
        match &mut self.0 {
            Repr::Ints(ints) => parse_int(member).is_some_and(|int| ints.remove(int)),
            Repr::Packed(packed) => packed.remove(member),
            Repr::Table(table) => match table.get_mut(hasher.hash(member).0, member) {
                Some(slot) => {
                    slot.remove(hasher);
                    true
                }
                None => false,
            },
            Repr::Timed(hash) => hash.remove(hasher, member),
        }
    }

    /// Every member once.
    pub fn members(&self) -> Members<'_> {
        Members(match &self.0 {
            Repr::Ints(ints) => Walk::Ints(ints, 0),
            Repr::Packed(packed) => Walk::Packed(packed.as_bytes()),
            Repr::Table(table) => Walk::Table(table.entries()),
            Repr::Timed(hash) => Walk::Timed(hash.fields()),
        })
    }

    /// The members of a set on a table from the position of another walk; it must not have changed
    /// since.
    pub fn members_from(&self, from: Position) -> Members<'_> {
        match &self.0 {
            Repr::Table(table) => Members(Walk::Table(table.entries_from(from))),
            Repr::Timed(hash) => Members(Walk::Timed(hash.fields_from(from))),
            Repr::Ints(_) | Repr::Packed(_) => unreachable!("not on a table"),
        }
    }

    /// A member chosen uniformly at random; `None` from an empty set.
    pub fn random(&self, mut random: impl FnMut() -> u64) -> Option<Member<'_>> {
        match &self.0 {
            Repr::Ints(ints) => ints.get(below(ints.len(), random())).map(Member::Int),
            Repr::Packed(packed) => {
                packed.nth(below(packed.len(), random())).map(|(member, _)| Member::Bytes(member))
            }
            Repr::Table(table) => table.random(random).map(|entry| Member::Bytes(entry.key())),
            Repr::Timed(hash) => hash.random(random).map(|field| Member::Bytes(field.name)),
        }
    }

    /// Takes a member chosen uniformly at random out; `visit` sees it. `None` from an empty set.
    pub fn pop<R>(
        &mut self,
        hasher: &KeyHasher,
        mut random: impl FnMut() -> u64,
        visit: impl FnOnce(Member<'_>) -> R,
    ) -> Option<R> {
        match &mut self.0 {
            Repr::Ints(ints) => {
                let index = below(ints.len(), random());
                let int = ints.get(index)?;
                ints.remove_at(index);
                Some(visit(Member::Int(int)))
            }
            Repr::Packed(packed) => {
                let (member, place) = packed.nth(below(packed.len(), random()))?;
                let result = visit(Member::Bytes(member));
                packed.remove_place(place);
                Some(result)
            }
            Repr::Table(table) => {
                let slot = table.random_mut(hasher, random)?;
                let result = visit(Member::Bytes(slot.get().key()));
                slot.remove(hasher);
                Some(result)
            }
            Repr::Timed(hash) => {
                let member = hash.random(random)?.name.to_vec();
                hash.remove(hasher, &member);
                Some(visit(Member::Bytes(&member)))
            }
        }
    }

    /// As `pop`, of up to `count` members.
    pub fn pop_many(
        &mut self,
        hasher: &KeyHasher,
        count: usize,
        mut random: impl FnMut() -> u64,
        mut visit: impl FnMut(Member<'_>),
    ) {
        match &mut self.0 {
            Repr::Table(table) => {
                table.pop_random(hasher, count, random, |entry| visit(Member::Bytes(entry.key())));
            }
            _ => (0..count).for_each(|_| {
                self.pop(hasher, &mut random, &mut visit);
            }),
        }
    }

    /// Visits members from a cursor (0 to begin) on, at least about `count` of them unless the end
    /// comes first, or `visit` says that it is enough. Returns the next cursor, 0 at the end. A
    /// member that stays in the set for the whole scan is visited at least once.
    pub fn scan(
        &self,
        hasher: &KeyHasher,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(Member<'_>) -> bool,
    ) -> u64 {
        match &self.0 {
            Repr::Ints(_) | Repr::Packed(_) => {
                self.members().for_each(|member| {
                    visit(member);
                });
                0
            }
            Repr::Table(table) => {
                table.scan_from(hasher, cursor, count, |entry| visit(Member::Bytes(entry.key())))
            }
            Repr::Timed(hash) => {
                hash.scan(hasher, cursor, count, |field| visit(Member::Bytes(field.name)))
            }
        }
    }

    /// Keeps the members as integers if all of them are and they are few enough.
    pub fn become_ints(&mut self, limits: SetLimits) {
        if self.is_of_ints() || self.is_timed() || self.len() > limits.intset_entries {
            return;
        }
        let mut ints = Ints::new();
        for member in self.members() {
            match member.with_bytes(parse_int) {
                Some(int) => ints.insert(int),
                None => return,
            };
        }
        self.0 = Repr::Ints(ints);
    }

    /// Gives back memory that was kept for growth.
    pub fn shrink_to_fit(&mut self) {
        match &mut self.0 {
            Repr::Ints(ints) => ints.shrink_to_fit(),
            Repr::Packed(packed) => packed.shrink_to_fit(),
            Repr::Table(_) => {}
            Repr::Timed(hash) => hash.shrink_to_fit(),
        }
    }

    fn become_packed(&mut self) {
        let mut packed = Packed::default();
        self.members().for_each(|member| member.with_bytes(|bytes| packed.push(bytes)));
        self.0 = Repr::Packed(packed);
    }

    fn become_table(&mut self, hasher: &KeyHasher) {
        if let Repr::Timed(hash) = &mut self.0 {
            hash.become_table(hasher);
            return;
        }
        self.0 = self.on_table(hasher);
    }

    fn on_table(&self, hasher: &KeyHasher) -> Repr {
        let mut table = Table::new(0);
        for member in self.members() {
            member.with_bytes(|bytes| {
                table.insert(hasher, hasher.hash(bytes).0, bytes, 0, NO_VALUE, 0);
            });
        }
        Repr::Table(Box::new(table))
    }
}

/// A draw of 64 bits as a number below `len`.
#[inline]
fn below(len: usize, draw: u64) -> usize {
    ((u128::from(draw) * len as u128) >> 64) as usize
}

/// Length of the longest decimal form.
fn digits_max(ints: &Ints) -> usize {
    let ends = [ints.get(0), ints.len().checked_sub(1).and_then(|last| ints.get(last))];
    ends.into_iter().flatten().map(|int| itoa::Buffer::new().format(int).len()).max().unwrap_or(0)
}
