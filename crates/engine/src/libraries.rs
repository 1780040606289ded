//! The libraries of functions: data of the whole node, beside the databases.
//!
//! **Invariant:** they change only while all partitions are locked, and are looked up while at
//! least one is. So nobody sees a library whose transaction may still be taken back, and what is
//! read depends, like everything in that partition, on the change's LSN.

use ladon_record::{FunctionFacts, LibraryBody};
use parking_lot::RwLock;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Memory of a library beside its texts, about.
const LIBRARY_BYTES: usize = 200;
/// The same of a function.
const FUNCTION_BYTES: usize = 150;

/// A library as threads share it.
#[derive(Debug)]
pub struct Library {
    /// Its name.
    pub name: Box<[u8]>,
    /// Its code and functions.
    pub body: LibraryBody,
    /// It was replaced or removed.
    gone: AtomicBool,
}

impl Library {
    /// A library that is not in any catalog yet.
    pub fn new(name: &[u8], body: LibraryBody) -> Library {
        Library { name: name.into(), body, gone: AtomicBool::new(false) }
    }

    /// Whether it was replaced or removed, possibly by a transaction that is still running: who
    /// finds it so has to look the function up again.
    #[inline]
    pub fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    /// Bytes of memory, about.
    pub fn bytes(&self) -> usize {
        let of_function = |function: &FunctionFacts| {
            let description = function.description.as_ref().map_or(0, Vec::len);
            // The catalog has each name too.
            FUNCTION_BYTES + 2 * function.name.len() + description
        };
        let functions: usize = self.body.functions.iter().map(of_function).sum();
        LIBRARY_BYTES + 2 * self.name.len() + self.body.code.len() + functions
    }
}

/// All libraries of a keyspace.
#[derive(Debug, Default)]
pub(crate) struct Libraries {
    held: RwLock<Held>,
    bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct Held {
    libraries: BTreeMap<Box<[u8]>, Arc<Library>>,
    /// By name in lower case: FCALL does not distinguish.
    functions: HashMap<Box<[u8]>, Arc<Library>>,
    /// The functions of all libraries; two functions of one may differ in case only.
    function_count: usize,
}

impl Libraries {
    /// Adds a library, or replaces the one of its name, which is returned.
    ///
    /// If two libraries have the same function, it belongs to the one that came last: replay over a
    /// checkpoint may pass through states that never existed.
    pub(crate) fn put(&self, library: Arc<Library>) -> Option<Arc<Library>> {
        let mut held = self.held.write();
        let before = held.remove(&library.name);
        for function in &library.body.functions {
            let name = function.name.to_ascii_lowercase().into();
            held.functions.insert(name, Arc::clone(&library));
        }
        library.gone.store(false, Relaxed);
        held.function_count += library.body.functions.len();
        held.libraries.insert(library.name.clone(), Arc::clone(&library));
        self.count(library.bytes(), before.as_deref());
        before
    }

    pub(crate) fn remove(&self, name: &[u8]) -> Option<Arc<Library>> {
        let before = self.held.write().remove(name);
        self.count(0, before.as_deref());
        before
    }

    /// Removes all; returns them.
    pub(crate) fn take(&self) -> Vec<Arc<Library>> {
        let Held { libraries, .. } = std::mem::take(&mut *self.held.write());
        let all: Vec<Arc<Library>> = libraries.into_values().collect();
        for library in &all {
            library.gone.store(true, Relaxed);
        }
        self.bytes.store(0, Relaxed);
        all
    }

    fn count(&self, added: usize, removed: Option<&Library>) {
        self.bytes.fetch_add(added, Relaxed);
        self.bytes.fetch_sub(removed.map_or(0, Library::bytes), Relaxed);
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<Arc<Library>> {
        self.held.read().libraries.get(name).cloned()
    }

    pub(crate) fn with_function(&self, name: &[u8]) -> Option<(Arc<Library>, usize)> {
        let name = name.to_ascii_lowercase();
        let library = self.held.read().functions.get(&*name).cloned()?;
        let same = |function: &FunctionFacts| function.name.eq_ignore_ascii_case(&name);
        let at = library.body.functions.iter().position(same)?;
        Some((library, at))
    }

    /// All libraries, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Library>> {
        self.held.read().libraries.values().cloned().collect()
    }

    pub(crate) fn counts(&self) -> LibraryCounts {
        let held = self.held.read();
        let (libraries, functions) = (held.libraries.len(), held.function_count);
        LibraryCounts { libraries, functions, bytes: self.bytes.load(Relaxed) }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
}

impl Held {
    fn remove(&mut self, name: &[u8]) -> Option<Arc<Library>> {
        let library = self.libraries.remove(name)?;
        library.gone.store(true, Relaxed);
        self.function_count -= library.body.functions.len();
        for function in &library.body.functions {
            let name = function.name.to_ascii_lowercase();
            if self.functions.get(&*name).is_some_and(|owner| Arc::ptr_eq(owner, &library)) {
                self.functions.remove(&*name);
            }
        }
        Some(library)
    }
}

/// How many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LibraryCounts {
    /// Libraries.
    pub libraries: usize,
    /// Functions of all libraries.
    pub functions: usize,
    /// Bytes of memory, about.
    pub bytes: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str, functions: &[&str]) -> Arc<Library> {
        let function = |name: &&str| FunctionFacts { name: (*name).into(), ..Default::default() };
        let functions = functions.iter().map(function).collect();
        let body = LibraryBody { code: name.as_bytes().to_vec(), functions };
        Arc::new(Library::new(name.as_bytes(), body))
    }

    fn owner(libraries: &Libraries, function: &str) -> Option<String> {
        let (library, at) = libraries.with_function(function.as_bytes())?;
        assert!(library.body.functions[at].name.eq_ignore_ascii_case(function.as_bytes()));
        Some(String::from_utf8_lossy(&library.name).into_owned())
    }

    #[test]
    fn a_library_is_replaced_whole() {
        let libraries = Libraries::default();
        let first = library("a", &["f", "G"]);
        assert!(libraries.put(Arc::clone(&first)).is_none());
        assert_eq!(owner(&libraries, "g"), Some("a".to_owned()));
        let before = libraries.put(library("a", &["h"])).unwrap();
        assert!(Arc::ptr_eq(&before, &first) && first.is_gone());
        assert_eq!((owner(&libraries, "f"), owner(&libraries, "G")), (None, None));
        assert_eq!(owner(&libraries, "H"), Some("a".to_owned()));
        let bytes = libraries.get(b"a").unwrap().bytes();
        assert_eq!(libraries.counts(), LibraryCounts { libraries: 1, functions: 1, bytes });
        libraries.put(before);
        assert!(!first.is_gone(), "it is back");
        assert_eq!(libraries.take().len(), 1);
        assert!(first.is_gone());
        assert_eq!(libraries.counts(), LibraryCounts::default());
    }

    /// As in replay over a newer checkpoint: a function's old owner comes and goes again.
    #[test]
    fn a_function_that_changes_hands_stays_with_its_last_owner() {
        let libraries = Libraries::default();
        libraries.put(library("new", &["f"]));
        libraries.put(library("old", &["f"]));
        libraries.remove(b"old");
        libraries.put(library("new", &["f"]));
        assert_eq!(owner(&libraries, "f"), Some("new".to_owned()));
        libraries.put(library("old", &["f"]));
        libraries.remove(b"new");
        assert_eq!(owner(&libraries, "f"), Some("old".to_owned()));
    }
}
