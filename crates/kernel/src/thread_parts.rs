//! What running commands takes of an IO thread.

use crate::local::{Append, Local, Pump};
use crate::node::Node;
use ladon_engine::Scratch;

/// The parts of a thread that its commands run on, borrowed apart from its connections.
pub struct ThreadParts<'a> {
    /// What all connections share.
    pub node: &'a Node,
    /// This thread.
    pub local: &'a mut Local,
    /// Its memory for transactions.
    pub scratch: &'a mut Scratch,
    /// Time of this turn, Unix milliseconds.
    pub now_ms: u64,
    /// Takes the records of changes.
    pub append: Append<'a>,
    /// Serves the thread's sockets while a script runs long; `None` where that is impossible.
    pub pump: Option<Pump<'a>>,
}
