//! What a definition of a large space takes long for is prepared in slices, while the space is read
//! and changed: an index is built, with the primary one all of them; tuples are checked for a
//! stricter format or a new foreign key.
//!
//! ```text
//! begin   under the space's lock: copy it, and have its changes noted from now on
//! slices  without the lock: the tuples of the copy, then the noted changes
//! end     under the catalog's and the space's locks: the last noted changes; the effect
//! ```
//!
//! For a new foreign key, the changes of the space that it names are noted as well, and a slice locks
//! both: it looks up in what is there now.
//!
//! Several definitions may be prepared at once. What is not noted (another definition of the space,
//! of its primary index, and so on) ends the noting: the preparation then begins again. Who was
//! broken off too often asks other definitions of the space to wait
//! ([`SpaceCell::claim`](crate::SpaceCell::claim)), and writers wait when they change the space much
//! faster than their changes can be followed. Only the time of the success depends on whether they
//! do.

use crate::keyspace::Keyspace;
use crate::noting::{Noted, Prepares};
use crate::preparation_limits::PreparationLimits;
use crate::space::index_function;
use crate::space::{
    DefinitionRights, Prepared, Privilege, RightsObject, SpaceCell, SpaceGuard, described_space,
};
use crate::tx::Scratch;
use ladon_record::{Lsn, Record, SpaceId};
use ladon_space::{BoxError, ForeignKey, FormatCheck, IndexBuild, Live, Space, SpaceDef, Written};
use ladon_system_spaces as system;
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// With fewer bytes, and as few tuples, everything is done at once.
const BYTES_AT_ONCE_MAX: u64 = 64 << 10;
/// As many times as what may be left for a definition to take effect may be followed under the
/// locks then: more has come since.
const LAST_WORK_MAX: usize = 4;
/// For so much work of a slice, writers may make a change more. It is above 1, or there might be no
/// end.
const WORK_PER_GRANT: usize = 2;
/// Changes, in short tuples, that may wait to be followed.
const WAITING_MAX: usize = 1 << 18;

/// What is being prepared.
pub struct Preparation {
    /// The tuple that defines it.
    definition: Box<[u8]>,
    /// None once it has taken effect.
    work: Option<Work>,
    /// Only changes are left.
    is_copied: bool,
    /// Its new foreign keys.
    keys: Vec<ForeignKey>,
    /// The space, then those that its new foreign keys name; that may be itself.
    spaces: SmallVec<[Followed; 1]>,
    counted: Counted,
    limits: PreparationLimits,
    /// Something left a space that a foreign key names, and no index tells whether it is named.
    is_unknown: bool,
    /// Whether writers of the spaces that foreign keys name are to wait from beginning to end.
    keeps_parents: bool,
}

/// A space whose changes are followed.
struct Followed {
    cell: SpaceCell,
    noted: Arc<Noted>,
    /// How long it takes to follow a change, in those of a space without foreign keys.
    weight: usize,
    /// Changes that writers may have made since the beginning, in short tuples.
    granted: usize,
    /// Whether writers were asked to wait.
    holds_writers: bool,
}

enum Work {
    Index(Box<IndexBuild>),
    Format(Box<FormatCheck>),
}

/// How far the preparation of a definition has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is more to do.
    GoesOn,
    /// So little is left that the definition can take effect.
    Ready,
    /// The space has changed in a way that was not noted: begin again.
    Broken,
}

/// Bytes of it, as they are counted in `total`.
struct Counted {
    bytes: i64,
    total: Arc<AtomicI64>,
}

impl Keyspace {
    /// Begins to prepare what a statement on the space `id` would define, if that would take long.
    /// `written` is what it would write. `None` if it does not take long, if the user has no right to
    /// it, or if the definition is at fault, which the statement itself will show.
    pub fn prepare(
        &self,
        (id, rights): (SpaceId, &dyn DefinitionRights),
        written: &Written,
        limits: PreparationLimits,
    ) -> Option<Preparation> {
        let new = written.new.as_ref()?;
        let is_new = written.old.is_none();
        if id != system::INDEX && (id != system::SPACE || is_new) {
            return None;
        }
        let space = described_space(new.bytes()).ok().filter(|id| !system::is_system(*id))?;
        let catalog = self.spaces.catalog();
        let cell = catalog.get(space)?;
        let function = match id {
            system::INDEX => index_function(&catalog, new.bytes()).ok()?,
            _ => None,
        };
        let mut content = cell.lock();
        if let Some((id, function)) = function {
            content.space.set_function(id, function);
        }
        let space = &content.space;
        if content.gone || is_small(space, new.bytes(), id, limits) {
            return None;
        }
        let def = space.def();
        let object = RightsObject::space(def.id, &def.name, def.owner);
        let is_creation = id == system::INDEX && is_new;
        let privilege = if is_creation { Privilege::CREATE } else { Privilege::ALTER };
        rights.check_definition(&object, privilege).ok()?;
        let (work, prepares) = if id == system::INDEX {
            let build = IndexBuild::begin(space, new.bytes()).ok()??;
            let number = build.def().id;
            if is_new && space.index(number).is_some() {
                return None;
            }
            let all = Prepares::AllIndexes;
            let prepares = if number == 0 { all } else { Prepares::Index(number) };
            (Work::Index(Box::new(build)), prepares)
        } else {
            let check = FormatCheck::begin(space, new.bytes()).ok()??;
            (Work::Format(Box::new(check)), Prepares::Format)
        };
        let noted = content.noting.begin(prepares);
        drop(content);
        let weight = 1 + work.keys().len();
        let mut spaces = smallvec![Followed::new(cell, noted, weight, limits)];
        let parents: BTreeSet<SpaceId> =
            work.keys().iter().map(|key| key.parent(cell.id())).collect();
        for parent in parents {
            let cell = catalog.get(parent).filter(|_| !system::is_system(parent))?;
            let mut content = cell.lock();
            if content.gone {
                return None;
            }
            let noted = content.noting.begin(Prepares::KeysOfOthers);
            spaces.push(Followed::new(cell, noted, weight, limits));
        }
        Some(Preparation {
            definition: new.bytes().into(),
            keys: work.keys().to_vec(),
            work: Some(work),
            is_copied: false,
            spaces,
            counted: Counted { bytes: 0, total: self.spaces.bytes_counter() },
            limits,
            is_unknown: false,
            keeps_parents: false,
        })
    }

    /// As [`Keyspace::define`], of a statement whose definition was prepared. `None` of the result:
    /// nothing has changed, because what was prepared has to go on, or to begin again.
    pub fn define_prepared(
        &self,
        (id, rights): (SpaceId, &dyn DefinitionRights),
        scratch: &mut Scratch,
        statement: impl FnOnce(&mut Space) -> Result<Written, BoxError>,
        append: impl FnOnce(Record<'_>) -> Lsn,
        prepared: &mut Preparation,
    ) -> (Option<Result<Written, BoxError>>, Lsn) {
        self.define_with((id, rights), scratch, statement, append, Some(prepared))
    }
}

/// Whether checking all tuples takes no longer than any request.
fn is_small(space: &Space, definition: &[u8], id: SpaceId, limits: PreparationLimits) -> bool {
    let keys = match SpaceDef::from_tuple(definition) {
        Ok(def) if id == system::SPACE => def.foreign_keys.len() as u64,
        _ => 0,
    };
    space.len() * (1 + keys) <= limits.tuples_at_once && space.bsize() <= BYTES_AT_ONCE_MAX
}

impl Preparation {
    /// Bytes of memory that what was prepared takes.
    pub fn bytes(&self) -> usize {
        usize::try_from(self.counted.bytes).unwrap_or(0)
    }

    /// Does as much more of it as short tuples or their changes would be `work`. At `now_ms`, in
    /// Unix milliseconds, it may ask writers of the spaces to wait.
    ///
    /// # Errors
    /// Tarantool's, if a tuple does not fit the definition, which can take no effect then.
    pub fn go_on(&mut self, work: usize, now_ms: u64) -> Result<Progress, BoxError> {
        if self.is_broken() || self.work.is_none() {
            return Ok(Progress::Broken);
        }
        self.do_slice(work)?;
        if self.is_unknown {
            return Ok(Progress::Broken);
        }
        self.counted.set(self.work.as_ref().map_or(0, Work::bytes) as i64);
        if self.is_copied && self.waiting() <= self.limits.ready_work {
            return Ok(Progress::Ready);
        }
        let of_each = work / self.spaces.len();
        for (at, followed) in self.spaces.iter_mut().enumerate() {
            followed.granted += of_each / followed.weight / WORK_PER_GRANT;
            let is_kept = at > 0 && self.keeps_parents;
            followed.hold_writers(is_kept || followed.has_too_much(), now_ms);
        }
        Ok(Progress::GoesOn)
    }

    /// Locks the spaces, if there are others to look at. Does so much work of the space, and as much
    /// of the others.
    fn do_slice(&mut self, work: usize) -> Result<(), BoxError> {
        let mut cells: SmallVec<[SpaceCell; 2]> = SmallVec::new();
        if self.spaces.len() > 1 {
            cells.extend(self.spaces.iter().map(|followed| followed.cell.clone()));
            cells.sort_unstable_by_key(SpaceCell::id);
            cells.dedup_by_key(|cell| cell.id());
        }
        let guards: SmallVec<[SpaceGuard<'_>; 2]> = cells.iter().map(SpaceCell::lock).collect();
        // Who drops one breaks this off under its lock.
        if self.is_broken() {
            return Ok(());
        }
        let live = |id: SpaceId| {
            let at = cells.iter().position(|cell| cell.id() == id)?;
            Some(&guards[at].space)
        };
        match &mut self.work {
            Some(of) if !self.is_copied => self.is_copied = of.go_on(work, &live)?,
            _ => self.follow(work, &live)?,
        }
        self.follow_parents(work, &live)
    }

    /// Whether the space has changed in a way that was not noted: it is of no use any more.
    pub fn is_broken(&self) -> bool {
        self.is_unknown || self.spaces.iter().any(|followed| followed.noted.is_broken())
    }

    /// Whether the definition is this tuple.
    pub fn is_of(&self, definition: &[u8]) -> bool {
        *self.definition == *definition
    }

    /// The LSN that an error's message depends on: it may show any tuple that it has met.
    pub fn depends(&self) -> Lsn {
        let changed = self.spaces.iter().map(|followed| followed.cell.lock().changed);
        changed.max().unwrap_or(Lsn::ZERO)
    }

    /// Begun again after another one was broken off, it asks for more of others if it has to.
    #[must_use]
    pub fn after(mut self, broken: &mut Preparation, now_ms: u64) -> Preparation {
        self.keeps_parents = broken.keeps_parents || broken.is_unknown;
        if self.keeps_parents {
            // No moment is in between.
            broken.parents_mut().iter_mut().for_each(|parent| parent.holds_writers = false);
            self.parents_mut().iter_mut().for_each(|parent| parent.hold_writers(true, now_ms));
        }
        self
    }

    /// Asks others to wait with definitions of its spaces. Returns whether nobody else has.
    pub fn claim(&self, owner: u64, now_ms: u64) -> bool {
        let is_done = self.spaces.iter().all(|followed| followed.cell.claim(owner, now_ms));
        if !is_done {
            self.end_claim(owner);
        }
        is_done
    }

    /// Others need not wait any more.
    pub fn end_claim(&self, owner: u64) {
        self.spaces.iter().for_each(|followed| followed.cell.end_claim(owner));
    }

    fn parents_mut(&mut self) -> &mut [Followed] {
        &mut self.spaces[1..]
    }

    /// Changes that wait to be followed, in short tuples.
    fn waiting(&self) -> usize {
        self.spaces.iter().map(|followed| followed.noted.waiting() * followed.weight).sum()
    }

    fn follow(&mut self, work: usize, live: Live<'_, '_>) -> Result<(), BoxError> {
        let (Some(of), [own, ..]) = (&mut self.work, &self.spaces[..]) else { return Ok(()) };
        let changes = own.take(work);
        if self.limits.misses_changes {
            return Ok(());
        }
        changes.iter().try_for_each(|written| of.follow(written, live))
    }

    fn follow_parents(&mut self, work: usize, live: Live<'_, '_>) -> Result<(), BoxError> {
        let Some(Work::Format(check)) = &self.work else { return Ok(()) };
        let parents = &self.spaces[1..];
        for parent in parents {
            for written in parent.take(work / parents.len()) {
                let is_known = check.follow_parent(parent.cell.id(), &written, live)?;
                self.is_unknown |= !is_known;
            }
        }
        Ok(())
    }
}

impl Followed {
    fn new(
        cell: &SpaceCell,
        noted: Arc<Noted>,
        weight: usize,
        limits: PreparationLimits,
    ) -> Followed {
        let granted = limits.granted_at_first / weight;
        Followed { cell: cell.clone(), noted, weight, granted, holds_writers: false }
    }

    /// The next changes, one at least if there is one.
    fn take(&self, work: usize) -> Vec<Written> {
        self.noted.take((work / self.weight).max(1))
    }

    fn has_too_much(&self) -> bool {
        self.noted.work() > self.granted || self.noted.waiting() > WAITING_MAX
    }

    fn hold_writers(&mut self, holds: bool, now_ms: u64) {
        if holds {
            self.cell.keep_still(now_ms);
        } else if self.holds_writers {
            self.cell.end_stillness();
        }
        self.holds_writers = holds;
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.hold_writers(false, 0);
    }
}

impl Work {
    fn go_on(&mut self, work: usize, live: Live<'_, '_>) -> Result<bool, BoxError> {
        match self {
            Work::Index(build) => build.go_on(work),
            Work::Format(check) => check.go_on(work, live),
        }
    }

    fn follow(&mut self, written: &Written, live: Live<'_, '_>) -> Result<(), BoxError> {
        match self {
            Work::Index(build) => build.follow(written),
            Work::Format(check) => check.follow(written, live),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Work::Index(build) => build.bytes(),
            Work::Format(_) => 0,
        }
    }

    fn keys(&self) -> &[ForeignKey] {
        match self {
            Work::Index(_) => &[],
            Work::Format(check) => check.new_keys(),
        }
    }
}

impl Prepared for Preparation {
    fn catch_up(&mut self, definition: &[u8], live: Live<'_, '_>) -> Result<bool, BoxError> {
        let last_work_max = LAST_WORK_MAX * self.limits.ready_work;
        let is_late = self.is_broken() || self.waiting() > last_work_max;
        if !self.is_copied || is_late || !self.is_of(definition) {
            return Ok(false);
        }
        self.follow(usize::MAX, live)?;
        self.follow_parents(usize::MAX, live)?;
        let own = self.spaces.first().and_then(|own| live(own.cell.id()));
        if let (Some(Work::Index(build)), Some(own)) = (&self.work, own) {
            own.check_adopted(build)?;
        }
        Ok(self.work.is_some() && !self.is_unknown)
    }

    fn has_checked(&self, key: &ForeignKey) -> bool {
        self.keys.contains(key)
    }

    fn take_effect(&mut self, space: &mut Space) -> Result<Option<Space>, BoxError> {
        match self.work.take() {
            Some(Work::Index(build)) => space.adopt_index(*build).map(Some),
            Some(Work::Format(check)) => space.adopt_format(*check).map(Some),
            None => Ok(None),
        }
    }
}

impl Counted {
    fn set(&mut self, bytes: i64) {
        self.total.fetch_add(bytes - self.bytes, Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.set(0);
    }
}
