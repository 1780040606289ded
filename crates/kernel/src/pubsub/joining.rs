//! A connection's subscriptions begin and end: in its session, its thread and the registry.

use super::followers::Follower;
use super::published::Kind;
use crate::client::session::Session;
use crate::local::Local;
use crate::node::Node;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Subscribes to a name, unless the connection has.
pub fn subscribe(node: &Node, local: &mut Local, session: &mut Session, kind: Kind, name: &[u8]) {
    let name: Arc<[u8]> = name.into();
    if !session.subscribed.get_or_insert_default().add(kind, &name) {
        return;
    }
    let from = node.pubsub.subscribe(kind, &name, local.thread);
    let from = from + u64::from(local.late_subscription_canary);
    if !local.unpublished.is_empty() {
        local.joined_late.push((local.unpublished.len(), kind, Arc::clone(&name)));
    }
    let (client, slot) = (session.info.id, session.info.slot);
    local.subscribers.add(&node.pubsub, kind, &name, client, Follower { slot, from });
    show(session);
}

/// Ends a subscription; returns whether there was one.
pub fn unsubscribe(
    node: &Node,
    local: &mut Local,
    session: &mut Session,
    kind: Kind,
    name: &[u8],
) -> bool {
    let Some(subscribed) = &mut session.subscribed else { return false };
    if !subscribed.remove(kind, name) {
        return false;
    }
    if subscribed.is_empty() {
        session.subscribed = None;
    }
    node.pubsub.unsubscribe(kind, name, local.thread);
    local.subscribers.remove(kind, node.pubsub.hash(name), name, session.info.id);
    show(session);
    true
}

/// Ends the subscriptions of a connection that leaves. Messages no longer find it; where there are
/// many subscriptions, the thread takes them out of its tables some at a time, and until then they
/// count as receivers.
pub(crate) fn leave(node: &Node, local: &mut Local, session: &mut Session) {
    /// More would take longer than a tenth of a millisecond.
    const AT_ONCE: usize = 64;
    let names = Kind::ALL.iter().map(|&kind| session.subscriptions(kind)).sum::<usize>();
    if names <= AT_ONCE {
        abandon(node, local, session);
    } else if let Some(subscriptions) = session.subscribed.take() {
        local.subscribers.leave(session.info.id, subscriptions);
    }
}

/// Ends all of a connection's subscriptions.
pub fn abandon(node: &Node, local: &mut Local, session: &mut Session) {
    for kind in Kind::ALL {
        let Some(subscribed) = &session.subscribed else { return };
        for name in subscribed.names(kind) {
            unsubscribe(node, local, session, kind, &name);
        }
    }
}

/// Lets other threads see the numbers of subscriptions.
fn show(session: &Session) {
    for kind in Kind::ALL {
        let count = session.subscriptions(kind) as u32;
        session.info.subscriptions[kind.index()].store(count, Relaxed);
    }
}
