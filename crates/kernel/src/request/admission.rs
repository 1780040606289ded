//! Who may run what now: the one place that admits work, whichever way it comes.
//!
//! | comes from | admitted by |
//! |---|---|
//! | a client of RESP, also into `MULTI` and by `EXEC` | [`request`] |
//! | a script or function, by what it declares | [`script`] |
//! | a command of a script | [`call`] |
//! | a request of IPROTO | [`on_data`] if it needs data, and [`statement`] if it writes |
//! | what changes data outside of a request | [`changes`] |
//!
//! A check of rights ([`access`]), of the node's role (`READONLY`) or of a key's slot (`MOVED`) belongs
//! here, once for all of them. A [`Refusal`] has no words: each dialect has its own.

use crate::access::{self, Standing};
use crate::client::session::Session;
use crate::command::command_id::CommandId;
use crate::command::error::CommandError;
use crate::command::flags::Flags;
use crate::leader_reads::{LeaderRead, Unanswered};
use crate::memory::eviction::Room;
use crate::node::Node;
use crate::role::Role;
use crate::shared::Paused;
use ladon_identity::Denied;
use ladon_record::{Gate, Lsn};
use ladon_resp::Proto;

/// Why something is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The client has to log in first.
    NotLoggedIn,
    /// The client's user is gone, or has lost a channel that the client is subscribed to: the
    /// connection has to end.
    UserIsGone,
    /// The user may not run this.
    Denied(Denied),
    /// The data is still being loaded.
    Loading,
    /// The client has subscribed, and over RESP2 messages and replies cannot be told apart.
    Subscribed(CommandId),
    /// Not in a transaction (`MULTI`).
    InTransaction,
    /// The data takes all of `maxmemory`, and nothing can be evicted.
    OutOfMemory,
    /// The log takes no changes.
    LogFailed,
    /// Fewer replicas than `min-replicas-to-write`.
    TooFewReplicas,
    /// The node follows the leader of its cluster, or asks who that is.
    Follows,
    /// The node is a replica of another server, and the client wants what a whole cluster agrees on.
    FollowsQuorum,
    /// The same in a cluster: the request runs once the leader has named its position.
    AwaitsLeader,
    /// The leader has not named it, for this reason.
    Unanswered(Unanswered),
    /// The setting `read-only` is on.
    ReadOnly,
    /// The node cannot reach most of its cluster.
    CutOff,
    /// The node is to become a member of a cluster.
    Outside,
    /// The node follows another server, does not hear it, and may not show what is old.
    Stale,
    /// The node keeps its cluster's log, and has no data.
    Witness,
    /// Not for scripts.
    NotForScripts,
    /// The script, or the way it was called, promises to change nothing.
    OnlyReads,
    /// The script may write, and was called by a command that only reads.
    ScriptWrites,
}

impl Refusal {
    /// The error in the words of Redis.
    #[cold]
    pub fn error(self, node: &Node) -> CommandError {
        CommandError::text(match self {
            Refusal::NotLoggedIn => "NOAUTH Authentication required.",
            // There is no client to read this.
            Refusal::UserIsGone => "NOPERM The user was deleted",
            // Where the user and the command are known, the text is better.
            Refusal::Denied(_) => "NOPERM No permissions to run this",
            Refusal::Loading => "LOADING Ladon is loading the dataset in memory",
            Refusal::Subscribed(id) => {
                return CommandError::err(format_args!(
                    "Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
                     RESET are allowed in this context",
                    node.table.entry(id).full_name
                ));
            }
            Refusal::InTransaction => "ERR Command not allowed inside a transaction",
            Refusal::OutOfMemory => return CommandError::OutOfMemory,
            Refusal::LogFailed => {
                let reason = node.durability.failure().unwrap_or_default();
                let text = format!("MISCONF Errors writing to the log: {reason}");
                return CommandError::Other(text.into());
            }
            Refusal::TooFewReplicas => "NOREPLICAS Not enough good replicas to write.",
            Refusal::Follows => "READONLY You can't write against a read only replica.",
            Refusal::FollowsQuorum => {
                "NOQUORUM This node is a replica of another server: the gate quorum is one of a cluster"
            }
            // It runs again, and is not answered.
            Refusal::AwaitsLeader => "NOQUORUM The leader is being asked",
            Refusal::Unanswered(why) => why.error(),
            Refusal::ReadOnly => {
                "READONLY This server changes nothing: its setting read-only is yes."
            }
            Refusal::CutOff => "NOQUORUM This node cannot reach most of its cluster's members",
            Refusal::Outside => {
                "CLUSTERDOWN This node is no member of a cluster yet: ladon cluster create, or \
                 ladon cluster add-node"
            }
            Refusal::Stale => {
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
            }
            Refusal::Witness => {
                "CLUSTERDOWN This node is a witness: it votes and has no data; ask another member"
            }
            Refusal::NotForScripts => "ERR This Redis command is not allowed from script",
            Refusal::OnlyReads => "ERR Write commands are not allowed from read-only scripts.",
            Refusal::ScriptWrites => {
                "ERR Can not execute a script with write flag using *_ro command."
            }
        })
    }
}

/// Flags of what reads or changes data.
const ON_DATA: u32 = Flags::READONLY.0 | Flags::WRITE.0 | Flags::RUNS_SCRIPT.0;

/// Flags of what changes data, or will at a replica.
const CHANGES: u32 = Flags::WRITE.0 | Flags::MAY_REPLICATE.0;

/// Admits a client's request, before it runs or is queued. `flags` are the command's and, for
/// `EXEC`, those of all that it will run; `memory` is what is left for data, and `read` what is known
/// of the leader's position.
#[inline]
pub fn request(
    node: &Node,
    session: &mut Session,
    (id, args): (CommandId, &[&[u8]]),
    flags: Flags,
    (memory, read): (Room, LeaderRead),
) -> Result<(), Refusal> {
    if !session.access.is_free(node) {
        rights(node, session, (id, args), flags)?;
    }
    // `EXEC` itself may run while the data is loaded; what it runs was queued without a look at it.
    if !flags.has(Flags::LOADING) || flags.has(Flags::RUNS_QUEUE) && !node.role.is_free() {
        on_data(node)?;
        if !node.role.is_free() && flags.0 & ON_DATA != 0 {
            let is_queued = session.multi.is_some() && !flags.has(Flags::NOT_QUEUED);
            let gate = match is_queued {
                // What is queued reads nothing yet.
                true if node.leader_reads.can_ask() => Some(Gate::None),
                _ => session.gate,
            };
            in_cluster(node, (gate, read), flags.has(Flags::WRITE))?;
        }
    }
    if session.is_subscribed()
        && session.proto == Proto::Resp2
        && !flags.has(Flags::WHILE_SUBSCRIBED)
    {
        return Err(Refusal::Subscribed(id));
    }
    if session.multi.is_some() && flags.has(Flags::NO_MULTI) {
        return Err(Refusal::InTransaction);
    }
    has_room(memory)?;
    if flags.has(Flags::WRITE) { changes(node) } else { Ok(()) }
}

/// Whether the connection's user, as it is now, may run this.
#[cold]
fn rights(
    node: &Node,
    session: &mut Session,
    (id, args): (CommandId, &[&[u8]]),
    flags: Flags,
) -> Result<(), Refusal> {
    if access::stands(node, session) == Standing::Gone {
        return Err(Refusal::UserIsGone);
    }
    if session.note_free(node) || flags.has(Flags::NO_AUTH) {
        return Ok(());
    }
    if !session.authenticated && node.requires_login() {
        return Err(Refusal::NotLoggedIn);
    }
    let may_run = access::may_run(node, &session.access.user, session.db, id, args);
    may_run.map_err(Refusal::Denied)
}

/// What a script says about itself, and how it was called.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// It says nothing: its commands are admitted one by one.
    pub is_undeclared: bool,
    /// It promises to change nothing.
    pub no_writes: bool,
    /// It may run while memory is short.
    pub allows_oom: bool,
    /// It was called by a command that only reads.
    pub read_only: bool,
}

/// Admits a script by what it declares.
pub fn script(node: &Node, script: Script, memory: Room) -> Result<(), Refusal> {
    if script.is_undeclared || script.no_writes {
        return Ok(());
    }
    takes_changes(node)?;
    if script.read_only {
        return Err(Refusal::ScriptWrites);
    }
    has_replicas(node)?;
    if script.allows_oom { Ok(()) } else { has_room(memory) }
}

/// A command of a script.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The command's flags.
    pub flags: Flags,
    /// The script's transaction may change data; the log may fail while the script runs.
    pub may_change: bool,
    /// An earlier command of the script was admitted that writes.
    pub wrote: bool,
}

/// Admits a command of a script. Once one that writes was admitted, the others are too, so that a
/// script is not cut in two.
pub fn call(node: &Node, call: Call, script: Script, memory: Room) -> Result<(), Refusal> {
    if call.flags.has(Flags::NOSCRIPT) {
        return Err(Refusal::NotForScripts);
    }
    if (script.read_only || script.no_writes) && call.flags.0 & CHANGES != 0 {
        return Err(Refusal::OnlyReads);
    }
    if !call.flags.has(Flags::WRITE) {
        return Ok(());
    }
    if !call.may_change {
        return Err(takes_changes(node).err().unwrap_or(Refusal::LogFailed));
    }
    if call.wrote {
        return Ok(());
    }
    has_replicas(node)?;
    let allows_oom = !script.is_undeclared && script.allows_oom;
    if allows_oom || !call.flags.has(Flags::DENYOOM) { Ok(()) } else { has_room(memory) }
}

/// What the reply of a command depends on, whatever it finds.
#[inline]
pub(crate) fn depends(node: &Node, flags: Flags) -> Lsn {
    // `EXEC` tells of data by refusing alone: a watched key has changed. While the data is loaded,
    // there is none to tell of, and no log that a reply could wait for.
    let tells = flags.0 & (ON_DATA | Flags::RUNS_QUEUE.0) != 0 && node.loading.is_none();
    if tells { Lsn::DATA } else { Lsn::ZERO }
}

/// What the reply of a command depends on that has run. At a node which does not answer for its group,
/// one that tells of no data does not wait for the group's word, which never comes there; nor does one
/// for which the leader has named its position.
#[inline]
pub(crate) fn depends_after(
    node: &Node,
    (gate, read): (Option<Gate>, LeaderRead),
    flags: Flags,
    depends: Lsn,
) -> Lsn {
    if node.role.is_free() {
        depends
    } else {
        depends_elsewhere(node, (gate, read), flags, depends)
    }
}

#[cold]
fn depends_elsewhere(
    node: &Node,
    (gate, read): (Option<Gate>, LeaderRead),
    flags: Flags,
    depends: Lsn,
) -> Lsn {
    let may_tell = flags.0 & (ON_DATA | CHANGES | Flags::RUNS_QUEUE.0) != 0;
    let is_quorum = gate.unwrap_or_else(|| node.settings.gate()) == Gate::Quorum;
    let is_known = !may_tell || read.is_in_force(&node.leader_reads);
    if is_quorum && is_known { Lsn::ZERO } else { depends }
}

/// Admits what needs data.
#[inline]
pub fn on_data(node: &Node) -> Result<(), Refusal> {
    if node.loading.is_some() { Err(Refusal::Loading) } else { Ok(()) }
}

/// Admits what reads data, or writes it, at a node that does not lead its cluster.
#[cold]
pub fn in_cluster(
    node: &Node,
    (gate, read): (Option<Gate>, LeaderRead),
    writes: bool,
) -> Result<(), Refusal> {
    match node.role.get() {
        Role::Alone | Role::Leads => Ok(()),
        // Whatever the gate: clients follow the leader by this error.
        Role::Follows if writes => Err(Refusal::Follows),
        Role::Follows if gate.unwrap_or_else(|| node.settings.gate()) == Gate::Quorum => {
            of_leader(node, read)
        }
        Role::Follows => Ok(()),
        Role::CutOff => Err(Refusal::CutOff),
        Role::Outside => Err(Refusal::Outside),
        Role::Stale => Err(Refusal::Stale),
        Role::Witness => Err(Refusal::Witness),
    }
}

/// Admits a read at the gate `quorum` at a node that follows.
fn of_leader(node: &Node, read: LeaderRead) -> Result<(), Refusal> {
    match read {
        _ if read.is_in_force(&node.leader_reads) => Ok(()),
        LeaderRead::Refused(why) => Err(Refusal::Unanswered(why)),
        _ if node.leader_reads.can_ask() => Err(Refusal::AwaitsLeader),
        _ => Err(Refusal::FollowsQuorum),
    }
}

/// Admits what copies all data, whatever is read of it: a copy without any would look like one of none.
///
/// # Errors
/// The error in the words of Redis.
pub fn copies_data(node: &Node) -> Result<(), CommandError> {
    match node.role.get() {
        Role::Witness => Err(Refusal::Witness.error(node)),
        _ => Ok(()),
    }
}

/// Admits a statement of IPROTO that writes.
pub fn statement(node: &Node, memory: impl FnOnce() -> Room) -> Result<(), Refusal> {
    changes(node)?;
    has_room(memory())
}

/// Whether data may change: the log takes changes, and enough replicas do.
#[inline]
pub fn changes(node: &Node) -> Result<(), Refusal> {
    takes_changes(node)?;
    has_replicas(node)
}

#[inline]
fn takes_changes(node: &Node) -> Result<(), Refusal> {
    if !node.durability.accepts_writes() {
        return Err(Refusal::LogFailed);
    }
    let may_change = node.role.is_free() && !node.settings.read_only();
    if may_change { Ok(()) } else { Err(may_not_change(node)) }
}

#[cold]
fn may_not_change(node: &Node) -> Refusal {
    match node.role.get() {
        Role::Outside => Refusal::Outside,
        Role::Stale => Refusal::Stale,
        Role::Witness => Refusal::Witness,
        Role::CutOff => Refusal::CutOff,
        Role::Alone | Role::Leads => Refusal::ReadOnly,
        Role::Follows => Refusal::Follows,
    }
}

#[inline]
fn has_replicas(node: &Node) -> Result<(), Refusal> {
    if node.lacks_replicas() { Err(Refusal::TooFewReplicas) } else { Ok(()) }
}

#[inline]
fn has_room(memory: Room) -> Result<(), Refusal> {
    if memory == Room::None { Err(Refusal::OutOfMemory) } else { Ok(()) }
}

/// Whether a pause (`CLIENT PAUSE`) holds back what has these flags.
#[inline]
pub fn is_held_back(flags: Flags, paused: Paused) -> bool {
    match paused {
        _ if flags.has(Flags::NOT_PAUSED) => false,
        Paused::All => true,
        Paused::Writes => flags.0 & CHANGES != 0,
    }
}
