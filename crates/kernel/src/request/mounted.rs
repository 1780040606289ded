//! Commands on keys that are tuples of mounted spaces: finds them, locks their spaces, and puts the
//! command's code for tuples in the place of its code for values.
//!
//! A server without mounts comes here never. Mounts are of database 0. An ordinary key under a
//! prefix can only be from before the mount: it stays, and commands refuse it by name until it is
//! deleted or renamed.

use crate::client::session::{Multi, Session, WatchedKey};
use crate::command::error::{CommandError, CommandResult, shown};
use crate::command::flags::Flags;
use crate::command::spec::{CommandSpec, KeyPositions, LockNeed, OnTuples};
use crate::ctx::{Ctx, Data};
use crate::node::Node;
use crate::request::invoke::Command;
use ladon_engine::{Catalog, Locks, MOUNTS_DATABASE, Mount, Tx, WatchFlag};
use ladon_record::SpaceId;
use smallvec::SmallVec;
use std::sync::Arc;

/// How often spaces are locked by a catalog that turns out to be out of date.
const TRIES_MAX: usize = 100;

/// Definitions changed again and again.
const UNSETTLED: CommandError =
    CommandError::text("ERR the definitions of mounted spaces are changing; try again in a moment");

/// A script runs in the same transaction.
const BESIDE_SCRIPT: CommandError = CommandError::text(
    "EXECABORT Transaction discarded because of: scripts and tuples of mounted spaces cannot be in \
     one transaction",
);

type SpaceIds = SmallVec<[SpaceId; 2]>;

/// Whether a command is about data, so that its keys are keys.
fn is_of_data(spec: &CommandSpec) -> bool {
    const DATA: u32 = Flags::WRITE.0 | Flags::READONLY.0;
    spec.flags.0 & DATA != 0 && !spec.flags.has(Flags::RUNS_SCRIPT)
}

/// The mounts that a command's keys belong to, and the keys.
fn mounts_of<'c, 'a>(
    catalog: &'c Catalog,
    spec: &CommandSpec,
    args: &'a [&'a [u8]],
) -> impl Iterator<Item = (&'c Mount, &'a [u8])> {
    let positions = spec.keys.positions(args);
    positions.filter_map(move |at| Some((catalog.mount_of(args[at])?, args[at])))
}

/// Puts the code for tuples in the place of a command's, if it is about tuples, and locks their
/// spaces.
#[cold]
pub fn redirect(ctx: &mut Ctx<'_>, command: &mut Command<'_>) {
    let Command { spec, args, .. } = *command;
    if !is_of_data(spec) {
        return;
    }
    if let OnTuples::Always(handler) = spec.on_tuples {
        command.handler = handler;
    }
    if ctx.session.db != MOUNTS_DATABASE || !concerns_tuples(ctx, spec, args) {
        return;
    }
    let ordinary = command.handler;
    for _ in 0..TRIES_MAX {
        let catalog = catalog(ctx);
        // A refusal shows that the space is mounted.
        ctx.depends = ctx.depends.max(catalog.changed);
        let ids: SpaceIds = mounts_of(&catalog, spec, args).map(|(mount, _)| mount.space).collect();
        if ids.is_empty() {
            command.handler = ordinary;
            if reads_tuples_by_pattern(&catalog, spec, args) {
                command.handler = refuse_patterns;
            }
            return;
        }
        command.handler = match spec.on_tuples {
            OnTuples::Refused => refuse,
            OnTuples::Keys(handler) | OnTuples::Always(handler) => handler,
        };
        match &mut ctx.data {
            Data::Held(tx) if tx.mounts().is_none() => {
                if tx.lock_spaces(catalog, &ids) {
                    return;
                }
            }
            _ => return,
        }
    }
    command.handler = |_, _| Err(UNSETTLED);
}

/// Whether a command, or one in its `EXEC`, would change tuples of a space whose writers a commit
/// has asked to wait. None of them lends an argument, so the request can just run again.
#[cold]
pub(crate) fn awaits_commit(
    node: &Node,
    session: &Session,
    command: Command<'_>,
    now_ms: u64,
) -> bool {
    if session.db != MOUNTS_DATABASE {
        return false;
    }
    let catalog = node.keyspace.spaces.catalog();
    let is_kept_still = |space| catalog.get(space).is_some_and(|cell| cell.is_kept_still(now_ms));
    let awaits = |spec: &CommandSpec, args: &[&[u8]]| {
        let changes_tuples = spec.flags.has(Flags::WRITE)
            && is_of_data(spec)
            && !matches!(spec.on_tuples, OnTuples::Refused);
        changes_tuples && mounts_of(&catalog, spec, args).any(|(it, _)| is_kept_still(it.space))
    };
    match &session.multi {
        None => awaits(command.spec, command.args),
        Some(multi) => {
            let mut queued = multi.queued.iter();
            queued.any(|&queued| awaits(node.table.spec(queued.id), &multi.args(queued)))
        }
    }
}

/// Whether a command is about tuples: most are not, and pay for this only.
fn concerns_tuples(ctx: &Ctx<'_>, spec: &CommandSpec, args: &[&[u8]]) -> bool {
    let concerns = |catalog: &Catalog| {
        mounts_of(catalog, spec, args).next().is_some()
            || reads_tuples_by_pattern(catalog, spec, args)
    };
    match &ctx.data {
        Data::Held(tx) if let Some(catalog) = tx.mounts() => concerns(catalog),
        _ => concerns(&ctx.node.keyspace.spaces.catalog()),
    }
}

/// Scripts do not act on tuples.
#[cold]
pub fn redirect_in_script(ctx: &mut Ctx<'_>, command: &mut Command<'_>) {
    let Command { spec, args, .. } = *command;
    if !is_of_data(spec) {
        return;
    }
    if let OnTuples::Always(handler) = spec.on_tuples {
        command.handler = handler;
    }
    if ctx.session.db != MOUNTS_DATABASE {
        return;
    }
    let catalog = catalog(ctx);
    ctx.depends = ctx.depends.max(catalog.changed);
    if mounts_of(&catalog, spec, args).next().is_some() {
        command.handler = refuse_in_script;
    } else if reads_tuples_by_pattern(&catalog, spec, args) {
        command.handler = refuse_patterns;
    }
}

/// Whether a command also reads keys that follow from patterns, and a tuple's may be among them.
fn reads_tuples_by_pattern(catalog: &Catalog, spec: &CommandSpec, args: &[&[u8]]) -> bool {
    let LockNeed::KeysUnless(reaches_further) = spec.locks else { return false };
    let may_name_tuples = |pattern: &&[u8]| {
        let head = pattern.iter().position(|&byte| byte == b'*').map(|at| &pattern[..at]);
        head.is_some_and(|head| may_begin_with(catalog, head))
    };
    reaches_further(args) && args[2..].iter().any(may_name_tuples)
}

/// Whether a key that begins like this may be a tuple's.
fn may_begin_with(catalog: &Catalog, head: &[u8]) -> bool {
    let mounts = catalog.mounts().iter();
    mounts.map(|mount| &*mount.prefix).any(|it| it.starts_with(head) || head.starts_with(it))
}

/// Refuses to make keys that begin like this if they may be tuples'.
pub fn check_new_keys(ctx: &mut Ctx<'_>, head: &[u8]) -> CommandResult {
    let spaces = &ctx.node.keyspace.spaces;
    let is_of_mounts = spaces.has_mounts() && ctx.session.db == MOUNTS_DATABASE;
    if !is_of_mounts {
        return Ok(());
    }
    let catalog = spaces.catalog_to_keep();
    ctx.depends = ctx.depends.max(catalog.changed);
    if may_begin_with(&catalog, head) {
        let head = shown(head);
        let why = format_args!("keys that begin with '{head}' may be tuples of a mounted space");
        return Err(CommandError::err(why));
    }
    Ok(())
}

/// The spaces as the transaction sees them, or at this moment.
pub fn catalog(ctx: &Ctx<'_>) -> Arc<Catalog> {
    match &ctx.data {
        Data::Held(tx) if let Some(catalog) = tx.mounts() => Arc::clone(catalog),
        _ => ctx.node.keyspace.spaces.catalog_to_keep(),
    }
}

/// The mounted space that a key of a database belongs to.
pub fn space_of(ctx: &mut Ctx<'_>, db: u16, key: &[u8]) -> Option<SpaceId> {
    let mounts = ctx.tx().mounts().filter(|_| db == MOUNTS_DATABASE)?;
    mounts.mount_of(key).map(|mount| mount.space)
}

/// Takes the place of a command that does nothing with tuples.
pub fn refuse(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    refuse_because(ctx, args, "takes hash commands for its tuples")
}

/// Takes the place of a command in a script.
fn refuse_in_script(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    refuse_because(ctx, args, "is out of scripts' reach; use MULTI")
}

fn refuse_because(ctx: &mut Ctx<'_>, args: &[&[u8]], why: &str) -> CommandResult {
    let catalog = catalog(ctx);
    let found = args[1..].iter().find_map(|key| Some((catalog.mount_of(key)?, key)));
    let (space, prefix, key) = match found {
        Some((mount, key)) => (&*mount.name, shown(&mount.prefix), shown(key)),
        None => ("?", String::new(), String::new()),
    };
    let command = shown(args[0]).to_uppercase();
    Err(CommandError::err(format_args!(
        "{command} does not work on '{key}': space '{space}', mounted under '{prefix}', {why}"
    )))
}

fn refuse_patterns(_: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let command = shown(args[0]).to_uppercase();
    let why = "its patterns may name tuples of a mounted space, which it cannot read";
    Err(CommandError::err(format_args!("{command}: {why}")))
}

/// Locks all mounted spaces, unless spaces are held already.
///
/// # Errors
/// If definitions change all the time; in scripts, which see no tuples.
pub fn lock_all(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    check_no_script(ctx, args)?;
    for _ in 0..TRIES_MAX {
        let tx = ctx.tx();
        if tx.mounts().is_some() {
            return Ok(());
        }
        let catalog = tx.keyspace().spaces.catalog_to_keep();
        let ids: SpaceIds = catalog.mounts().iter().map(|mount| mount.space).collect();
        if tx.lock_spaces(catalog, &ids) {
            return Ok(());
        }
    }
    Err(UNSETTLED)
}

/// Refuses what lists keys in a script, where tuples would be missing.
pub fn check_no_script(ctx: &Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if ctx.local.script.is_none() {
        return Ok(());
    }
    let command = shown(args[0]).to_uppercase();
    let why = "cannot list the tuples of mounted spaces in a script; send it outside";
    Err(CommandError::err(format_args!("{command} {why}")))
}

/// Does something with one mounted space: inside a transaction with what that has locked, otherwise
/// by itself. `None` if the space is mounted no more.
pub fn on_space<R>(
    ctx: &mut Ctx<'_>,
    id: SpaceId,
    mut run: impl FnMut(&mut Tx<'_>) -> R,
) -> Result<Option<R>, CommandError> {
    for _ in 0..TRIES_MAX {
        let catalog = catalog(ctx);
        if !catalog.mounts().iter().any(|mount| mount.space == id) {
            return Ok(None);
        }
        let done = ctx.on(Locks::None, |tx| {
            let is_held = tx.mounts().is_some() || tx.lock_spaces(catalog, &[id]);
            is_held.then(|| run(tx))
        })?;
        if done.is_some() {
            return Ok(done);
        }
    }
    Err(UNSETTLED)
}

/// Watches a key, if it is a tuple's. Returns its space.
#[cold]
pub fn watch(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    flag: &Arc<WatchFlag>,
) -> Result<Option<SpaceId>, CommandError> {
    if ctx.session.db != MOUNTS_DATABASE {
        return Ok(None);
    }
    for _ in 0..TRIES_MAX {
        let found = catalog(ctx).mount_of(key).map(|mount| mount.space);
        let Some(id) = found else { return Ok(None) };
        let watched = on_space(ctx, id, |tx| tx.watch_tuple(id, key, flag))?;
        if watched.is_some() {
            return Ok(Some(id));
        }
    }
    Err(UNSETTLED)
}

/// Whether a command is about all keys of a database.
fn lists_keys(spec: &CommandSpec) -> bool {
    matches!((spec.on_tuples, spec.keys), (OnTuples::Always(_), KeyPositions::None))
}

/// The mounted spaces whose tuples commands name, and whether one lists all keys.
fn wanted_by(node: &Node, catalog: &Catalog, multi: &Multi) -> (SpaceIds, bool) {
    let (mut ids, mut lists) = (SpaceIds::new(), false);
    for &queued in &multi.queued {
        let (spec, args) = (node.table.spec(queued.id), multi.args(queued));
        lists |= lists_keys(spec);
        if is_of_data(spec) {
            ids.extend(mounts_of(catalog, spec, &args).map(|(mount, _)| mount.space));
        }
    }
    (ids, lists)
}

/// Whether commands, whose keys are locked, are about tuples of mounted spaces.
pub fn are_tuples(ctx: &mut Ctx<'_>, multi: &Multi) -> bool {
    if !ctx.keyspace().spaces.has_mounts() {
        return false;
    }
    let catalog = ctx.node.keyspace.spaces.catalog_to_keep();
    // A refusal shows that the space is mounted.
    ctx.depends = ctx.depends.max(catalog.changed);
    let (ids, lists) = wanted_by(ctx.node, &catalog, multi);
    !ids.is_empty() || lists
}

/// Locks the mounted spaces that an `EXEC` needs.
///
/// # Errors
/// If definitions change all the time, or a script is to run beside tuples.
#[cold]
pub fn lock_for_exec(ctx: &mut Ctx<'_>, multi: &Multi) -> CommandResult {
    for _ in 0..TRIES_MAX {
        let catalog = ctx.node.keyspace.spaces.catalog_to_keep();
        let (mut ids, mut lists) = wanted_by(ctx.node, &catalog, multi);
        let has_tuples = !ids.is_empty() || lists && !catalog.mounts().is_empty();
        if multi.flags.has(Flags::RUNS_SCRIPT) {
            if has_tuples {
                return Err(BESIDE_SCRIPT);
            }
            // A script may run for long, and nobody is told that a space is busy.
            lists = false;
        }
        let watched = ctx.session.watched.iter().filter_map(|WatchedKey { space, .. }| *space);
        let watched = watched.filter(|_| !multi.flags.has(Flags::RUNS_SCRIPT));
        let is_mounted = |id: &SpaceId| catalog.mounts().iter().any(|mount| mount.space == *id);
        ids.extend(watched.filter(is_mounted));
        if lists {
            ids.extend(catalog.mounts().iter().map(|mount| mount.space));
        }
        if ctx.tx().lock_spaces(catalog, &ids) {
            return Ok(());
        }
    }
    Err(UNSETTLED)
}
