//! A connection's tracking begins and ends: in its session, its thread and the registry.

use super::numbers;
use super::state::{Modes, TrackingState};
use crate::client::session::Session;
use crate::local::Local;
use crate::node::Node;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Turns tracking on, or changes how; prefixes are added to those that there are.
pub fn turn_on(
    node: &Node,
    local: &mut Local,
    session: &mut Session,
    modes: Modes,
    redirect: u64,
    prefixes: &[&[u8]],
) {
    let (client, slot) = (session.info.id, session.info.slot);
    if session.tracking.is_none() {
        node.tracking.begins(&node.keyspace);
    }
    let tracking = session.tracking.get_or_insert_default();
    if !tracking.on {
        node.tracking.count_on(local.thread);
        local.trackers.add(client, slot, node.tracking.messages_to(local.thread));
    }
    (tracking.on, tracking.modes, tracking.redirect) = (true, modes, redirect);
    tracking.is_broken = false;
    if modes.broadcast {
        let every: [&[u8]; 1] = [b""];
        for &prefix in if prefixes.is_empty() { &every } else { prefixes } {
            follow(node, local, tracking, client, slot, prefix);
        }
    } else if tracking.number.is_none() {
        let number = node.tracking.numbers.lock().take(local.thread);
        let index = numbers::place(number, node.threads.len()).1;
        local.trackers.set_number(index, Some((client, slot)));
        tracking.number = Some(number);
    }
    show(session);
}

fn follow(
    node: &Node,
    local: &mut Local,
    tracking: &mut TrackingState,
    client: u64,
    slot: u32,
    prefix: &[u8],
) {
    if tracking.add_prefix(&Arc::from(prefix)) {
        let from = node.tracking.follow(prefix, local.thread);
        local.trackers.follow(prefix, client, slot, from);
    }
}

/// Turns tracking off. What the client has read stays noted under its number, as in Redis: if it
/// turns tracking on again, it still gets these invalidations.
pub fn turn_off(node: &Node, local: &mut Local, session: &mut Session) {
    let Some(tracking) = &mut session.tracking else { return };
    if !tracking.on {
        return;
    }
    for prefix in tracking.take_prefixes() {
        node.tracking.unfollow(&prefix, local.thread);
        local.trackers.unfollow(&prefix, session.info.id);
    }
    let number = tracking.number;
    **tracking = TrackingState { number, ..TrackingState::default() };
    local.trackers.remove(session.info.id);
    node.tracking.count_off(local.thread);
    show(session);
}

/// Ends the tracking of a connection that is closed.
pub fn abandon(node: &Node, local: &mut Local, session: &mut Session) {
    turn_off(node, local, session);
    let Some(tracking) = session.tracking.take() else { return };
    node.tracking.ends(&node.keyspace);
    if let Some(number) = tracking.number {
        local.trackers.set_number(numbers::place(number, node.threads.len()).1, None);
        node.tracking.departs(number);
    }
}

/// Lets other threads see it.
pub fn show(session: &Session) {
    let Some(tracking) = &session.tracking else { return };
    let (info, TrackingState { on, modes, redirect, is_broken, .. }) = (&session.info, &**tracking);
    info.tracked.store(*on, Relaxed);
    info.tracked_by_prefix.store(modes.broadcast, Relaxed);
    info.redirect_broken.store(*is_broken, Relaxed);
    info.redirect.store(*redirect, Relaxed);
}
