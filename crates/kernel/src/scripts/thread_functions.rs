//! The functions that a thread has loaded.
//!
//! Each thread's virtual machine runs a library's code when the thread is first asked for one of
//! its functions. A library that has left the catalog is noticed by its own mark, without a lock.

use crate::command::error::CommandError;
use crate::scripts::learnt::Learnt;
use crate::scripts::loading;
use ladon_engine::Library;
use ladon_lua::{FunctionHandle, Vm};
use ladon_platform::Clock;
use ladon_record::{FunctionFacts, Lsn};
use std::collections::HashMap;
use std::sync::Arc;

/// Libraries from which on those that have left the catalog are looked for.
const PRUNE_LIBRARIES_MIN: usize = 64;
/// The same for bytes that were loaded.
const PRUNE_BYTES_MIN: usize = 16 << 20;

/// A function that this thread can run. Threads do not share it, so that no call touches memory
/// that another thread's call writes.
pub struct Callable {
    library: Arc<Library>,
    /// Its place in the library.
    at: usize,
    /// The virtual machine's.
    pub handle: FunctionHandle,
    /// The locks that it will need.
    pub learnt: Learnt,
    /// The reply depends on this: the library may not be durable yet.
    pub depends: Lsn,
}

impl Callable {
    /// What the library says about it.
    pub fn facts(&self) -> &FunctionFacts {
        &self.library.body.functions[self.at]
    }
}

/// The libraries that a thread has loaded.
#[derive(Default)]
pub struct ThreadFunctions {
    /// By the name that the library gives them.
    functions: HashMap<Box<[u8]>, Arc<Callable>>,
    libraries: HashMap<Box<[u8]>, Loaded>,
    /// Bytes loaded since those that have left the catalog were looked for.
    bytes: usize,
    prune_at: usize,
}

struct Loaded {
    library: Arc<Library>,
    in_vm: ladon_lua::Library,
}

impl ThreadFunctions {
    /// A function that is loaded, unless its library has left the catalog.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<Arc<Callable>> {
        let found = self.functions.get(name)?;
        (!found.library.is_gone()).then(|| Arc::clone(found))
    }

    /// Loads a library of the catalog, or notes that it is loaded.
    pub fn load(
        &mut self,
        vm: &mut Vm,
        library: &Arc<Library>,
        depends: Lsn,
        clock: &dyn Clock,
    ) -> Result<(), CommandError> {
        if self.libraries.get(&library.name).is_some_and(|it| Arc::ptr_eq(&it.library, library)) {
            return Ok(());
        }
        if self.libraries.len() >= self.prune_at.max(PRUNE_LIBRARIES_MIN)
            || self.bytes >= PRUNE_BYTES_MIN
        {
            self.prune(vm);
        }
        self.unload(vm, &library.name);
        let code = &library.body.code;
        let line = code.iter().position(|&byte| byte == b'\n').unwrap_or(code.len());
        let in_vm = loading::load(vm, &code[line..], clock).inspect_err(|error| {
            let name = String::from_utf8_lossy(&library.name);
            tracing::error!("library '{name}' cannot be loaded any more: {error}");
        })?;
        for function in &in_vm.functions {
            let facts = &library.body.functions;
            let Some(at) = facts.iter().position(|facts| facts.name == function.name) else {
                continue;
            };
            let callable = Callable {
                library: Arc::clone(library),
                at,
                handle: function.handle.clone(),
                learnt: Learnt::default(),
                depends,
            };
            self.functions.insert(function.name.as_slice().into(), Arc::new(callable));
        }
        self.bytes += library.bytes();
        let loaded = Loaded { library: Arc::clone(library), in_vm };
        self.libraries.insert(library.name.clone(), loaded);
        Ok(())
    }

    /// Forgets the libraries that have left the catalog.
    fn prune(&mut self, vm: &mut Vm) {
        let gone = self.libraries.values().filter(|loaded| loaded.library.is_gone());
        let gone: Vec<Box<[u8]>> = gone.map(|loaded| loaded.library.name.clone()).collect();
        gone.iter().for_each(|name| self.unload(vm, name));
        if self.bytes >= PRUNE_BYTES_MIN {
            // What their code has left behind, and reading it: the machine's own collector would
            // come to it by and by.
            vm.collect();
        }
        self.bytes = 0;
        self.prune_at = 2 * self.libraries.len();
    }

    fn unload(&mut self, vm: &mut Vm, name: &[u8]) {
        let Some(Loaded { library, in_vm }) = self.libraries.remove(name) else { return };
        vm.unload_library(&in_vm);
        for function in &in_vm.functions {
            let of = self.functions.get(&*function.name);
            if of.is_some_and(|callable| Arc::ptr_eq(&callable.library, &library)) {
                self.functions.remove(&*function.name);
            }
        }
    }
}
