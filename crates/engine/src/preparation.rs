//! What a definition of a large space takes long for is prepared in slices, while the space is read
//! and changed: an index is built, with the primary one all of them; tuples are checked for a
//! stricter format.
//!
//! ```text
//! begin   under the space's lock: copy it, and have its changes noted from now on
//! slices  without the lock: the tuples of the copy, then the noted changes
//! end     under the catalog's and the space's locks: the last noted changes; the effect
//! ```
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
use crate::space::{Prepared, SpaceCell, described_space};
use crate::tx::Scratch;
use ladon_record::{Lsn, Record, SpaceId};
use ladon_space::{BoxError, FormatCheck, IndexBuild, Space, Written};
use ladon_system_spaces as system;
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
    cell: SpaceCell,
    /// The tuple that defines it.
    definition: Box<[u8]>,
    /// None once it has taken effect.
    work: Option<Work>,
    /// Only changes are left.
    is_copied: bool,
    noted: Arc<Noted>,
    counted: Counted,
    limits: PreparationLimits,
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
    /// `written` is what it would write. `None` if it does not take long, or if the definition is
    /// at fault, which the statement itself will show.
    pub fn prepare(
        &self,
        id: SpaceId,
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
        let mut content = cell.lock();
        let space = &content.space;
        let is_small = space.len() <= limits.tuples_at_once && space.bsize() <= BYTES_AT_ONCE_MAX;
        if content.gone || is_small {
            return None;
        }
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
        Some(Preparation {
            cell: cell.clone(),
            definition: new.bytes().into(),
            work: Some(work),
            is_copied: false,
            noted,
            counted: Counted { bytes: 0, total: self.spaces.bytes_counter() },
            limits,
            granted: limits.granted_at_first,
            holds_writers: false,
        })
    }

    /// As [`Keyspace::define`], of a statement whose definition was prepared. `None` of the result:
    /// nothing has changed, because what was prepared has to go on, or to begin again.
    pub fn define_prepared(
        &self,
        id: SpaceId,
        scratch: &mut Scratch,
        statement: impl FnOnce(&mut Space) -> Result<Written, BoxError>,
        append: impl FnOnce(Record<'_>) -> Lsn,
        prepared: &mut Preparation,
    ) -> (Option<Result<Written, BoxError>>, Lsn) {
        self.define_with(id, scratch, statement, append, Some(prepared))
    }
}

impl Preparation {
    /// Does as much more of it as short tuples or their changes would be `work`. At `now_ms`, in
    /// Unix milliseconds, it may ask writers of the space to wait.
    ///
    /// # Errors
    /// Tarantool's, if a tuple does not fit the definition, which can take no effect then.
    pub fn go_on(&mut self, work: usize, now_ms: u64) -> Result<Progress, BoxError> {
        if self.noted.is_broken() {
            return Ok(Progress::Broken);
        }
        let Some(of) = &mut self.work else { return Ok(Progress::Broken) };
        if self.is_copied {
            self.follow(work)?;
        } else {
            self.is_copied = of.go_on(work)?;
        }
        self.counted.set(self.work.as_ref().map_or(0, Work::bytes) as i64);
        self.granted += work / WORK_PER_GRANT;
        let (noted, waiting) = (self.noted.work(), self.noted.waiting());
        if self.is_copied && waiting <= self.limits.ready_work {
            return Ok(Progress::Ready);
        }
        self.hold_writers(noted > self.granted || waiting > WAITING_MAX, now_ms);
        Ok(Progress::GoesOn)
    }

    /// Whether the space has changed in a way that was not noted: it is of no use any more.
    pub fn is_broken(&self) -> bool {
        self.noted.is_broken()
    }

    /// Whether the definition is this tuple.
    pub fn is_of(&self, definition: &[u8]) -> bool {
        *self.definition == *definition
    }

    /// The LSN that an error's message depends on: it may show any tuple that it has met.
    pub fn depends(&self) -> Lsn {
        self.cell.lock().changed
    }

    fn follow(&mut self, work: usize) -> Result<(), BoxError> {
        let Some(of) = &mut self.work else { return Ok(()) };
        if self.limits.misses_changes {
            self.noted.take(work);
            return Ok(());
        }
        self.noted.take(work).iter().try_for_each(|written| of.follow(written))
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

impl Drop for Preparation {
    fn drop(&mut self) {
        self.hold_writers(false, 0);
    }
}

impl Work {
    fn go_on(&mut self, work: usize) -> Result<bool, BoxError> {
        match self {
            Work::Index(build) => build.go_on(work),
            Work::Format(check) => check.go_on(work),
        }
    }

    fn follow(&mut self, written: &Written) -> Result<(), BoxError> {
        match self {
            Work::Index(build) => build.follow(written),
            Work::Format(check) => check.follow(written),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Work::Index(build) => build.bytes(),
            Work::Format(_) => 0,
        }
    }
}

impl Prepared for Preparation {
    fn catch_up(&mut self, definition: &[u8], space: &Space) -> Result<bool, BoxError> {
        let last_work_max = LAST_WORK_MAX * self.limits.ready_work;
        let is_late = self.noted.is_broken() || self.noted.waiting() > last_work_max;
        if !self.is_copied || is_late || !self.is_of(definition) {
            return Ok(false);
        }
        self.follow(usize::MAX)?;
        if let Some(Work::Index(build)) = &self.work {
            space.check_adopted(build)?;
        }
        Ok(self.work.is_some())
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
