//! A thread's virtual machine and what it has compiled.

use crate::kernel::error::CommandError;
use crate::kernel::node::Node;
use crate::kernel::scripts::cache::{Digest, Script};
use crate::kernel::scripts::thread_functions::ThreadFunctions;
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

/// A thread's virtual machine.
pub struct ThreadVm {
    /// Runs the scripts.
    pub vm: Vm,
    /// What a script replies, before the client gets it.
    pub out: Vec<u8>,
    /// The functions that it has loaded.
    pub functions: ThreadFunctions,
    compiled: HashTable<Compiled>,
    /// What they count.
    compiled_bytes: usize,
    /// Compiled scripts from which those that left the cache are looked for.
    prune_at: usize,
    /// How often the node's cache was emptied when this was made.
    flushes: u64,
}

/// A script that this thread can run.
#[derive(Clone)]
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

fn hash(node: &Node, digest: &Digest) -> u64 {
    node.keyspace.hash(digest).0
}

impl ThreadVm {
    /// A machine that has compiled nothing.
    pub fn new(node: &Node) -> ThreadVm {
        ThreadVm {
            vm: Vm::new(VmOptions::default()),
            out: Vec::new(),
            functions: ThreadFunctions::default(),
            compiled: HashTable::new(),
            compiled_bytes: 0,
            prune_at: STALE_MAX,
            flushes: node.scripts.cache.flushes(),
        }
    }

    /// Whether the cache was not emptied since this was made.
    pub fn is_fresh(&self, node: &Node) -> bool {
        self.flushes == node.scripts.cache.flushes()
    }

    /// A script that is compiled, unless it has left the cache.
    #[inline]
    pub fn find(&self, node: &Node, digest: &Digest) -> Option<Compiled> {
        let is_it = |compiled: &Compiled| compiled.script.digest == *digest;
        let compiled = self.compiled.find(hash(node, digest), is_it)?;
        if compiled.script.is_gone() {
            return None;
        }
        node.scripts.cache.touch(&compiled.script);
        Some(compiled.clone())
    }

    /// Compiles a script of the cache.
    pub fn compile(&mut self, node: &Node, script: Arc<Script>) -> Result<Compiled, CommandError> {
        let handle = self.check(&script.digest, &script.body)?;
        Ok(self.keep(node, script, handle))
    }

    /// Compiles a source.
    pub fn check(&mut self, digest: &Digest, body: &[u8]) -> Result<ScriptHandle, CommandError> {
        self.vm.load(digest, body).map_err(|error| CommandError::Other(error.into()))
    }

    /// Keeps what was compiled.
    pub fn keep(&mut self, node: &Node, script: Arc<Script>, handle: ScriptHandle) -> Compiled {
        if self.compiled.len() >= self.prune_at {
            self.prune();
            self.prune_at = STALE_MAX + 2 * node.scripts.cache.count();
        }
        let compiled = Compiled { script, handle };
        let bytes = compiled.bytes();
        if self.compiled_bytes + bytes > COMPILED_BYTES_MAX {
            // They are compiled again when they are called.
            for compiled in self.compiled.drain() {
                self.vm.unload(&compiled.handle);
            }
            self.compiled_bytes = 0;
        }
        self.compiled_bytes += bytes;
        let digest = &compiled.script.digest;
        let is_it = |other: &Compiled| other.script.digest == *digest;
        let hash_of = |other: &Compiled| hash(node, &other.script.digest);
        match self.compiled.entry(hash(node, digest), is_it, hash_of) {
            Entry::Occupied(mut place) => {
                let before = std::mem::replace(place.get_mut(), compiled.clone());
                self.compiled_bytes -= before.bytes();
                self.vm.unload(&before.handle);
            }
            Entry::Vacant(place) => {
                place.insert(compiled.clone());
            }
        }
        compiled
    }

    /// Forgets the scripts that have left the cache.
    fn prune(&mut self) {
        let gone = self.compiled.extract_if(|compiled| compiled.script.is_gone());
        for compiled in gone {
            self.compiled_bytes -= compiled.bytes();
            self.vm.unload(&compiled.handle);
        }
    }

    /// After a script.
    pub fn rest(&mut self, node: &Node, thread: usize) {
        if self.out.capacity() > OUT_KEPT_MAX {
            self.out = Vec::new();
        }
        node.scripts.set_vm_bytes(thread, self.vm.memory_bytes());
    }
}
