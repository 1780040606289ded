//! An index of a large space is built in slices, while the space is read and changed.
//!
//! ```text
//! begin   under the space's lock: copy it, and have its changes noted from now on
//! slices  without the lock: the tuples of the copy, then the noted changes
//! end     under the catalog's and the space's locks: the last noted changes; the space gets the index
//! ```
//!
//! Several may be built at once; other indexes may come and go. What is not noted (another
//! definition of the space, of its primary index, or of an index with the same number) ends the
//! noting: the index is then built in one go, with the space locked.

use crate::keyspace::Keyspace;
use crate::noting::Noted;
use crate::space::{Prepared, SpaceCell, described_space};
use crate::tx::Scratch;
use ladon_record::{Lsn, Record, SpaceId};
use ladon_space::{BoxError, IndexBuild, Space, Written};
use ladon_system_spaces as system;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Indexes of fewer tuples are built at once: some ten microseconds.
const AT_ONCE_MAX: u64 = 256;
/// Changes that may be followed under the locks at the end.
const LAST_MAX: usize = 64;

/// The index.
pub struct IndexCreation {
    cell: SpaceCell,
    build: IndexBuild,
    noted: Arc<Noted>,
    counted: Counted,
}

/// How far the creation of an index has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Built {
    /// There is more to do.
    GoesOn,
    /// So little is left that it can be added to the space.
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
    /// Begins to build the index that a tuple for `_index` describes, if that would take long.
    /// It may take the place of one with its number if it `may_replace` it. `None` if it does not
    /// take long, or if the definition is at fault, which making it will show.
    pub fn begin_index(&self, tuple: &[u8], may_replace: bool) -> Option<IndexCreation> {
        let space = described_space(tuple).ok().filter(|id| !system::is_system(*id))?;
        let catalog = self.spaces.catalog();
        let cell = catalog.get(space)?;
        let mut content = cell.lock();
        let primary = content.space.index(0).filter(|primary| primary.len() > AT_ONCE_MAX)?;
        if content.gone || primary.def().id != 0 {
            return None;
        }
        let build = IndexBuild::begin(&content.space, tuple).ok()??;
        if !may_replace && content.space.index(build.def().id).is_some() {
            return None;
        }
        let noted = content.noting.begin(build.def().id);
        let counted = Counted { bytes: 0, total: self.spaces.bytes_counter() };
        Some(IndexCreation { cell: cell.clone(), build, noted, counted })
    }

    /// As [`Keyspace::define`], of a statement that creates an index which was built before.
    pub fn define_prepared(
        &self,
        id: SpaceId,
        scratch: &mut Scratch,
        statement: impl FnOnce(&mut Space) -> Result<Written, BoxError>,
        append: impl FnOnce(Record<'_>) -> Lsn,
        prepared: IndexCreation,
    ) -> (Result<Written, BoxError>, Lsn) {
        self.define_with(id, scratch, statement, append, Some(Box::new(prepared)))
    }
}

impl IndexCreation {
    /// Builds more of it, with so many tuples or changes.
    ///
    /// # Errors
    /// Tarantool's, if a tuple does not fit the index, which cannot be added then.
    pub fn go_on(&mut self, work: usize) -> Result<Built, BoxError> {
        if self.noted.is_broken() {
            return Ok(Built::Broken);
        }
        let is_ready = self.build.go_on(work)? && self.follow(work)?;
        self.counted.set(self.build.bytes() as i64);
        Ok(if is_ready { Built::Ready } else { Built::GoesOn })
    }

    /// The LSN that an error's message depends on: it may show any tuple that it has met.
    pub fn depends(&self) -> Lsn {
        self.cell.lock().changed
    }

    /// Follows changes that were noted. Returns whether few are left.
    fn follow(&mut self, most: usize) -> Result<bool, BoxError> {
        let (next, left) = self.noted.take(most);
        next.iter().try_for_each(|written| self.build.follow(written))?;
        Ok(left <= LAST_MAX)
    }
}

impl Prepared for IndexCreation {
    fn catch_up(&mut self, space: &Space) -> Result<bool, BoxError> {
        self.follow(usize::MAX)?;
        if self.noted.is_broken() {
            return Ok(false);
        }
        space.check_adopted(&self.build)?;
        Ok(true)
    }

    fn add_to(self: Box<Self>, space: &mut Space) -> Result<Space, BoxError> {
        space.adopt_index(self.build)
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
