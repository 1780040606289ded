//! A space: its definition, its indexes, and how both change.

use crate::as_text;
use crate::definition::{IndexDef, SpaceDef};
use crate::error::{BoxError, ErrorCode};
use crate::field_type::{FieldType, peek};
use crate::fields::Fields;
use crate::format::{Field, Format, Rules};
use crate::functional::{KeyFunction, Made};
use crate::index::{Index, Sought};
use crate::key::Key;
use crate::key_part::Part;
use crate::tuple::Tuple;
use crate::tuple_check::TupleCheck;
use ladon_msgpack::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tarantool's default for `memtx_max_tuple_size`.
const TUPLE_BYTES_MAX: usize = 1024 * 1024;

/// With fewer tuples, an index and what its searches look at are in a core's own caches.
const FETCHED_AHEAD_MIN: u64 = 10_000;

/// Tuples with a format and indexes. A clone is quickly made, and keeps everything as it was.
#[derive(Clone)]
pub struct Space {
    pub(crate) def: SpaceDef,
    /// By number; the primary index is the first.
    pub(crate) indexes: Vec<Index>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) tuple_check: Option<Arc<dyn TupleCheck>>,
    /// What makes the keys of functional indexes, by number.
    pub(crate) functions: BTreeMap<u32, Arc<dyn KeyFunction>>,
    /// Whether an index is multikey.
    pub(crate) has_multikey: bool,
    /// Bytes that the tuples take.
    pub(crate) tuple_bytes: usize,
    pub(crate) tuple_bytes_max: usize,
    /// Bytes that changes have left to copies of the space so far.
    pub(crate) left_behind: u64,
    hash_seed: u64,
    /// Secondary indexes are left alone until the end of loading.
    pub(crate) is_loading: bool,
}

impl Space {
    /// A space without indexes.
    pub fn new(def: SpaceDef) -> Space {
        let mut space = Space {
            rules: Arc::default(),
            tuple_check: None,
            functions: BTreeMap::new(),
            def,
            indexes: Vec::new(),
            has_multikey: false,
            tuple_bytes: 0,
            tuple_bytes_max: TUPLE_BYTES_MAX,
            left_behind: 0,
            hash_seed: 0,
            is_loading: false,
        };
        space.refresh_rules();
        space
    }

    /// Sets the seed of the hashes of HASH indexes that are created from now on. Clients should not
    /// be able to guess it.
    pub fn set_hash_seed(&mut self, seed: u64) {
        self.hash_seed = seed;
    }

    /// Sets what statements check of tuples beside the format, from now on. What is in the log has
    /// been checked.
    pub fn set_tuple_check(&mut self, check: Option<Arc<dyn TupleCheck>>) {
        self.tuple_check = check;
    }

    /// Sets the size of the longest tuple, in bytes of MessagePack.
    pub fn set_tuple_bytes_max(&mut self, bytes: usize) {
        self.tuple_bytes_max = bytes;
    }

    /// The definition.
    pub fn def(&self) -> &SpaceDef {
        &self.def
    }

    /// The index with this number.
    pub fn index(&self, id: u32) -> Option<&Index> {
        self.indexes.iter().find(|index| index.def.id == id)
    }

    /// The index with this name.
    pub fn index_named(&self, name: &[u8]) -> Option<&Index> {
        self.indexes.iter().find(|index| index.def.name.as_bytes() == name)
    }

    /// All indexes, by number.
    pub fn indexes(&self) -> impl Iterator<Item = &Index> {
        self.indexes.iter()
    }

    /// The index with this number.
    ///
    /// # Errors
    /// `NO_SUCH_INDEX_ID`, if there is none.
    #[inline]
    pub fn require_index(&self, id: u32) -> Result<&Index, BoxError> {
        match self.indexes.get(id as usize) {
            Some(index) if index.def.id == id => Ok(index),
            _ => self.index(id).ok_or_else(|| BoxError::no_index(id, &self.def.name)),
        }
    }

    /// How many tuples there are.
    pub fn len(&self) -> u64 {
        self.indexes.first().map_or(0, Index::len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the tuples' MessagePack, `space:bsize()`.
    pub fn bsize(&self) -> u64 {
        let headers = self.len() * (Tuple::HEADER_BYTES as u64);
        (self.tuple_bytes as u64).saturating_sub(headers)
    }

    /// Bytes of memory: tuples and indexes.
    pub fn bytes(&self) -> usize {
        self.tuple_bytes + self.indexes.iter().map(Index::bytes).sum::<usize>()
    }

    /// Bytes that changes have left to copies of the space so far, if those still live: it only
    /// grows. A copy keeps at most the bytes that came since it was made.
    pub fn left_behind(&self) -> u64 {
        self.left_behind
    }

    fn refresh_rules(&mut self) {
        // Fewer parts than before do not contradict each other.
        if let Ok(rules) = self.rules_with(&self.def, None) {
            self.set_rules(rules);
        }
    }

    /// Takes the rules over, after the indexes.
    pub(crate) fn set_rules(&mut self, rules: Rules) {
        self.rules = Arc::new(rules);
        self.has_multikey = self.indexes.iter().any(|index| index.key.is_multikey());
    }

    /// The rules of a definition, of the indexes, and of an index that is new or takes another's
    /// place.
    pub(crate) fn rules_with(
        &self,
        def: &SpaceDef,
        index: Option<&IndexDef>,
    ) -> Result<Rules, BoxError> {
        let others = self
            .indexes
            .iter()
            .map(|other| &other.def)
            .filter(|other| index.is_none_or(|index| index.id != other.id));
        let parts = others.chain(index).flat_map(IndexDef::field_parts);
        Rules::new(&def.format, def.field_count, parts)
    }

    /// The rules of the definition and of one index alone.
    pub(crate) fn rules_with_only(&self, index: &IndexDef) -> Result<Rules, BoxError> {
        Rules::new(&self.def.format, self.def.field_count, index.field_parts().iter())
    }

    fn check_tuples(&self, rules: &Rules) -> Result<(), BoxError> {
        match self.indexes.first() {
            Some(primary) => primary.tuples().try_for_each(|tuple| rules.check(tuple.bytes())),
            None => Ok(()),
        }
    }

    /// Gives the space another definition. Its tuples must be as the new format demands.
    ///
    /// # Errors
    /// Tarantool's; nothing has changed then.
    pub fn alter(&mut self, def: SpaceDef) -> Result<(), BoxError> {
        let rules = self.planned_rules(&def)?;
        if !rules.are_met_by(&self.rules) {
            self.check_tuples(&rules)?;
        }
        (self.def, self.rules) = (def, Arc::new(rules));
        for made in self.indexes.iter_mut().filter_map(|index| index.made.as_mut()) {
            made.set_format(&self.def.format);
        }
        Ok(())
    }

    /// What another definition would demand of tuples.
    ///
    /// # Errors
    /// Tarantool's, if the space cannot have it whatever its tuples are.
    pub(crate) fn planned_rules(&self, def: &SpaceDef) -> Result<Rules, BoxError> {
        if def.id != self.def.id {
            return Err(BoxError::alter_space(&self.def.name, "space id is immutable"));
        }
        if def.engine != self.def.engine {
            return Err(BoxError::alter_space(&self.def.name, "can not change space engine"));
        }
        if def.is_temporary != self.def.is_temporary && !self.is_empty() {
            let why = "can not switch temporary flag on a non-empty space";
            return Err(BoxError::alter_space(&self.def.name, why));
        }
        self.indexes.iter().try_for_each(|index| index.def.check(def))?;
        if let Some(primary) = self.indexes.first() {
            check_mount(def, &primary.def)?;
        }
        self.check_types(&def.format, None)?;
        self.rules_with(def, None)
    }

    fn check_new_name(&self, def: &IndexDef) -> Result<(), BoxError> {
        let is_taken =
            self.indexes.iter().any(|other| other.def.name == def.name && other.def.id != def.id);
        if !is_taken {
            return Ok(());
        }
        let message = format!("Index '{}' already exists in space '{}'", def.name, self.def.name);
        Err(BoxError::new(ErrorCode::INDEX_EXISTS_IN_SPACE, message))
    }

    /// Checks the types of the indexes' parts, with those of an index that is new or takes
    /// another's place: of the format and the parts of one field, each type contains the next or is
    /// in it.
    fn check_types(&self, format: &Format, new: Option<&IndexDef>) -> Result<(), BoxError> {
        let others = self.indexes.iter().map(|other| &other.def);
        let others = others.filter(|other| new.is_none_or(|new| new.id != other.id));
        // A new index comes after those that there are; only the primary one is always first.
        let mut defs: Vec<&IndexDef> = others.chain(new).collect();
        defs.sort_by_key(|def| def.id != 0);
        // The narrowest type of each field so far.
        let mut parts: Vec<&Part> = Vec::new();
        for part in defs.iter().flat_map(|def| def.field_parts()) {
            let place = parts.iter().position(|other| other.is_same_place(part));
            // The format says of a field what it is, and nothing of what is in it.
            let field = format.fields.get(part.field as usize).filter(|_| part.path.is_empty());
            let kind = match place {
                Some(place) => parts[place].kind,
                None => field.map_or(FieldType::Any, |field| field.kind),
            };
            match place {
                _ if !part.kind.is_within(kind) && !kind.is_within(part.kind) => {
                    let is_indexed = parts.iter().any(|other| other.field == part.field);
                    return Err(mismatch(part, field, kind, is_indexed));
                }
                Some(place) if part.kind.is_within(kind) => parts[place] = part,
                Some(_) => {}
                None => parts.push(part),
            }
        }
        Ok(())
    }

    /// Adds an index, and builds it from the tuples that there are.
    ///
    /// # Errors
    /// Tarantool's; nothing has changed then.
    pub fn create_index(&mut self, def: IndexDef) -> Result<(), BoxError> {
        self.check_is_new(&def)?;
        self.check_has_primary(def.id)?;
        let (index, rules) = self.build(def)?;
        let at = self.indexes.partition_point(|other| other.def.id < index.def.id);
        self.indexes.insert(at, index);
        self.set_rules(rules);
        Ok(())
    }

    pub(crate) fn check_is_new(&self, def: &IndexDef) -> Result<(), BoxError> {
        if self.index(def.id).is_none() {
            return Ok(());
        }
        let message = format!("Index '{}' already exists", def.name);
        Err(BoxError::new(ErrorCode::INDEX_EXISTS, message))
    }

    /// The definition of an index that is to be added.
    ///
    /// # Errors
    /// Tarantool's; one for a space without a primary index before those of the definition.
    pub fn new_index_def(&self, tuple: &[u8]) -> Result<IndexDef, BoxError> {
        if let Some(Value::Uint(id)) = Fields::of(tuple).nth(1).and_then(peek) {
            self.check_has_primary(u32::try_from(id).unwrap_or(u32::MAX))?;
        }
        IndexDef::from_tuple(tuple, &self.def)
    }

    fn check_has_primary(&self, new: u32) -> Result<(), BoxError> {
        if new == 0 || !self.indexes.is_empty() {
            return Ok(());
        }
        let why = "can not add a secondary key before primary";
        Err(BoxError::alter_space(&self.def.name, why))
    }

    /// Gives an index another definition: it is built anew where its order changes.
    ///
    /// # Errors
    /// Tarantool's; nothing has changed then.
    pub fn replace_index(&mut self, def: IndexDef) -> Result<(), BoxError> {
        let Some(at) = self.indexes.iter().position(|index| index.def.id == def.id) else {
            return Err(BoxError::no_index(def.id, &self.def.name));
        };
        if self.indexes[at].def.has_same_order(&def) {
            self.check_new_name(&def)?;
            self.indexes[at].def = def;
            return Ok(());
        }
        let (index, rules) = self.build(def)?;
        if at > 0 {
            self.indexes[at] = index;
            self.set_rules(rules);
            return Ok(());
        }
        let mut others = self.reordered_by(&index);
        for rebuilt in others.iter_mut().filter(|_| !self.is_loading) {
            self.fill(rebuilt)?;
        }
        others.insert(0, index);
        self.indexes = others;
        self.set_rules(rules);
        Ok(())
    }

    /// The secondary indexes with another primary index, whose parts order them as well: without
    /// tuples.
    pub(crate) fn reordered_by(&self, primary: &Index) -> Vec<Index> {
        let others = self.indexes.iter().filter(|other| other.def.id != primary.def.id);
        let parts = &primary.def.parts;
        let of = |other: &Index| {
            let function = other.made.as_ref().map(|made| Arc::clone(made.function()));
            let made = function
                .map(|function| Made::new(function, &self.def.format, &other.def.parts, parts));
            Index::new(other.def.clone(), parts, self.hash_seed, made)
        };
        others.map(of).collect()
    }

    /// An index without tuples as a definition describes it, and the rules of tuples with it.
    ///
    /// # Errors
    /// Tarantool's.
    pub(crate) fn planned_index(&self, def: IndexDef) -> Result<(Index, Rules), BoxError> {
        def.check(&self.def)?;
        check_mount(&self.def, &def)?;
        self.check_new_name(&def)?;
        self.check_types(&self.def.format, Some(&def))?;
        let rules = self.rules_with(&self.def, Some(&def))?;
        def.check_dimensions(&self.def.name)?;
        let primary: &[Part] = match self.indexes.first() {
            Some(primary) if def.id != 0 => &primary.def.parts,
            _ => &[],
        };
        let made = match def.func {
            None => None,
            Some(id) => {
                let function = self.functions.get(&id).ok_or_else(|| {
                    let message = format!("Function '{id}' does not exist");
                    BoxError::new(ErrorCode::NO_SUCH_FUNCTION, message)
                })?;
                Some(Made::new(Arc::clone(function), &self.def.format, &def.parts, primary))
            }
        };
        let index = Index::new(def, primary, self.hash_seed, made);
        Ok((index, rules))
    }

    fn build(&self, def: IndexDef) -> Result<(Index, Rules), BoxError> {
        let (mut index, rules) = self.planned_index(def)?;
        if self.is_loading {
            // The primary index has the tuples: the others are filled at the end.
            if index.def.id == 0 {
                self.fill(&mut index)?;
            }
            return Ok((index, rules));
        }
        match self.fill_all(&mut index, &rules) {
            Ok(()) => Ok((index, rules)),
            Err(error) => Err(self.first_misfit(index.def, &rules).unwrap_or(error)),
        }
    }

    fn fill_all(&self, index: &mut Index, rules: &Rules) -> Result<(), BoxError> {
        self.check_tuples(rules)?;
        self.check_multikeys(index)?;
        self.check_boxes(index)?;
        self.fill(index)
    }

    fn fill(&self, index: &mut Index) -> Result<(), BoxError> {
        let Some(primary) = self.indexes.first() else { return Ok(()) };
        if index.is_functional() {
            return match index.fill_made(primary.tuples(), &self.def.name)? {
                None => Ok(()),
                Some((entry, new)) => Err(self.duplicate_entry(index, &entry, new.bytes())),
            };
        }
        let filled = index.fill(primary.tuples());
        filled.map_err(|(old, new)| self.duplicate(index, &old, new.bytes()))
    }

    /// What is wrong with the first tuple that does not go into an index, as it is built a tuple
    /// after the other.
    fn first_misfit(&self, def: IndexDef, rules: &Rules) -> Option<BoxError> {
        let (mut index, _) = self.planned_index(def).ok()?;
        let mut tuples = self.indexes.first()?.tuples();
        tuples.find_map(|tuple| self.add_to(&mut index, rules, tuple).err())
    }

    /// Puts a tuple into an index that is being built.
    pub(crate) fn add_to(
        &self,
        index: &mut Index,
        rules: &Rules,
        tuple: &Tuple,
    ) -> Result<(), BoxError> {
        rules.check(tuple.bytes())?;
        index.check_box(tuple.bytes())?;
        self.check_multikeys_of(index, tuple)?;
        if index.is_functional() {
            self.check_made(index, tuple.bytes(), None)?;
        }
        self.put_into(index, tuple)
    }

    /// As [`Space::add_to`], of a tuple that was checked.
    pub(crate) fn put_into(&self, index: &mut Index, tuple: &Tuple) -> Result<(), BoxError> {
        match index.put(tuple) {
            // Equal elements of a tuple have one place in a multikey index.
            Some(entry) if index.is_functional() => {
                Err(self.duplicate_entry(index, &entry, tuple.bytes()))
            }
            Some(old) if !old.is_same(tuple) => Err(self.duplicate(index, &old, tuple.bytes())),
            _ => Ok(()),
        }
    }

    /// Drops an index. With the primary index, all tuples go.
    ///
    /// # Errors
    /// `DROP_PRIMARY_KEY`, if there are other indexes; `NO_SUCH_INDEX_ID`.
    pub fn drop_index(&mut self, id: u32) -> Result<(), BoxError> {
        let Some(at) = self.indexes.iter().position(|index| index.def.id == id) else {
            return Err(BoxError::no_index(id, &self.def.name));
        };
        self.check_drop(id)?;
        self.indexes.remove(at);
        if self.indexes.is_empty() {
            self.tuple_bytes = 0;
        }
        self.refresh_rules();
        Ok(())
    }

    /// Checks that an index is not needed by others.
    ///
    /// # Errors
    /// `DROP_PRIMARY_KEY`.
    pub fn check_drop(&self, id: u32) -> Result<(), BoxError> {
        if id != 0 || self.indexes.len() < 2 {
            return Ok(());
        }
        let name = &self.def.name;
        let message =
            format!("Can't drop primary key in space '{name}' while secondary keys exist");
        Err(BoxError::new(ErrorCode::DROP_PRIMARY_KEY, message))
    }

    pub(crate) fn duplicate(&self, index: &Index, old: &Tuple, new: &[u8]) -> BoxError {
        let message = format!(
            "Duplicate key exists in unique index \"{}\" in space \"{}\" with old tuple - {} and \
             new tuple - {}",
            index.def.name,
            self.def.name,
            crate::text::of(old.bytes()),
            crate::text::of(new)
        );
        BoxError::new(ErrorCode::TUPLE_FOUND, message)
    }

    /// As `duplicate`, by an entry of a functional index.
    pub(crate) fn duplicate_entry(&self, index: &Index, entry: &Tuple, new: &[u8]) -> BoxError {
        self.duplicate(index, self.resolve(index, entry).unwrap_or(entry), new)
    }

    /// Begins to fetch what finding these needs: keys in the index with this number, tuples in all.
    /// For a small index, that would cost more than it saves.
    pub fn fetch_ahead(&self, index: u32, sought: &[Sought<'_>]) {
        let has_tuples = sought.iter().any(|sought| matches!(sought, Sought::Tuple(_)));
        for of in self.indexes.iter().filter(|of| has_tuples || of.def.id == index) {
            if of.len() >= FETCHED_AHEAD_MIN && of.key.has_quick_hints() {
                of.fetch_ahead(sought);
            }
        }
    }

    /// The tuple with a whole key of a unique index.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn get(&self, index: u32, key: &[u8]) -> Result<Option<Tuple>, BoxError> {
        Ok(self.find(index, key)?.cloned())
    }

    /// As [`Space::get`], without a new owner.
    ///
    /// # Errors
    /// As [`Space::get`].
    #[inline]
    pub fn find(&self, index: u32, key: &[u8]) -> Result<Option<&Tuple>, BoxError> {
        let index = self.require_unique(index)?;
        let key = Key::parse(key)?;
        index.key.check_exact(&key)?;
        Ok(index.find_key(&key).and_then(|(_, entry)| self.resolve(index, entry)))
    }

    pub(crate) fn require_unique(&self, index: u32) -> Result<&Index, BoxError> {
        let index = self.require_index(index)?;
        if index.def.is_unique {
            return Ok(index);
        }
        let message = "Get() doesn't support partial keys and non-unique indexes";
        Err(BoxError::new(ErrorCode::MORE_THAN_ONE_TUPLE, message))
    }

    /// Some tuple, chosen by a number that is random.
    ///
    /// # Errors
    /// `NO_SUCH_INDEX_ID`; one if the index has no places.
    pub fn random(&self, index: u32, number: u64) -> Result<Option<Tuple>, BoxError> {
        let index = self.require_index(index)?;
        let entry = index.random(&self.def.name, number)?;
        Ok(entry.and_then(|entry| self.resolve(index, entry)).cloned())
    }

    /// The primary key of a tuple that fits the format: a MessagePack array.
    ///
    /// # Errors
    /// Tarantool's, if the tuple does not fit, or there is no primary index.
    pub fn primary_key_of(&self, tuple: &[u8]) -> Result<Vec<u8>, BoxError> {
        let primary = self.require_index(0)?;
        self.rules.check(tuple)?;
        Ok(primary.key.extract(tuple, 0, false))
    }

    /// The primary key of one of its tuples, or of one that was: a MessagePack array.
    ///
    /// # Panics
    /// If there is no primary index, without which a space has no tuples.
    pub fn primary_key_of_own(&self, tuple: &Tuple) -> Vec<u8> {
        self.indexes[0].key.extract(tuple.bytes(), 0, false)
    }
}

/// A part whose type does not go with that of the format, or of an earlier index.
/// Checks that the primary key of a mounted space has a text.
fn check_mount(space: &SpaceDef, index: &IndexDef) -> Result<(), BoxError> {
    if space.resp_prefix.is_none() || index.id != 0 {
        return Ok(());
    }
    as_text::check_parts(&index.parts).map_err(|why| {
        let message = format!("Wrong space options (field 5): 'resp_prefix': {why}");
        BoxError::new(ErrorCode::WRONG_SPACE_OPTIONS, message)
    })
}

fn mismatch(part: &Part, field: Option<&Field>, kind: FieldType, is_indexed: bool) -> BoxError {
    let (code, places) = match is_indexed {
        true => (ErrorCode::INDEX_PART_TYPE_MISMATCH, ["one index", "another"]),
        false => (ErrorCode::FORMAT_MISMATCH_INDEX_PART, ["space format", "index definition"]),
    };
    let name = field.map_or(String::new(), |field| format!(" ({})", field.name));
    let (number, wanted, got) = (part.label(), kind.name(), part.kind.name());
    let message = format!(
        "Field {number}{name} has type '{wanted}' in {}, but type '{got}' in {}",
        places[0], places[1]
    );
    BoxError::new(code, message)
}
