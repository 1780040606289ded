//! What belongs to one IO thread.

use crate::kernel::batch_time::Timing;
use crate::kernel::eviction_state::Eviction;
use crate::kernel::message::Answer;
use crate::kernel::pubsub::fan_out::Subscribers;
use crate::kernel::pubsub::published::Kind;
use crate::kernel::rng::Rng;
use crate::kernel::stats::ThreadStats;
use crate::kernel::tracking::fan_out::Trackers;
use crate::kernel::undoable_counts::Begun;
use ladon_model::{Lsn, Record};
use std::sync::Arc;

/// What belongs to one IO thread.
pub struct Local {
    /// The thread's index.
    pub thread: usize,
    /// Its counters.
    pub stats: Arc<ThreadStats>,
    /// Its random numbers.
    pub rng: Rng,
    /// Replies to clients that were served while they waited; the worker delivers them.
    pub answers: Vec<Answer>,
    /// Whether the rest of a long reply is made after the command. By default every reply is made
    /// at once.
    pub replies_later: bool,
    /// Testing only: stores do not check whether their sources have changed, which the simulator
    /// must notice.
    pub stale_store_canary: bool,
    /// Testing only, with debug assertions: every command on data runs twice. The first time it is
    /// taken back, of which nobody must notice anything.
    pub rehearses: bool,
    /// Lines for monitoring clients, about commands that are not committed yet.
    pub(crate) monitored: Vec<Arc<[u8]>>,
    /// The subscribers among its connections.
    pub subscribers: Subscribers,
    /// The trackers among its connections.
    pub trackers: Trackers,
    /// Messages of a transaction that is not committed yet.
    pub(crate) unpublished: Vec<Unpublished>,
    /// Confirmations of the present request's subscriptions, which `CLIENT REPLY` does not silence.
    pub(crate) unsilenced: Vec<u8>,
    pub(crate) timing: Timing,
    pub(crate) eviction: Eviction,
    /// What an undoable transaction counts.
    pub(crate) undoable: Option<Box<Begun>>,
}

impl Local {
    /// The initial state of a thread; `stats` are those of the same thread in the node.
    pub fn new(thread: usize, stats: Arc<ThreadStats>, rng: Rng) -> Local {
        let mut rng = rng;
        let eviction = Eviction::new(rng.next_u64());
        Local {
            thread,
            stats,
            rng,
            answers: Vec::new(),
            replies_later: false,
            stale_store_canary: false,
            rehearses: false,
            monitored: Vec::new(),
            subscribers: Subscribers::default(),
            trackers: Trackers::default(),
            unpublished: Vec::new(),
            unsilenced: Vec::new(),
            timing: Timing::default(),
            eviction,
            undoable: None,
        }
    }
}

/// A message that the present transaction publishes when it commits.
pub(crate) struct Unpublished {
    pub(crate) kind: Kind,
    pub(crate) channel: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

/// Writes a record of changes to the log and returns its LSN; called with locks held.
pub type Append<'a> = &'a mut dyn FnMut(Record<'_>) -> Lsn;
