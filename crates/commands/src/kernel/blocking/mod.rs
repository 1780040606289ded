//! Commands that wait for a value to come under a key: how they wait, and how they are served.
//!
//! ```text
//! BLPOP k      finds nothing -> stands in k's line, under k's lock -> its connection rests
//! RPUSH k v    makes k while somebody waits -> notes it -> commits
//!              -> the same thread runs the first waiter's BLPOP again, as a record of its own,
//!                 until k is empty or nobody waits -> the reply goes to the waiter, or to its thread
//! ```
//!
//! **Invariants:** a wait is ended by whoever takes its claim, once. Whoever finds a value under a
//! key that others wait for stands behind them: the thread that made it is about to serve them.
//! Nothing here polls, and a waiter holds no thread.

mod serve;
mod short_way;

pub(crate) use serve::serve;
pub use short_way::{SendNow, ShortWay};

use crate::kernel::clients::ClientInfo;
use crate::kernel::command_id::CommandId;
use crate::kernel::ctx::{Append, Ctx, Local};
use crate::kernel::node::Node;
use crate::kernel::outcome::Flow;
use crate::kernel::session::{Blocked, Session};
use ladon_engine::{Claim, Key, Locks, Scratch, Waiter};
use ladon_model::{DbId, Gate, KeyHash, Lsn, ValueKind};
use ladon_resp::{Proto, Reply};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What a waiter asked for: all that is needed to run its command again.
pub struct KeyWait {
    command: CommandId,
    args: Vec<Vec<u8>>,
    /// The arguments that are the keys waited for; a command may have others.
    awaited: SmallVec<[usize; 4]>,
    db: u16,
    proto: Proto,
    no_touch: bool,
    info: Arc<ClientInfo>,
    /// When to give up, Unix milliseconds; `None`: never.
    pub deadline_ms: Option<u64>,
    /// The gate that the client asked for.
    pub gate: Option<Gate>,
    /// How its reply may come to it fastest.
    pub short_way: ShortWay,
}

impl KeyWait {
    /// The wait behind a waiter.
    ///
    /// # Panics
    /// When somebody else than [`Ctx::block`] made the waiter.
    pub fn of(waiter: &Waiter) -> &KeyWait {
        waiter.request.downcast_ref().expect("commands make all waiters")
    }

    /// The reply has gone the short way: others need not hold the client for one that waits until
    /// its own thread gets to know.
    pub fn show_served(&self) {
        self.info.blocked.store(false, Relaxed);
        self.info.times_out.store(false, Relaxed);
    }

    fn keys<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = Key<'a>> {
        self.awaited.iter().map(|&at| {
            let bytes = &self.args[at];
            Key { bytes, hash: node.keyspace.hash(bytes) }
        })
    }
}

/// A served waiter's reply, on its way to the thread that owns the connection.
#[derive(Debug)]
pub struct Answer {
    /// The thread.
    pub thread: usize,
    /// The connection.
    pub client: u64,
    /// The connection's place in its thread.
    pub slot: u32,
    /// The wait that is over.
    pub waiter: Arc<Waiter>,
    /// What to send.
    pub reply: Vec<u8>,
    /// The reply may leave when the gate has passed this.
    pub depends: Lsn,
    /// The LSN of what the command changed, if it changed anything.
    pub wrote: Option<Lsn>,
}

/// How a wait ends that nobody served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unserved {
    /// Its time is over, or another client says so.
    Timeout,
    /// Another client wants it to fail.
    Error,
}

impl Ctx<'_> {
    /// Whether the command must answer now, whatever it finds.
    pub fn must_answer(&self) -> bool {
        self.in_exec || self.in_attempt
    }

    /// Whether a blocking command may take what is under the key: not before those who wait.
    #[inline]
    pub fn may_take(&mut self, db: DbId, key: Key<'_>, kind: ValueKind) -> bool {
        self.must_answer() || !self.tx().is_awaited(db, key, kind)
    }

    /// As [`Ctx::block`], or answers with a null array where the command must answer now.
    pub fn block_or_answer_null(
        &mut self,
        args: &[&[u8]],
        awaited: impl Iterator<Item = usize>,
        wants: ValueKind,
        deadline_ms: Option<u64>,
    ) {
        if self.must_answer() {
            self.reply.null_array();
        } else {
            self.block(args, awaited, wants, deadline_ms);
        }
    }

    /// Makes the connection wait until a value of the type `wants` comes under one of the keys,
    /// which are the arguments at `awaited`; the command is then run again. Their partitions are
    /// locked.
    pub fn block(
        &mut self,
        args: &[&[u8]],
        awaited: impl Iterator<Item = usize>,
        wants: ValueKind,
        deadline_ms: Option<u64>,
    ) {
        debug_assert!(!self.must_answer(), "it must not wait");
        let Some(command) = self.node.table.find(args[0]) else { return };
        let claim = Arc::<Claim>::default();
        let wait = KeyWait {
            command,
            args: args.iter().map(|arg| arg.to_vec()).collect(),
            awaited: awaited.collect(),
            db: self.session.db,
            proto: self.reply.proto(),
            no_touch: self.session.no_touch,
            info: Arc::clone(&self.session.info),
            deadline_ms,
            gate: self.session.gate,
            short_way: ShortWay::default(),
        };
        *self.session.info.claim.lock() = Some(Arc::clone(&claim));
        let waiter = Arc::new(Waiter { wants, claim, request: Box::new(wait) });
        let (node, db) = (self.node, self.db());
        for key in KeyWait::of(&waiter).keys(node) {
            self.tx().wait(db, key, &waiter);
        }
        self.flow = Flow::Block(Blocked::Keys(waiter));
    }
}

/// Takes a waiter out of its keys' lines; its claim was taken by the caller.
pub fn leave(
    node: &Node,
    scratch: &mut Scratch,
    waiter: &Arc<Waiter>,
    now_ms: u64,
    append: Append<'_>,
) {
    let wait = KeyWait::of(waiter);
    let hashes: SmallVec<[KeyHash; 4]> = wait.keys(node).map(|key| key.hash).collect();
    let mut tx = node.keyspace.begin(Locks::Keys(&hashes), scratch, now_ms);
    let db = node.keyspace.select(wait.db);
    for key in wait.keys(node) {
        tx.stop_waiting(db, key, waiter);
    }
    tx.commit(append);
}

/// Writes the reply to a wait that nobody served.
pub fn answer_unserved(
    node: &Node,
    local: &mut Local,
    session: &Session,
    waiter: &Waiter,
    how: Unserved,
    out: &mut Vec<u8>,
) {
    let mut reply = Reply::new(out, session.proto);
    let command = local.stats.command(KeyWait::of(waiter).command);
    match how {
        Unserved::Timeout => reply.null_array(),
        Unserved::Error => {
            reply.error(UNBLOCKED);
            command.failed.add(1);
            local.stats.count_error(UNBLOCKED.as_bytes());
        }
    }
    local.count_unserved(node, KeyWait::of(waiter).command);
}

/// What `CLIENT UNBLOCK ... ERROR` makes a waiting client's reply.
pub const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
