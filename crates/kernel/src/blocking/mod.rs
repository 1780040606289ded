//! Commands that wait for a key: how they wait, and how they are served.
//!
//! ```text
//! BLPOP k      finds nothing -> joins k's queue, under k's lock -> its connection waits
//! RPUSH k v    creates k while a client waits -> notes it -> commits
//!              -> the same thread runs the first waiter's BLPOP again, as a separate record,
//!                 until k is empty or no client waits -> the reply goes to the waiter, or to its thread
//! ```
//!
//! **Invariants:** a wait is ended once, by the thread that takes its claim. A command that finds a
//! value under a key that others wait for queues behind them: the thread that created the value is
//! about to serve them. Nothing here polls, and a waiter holds no thread.

mod direct_reply;
mod serve;

pub use direct_reply::{DirectReply, SendNow};
pub use serve::{look_again, serve};

use crate::access::{self, Access};
use crate::client::clients::ClientInfo;
use crate::client::session::{Blocked, Session};
use crate::command::command_id::CommandId;
use crate::command::error;
use crate::command::flags::Flags;
use crate::ctx::Ctx;
use crate::local::Local;
use crate::message::Unserved;
use crate::node::Node;
use crate::request::outcome::Flow;
use crate::request::watched;
use crate::thread_parts::ThreadParts;
use crate::tracking::state::TrackingState;
use ladon_engine::{Claim, Key, Locks, Tx, Waiter};
use ladon_identity::{Context, Denied, User};
use ladon_record::{DbId, Gate, KeyHash, ValueKind};
use ladon_resp::{Proto, Reply};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Whether a command with these arguments has something to answer now. It runs under the locks of
/// its keys.
pub type IsReady = fn(&mut Tx<'_>, DbId, &[&[u8]]) -> bool;

/// What ends a wait.
#[derive(Clone, Copy)]
pub struct Wanted {
    /// A value of this type under one of the keys.
    pub kind: ValueKind,
    /// That a key has no such value any more, as well.
    pub hears_loss: bool,
    /// If the value alone is not enough.
    pub is_ready: Option<IsReady>,
    /// If time alone may be enough.
    pub look_at: Option<LookAt>,
}

/// When to look again whether a command has something to answer though nothing changed, Unix
/// milliseconds. It runs as [`IsReady`] does.
pub type LookAt = fn(&mut Tx<'_>, DbId, &[&[u8]]) -> u64;

impl From<ValueKind> for Wanted {
    fn from(kind: ValueKind) -> Wanted {
        Wanted { kind, hears_loss: false, is_ready: None, look_at: None }
    }
}

/// A waiter's request: everything needed to run its command again.
pub struct KeyWait {
    command: CommandId,
    is_ready: Option<IsReady>,
    look_at: Option<LookAt>,
    /// What `look_at` said last; 0 without it. Only the client's thread changes it.
    next_look_ms: AtomicU64,
    args: Vec<Vec<u8>>,
    /// Positions of the awaited keys in the arguments; a command may have other keys.
    awaited: SmallVec<[usize; 4]>,
    /// Its user, as it was then.
    access: Access,
    db: u16,
    proto: Proto,
    no_touch: bool,
    /// The number under which its reads are noted, if they are.
    tracked: Option<u32>,
    info: Arc<ClientInfo>,
    /// When to give up, Unix milliseconds; `None`: never.
    pub deadline_ms: Option<u64>,
    /// The gate that the client asked for.
    pub gate: Option<Gate>,
    /// The direct way for its reply.
    pub direct_reply: DirectReply,
}

impl KeyWait {
    /// The wait of a waiter.
    ///
    /// # Panics
    /// If the waiter was not made by [`Ctx::block`].
    pub fn of(waiter: &Waiter) -> &KeyWait {
        waiter.request.downcast_ref().expect("commands make all waiters")
    }

    /// When to call [`look_again`], Unix milliseconds.
    pub fn next_look_ms(&self) -> Option<u64> {
        Some(self.next_look_ms.load(Relaxed)).filter(|&at_ms| at_ms != 0)
    }

    /// The reply was sent directly, so other threads need not treat the client as waiting until its
    /// own thread is notified.
    pub fn show_served(&self) {
        self.info.blocked.store(false, Relaxed);
        self.info.times_out.store(false, Relaxed);
    }

    /// The request's words.
    fn arguments(&self) -> Vec<&[u8]> {
        self.args.iter().map(Vec::as_slice).collect()
    }

    fn keys<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = Key<'a>> {
        self.awaited.iter().map(|&at| {
            let bytes = &self.args[at];
            Key { bytes, hash: node.keyspace.hash(bytes) }
        })
    }
}

impl Ctx<'_> {
    /// Whether the command must reply now, whatever it finds.
    pub fn must_answer(&self) -> bool {
        self.in_exec || self.in_attempt
    }

    /// Whether a blocking command may take the key's value: not before earlier waiters.
    #[inline]
    pub fn may_take(&mut self, db: DbId, key: Key<'_>, kind: ValueKind) -> bool {
        self.must_answer() || !self.tx().is_awaited(db, key, kind)
    }

    /// As [`Ctx::block`], or replies with a null array if the command must reply now.
    pub fn block_or_answer_null(
        &mut self,
        args: &[&[u8]],
        awaited: impl Iterator<Item = usize>,
        wants: impl Into<Wanted>,
        deadline_ms: Option<u64>,
    ) {
        if self.must_answer() {
            self.reply.null_array();
        } else {
            self.block(args, awaited, wants, deadline_ms);
        }
    }

    /// Makes the connection wait until one of the keys, which are the arguments at `awaited`, gets
    /// what it wants. The command then runs again. The keys' partitions are locked.
    pub fn block(
        &mut self,
        args: &[&[u8]],
        awaited: impl Iterator<Item = usize>,
        wants: impl Into<Wanted>,
        deadline_ms: Option<u64>,
    ) {
        let Wanted { kind: wants, hears_loss, is_ready, look_at } = wants.into();
        debug_assert!(!self.must_answer(), "it must not wait");
        let Some(command) = self.node.table.find(args[0]) else { return };
        let claim = Arc::<Claim>::default();
        let db = self.db();
        let next_look_ms = look_at.map_or(0, |look_at| look_at(self.tx(), db, args));
        let wait = KeyWait {
            command,
            is_ready,
            look_at,
            next_look_ms: next_look_ms.into(),
            args: args.iter().map(|arg| arg.to_vec()).collect(),
            awaited: awaited.collect(),
            access: self.session.access.clone(),
            db: self.session.db,
            proto: self.reply.proto(),
            no_touch: self.session.no_touch,
            tracked: self.session.tracking.as_deref().and_then(TrackingState::notes_reads),
            info: Arc::clone(&self.session.info),
            deadline_ms,
            gate: self.session.gate,
            direct_reply: DirectReply::default(),
        };
        *self.session.info.claim.lock() = Some(Arc::clone(&claim));
        let waiter = Arc::new(Waiter { wants, hears_loss, claim, request: Box::new(wait) });
        let node = self.node;
        for key in KeyWait::of(&waiter).keys(node) {
            self.tx().wait(db, key, &waiter);
        }
        self.flow = Flow::Block(Blocked::Keys(waiter));
    }
}

/// Removes a waiter from its keys' queues; the caller has taken its claim.
pub fn leave(thread: &mut ThreadParts<'_>, waiter: &Arc<Waiter>) {
    let ThreadParts { node, local, scratch, now_ms, append, .. } = thread;
    let wait = KeyWait::of(waiter);
    let hashes: SmallVec<[KeyHash; 4]> = wait.keys(node).map(|key| key.hash).collect();
    let tx = match local.serves_busy {
        true => None,
        false => node.begin_or_busy(Locks::Keys(&hashes), scratch, *now_ms),
    };
    let Some(mut tx) = tx else {
        // Nobody serves it without its claim, so that it may stay until a long script has ended.
        local.leave_later.push(Arc::clone(waiter));
        return;
    };
    let db = node.keyspace.select(wait.db);
    for key in wait.keys(node) {
        tx.stop_waiting(db, key, waiter);
    }
    tx.commit(&mut **append);
}

/// Does what had to wait for the end of a long script: serves waiting clients, removes those that
/// have left, and forgets what was watched. Also serves clients whose keys changed outside of a
/// command.
pub fn catch_up(thread: &mut ThreadParts<'_>) {
    for waiter in std::mem::take(&mut thread.local.leave_later) {
        leave(thread, &waiter);
    }
    watched::forget_the_rest(thread);
    let unserved = std::mem::take(&mut thread.local.unserved);
    thread.scratch.ready.extend(unserved);
    if !thread.scratch.ready.is_empty() {
        serve(thread);
    }
}

/// Writes the reply to an unserved wait.
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
        Unserved::Error | Unserved::Follows => {
            let text = if how == Unserved::Error { UNBLOCKED } else { ROLE_CHANGED };
            reply.error(text);
            command.failed.add(1);
            local.stats.count_error(text.as_bytes());
        }
        Unserved::Denied => {
            let text = denied_text(node, session, KeyWait::of(waiter));
            local.stats.count_error(text.as_bytes());
            reply.error(error::bytes_of(&text));
            // It does not count as a call.
            return command.rejected.add(1);
        }
    }
    local.count_unserved(node, KeyWait::of(waiter).command);
}

/// Whether what it waits for changes data.
pub fn would_change(node: &Node, waiter: &Waiter) -> bool {
    node.table.spec(KeyWait::of(waiter).command).flags.has(Flags::WRITE)
}

/// Whether the user, as it is now, may still run what it waits for.
pub fn may_go_on(node: &Node, user: &User, waiter: &Waiter) -> bool {
    let wait = KeyWait::of(waiter);
    access::may_run(node, user, wait.db, wait.command, &wait.arguments()).is_ok()
}

/// The error of a client that may not run any more what it waits for, which is written down.
#[cold]
fn denied_text(node: &Node, session: &Session, wait: &KeyWait) -> String {
    let args = wait.arguments();
    let may_run = access::may_run(node, &session.access.user, wait.db, wait.command, &args);
    let denied = may_run.err().unwrap_or(Denied::Command);
    let text = access::note(node, session, Context::TopLevel, denied, wait.command, &args);
    format!("NOPERM {text}")
}

/// Reply to a client that waits to change data at a node that does not lead any more.
/// The same for who waits at a node that does not lead its cluster any more.
pub const ROLE_CHANGED: &str = "UNBLOCKED force unblock from blocking operation, instance state \
                            changed (master -> replica?)";

/// Reply to a waiting client after `CLIENT UNBLOCK ... ERROR`.
pub const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
