//! A thread's virtual machine and what it has compiled.

use crate::command::error::CommandError;
use crate::node::Node;
use crate::scripts::cache::{Digest, Script};
use crate::scripts::thread_functions::ThreadFunctions;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use ladon_lua::{ScriptHandle, Vm, VmOptions};
use std::sync::Arc;

/// Scripts that a thread keeps compiled although they may have left the cache.
const STALE_MAX: usize = 64;

/// Sources of the scripts that a thread keeps compiled, at most: their code takes several times as
/// much of the machine's memory, and each run of its collector goes through all of it.
const COMPILED_BYTES_MAX: usize = 4 << 20;

/// What a compiled script counts besides its source.
const COMPILED_OVERHEAD_BYTES: usize = 500;

/// A reply's buffer is freed after its script if it has grown beyond this.
const OUT_KEPT_MAX: usize = 64 << 10;

/// A thread's virtual machine, and what it can run.
pub struct ThreadVm {
    /// Runs the scripts.
    pub machine: Machine,
    /// The functions that it has loaded.
    pub functions: ThreadFunctions,
    /// The scripts that it has compiled.
    pub scripts: ThreadScripts,
    /// How often the node's cache was emptied when this was made.
    flushes: u64,
}

/// A virtual machine.
pub struct Machine {
    /// The machine itself.
    pub vm: Vm,
    /// What a script replies, before the client gets it.
    pub out: Vec<u8>,
}

/// The scripts that a thread has compiled.
#[derive(Default)]
pub struct ThreadScripts {
    table: HashTable<Compiled>,
    /// What they count.
    bytes: usize,
    /// Compiled scripts from which those that left the cache are looked for.
    prune_at: usize,
}

/// Where a compiled script is, until the next one is compiled.
#[derive(Clone, Copy)]
pub struct Place(usize);

/// A script that this thread can run.
pub struct Compiled {
    /// The cache's.
    pub script: Arc<Script>,
    /// The virtual machine's.
    pub handle: ScriptHandle,
}

impl Compiled {
    fn bytes(&self) -> usize {
        self.script.body.len() + COMPILED_OVERHEAD_BYTES
    }
}

/// Digests are as good as random, and so are the first 16 of their 40 digits.
fn hash(digest: &Digest) -> u64 {
    const MIXED: u64 = 0x9e37_79b9_7f4a_7c15;
    let half = |at: usize| {
        let digits = digest[at..].first_chunk().copied().unwrap_or_default();
        u64::from_le_bytes(digits)
    };
    let product = u128::from(half(0) ^ MIXED) * u128::from(half(8) ^ MIXED.rotate_left(32));
    (product >> 64) as u64 ^ product as u64
}

impl ThreadVm {
    /// A machine that has compiled nothing.
    pub fn new(node: &Node) -> ThreadVm {
        ThreadVm {
            machine: Machine { vm: Vm::new(VmOptions::default()), out: Vec::new() },
            functions: ThreadFunctions::default(),
            scripts: ThreadScripts { prune_at: STALE_MAX, ..ThreadScripts::default() },
            flushes: node.scripts.cache.flushes(),
        }
    }

    /// Whether the cache was not emptied since this was made.
    pub fn is_fresh(&self, node: &Node) -> bool {
        self.flushes == node.scripts.cache.flushes()
    }

    /// After a script.
    pub fn rest(&mut self, node: &Node, thread: usize) {
        if self.machine.out.capacity() > OUT_KEPT_MAX {
            self.machine.out = Vec::new();
        }
        node.scripts.set_vm_bytes(thread, self.machine.vm.memory_bytes());
    }
}

/// Compiles a source.
pub fn check(vm: &mut Vm, digest: &Digest, body: &[u8]) -> Result<ScriptHandle, CommandError> {
    vm.load(digest, body).map_err(|error| CommandError::Other(error.into()))
}

impl ThreadScripts {
    /// A script that is compiled, unless it has left the cache.
    #[inline]
    pub fn find(&self, node: &Node, digest: &Digest) -> Option<Place> {
        let place = self.place(digest)?;
        let Compiled { script, .. } = self.at(place);
        if script.is_gone() {
            return None;
        }
        node.scripts.cache.touch(script);
        Some(place)
    }

    #[inline]
    fn place(&self, digest: &Digest) -> Option<Place> {
        let is_it = |compiled: &Compiled| compiled.script.digest == *digest;
        self.table.find_bucket_index(hash(digest), is_it).map(Place)
    }

    /// The script that was found there.
    ///
    /// # Panics
    /// If another one was compiled since.
    #[inline]
    pub fn at(&self, Place(index): Place) -> &Compiled {
        self.table.get_bucket(index).expect("a compiled script is where it was found")
    }

    /// Compiles a script of the cache.
    pub fn compile(
        &mut self,
        node: &Node,
        vm: &mut Vm,
        script: Arc<Script>,
    ) -> Result<Place, CommandError> {
        let handle = check(vm, &script.digest, &script.body)?;
        Ok(self.keep(node, vm, script, handle))
    }

    /// Keeps what was compiled.
    pub fn keep(
        &mut self,
        node: &Node,
        vm: &mut Vm,
        script: Arc<Script>,
        handle: ScriptHandle,
    ) -> Place {
        if self.table.len() >= self.prune_at {
            self.prune(vm);
            self.prune_at = STALE_MAX + 2 * node.scripts.cache.count();
        }
        let compiled = Compiled { script: Arc::clone(&script), handle };
        let bytes = compiled.bytes();
        if self.bytes + bytes > COMPILED_BYTES_MAX {
            // They are compiled again when they are called.
            for compiled in self.table.drain() {
                vm.unload(&compiled.handle);
            }
            self.bytes = 0;
        }
        self.bytes += bytes;
        let digest = &script.digest;
        let is_it = |other: &Compiled| other.script.digest == *digest;
        let hash_of = |other: &Compiled| hash(&other.script.digest);
        match self.table.entry(hash(digest), is_it, hash_of) {
            Entry::Occupied(mut place) => {
                let before = std::mem::replace(place.get_mut(), compiled);
                self.bytes -= before.bytes();
                vm.unload(&before.handle);
            }
            Entry::Vacant(place) => {
                place.insert(compiled);
            }
        }
        self.place(digest).expect("a script that has just been kept is there")
    }

    /// Forgets the scripts that have left the cache.
    fn prune(&mut self, vm: &mut Vm) {
        for compiled in self.table.extract_if(|compiled| compiled.script.is_gone()) {
            self.bytes -= compiled.bytes();
            vm.unload(&compiled.handle);
        }
    }
}
