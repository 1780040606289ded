//! Runs commands that were collected as one transaction of the engine: those of `EXEC`, and those in
//! a transaction on spaces.

use crate::access;
use crate::client::session::{Multi, Queued};
use crate::command::command_id::CommandId;
use crate::command::error::CommandError;
use crate::command::spec::{Handler, LockNeed};
use crate::ctx::{Ctx, Data};
use crate::request::invoke::{self, Caller, Command};
use crate::request::mounted;
use ladon_engine::{Ahead, Locks};
use ladon_identity::{Context, Denied};
use ladon_record::KeyHash;

/// What a transaction needs.
pub struct Wanted {
    /// Whether all locks are needed.
    all: bool,
    /// Otherwise, the hashes of the keys to lock.
    hashes: Vec<KeyHash>,
    /// The first key of each command, for prefetching; arbitrary if it has none.
    pub first_keys: Vec<Ahead>,
}

impl Wanted {
    /// By the commands, and by the keys that the client watches.
    pub fn by(ctx: &Ctx<'_>, multi: &Multi) -> Wanted {
        let (keyspace, db) = (ctx.keyspace(), ctx.session.db);
        let count = multi.queued.len();
        let mut wanted = Wanted {
            all: false,
            hashes: Vec::with_capacity(count + ctx.session.watched.len()),
            first_keys: Vec::with_capacity(count),
        };
        wanted.hashes.extend(ctx.session.watched.iter().map(|watched| keyspace.hash(&watched.key)));
        for &queued in &multi.queued {
            let spec = ctx.node.table.spec(queued.id);
            let (args, before) = (multi.args(queued), wanted.hashes.len());
            match spec.locks {
                LockNeed::None => {}
                LockNeed::All | LockNeed::Own => wanted.all = true,
                LockNeed::Keys | LockNeed::KeysUnless(_) => {
                    if let LockNeed::KeysUnless(reaches_further) = spec.locks {
                        wanted.all |= reaches_further(&args);
                    }
                    let positions = spec.keys.positions(&args);
                    wanted.hashes.extend(positions.map(|at| keyspace.hash(args[at])));
                }
            }
            let hash = wanted.hashes.get(before).copied().unwrap_or(KeyHash(0));
            wanted.first_keys.push(Ahead { db, hash });
        }
        wanted
    }

    /// Begins the transaction. Returns `false` if a long script holds one of its locks.
    ///
    /// # Panics
    /// If one is open already.
    pub fn begin(&self, ctx: &mut Ctx<'_>) -> bool {
        let Data::Free(scratch) = std::mem::replace(&mut ctx.data, Data::Gone) else {
            unreachable!("who runs collected commands begins their transaction")
        };
        let locks = if self.all { Locks::All } else { Locks::Keys(&self.hashes) };
        let Some(tx) = ctx.node.begin_or_busy(locks, scratch, ctx.now_ms) else { return false };
        ctx.data = Data::Held(tx);
        true
    }
}

/// Runs one of the commands, with the rights that its user has now.
pub fn run(ctx: &mut Ctx<'_>, multi: &Multi, queued: Queued, first_key: Ahead) {
    let spec = ctx.node.table.spec(queued.id);
    let (Handler::Run(handler) | Handler::RunOrContainer(handler)) = spec.handler else {
        unreachable!("subcommands are resolved before they are queued")
    };
    let args = multi.args(queued);
    let is_hashed = matches!(spec.locks, LockNeed::Keys | LockNeed::KeysUnless(_))
        && spec.keys.is_one(args.len());
    ctx.first_key = is_hashed.then_some(first_key.hash);
    let started = ctx.local.start(ctx.node, spec, &args);
    let mut command = Command { id: queued.id, spec, handler, args: &args };
    if ctx.tx().mounts().is_some() {
        mounted::redirect(ctx, &mut command);
    }
    if !ctx.session.access.user.is_unlimited() {
        check_rights(ctx, &mut command);
    }
    invoke::call(ctx, command, started, Caller::Exec);
}

/// Puts the error in the place of a command that the user may not run any more.
#[cold]
fn check_rights(ctx: &mut Ctx<'_>, command: &mut Command<'_>) {
    if denied(ctx, command.id, command.args).is_some() {
        command.handler = |ctx, args| {
            let id = ctx.node.table.find_with_subcommand(args);
            let denied = id.and_then(|id| Some((id, denied(ctx, id, args)?)));
            let Some((id, denied)) = denied else { return Err(CommandError::Syntax) };
            access::note(ctx.node, ctx.session, Context::Multi, denied, id, args);
            Err(access::changed_since_queued(denied))
        };
    }
}

/// What of a command is denied.
fn denied(ctx: &Ctx<'_>, id: CommandId, args: &[&[u8]]) -> Option<Denied> {
    let session = &*ctx.session;
    access::may_run(ctx.node, &session.access.user, session.db, id, args).err()
}
