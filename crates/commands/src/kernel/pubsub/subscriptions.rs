//! What one connection subscribes to.

use super::Kind;
use crate::kernel::local::Local;
use crate::kernel::node::Node;
use crate::kernel::session::Session;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Memory of a subscription besides its name: the connection's entry, its thread's, and a share of
/// the registry's.
const SUBSCRIPTION_BYTES: usize = 192;

/// What one connection subscribes to.
#[derive(Debug, Default)]
pub struct Subscriptions {
    names: [BTreeSet<Arc<[u8]>>; 3],
    /// Memory that they take.
    pub bytes: usize,
}

impl Subscriptions {
    /// Number of subscriptions of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.names[kind.index()].len()
    }

    /// The names of a kind, in order.
    pub(crate) fn names(&self, kind: Kind) -> Vec<Arc<[u8]>> {
        self.names[kind.index()].iter().map(Arc::clone).collect()
    }
}

impl Session {
    /// Number of subscriptions of a kind.
    #[inline]
    pub(crate) fn subscriptions(&self, kind: Kind) -> usize {
        self.subscribed.as_ref().map_or(0, |subscribed| subscribed.count(kind))
    }

    /// Whether it has subscriptions of any kind.
    #[inline]
    pub fn is_subscribed(&self) -> bool {
        self.subscribed.is_some()
    }

    /// Subscribes to a name, unless it has.
    pub(crate) fn subscribe(&mut self, node: &Node, local: &mut Local, kind: Kind, name: &[u8]) {
        let subscribed = self.subscribed.get_or_insert_default();
        let name: Arc<[u8]> = name.into();
        if !subscribed.names[kind.index()].insert(Arc::clone(&name)) {
            return;
        }
        subscribed.bytes += SUBSCRIPTION_BYTES + name.len();
        let from = node.pubsub.subscribe(kind, &name, local.thread);
        let (client, slot) = (self.info.id, self.info.slot);
        local.subscribers.add(kind, &name, client, slot, from);
        self.show_subscriptions();
    }

    /// Ends a subscription; returns whether there was one.
    pub(crate) fn unsubscribe(
        &mut self,
        node: &Node,
        local: &mut Local,
        kind: Kind,
        name: &[u8],
    ) -> bool {
        let Some(subscribed) = &mut self.subscribed else { return false };
        if !subscribed.names[kind.index()].remove(name) {
            return false;
        }
        subscribed.bytes -= SUBSCRIPTION_BYTES + name.len();
        if subscribed.names.iter().all(BTreeSet::is_empty) {
            self.subscribed = None;
        }
        node.pubsub.unsubscribe(kind, name, local.thread);
        local.subscribers.remove(kind, name, self.info.id);
        self.show_subscriptions();
        true
    }

    /// Lets other threads see the numbers of subscriptions.
    fn show_subscriptions(&self) {
        for kind in Kind::ALL {
            let count = self.subscriptions(kind) as u32;
            self.info.subscriptions[kind.index()].store(count, Relaxed);
        }
    }
}

/// Ends all of a connection's subscriptions.
pub fn abandon(node: &Node, local: &mut Local, session: &mut Session) {
    for kind in Kind::ALL {
        let Some(subscribed) = &session.subscribed else { return };
        for name in subscribed.names(kind) {
            session.unsubscribe(node, local, kind, &name);
        }
    }
}

/// Subscribes again, on the thread of another node that the connection has moved to.
pub(crate) fn renew(node: &Node, local: &mut Local, session: &mut Session) {
    let Some(before) = session.subscribed.take() else { return };
    for kind in Kind::ALL {
        for name in before.names(kind) {
            session.subscribe(node, local, kind, &name);
        }
    }
}
