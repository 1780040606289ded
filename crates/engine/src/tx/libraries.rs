//! Libraries of functions.

use super::undo::Step;
use super::{Garbage, Tx};
use crate::keyspace::Keyspace;
use crate::libraries::{Library, LibraryCounts};
use crate::partition::PARTITIONS;
use ladon_record::Change;
use std::sync::Arc;

impl Tx<'_> {
    /// The library of this name.
    pub fn library(&mut self, name: &[u8]) -> Option<Arc<Library>> {
        self.depend_on_libraries();
        self.keyspace.libraries.get(name)
    }

    /// The library with this function, in letters of either case, and the function's place there.
    pub fn library_with_function(&mut self, name: &[u8]) -> Option<(Arc<Library>, usize)> {
        self.depend_on_libraries();
        self.keyspace.libraries.with_function(name)
    }

    /// All libraries, by name.
    pub fn libraries(&mut self) -> Vec<Arc<Library>> {
        self.depend_on_libraries();
        self.keyspace.libraries.all()
    }

    /// How many there are.
    pub fn library_counts(&mut self) -> LibraryCounts {
        self.depend_on_libraries();
        self.keyspace.libraries.counts()
    }

    /// Adds a library, or replaces the one of its name; needs all locks.
    pub fn put_library(&mut self, library: Arc<Library>) {
        self.begin_library_change();
        let mut body = std::mem::take(&mut self.scratch.body);
        body.clear();
        library.body.encode(&mut body);
        self.scratch.changes.push(Change::Library { name: &library.name, body: &body });
        self.scratch.body = body;
        self.trim_body();
        let name = library.name.clone();
        let before = self.keyspace.libraries.put(library);
        self.replaced(name, before);
    }

    /// Removes a library; needs all locks. Returns whether there was one.
    pub fn delete_library(&mut self, name: &[u8]) -> bool {
        self.begin_library_change();
        let Some(before) = self.keyspace.libraries.remove(name) else { return false };
        self.scratch.changes.push(Change::DeleteLibrary { name });
        self.replaced(name.into(), Some(before));
        true
    }

    /// Removes all libraries; needs all locks. Their memory goes to the garbage.
    pub fn flush_libraries(&mut self) {
        self.begin_library_change();
        let before = self.keyspace.libraries.take();
        if before.is_empty() {
            return;
        }
        self.scratch.changes.push(Change::FlushLibraries);
        self.touched_all = true;
        if self.scratch.undoable {
            self.scratch.undo().steps.push(Step::LibrariesTaken(before));
        } else {
            self.scratch.garbage.push(Garbage::of(before));
        }
    }

    /// Before a change: it is seen by those who hold any lock. A change that finds nothing to do
    /// shows that, and so its reply waits for what was done before.
    fn begin_library_change(&mut self) {
        self.depend_on_libraries();
        assert!((0..PARTITIONS).all(|index| self.locked.holds(index)), "libraries need all locks");
        debug_assert!(!self.scratch.read_only, "a change of data that must not change");
        debug_assert!(self.scratch.stored.is_none(), "what is stored is the only change");
    }

    fn replaced(&mut self, name: Box<[u8]>, before: Option<Arc<Library>>) {
        // As after a flush, every reader waits for this record. Libraries change rarely,
        // and so no partition needs an LSN of its own for them.
        self.touched_all = true;
        if self.scratch.undoable {
            self.scratch.undo().steps.push(Step::Library { name, before });
        }
    }

    /// For [`Tx::abort`].
    pub(super) fn restore_library(&self, name: &[u8], before: Option<Arc<Library>>) {
        match before {
            Some(library) => self.keyspace.libraries.put(library),
            None => self.keyspace.libraries.remove(name),
        };
    }

    fn depend_on_libraries(&mut self) {
        let held = self.locked.indexes().into_iter().next();
        let held = held.expect("libraries are looked up under a lock");
        self.dependency = self.dependency.max(self.locked.at(held).dependency_of_all());
    }
}

impl Keyspace {
    /// How many libraries there are, without a lock: a transaction that is still running may have
    /// changed them.
    pub fn library_counts(&self) -> LibraryCounts {
        self.libraries.counts()
    }

    /// Bytes that the libraries take, about; not part of `used_bytes`.
    #[inline]
    pub fn library_bytes(&self) -> u64 {
        self.libraries.bytes() as u64
    }
}
