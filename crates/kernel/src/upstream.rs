//! Read replicas without a cluster, as commands see them: the server that this one follows, and those
//! that follow this one.

use crate::place::Place;
use ladon_record::Lsn;
use std::time::Duration;

/// The server that this one follows, if it does.
pub trait Upstream: Send + Sync {
    /// How the link is now; `None` while this server follows nobody.
    fn view(&self) -> Option<UpstreamView>;

    /// Follows that server from now on, or nobody: then all that has come is here when this returns,
    /// and the server takes writes. For the threads of long jobs: it may take seconds.
    ///
    /// # Errors
    /// Why not.
    fn follow(&self, primary: Option<Place>) -> Result<(), String>;

    /// Begins to hand over to a replica, in the background.
    ///
    /// # Errors
    /// Why not, in Redis' words.
    fn fail_over(&self, order: FailoverOrder) -> Result<(), String>;

    /// Ends that. If it has begun to follow the replica, the server writes again when this returns. For
    /// the threads of long jobs.
    ///
    /// # Errors
    /// There is no failover, or what [`Upstream::follow`] says.
    fn abort_failover(&self) -> Result<(), String>;

    /// How far a failover is.
    fn failover_state(&self) -> FailoverState;

    /// Takes over from the server that this one follows, once it has that one's log of `run` up to
    /// `end`, or at once (`force`). For the threads of long jobs.
    ///
    /// # Errors
    /// Why not: the other one then writes on.
    fn take_over(&self, run: &str, end: Lsn, force: bool) -> Result<(), String>;
}

/// What `FAILOVER` asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailoverOrder {
    /// The replica; `None`: the first that has everything.
    pub target: Option<Place>,
    /// After the timeout, the replica takes over though it lacks something.
    pub force: bool,
    /// How long a replica may take to have everything.
    pub timeout: Option<Duration>,
}

/// How far a failover is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailoverState {
    /// There is none.
    #[default]
    No,
    /// Writes wait until a replica has everything.
    WaitingForSync,
    /// The replica is to take over.
    InProgress,
}

impl FailoverState {
    /// In the words of `INFO`.
    pub fn name(self) -> &'static str {
        match self {
            FailoverState::No => "no-failover",
            FailoverState::WaitingForSync => "waiting-for-sync",
            FailoverState::InProgress => "failover-in-progress",
        }
    }
}

/// The link to the server that this one follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamView {
    /// Where that is.
    pub primary: Place,
    /// What the link does.
    pub state: LinkState,
    /// How long ago something came.
    pub heard: Option<Duration>,
    /// How long the link has been down; `None` while it is up.
    pub down: Option<Duration>,
    /// What has come of the log.
    pub received: Lsn,
    /// What the data has of it.
    pub applied: Lsn,
    /// Bytes of the first sync that have come, and all of them.
    pub sync: (u64, u64),
    /// How often all data was brought anew since the start.
    pub full_syncs: u64,
    /// Why the link broke last.
    pub error: Option<String>,
}

/// What a replica's link does, in the order in which it does it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkState {
    /// It waits for the next attempt.
    #[default]
    Connect,
    /// It connects, and logs in.
    Connecting,
    /// All data comes.
    Sync,
    /// The log comes.
    Connected,
}

impl LinkState {
    /// In the words of `ROLE`.
    pub fn name(self) -> &'static str {
        match self {
            LinkState::Connect => "connect",
            LinkState::Connecting => "connecting",
            LinkState::Sync => "sync",
            LinkState::Connected => "connected",
        }
    }
}

/// The replicas of this server. What may wait is for the threads of long jobs.
pub trait Replicas: Send + Sync {
    /// A connection is that of a replica from now on.
    ///
    /// # Errors
    /// Why this server has no replicas, or no more.
    fn greet(&self, client: u64, replica: &ReplicaName) -> Result<(), String>;

    /// Whether a replica that has the log of `run` up to `end` can go on from there, and the runs of
    /// this server's log.
    ///
    /// # Errors
    /// The connection is none of a replica.
    fn position(&self, client: u64, run: &str, end: Lsn) -> Result<Position, String>;

    /// Bytes of the log, once there are some behind those that the replica has: on the disk where the gate
    /// needs that, else written. None if somebody waits for what it has.
    ///
    /// # Errors
    /// See [`FramesError`].
    fn frames(&self, client: u64, wanted: &FramesWanted) -> Result<Vec<u8>, FramesError>;

    /// Those that are connected.
    fn list(&self) -> Vec<ReplicaView>;

    /// Identifies the run of the log that is written now, and the one before with its end.
    fn runs(&self) -> (String, Option<(String, Lsn)>);
}

/// What a replica says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaName {
    /// Tells its process from others.
    pub run_id: String,
    /// Where it is reached.
    pub place: Place,
}

/// The answer to a replica's question whether it can go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// It can; otherwise it needs all data.
    pub continues: bool,
    /// The runs of the log: the identity and the begin of each, in order.
    pub runs: Vec<(String, Lsn)>,
}

/// What a replica asks for, and what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FramesWanted {
    /// The run that it follows.
    pub run: String,
    /// From where on.
    pub from: Lsn,
    /// What it has on its disk.
    pub durable: Lsn,
    /// What its data has.
    pub applied: Lsn,
    /// How long to wait for something.
    pub wait: Duration,
    /// At most so many bytes.
    pub bytes: usize,
}

/// Why a replica gets no bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramesError {
    /// It has to ask for its position again.
    #[error("RESYNC {0}")]
    Resync(String),
    /// Something failed.
    #[error("ERR {0}")]
    Failed(String),
}

/// A replica, as this server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaView {
    /// Where it is reached.
    pub place: Place,
    /// What it has on its disk; `None` until it follows.
    pub durable: Option<Lsn>,
    /// How long it was silent.
    pub silent: Duration,
}
