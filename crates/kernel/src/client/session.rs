//! One connection's state, as far as commands know it.

use crate::access::Access;
use crate::client::clients::{self, ClientInfo};
use crate::command::command_id::CommandId;
use crate::command::flags::Flags;
use crate::long::aside_job::Aside;
use crate::pubsub::published::Kind;
use crate::pubsub::subscriptions::Subscriptions;
use crate::tracking::state::TrackingState;
use ladon_engine::{Claim, Waiter, WatchFlag};
use ladon_record::{Gate, Lsn, SpaceId};
use ladon_resp::Proto;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Whether replies are sent (`CLIENT REPLY`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    /// Always.
    #[default]
    On,
    /// Not until `CLIENT REPLY ON`.
    Off,
    /// Not for the next command; `SKIP` itself comes first.
    SkipNext,
    /// Not for the present command.
    Skip,
}

/// A command waiting for `EXEC`.
#[derive(Clone, Copy, Debug)]
pub struct Queued {
    /// Which command.
    pub id: CommandId,
    /// Index of the first of its arguments' ends, the name included.
    first: usize,
    count: usize,
}

/// An open `MULTI`. A hundred thousand commands need three allocations.
#[derive(Debug, Default)]
pub struct Multi {
    /// What `EXEC` will run.
    pub queued: Vec<Queued>,
    /// All arguments, concatenated.
    arguments: Vec<u8>,
    ends: Vec<usize>,
    /// A command was refused while queueing: `EXEC` will not run.
    pub aborted: bool,
    /// Bytes that the queue takes.
    pub bytes: usize,
    /// The flags of all queued commands together.
    pub flags: Flags,
}

/// A queued command's arguments; most have few.
pub(crate) type QueuedArgs<'a> = SmallVec<[&'a [u8]; 8]>;

impl Multi {
    /// Queues one more command.
    pub(crate) fn push(&mut self, id: CommandId, args: &[&[u8]]) {
        self.queued.push(Queued { id, first: self.ends.len(), count: args.len() });
        for arg in args {
            self.arguments.extend_from_slice(arg);
            self.ends.push(self.arguments.len());
        }
        self.bytes += args.iter().map(|arg| arg.len() + size_of::<usize>()).sum::<usize>()
            + size_of::<Queued>();
    }

    /// Publishes the transaction that a client queues or runs; `None` if there is none any more.
    pub fn publish(multi: Option<&Multi>, info: &ClientInfo) {
        info.multi.store(multi.map_or(-1, |multi| multi.queued.len() as i64), Relaxed);
        info.multi_bytes.store(multi.map_or(0, |multi| multi.bytes), Relaxed);
    }

    /// A command's arguments, the name included.
    pub fn args(&self, queued: Queued) -> QueuedArgs<'_> {
        let mut start = queued.first.checked_sub(1).map_or(0, |before| self.ends[before]);
        let ends = &self.ends[queued.first..queued.first + queued.count];
        ends.iter().map(|&end| &self.arguments[std::mem::replace(&mut start, end)..end]).collect()
    }
}

/// A watched key: SELECT number and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchedKey {
    /// The database number that the client had selected.
    pub db: u16,
    /// The key.
    pub key: Vec<u8>,
    /// The mounted space that it was a tuple of.
    pub space: Option<SpaceId>,
}

/// A connection that waits before it goes on.
#[derive(Clone, Debug)]
pub enum Blocked {
    /// For the log. Boxed, because every request's outcome has room for it.
    Log(Box<LogWait>),
    /// For a key to get a value.
    Keys(Arc<Waiter>),
}

impl Blocked {
    /// The claim of the wait.
    pub fn claim(&self) -> &Arc<Claim> {
        match self {
            Blocked::Log(wait) => &wait.claim,
            Blocked::Keys(waiter) => &waiter.claim,
        }
    }
}

/// A wait for the log (`WAIT`, `WAITAOF`).
#[derive(Clone, Debug)]
pub struct LogWait {
    /// What the connection has written.
    pub written: Lsn,
    /// What is to be durable here.
    pub durable: Lsn,
    /// Whether the wait goes on until that is so.
    pub local: bool,
    /// How many other nodes should have it; more than there are means waiting for the deadline.
    pub replicas: i64,
    /// When to answer with what has been reached, Unix milliseconds; `None`: never.
    pub deadline_ms: Option<u64>,
    /// Writes the reply when the wait is over, however it ended.
    pub finish: BlockedKind,
    /// The claim of the wait.
    pub claim: Arc<Claim>,
}

/// Which command waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockedKind {
    /// `WAIT`: the number of replicas.
    Wait,
    /// `WAITAOF`: whether it is durable here, and the number of replicas.
    WaitAof,
}

/// What `REPLCONF` has said of a connection: a set of bits, as there are many connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpOptions(u8);

impl DumpOptions {
    /// It understands a dump of unknown length.
    pub const TAKES_EOF: DumpOptions = DumpOptions(1);
    /// It wants functions only.
    pub const FUNCTIONS_ONLY: DumpOptions = DumpOptions(1 << 1);
    /// It would follow, if it could.
    pub const IS_REPLICA: DumpOptions = DumpOptions(1 << 2);

    /// Whether this was said.
    pub fn has(self, option: DumpOptions) -> bool {
        self.0 & option.0 != 0
    }

    /// Says it, or takes it back.
    pub fn set(&mut self, option: DumpOptions, is_said: bool) {
        self.0 = if is_said { self.0 | option.0 } else { self.0 & !option.0 };
    }
}

/// A connection's state as commands see it.
pub struct Session {
    /// What other threads may see and ask of it.
    pub info: Arc<ClientInfo>,
    /// The selected database number.
    pub db: u16,
    /// Protocol version of replies.
    pub proto: Proto,
    /// Whether it may run commands that require authentication.
    pub authenticated: bool,
    /// Its user.
    pub access: Access,
    /// An open `MULTI`.
    pub multi: Option<Box<Multi>>,
    /// Watched keys.
    pub watched: BTreeSet<WatchedKey>,
    /// Bytes that these take, here and in the partitions.
    pub watched_bytes: usize,
    /// Set when a watched key was touched; shared with the partitions while keys are watched.
    pub watch_flag: Arc<WatchFlag>,
    /// Its own gate, where it asked for one (`CLIENT GATE`).
    pub gate: Option<Gate>,
    /// Whether replies are sent.
    pub reply_mode: ReplyMode,
    /// Lookups leave access times alone (`CLIENT NO-TOUCH`).
    pub no_touch: bool,
    /// The LSN of its last change: what `WAIT` and `WAITAOF` wait for.
    pub last_write: Lsn,
    /// The store that is being computed aside, for the request that will run again.
    pub aside: Option<Box<Aside>>,
    /// What it asks `SYNC` for.
    pub dump: DumpOptions,
    /// It gets every command that the server runs (`MONITOR`).
    pub monitor: bool,
    /// What it subscribes to; `None` if nothing.
    pub subscribed: Option<Box<Subscriptions>>,
    /// Which invalidations it gets (`CLIENT TRACKING`); `None` until it asks for some.
    pub tracking: Option<Box<TrackingState>>,
    /// Its `CLIENT PAUSE` waits until every thread has seen the pause of this number.
    pub pausing: Option<u64>,
}

// What `CLIENT LIST` and `maxmemory-clients` count for it.
const _: () = assert!(size_of::<Session>() == clients::SESSION_BYTES);

impl Session {
    /// The node's data was exchanged for other data.
    pub fn data_changed(&mut self) {
        self.last_write = Lsn::ZERO;
        // That is a change of all that it watched.
        if !self.watched.is_empty() {
            self.watch_flag.touch();
        }
    }

    /// Number of subscriptions of a kind.
    #[inline]
    pub fn subscriptions(&self, kind: Kind) -> usize {
        self.subscribed.as_ref().map_or(0, |subscribed| subscribed.count(kind))
    }

    /// Whether it has subscriptions of any kind.
    #[inline]
    pub fn is_subscribed(&self) -> bool {
        self.subscribed.is_some()
    }

    /// A new connection.
    pub fn new(info: Arc<ClientInfo>, authenticated: bool, access: Access) -> Session {
        Session {
            info,
            db: 0,
            proto: Proto::Resp2,
            authenticated,
            access,
            multi: None,
            watched: BTreeSet::new(),
            watched_bytes: 0,
            watch_flag: Arc::default(),
            gate: None,
            reply_mode: ReplyMode::On,
            no_touch: false,
            last_write: Lsn::ZERO,
            aside: None,
            dump: DumpOptions::default(),
            monitor: false,
            subscribed: None,
            tracking: None,
            pausing: None,
        }
    }
}
