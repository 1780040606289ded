//! What belongs to one IO thread.

use crate::client::session::WatchedKey;
use crate::leader_reads::LeaderRead;
use crate::memory::eviction_state::Eviction;
use crate::message::Answer;
use crate::persistent::PlantedInCalls;
use crate::pubsub::fan_out::Subscribers;
use crate::pubsub::published::Kind;
use crate::rng::Rng;
use crate::scripts::thread_vm::ThreadVm;
use crate::statistics::batch_time::Timing;
use crate::statistics::stats::ThreadStats;
use crate::statistics::undoable_counts::{Begun, Counted, CountedError};
use crate::tracking::fan_out::Trackers;
use ladon_engine::{ReadyKey, Waiter, WatchFlag};
use ladon_record::{Lsn, Record};
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
    /// Testing only: a subscription misses the first message after its acknowledgement.
    pub late_subscription_canary: bool,
    /// Testing only: a library's load is answered without waiting at the gate.
    pub early_load_canary: bool,
    /// Testing only: nobody who waits with `XREAD` is served.
    pub unwoken_reader_canary: bool,
    /// Testing only: writes in transactions on spaces need no right, which the simulator must
    /// notice.
    pub unchecked_rights_canary: bool,
    /// Testing only: a statement of SQL loses the row at which a slice of it ends, which the
    /// simulator must notice.
    pub lost_row_canary: bool,
    /// Testing only: a bug in calls of functions, which the simulator must notice.
    pub planted_in_calls: PlantedInCalls,
    /// Testing only: the lock that a call asks for in this place, from 1 on, is not to be had at first: it
    /// begins again.
    pub refused_lock: Option<u32>,
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
    /// Its subscriptions, each with the number of its messages that were said before.
    pub(crate) joined_late: Vec<(usize, Kind, Arc<[u8]>)>,
    /// Confirmations of the present request's subscriptions, which `CLIENT REPLY` does not silence.
    pub unsilenced: Vec<u8>,
    pub(crate) timing: Timing,
    pub(crate) eviction: Eviction,
    /// What an undoable transaction counts.
    pub(crate) undoable: Option<Begun>,
    /// Memory for the next one's counts.
    pub(crate) spare_counts: (Vec<Counted>, Vec<CountedError>),
    /// Whether the present request may read at the gate `quorum`, while the node follows.
    pub leader_read: LeaderRead,
    /// Memory was short when the request came that runs a script.
    pub is_out_of_memory: bool,
    /// Keys that clients wait for, to be served once a long script has released them.
    pub(crate) unserved: Vec<ReadyKey>,
    /// Runs commands while the thread's script holds locks: none of them may take one.
    pub serves_busy: bool,
    /// Clients that wait for nothing any more.
    pub(crate) leave_later: Vec<Arc<Waiter>>,
    /// Keys that clients watched, to be forgotten once a long script has released them.
    pub(crate) unwatch_later: Vec<(WatchedKey, Arc<WatchFlag>)>,
    /// A script inside `EXEC` was stopped: the transaction has to be taken back.
    pub abandons_exec: bool,
    /// The script that runs.
    pub script: Option<ScriptRun>,
    /// The thread's virtual machine, from its first script on.
    pub vm: Option<Box<ThreadVm>>,
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
            late_subscription_canary: false,
            early_load_canary: false,
            unwoken_reader_canary: false,
            unchecked_rights_canary: false,
            lost_row_canary: false,
            planted_in_calls: PlantedInCalls::Nothing,
            refused_lock: None,
            rehearses: false,
            monitored: Vec::new(),
            subscribers: Subscribers::default(),
            trackers: Trackers::default(),
            unpublished: Vec::new(),
            joined_late: Vec::new(),
            unsilenced: Vec::new(),
            timing: Timing::default(),
            eviction,
            undoable: None,
            spare_counts: (Vec::new(), Vec::new()),
            leader_read: LeaderRead::Unasked,
            is_out_of_memory: false,
            serves_busy: false,
            unserved: Vec::new(),
            leave_later: Vec::new(),
            unwatch_later: Vec::new(),
            abandons_exec: false,
            script: None,
            vm: None,
        }
    }
}

impl Local {
    /// Whether a long script holds up what [`catch_up`] does.
    ///
    /// [`catch_up`]: crate::blocking::catch_up
    #[inline]
    pub fn is_held_up(&self) -> bool {
        !(self.unserved.is_empty() && self.leave_later.is_empty() && self.unwatch_later.is_empty())
    }
}

impl Local {
    /// The node's data was exchanged for other data: forgets what it knows of the data before.
    pub fn data_changed(&mut self) {
        debug_assert!(!self.is_held_up(), "there is something left to do on the data before");
        self.eviction = Eviction::new(self.rng.next_u64());
        // It has functions of the data before.
        self.vm = None;
    }

    /// Takes over what another of the thread has put off.
    pub fn take_over(&mut self, other: &mut Local) {
        self.unserved.append(&mut other.unserved);
        self.leave_later.append(&mut other.leave_later);
        self.unwatch_later.append(&mut other.unwatch_later);
    }
}

/// What commands inside a script need to know of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptRun {
    /// The time that `TIME` tells: the same each time. Unix microseconds, 0 until it is asked.
    pub time_us: u64,
}

/// A message that the present transaction publishes when it commits.
pub(crate) struct Unpublished {
    pub(crate) kind: Kind,
    pub(crate) channel: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

/// Serves the thread's sockets while a script runs long. Returns whether the script may go on: not
/// when the server ends.
pub type Pump<'a> = &'a mut dyn FnMut() -> bool;

/// Writes a record of changes to the log and returns its LSN; called with locks held.
pub type Append<'a> = &'a mut dyn FnMut(Record<'_>) -> Lsn;
