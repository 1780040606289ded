//! The end of a connection.

use crate::client::session::Session;
use crate::long::aside;
use crate::pubsub::joining;
use crate::request::watched;
use crate::thread_parts::ThreadParts;
use crate::tracking;

/// Removes what a closed connection left in the partitions and the registry.
pub fn disconnect(thread: &mut ThreadParts<'_>, session: &mut Session) {
    watched::abandon_outside(thread, session);
    aside::forget(thread, session);
    joining::leave(thread.node, thread.local, session);
    tracking::joining::abandon(thread.node, thread.local, session);
    thread.node.clients.remove(session.info.id);
}
