//! Scripts: the cache that all threads share, what a script says about itself in its first line, how
//! one runs (`runner.rs`) and calls commands (`host.rs`), and which threads run one for long.

pub mod cache;
mod host;
pub mod learnt;
pub mod loading;
pub mod runner;
pub mod running;
pub mod shebang;
pub mod thread_functions;
pub mod thread_vm;

use cache::Cache;
use ladon_lua::LogLevel;
use running::Running;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The stack of a thread that may run scripts, in bytes.
pub const STACK_BYTES: usize = ladon_lua::THREAD_STACK_BYTES;

/// A line that a script logs.
pub fn log(level: LogLevel, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    match level {
        LogLevel::Debug | LogLevel::Verbose => tracing::debug!("script: {text}"),
        LogLevel::Notice => tracing::info!("script: {text}"),
        LogLevel::Warning => tracing::warn!("script: {text}"),
    }
}

/// What all threads know of scripts.
pub struct Scripts {
    /// The scripts by their digest.
    pub cache: Cache,
    /// What runs now.
    pub running: Running,
    /// Bytes that each thread's virtual machine takes.
    vm_bytes: Box<[AtomicU64]>,
}

impl Scripts {
    /// No scripts, on so many threads.
    pub fn new(threads: usize) -> Scripts {
        Scripts {
            cache: Cache::default(),
            running: Running::new(threads),
            vm_bytes: (0..threads).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Publishes what a thread's virtual machine takes.
    pub fn set_vm_bytes(&self, thread: usize, bytes: usize) {
        if let Some(published) = self.vm_bytes.get(thread) {
            published.store(bytes as u64, Relaxed);
        }
    }

    /// What all virtual machines take.
    pub fn vm_bytes(&self) -> u64 {
        self.vm_bytes.iter().map(|bytes| bytes.load(Relaxed)).sum()
    }
}
