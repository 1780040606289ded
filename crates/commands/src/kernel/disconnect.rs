//! The end of a connection.

use crate::kernel::aside;
use crate::kernel::ctx::{Append, Local};
use crate::kernel::node::Node;
use crate::kernel::session::Session;
use crate::kernel::watched;
use ladon_engine::Scratch;

/// Removes what a closed connection left in the partitions and the registry.
pub fn disconnect(
    node: &Node,
    local: &mut Local,
    scratch: &mut Scratch,
    session: &mut Session,
    append: Append<'_>,
) {
    watched::abandon_outside(node, local, scratch, session, &mut *append);
    aside::forget(node, scratch, session, append);
    node.clients.remove(session.info.id);
}
