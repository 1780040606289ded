//! Statements: what changes tuples. All checks come before the first change.

use crate::definition::IndexKind;
use crate::error::{BoxError, ErrorCode};
use crate::format::with_defaults;
use crate::index::Index;
use crate::key::Key;
use crate::left_behind::take_cloned;
use crate::space::Space;
use crate::tuple::Tuple;
use crate::update;

/// Keys that a tuple may have in all multikey indexes together: some ten milliseconds' work.
/// Tarantool 2.11 has room for some 8,000 elements in a tuple.
pub(crate) const KEYS_MAX: u64 = 1 << 16;

/// What a statement did: the tuple that left, and the tuple that came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The tuple that was replaced or deleted.
    pub old: Option<Tuple>,
    /// The tuple that was written.
    pub new: Option<Tuple>,
}

impl Written {
    /// Whether nothing left and nothing came.
    #[inline]
    pub fn is_nothing(&self) -> bool {
        self.old.is_none() && self.new.is_none()
    }
}

/// A statement: what it does, in MessagePack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement<'a> {
    /// [`Space::insert`]: the tuple.
    Insert(&'a [u8]),
    /// [`Space::replace`]: the tuple.
    Replace(&'a [u8]),
    /// [`Space::update`].
    Update {
        /// The number of a unique index.
        index: u32,
        /// The key in it.
        key: &'a [u8],
        /// The operations.
        operations: &'a [u8],
        /// The number of the first field in them.
        index_base: u32,
    },
    /// [`Space::upsert`].
    Upsert {
        /// What is inserted if there is nothing to update.
        tuple: &'a [u8],
        /// The operations.
        operations: &'a [u8],
        /// The number of the first field in them.
        index_base: u32,
    },
    /// [`Space::delete`].
    Delete {
        /// The number of a unique index.
        index: u32,
        /// The key in it.
        key: &'a [u8],
    },
}

impl Statement<'_> {
    /// Runs it.
    ///
    /// # Errors
    /// Tarantool's; nothing has changed then.
    pub fn run(self, space: &mut Space) -> Result<Written, BoxError> {
        match self {
            Statement::Insert(tuple) => space.insert(tuple),
            Statement::Replace(tuple) => space.replace(tuple),
            Statement::Update { index, key, operations, index_base } => {
                space.update(index, key, operations, index_base)
            }
            Statement::Upsert { tuple, operations, index_base } => {
                space.upsert(tuple, operations, index_base)
            }
            Statement::Delete { index, key } => space.delete(index, key),
        }
    }

    /// What of its result a client is shown: the tuple it wrote, or the one it deleted.
    pub fn shown<'w>(&self, written: &'w Written) -> Option<&'w Tuple> {
        match self {
            Statement::Upsert { .. } => None,
            Statement::Delete { .. } => written.old.as_ref(),
            _ => written.new.as_ref(),
        }
    }
}

/// A statement that is kept, to be run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedStatement {
    kind: Kind,
    /// The key or tuple, and the operations behind it.
    bytes: Box<[u8]>,
    operations_at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Insert,
    Replace,
    Update { index: u32, index_base: u32 },
    Upsert { index_base: u32 },
    Delete { index: u32 },
}

impl From<Statement<'_>> for OwnedStatement {
    fn from(statement: Statement<'_>) -> OwnedStatement {
        let (kind, first, operations) = match statement {
            Statement::Insert(tuple) => (Kind::Insert, tuple, &[][..]),
            Statement::Replace(tuple) => (Kind::Replace, tuple, &[][..]),
            Statement::Update { index, key, operations, index_base } => {
                (Kind::Update { index, index_base }, key, operations)
            }
            Statement::Upsert { tuple, operations, index_base } => {
                (Kind::Upsert { index_base }, tuple, operations)
            }
            Statement::Delete { index, key } => (Kind::Delete { index }, key, &[][..]),
        };
        let bytes = [first, operations].concat().into();
        OwnedStatement { kind, bytes, operations_at: first.len() }
    }
}

impl OwnedStatement {
    /// The statement.
    pub fn get(&self) -> Statement<'_> {
        let (first, operations) = self.bytes.split_at(self.operations_at);
        match self.kind {
            Kind::Insert => Statement::Insert(first),
            Kind::Replace => Statement::Replace(first),
            Kind::Update { index, index_base } => {
                Statement::Update { index, key: first, operations, index_base }
            }
            Kind::Upsert { index_base } => {
                Statement::Upsert { tuple: first, operations, index_base }
            }
            Kind::Delete { index } => Statement::Delete { index, key: first },
        }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        size_of::<OwnedStatement>() + self.bytes.len()
    }
}

impl Space {
    /// Adds a tuple.
    ///
    /// # Errors
    /// Tarantool's; `TUPLE_FOUND`, if there is a tuple with its key.
    pub fn insert(&mut self, tuple: &[u8]) -> Result<Written, BoxError> {
        let tuple = &*with_defaults(&self.def.format, tuple);
        self.check_tuple(tuple)?;
        if self.is_unique_by_primary() {
            let new = Tuple::new(tuple);
            let Some(old) = self.indexes[0].put(&new) else {
                return Ok(self.finish_write(None, new));
            };
            // Errors are rare: what came is put back.
            self.indexes[0].put(&old);
            return Err(self.duplicate(&self.indexes[0], &old, tuple));
        }
        if let Some(old) = self.find_primary(tuple)? {
            return Err(self.duplicate(&self.indexes[0], old, tuple));
        }
        self.check_unique(tuple, None)?;
        let new = Tuple::new(tuple);
        Ok(self.write(None, new))
    }

    /// Puts a tuple into the place of the one with its primary key, if there is one.
    ///
    /// # Errors
    /// Tarantool's; `TUPLE_FOUND`, if another tuple has its key in a secondary index.
    pub fn replace(&mut self, tuple: &[u8]) -> Result<Written, BoxError> {
        let tuple = &*with_defaults(&self.def.format, tuple);
        self.check_tuple(tuple)?;
        self.require_index(0)?;
        if self.is_unique_by_primary() {
            // The old tuple is found on the way.
            let new = Tuple::new(tuple);
            let old = self.indexes[0].put(&new);
            return Ok(self.finish_write(old, new));
        }
        let old = self.find_primary(tuple)?.cloned();
        self.check_unique(tuple, old.as_ref())?;
        Ok(self.write(old, Tuple::new(tuple)))
    }

    /// Updates the tuple with a key; nothing happens if there is none. Field numbers begin with
    /// `index_base`.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn update(
        &mut self,
        index: u32,
        key: &[u8],
        ops: &[u8],
        index_base: u32,
    ) -> Result<Written, BoxError> {
        let number = index;
        let index = self.require_unique(number)?;
        let key = Key::parse(key)?;
        index.key.check_exact(&key)?;
        // As in Tarantool, nobody looks at operations that have no tuple.
        let Some((place, old)) = index.locate(&key) else { return Ok(Written::default()) };
        let Some(old) = self.resolve(index, old).cloned() else { return Ok(Written::default()) };
        let operations = update::parse(ops, index_base, &self.def.format)?;
        let bytes = update::apply(old.bytes(), &operations, &self.rules, false)?;
        self.check_tuple(&bytes)?;
        self.check_same_key(&old, &bytes)?;
        self.check_unique(&bytes, Some(&old))?;
        let new = Tuple::new(&bytes);
        if number != 0 {
            return Ok(self.write(Some(old), new));
        }
        self.indexes[0].replace(&place, &new);
        Ok(self.finish_write(Some(old), new))
    }

    /// Updates the tuple with `tuple`'s primary key; if there is none, inserts `tuple`. Operations
    /// that fail are left out, and nothing happens if the primary key would change.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn upsert(
        &mut self,
        tuple: &[u8],
        ops: &[u8],
        index_base: u32,
    ) -> Result<Written, BoxError> {
        let tuple = &*with_defaults(&self.def.format, tuple);
        self.check_tuple(tuple)?;
        let operations = update::parse(ops, index_base, &self.def.format)?;
        let Some(old) = self.find_primary(tuple)?.cloned() else {
            self.check_unique(tuple, None)?;
            return Ok(self.write(None, Tuple::new(tuple)));
        };
        let bytes = update::apply(old.bytes(), &operations, &self.rules, true)?;
        self.check_tuple(&bytes)?;
        if self.check_same_key(&old, &bytes).is_err() {
            return Ok(Written::default());
        }
        self.check_unique(&bytes, Some(&old))?;
        Ok(self.write(Some(old), Tuple::new(&bytes)))
    }

    /// Deletes the tuple with a key, if there is one.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn delete(&mut self, index: u32, key: &[u8]) -> Result<Written, BoxError> {
        let number = index;
        let index = self.require_unique(number)?;
        let key = Key::parse(key)?;
        index.key.check_exact(&key)?;
        if number != 0 {
            let found = index.find_key(&key).and_then(|(_, entry)| self.resolve(index, entry));
            let Some(old) = found.cloned() else { return Ok(Written::default()) };
            self.take_out(&old);
            return Ok(Written { old: Some(old), new: None });
        }
        let Some(old) = self.indexes[0].take(&key) else { return Ok(Written::default()) };
        for other in self.indexes.iter_mut().skip(1) {
            other.remove(old.bytes());
        }
        self.account(Some(&old), None);
        Ok(Written { old: Some(old), new: None })
    }

    /// Takes a statement back. The statements after it must have been taken back already.
    pub fn undo(&mut self, written: &Written) {
        match (&written.old, &written.new) {
            (Some(old), new) => drop(self.write(new.clone(), old.clone())),
            (None, Some(new)) => self.take_out(new),
            (None, None) => {}
        }
    }

    /// Takes all tuples out; returns the space as it was, to drop or to keep elsewhere.
    pub fn truncate(&mut self) -> Space {
        let before = self.clone();
        self.left_behind += before.bytes() as u64;
        self.indexes.iter_mut().for_each(|index| index.clear());
        self.tuple_bytes = 0;
        before
    }

    fn check_tuple(&self, tuple: &[u8]) -> Result<(), BoxError> {
        if tuple.len() > self.tuple_bytes_max {
            return Err(BoxError::tuple_too_large(tuple.len()));
        }
        self.rules.check(tuple)?;
        self.require_index(0)?;
        if let Some(check) = &self.tuple_check {
            check.check(tuple)?;
        }
        if !self.has_multikey {
            return Ok(());
        }
        let keys = self.multikeys(tuple);
        if keys > KEYS_MAX { Err(BoxError::too_many_keys(keys)) } else { Ok(()) }
    }

    /// Checks that tuples have boxes for an index that is new.
    pub(crate) fn check_boxes(&self, new: &Index) -> Result<(), BoxError> {
        match self.indexes.first().filter(|_| !self.is_loading) {
            Some(primary) => primary.tuples().try_for_each(|tuple| new.check_box(tuple.bytes())),
            None => Ok(()),
        }
    }

    /// Checks that no tuple has too many keys with an index that is new.
    pub(crate) fn check_multikeys(&self, new: &Index) -> Result<(), BoxError> {
        if !new.key.is_multikey() || self.is_loading {
            return Ok(());
        }
        let of = |tuple: &Tuple| self.multikeys(tuple.bytes()) + new.key.keys_max(tuple.bytes());
        let most = self.indexes.first().and_then(|primary| primary.tuples().map(of).max());
        most.filter(|keys| *keys > KEYS_MAX)
            .map_or(Ok(()), |keys| Err(BoxError::too_many_keys(keys)))
    }

    /// Checks that a tuple does not have too many keys with an index that is new.
    pub(crate) fn check_multikeys_of(&self, new: &Index, tuple: &Tuple) -> Result<(), BoxError> {
        if !new.key.is_multikey() {
            return Ok(());
        }
        let keys = self.multikeys(tuple.bytes()) + new.key.keys_max(tuple.bytes());
        if keys > KEYS_MAX { Err(BoxError::too_many_keys(keys)) } else { Ok(()) }
    }

    /// How many keys a tuple has in all multikey indexes together, at most.
    pub fn multikeys(&self, tuple: &[u8]) -> u64 {
        let multikey = self.indexes.iter().filter(|index| index.key.is_multikey());
        multikey.map(|index| index.key.keys_max(tuple)).sum()
    }

    /// Checks that no tuple but `old` has a key of `tuple`'s in a unique secondary index, and that
    /// `tuple` has the boxes that RTREE indexes need.
    pub(crate) fn check_unique(&self, tuple: &[u8], old: Option<&Tuple>) -> Result<(), BoxError> {
        for index in &self.indexes[1..] {
            if index.is_functional() {
                self.check_made(index, tuple, old)?;
                continue;
            }
            if !index.def.is_unique {
                index.check_box(tuple)?;
                continue;
            }
            let mut exclusive =
                index.key.hints(tuple).filter(|hint| index.key.is_exclusive(tuple, *hint));
            exclusive.try_for_each(|hint| match index.find(tuple, hint) {
                Some(found) if old.is_none_or(|old| !old.is_same(found)) => {
                    Err(self.duplicate(index, found, tuple))
                }
                _ => Ok(()),
            })?;
        }
        Ok(())
    }

    /// The tuple with this one's primary key.
    #[inline]
    pub(crate) fn find_primary(&self, tuple: &[u8]) -> Result<Option<&Tuple>, BoxError> {
        let primary = self.require_index(0)?;
        Ok(primary.find(tuple, primary.key.hint(tuple)))
    }

    fn check_same_key(&self, old: &Tuple, new: &[u8]) -> Result<(), BoxError> {
        let key = &self.indexes[0].key;
        if key.compare(key.hint(old.bytes()), old, key.hint(new), new).is_eq() {
            return Ok(());
        }
        if let Some(other) = self.find_primary(new)? {
            return Err(self.duplicate(&self.indexes[0], other, new));
        }
        let message = format!(
            "Attempt to modify a tuple field which is part of primary index in space '{}'",
            self.def.name
        );
        Err(BoxError::new(ErrorCode::CANT_UPDATE_PRIMARY_KEY, message))
    }

    /// Whether no index but the primary one refuses tuples.
    fn is_unique_by_primary(&self) -> bool {
        // An RTREE refuses what has no box, a functional index what has no key.
        let refuses = |index: &Index| {
            index.def.is_unique || index.def.kind == IndexKind::Rtree || index.is_functional()
        };
        !self.indexes[1..].iter().any(refuses)
    }

    /// Writes a tuple into the secondary indexes, in the place of `old`, which has the same primary
    /// key.
    fn put_into_others(&mut self, old: Option<&Tuple>, new: &Tuple) {
        for index in &mut self.indexes[1..] {
            if let Some(old) = old
                && !index.has_same_place(old, new.bytes())
            {
                index.remove(old.bytes());
            }
            index.put(new);
        }
    }

    /// Writes a tuple into every index, in the place of `old`, which has the same primary key.
    pub(crate) fn write(&mut self, old: Option<Tuple>, new: Tuple) -> Written {
        self.indexes[0].put(&new);
        self.finish_write(old, new)
    }

    /// After the primary index: writes a tuple into the others, and accounts for it.
    fn finish_write(&mut self, old: Option<Tuple>, new: Tuple) -> Written {
        self.put_into_others(old.as_ref(), &new);
        self.account(old.as_ref(), Some(&new));
        Written { old, new: Some(new) }
    }

    pub(crate) fn take_out(&mut self, old: &Tuple) {
        let count = if self.is_loading { 1 } else { self.indexes.len() };
        for index in self.indexes.iter_mut().take(count) {
            index.remove(old.bytes());
        }
        self.account(Some(old), None);
    }

    pub(crate) fn account(&mut self, old: Option<&Tuple>, new: Option<&Tuple>) {
        let left = old.map_or(0, Tuple::memory);
        self.tuple_bytes += new.map_or(0, Tuple::memory);
        self.tuple_bytes -= left;
        // The statement is an owner itself.
        let shared = if old.is_some_and(Tuple::is_shared) { left } else { 0 };
        self.left_behind += (take_cloned() + shared) as u64;
    }
}
