//! The end of a connection.

use crate::kernel::aside;
use crate::kernel::pubsub::joining;
use crate::kernel::session::Session;
use crate::kernel::thread_parts::ThreadParts;
use crate::kernel::tracking;
use crate::kernel::watched;

/// Removes what a closed connection left in the partitions and the registry.
pub fn disconnect(thread: &mut ThreadParts<'_>, session: &mut Session) {
    watched::abandon_outside(thread, session);
    aside::forget(thread, session);
    joining::leave(thread.node, thread.local, session);
    tracking::joining::abandon(thread.node, thread.local, session);
    thread.node.clients.remove(session.info.id);
}
