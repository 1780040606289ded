//! The jobs that compute results aside (`aside.rs`): what they get, what they make, and what a
//! connection notes meanwhile.

use crate::command::error::CommandError;
use crate::long::parcel::Delivery;
use crate::long::slices::Slices;
use ladon_engine::{Library, Stored, WatchFlag};
use ladon_platform::pages::Prepared;
use ladon_record::Lsn;
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The computation, which may take long. It gets the argument that its request has lent.
pub type Job = Box<dyn FnOnce(Option<Lent>) -> Computed + Send>;

/// What was read from files for a change of settings.
pub type ReadAhead = Box<dyn Any + Send>;

/// The job that reads them, which may take long.
pub type ReadFiles = Box<dyn FnOnce() -> ReadAhead + Send>;

/// An argument of a waiting request, lent to its job.
#[derive(Debug)]
pub struct Lent {
    /// The memory in which it arrived.
    pub bytes: Vec<u8>,
    /// The argument's range in that memory.
    pub range: Range<usize>,
}

impl Lent {
    /// Lends all of some memory.
    pub fn of(bytes: Vec<u8>) -> Lent {
        Lent { range: 0..bytes.len(), bytes }
    }

    /// The argument in the memory in which it arrived, moved to the front.
    pub(crate) fn into_vec(self) -> Vec<u8> {
        let Lent { mut bytes, range } = self;
        bytes.truncate(range.end);
        bytes.drain(..range.start);
        if bytes.capacity() > bytes.len() + bytes.len() / LENT_SLACK_DIVISOR {
            bytes.shrink_to_fit();
        }
        bytes
    }
}

/// Slack capacity that a value may keep from its request's buffer, as a fraction of its length.
const LENT_SLACK_DIVISOR: usize = 64;

/// The result of a job.
pub struct Computed {
    pub(crate) result: Product,
    pub(crate) nanoseconds: u64,
    /// The lent argument, for the request's second run.
    pub(crate) argument: Option<Arc<Vec<u8>>>,
}

/// What a job makes.
pub(crate) enum Product {
    /// The reply.
    Reply(Box<dyn Slices>),
    /// The value that the request's second run stores.
    Value(Result<Stored, CommandError>),
    /// Memory for what the request's second run copies.
    Memory(Vec<Prepared>),
    /// The libraries that the request's second run adds.
    Libraries(Result<Vec<Arc<Library>>, CommandError>),
    /// What became of what was sent to another server.
    Delivery(Delivery),
    /// What the request's second run needs of files.
    Read(ReadAhead),
}

impl std::fmt::Debug for Computed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Computed(in {} ns)", self.nanoseconds)
    }
}

impl Computed {
    /// The argument that the request had lent.
    pub fn take_argument(&mut self) -> Option<Arc<Vec<u8>>> {
        self.argument.take()
    }

    /// The reply and how long it took to make; returns the result unchanged if it is not a reply.
    pub(crate) fn into_reply(self) -> Result<(Box<dyn Slices>, u64), Computed> {
        match self.result {
            Product::Reply(slices) => Ok((slices, self.nanoseconds)),
            Product::Value(_)
            | Product::Libraries(_)
            | Product::Memory(_)
            | Product::Delivery(_)
            | Product::Read(_) => Err(self),
        }
    }
}

/// Number of results computed aside, on the whole node since its start.
#[derive(Debug, Default)]
pub struct AsideCounts {
    /// Jobs begun.
    pub jobs: AtomicU64,
    /// Stores that were repeated because a source was touched meanwhile.
    pub repeated: AtomicU64,
    /// Those of them that finally ran under the locks.
    pub gave_up: AtomicU64,
}

/// A store between the runs of its request.
pub struct Aside {
    pub(crate) attempt: u32,
    /// Set when a source is touched.
    pub(crate) flag: Arc<WatchFlag>,
    /// The sources, each with the flag that watches it, and the number of their database.
    pub(crate) watched: Vec<(Vec<u8>, Arc<WatchFlag>)>,
    pub(crate) db: u16,
    /// The LSN that the findings of the previous run depend on.
    pub(crate) depends: Lsn,
    /// Time spent so far.
    pub(crate) nanoseconds: u64,
    pub(crate) computed: Option<Result<Stored, CommandError>>,
    pub(crate) libraries: Option<Result<Vec<Arc<Library>>, CommandError>>,
    pub(crate) memory: Option<Vec<Prepared>>,
    pub(crate) delivery: Option<Delivery>,
    pub(crate) read: Option<ReadAhead>,
}

impl Aside {
    /// For a request in this database.
    pub(crate) fn new(db: u16) -> Aside {
        Aside {
            attempt: 0,
            flag: Arc::default(),
            watched: Vec::new(),
            db,
            depends: Lsn::ZERO,
            nanoseconds: 0,
            computed: None,
            libraries: None,
            memory: None,
            delivery: None,
            read: None,
        }
    }
}
