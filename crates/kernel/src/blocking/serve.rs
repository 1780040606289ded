//! Serves the clients that wait for newly created keys.

use super::{KeyWait, answer_unserved, may_go_on};
use crate::access::Access;
use crate::client::session::Session;
use crate::command::error::{CommandError, CommandResult};
use crate::command::flags::Flags;
use crate::command::spec::{Handler, HandlerFn};
use crate::ctx::{Ctx, Data};
use crate::memory::eviction::{self, Room};
use crate::message::{Answer, Unserved};
use crate::node::Node;
use crate::request::invoke::{self, Caller, Command, begin_on_keys};
use crate::thread_parts::ThreadParts;
use crate::tracking::state::TrackingState;
use ladon_engine::{Key, Locks, Place, ReadyKey, Waiter};
use ladon_record::Lsn;
use ladon_resp::Reply;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Serves the waiters of the keys that the last transaction created: keys and their waiters in
/// order of arrival, until a key is empty or has no waiters. No lock is held before or after.
#[cold]
pub fn serve(thread: &mut ThreadParts<'_>) {
    let ThreadParts { node, local, scratch, now_ms, append, .. } = thread;
    // A transaction may have taken long, and what it created may have expired.
    let now_ms = node.clock.unix_ms().max(*now_ms);
    let mut thread = ThreadParts { node, local, scratch, now_ms, append: *append, pump: None };
    let mut ready = VecDeque::from(std::mem::take(&mut thread.scratch.ready));
    // While the log takes no changes, nothing can be popped, so clients keep waiting.
    while node.may_serve()
        && let Some(made) = ready.pop_front()
    {
        let mut after = Place::default();
        loop {
            let key = Key { bytes: &made.key, hash: made.hash };
            let locks = Locks::One(key.hash);
            let Some(mut tx) = node.begin_or_busy(locks, thread.scratch, now_ms) else {
                // A long script has the key. Its waiters are served after it.
                thread.local.unserved.push(made);
                break;
            };
            let next = tx.next_waiter(made.db, key, after);
            tx.commit(&mut *thread.append);
            let Some((place, waiter)) = next else { break };
            if !attempt(&mut thread, Some(&made), &waiter) {
                after = place;
            }
        }
        // Keys that were created by serving may be awaited too.
        ready.extend(thread.scratch.ready.drain(..));
    }
}

/// Milliseconds until the next look at keys that a long script holds.
const BUSY_PAUSE_MS: u64 = 10;

/// Serves a waiter if time has made its command ready, and otherwise notes when to look again.
/// Called by the client's thread; no lock is held.
#[cold]
pub fn look_again(thread: &mut ThreadParts<'_>, waiter: &Arc<Waiter>) {
    let wait = KeyWait::of(waiter);
    let is_open = thread.node.may_serve() && thread.node.paused(thread.now_ms).is_none();
    if is_open && attempt(thread, None, waiter) {
        return serve(thread);
    }
    let ThreadParts { node, scratch, now_ms, append, .. } = thread;
    let Some(look_at) = wait.look_at else { return };
    let args = wait.arguments();
    let spec = node.table.spec(wait.command);
    let next_ms = match begin_on_keys(node, spec, &args, scratch, *now_ms) {
        Some(mut tx) => {
            let next_ms = look_at(&mut tx, node.keyspace.select(wait.db), &args);
            tx.commit(&mut **append);
            next_ms
        }
        None => *now_ms + BUSY_PAUSE_MS,
    };
    wait.next_look_ms.store(next_ms.max(*now_ms + 1), Relaxed);
}

/// Runs a waiter's command again if one of its keys has what it wants. Returns whether it did; the
/// reply is then among the thread's answers. While a long script holds its keys, `made` is kept for
/// later.
fn attempt(thread: &mut ThreadParts<'_>, made: Option<&ReadyKey>, waiter: &Arc<Waiter>) -> bool {
    let (node, now_ms, wait) = (thread.node, thread.now_ms, KeyWait::of(waiter));
    let spec = node.table.spec(wait.command);
    let Handler::Run(handler) = spec.handler else { return false };
    if thread.local.unwoken_reader_canary && spec.name == "xread" {
        return false;
    }
    let args = wait.arguments();
    let is_full = spec.flags.has(Flags::DENYOOM) && eviction::make_room(thread) == Room::None;
    let ThreadParts { local, scratch, append, .. } = thread;
    (scratch.no_touch, scratch.read_only) = (wait.no_touch, false);
    let Some(mut tx) = begin_on_keys(node, spec, &args, scratch, now_ms) else {
        local.unserved.extend(made.cloned());
        return false;
    };
    let db = node.keyspace.select(wait.db);
    let is_ready = match wait.is_ready {
        Some(is_ready) => is_ready(&mut tx, db, &args),
        None => wait.keys(node).any(|key| tx.kind(db, key) == Some(waiter.wants)),
    };
    if !is_ready || !waiter.claim.take() {
        tx.commit(&mut **append);
        return false;
    }
    for key in wait.keys(node) {
        tx.stop_waiting(db, key, waiter);
    }
    let (access, is_denied) = present_access(node, waiter);
    let mut session = Session::new(Arc::clone(&wait.info), true, access);
    session.db = wait.db;
    session.proto = wait.proto;
    session.tracking = wait.tracked.map(|number| Box::new(TrackingState::of_number(number)));
    let mut out = Vec::new();
    if is_denied {
        tx.commit(&mut **append);
        answer_unserved(node, local, &session, waiter, Unserved::Denied, &mut out);
        local.answers.push(wait.answer(waiter, out));
        return true;
    }
    let handler: HandlerFn = if is_full { refuse } else { handler };
    let command = Command { id: wait.command, spec, handler, args: &args };
    let started = local.start(node, spec, &args);
    let reply = Reply::new(&mut out, wait.proto);
    let mut ctx = Ctx::new(node, local, &mut session, reply, now_ms, *append);
    (ctx.in_attempt, ctx.data) = (true, Data::Held(tx));
    let depends = invoke::call(&mut ctx, command, started, Caller::Waited).depends;
    drop(ctx);
    // The session belongs to this attempt alone.
    let wrote = Some(session.last_write).filter(|&lsn| lsn != Lsn::ZERO);
    if let Some(watch) = &node.watch_served {
        watch(node, &wait.info);
    }
    local.answers.push(Answer { depends, wrote, ..wait.answer(waiter, out) });
    true
}

/// The access of a waiter's user as it is now, and whether it is denied what it waits for.
fn present_access(node: &Node, waiter: &Waiter) -> (Access, bool) {
    let held = &KeyWait::of(waiter).access;
    if held.is_free(node) {
        return (held.clone(), false);
    }
    // The connection of a user that was deleted ends; until then nothing is for it.
    let Some(now) = held.renewed(node) else { return (held.clone(), true) };
    let is_denied = !may_go_on(node, &now.user, waiter);
    (now, is_denied)
}

impl KeyWait {
    /// The answer to its wait, which depends on nothing.
    fn answer(&self, waiter: &Arc<Waiter>, reply: Vec<u8>) -> Answer {
        Answer {
            thread: self.info.thread,
            client: self.info.id,
            slot: self.info.slot,
            waiter: Arc::clone(waiter),
            reply,
            depends: Lsn::ZERO,
            wrote: None,
        }
    }
}

/// Replaces a command that there is no memory for.
fn refuse(_: &mut Ctx<'_>, _: &[&[u8]]) -> CommandResult {
    Err(CommandError::OutOfMemory)
}
