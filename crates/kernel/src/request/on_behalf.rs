//! Runs what a client of another protocol asks for as the command of Redis that means the same.
//!
//! Rights, admission, memory, pauses, events, statistics, the slow log and `MONITOR` are those of the
//! command. Its code and its reply are the other protocol's.

use crate::access;
use crate::blocking;
use crate::client::monitored;
use crate::client::session::Session;
use crate::command::command_id::CommandId;
use crate::command::flags::Flags;
use crate::ctx::Ctx;
use crate::memory::eviction::{self, Room};
use crate::request::admission::{self, Refusal};
use crate::request::execute::begin;
use crate::request::outcome::Flow;
use crate::request::overdue;
use crate::thread_parts::ThreadParts;
use ladon_identity::Context;
use ladon_record::{KeyHash, Lsn};
use ladon_resp::Reply;
use std::sync::atomic::Ordering::Relaxed;

/// The command of Redis as which a request runs.
#[derive(Clone, Copy)]
pub struct Behalf<'a> {
    /// Which one.
    pub id: CommandId,
    /// Its arguments, the name first: what rights are checked for, and `MONITOR` shows.
    pub args: &'a [&'a [u8]],
    /// The hash of its first key, where the lock is for that key alone.
    pub key: Option<KeyHash>,
}

/// What became of a request.
#[derive(Debug)]
pub enum Done<R> {
    /// It ran. The reply depends on the LSN.
    Ran(R, Lsn),
    /// It was refused, for this reason: an error in the words of Redis.
    Refused(String),
    /// The client has to log in first.
    NotLoggedIn,
    /// Nothing was done, and the flow says what to do about it: to run the request again later, or to
    /// end the connection.
    Later(Flow),
}

/// Runs `run` with the locks of a command, in a transaction that ends with it.
pub fn execute<R>(
    thread: &mut ThreadParts<'_>,
    session: &mut Session,
    behalf: Behalf<'_>,
    run: impl FnOnce(&mut Ctx<'_>) -> R,
) -> Done<R> {
    let Behalf { id, args, key } = behalf;
    let (node, now_ms) = (thread.node, thread.now_ms);
    let spec = node.table.spec(id);
    let flags = spec.flags;
    if session.info.killed.load(Relaxed) {
        return Done::Later(Flow::Drop);
    }
    let memory = match flags.has(Flags::DENYOOM) {
        true => eviction::make_room(thread),
        false => Room::Enough,
    };
    let known = (memory, thread.local.leader_read);
    if let Err(refusal) = admission::request(node, session, (id, args), flags, known) {
        return refuse(thread, session, behalf, refusal);
    }
    if flags.has(Flags::WRITE) && node.pubsub.is_congested() {
        return Done::Later(Flow::Again);
    }
    let paused = node.paused(now_ms);
    if paused.is_some_and(|paused| admission::is_held_back(flags, paused)) {
        return Done::Later(Flow::Paused);
    }
    if node.keyspace.spaces.has_mounts() {
        let catalog = node.keyspace.spaces.catalog();
        let mut positions = spec.keys.positions(args);
        if positions.any(|at| catalog.mount_of(args[at]).is_some()) {
            return Done::Refused("ERR the key is a tuple of a mounted space".to_owned());
        }
    }
    if thread.local.serves_busy {
        // A script of this thread holds locks, and waits for nobody.
        return Done::Refused(node.scripts.running.busy().to_string());
    }
    session.info.set_command(id);
    let ThreadParts { local, scratch, append, .. } = thread;
    let started = local.start(node, spec, args);
    scratch.read_only = !flags.has(Flags::WRITE) && !node.may_change()
        || paused.is_some() && flags.has(Flags::READONLY);
    scratch.no_touch = session.no_touch;
    // Nobody reads this reply: the other protocol has its own.
    let mut unread = Vec::new();
    let reply = Reply::new(&mut unread, session.proto);
    let mut ctx = Ctx::new(node, local, session, reply, now_ms, *append);
    (ctx.first_key, ctx.depends) = (key, admission::depends(node, flags));
    if !begin(&mut ctx, scratch, spec, args) {
        drop(ctx);
        return Done::Refused(node.scripts.running.busy().to_string());
    }
    if node.keyspace.has_element_times() && overdue::remove_some(&mut ctx, spec, args) {
        ctx.commit();
        ctx.local.pause(node, started);
        return Done::Later(Flow::Again);
    }
    let result = run(&mut ctx);
    let depends = ctx.commit();
    let at = (ctx.session.gate, ctx.local.leader_read);
    let depends = admission::depends_after(node, at, flags, depends);
    ctx.local.stop(node, ctx.session, id, args, started, 0);
    if node.clients.has_monitors() {
        monitored::note(node, ctx.local, ctx.session, spec, args, false);
        monitored::show(node, ctx.local, depends);
    }
    drop(ctx);
    if !thread.scratch.ready.is_empty() {
        blocking::serve(thread);
    }
    Done::Ran(result, depends)
}

#[cold]
fn refuse<R>(
    thread: &mut ThreadParts<'_>,
    session: &mut Session,
    Behalf { id, args, .. }: Behalf<'_>,
    refusal: Refusal,
) -> Done<R> {
    let node = thread.node;
    let text = match refusal {
        Refusal::UserIsGone => return Done::Later(Flow::Drop),
        Refusal::AwaitsLeader => return Done::Later(Flow::AwaitsLeader),
        Refusal::NotLoggedIn => return Done::NotLoggedIn,
        Refusal::Denied(denied) => {
            session.info.set_command(id);
            let why = access::note(node, session, Context::TopLevel, denied, id, args);
            format!("NOPERM {why}")
        }
        refusal => refusal.error(node).to_string(),
    };
    thread.local.stats.command(id).rejected.add(1);
    thread.local.stats.count_error(text.as_bytes());
    Done::Refused(text)
}
