//! Tarantool's protocol: what it keeps of a connection.

use super::Held;
use crate::set_aside::SetAside;
use ladon_engine::Garbage;
use ladon_iproto::frame;
use ladon_kernel::node::Node;
use ladon_tarantool::Session;

/// A connection's part.
pub(crate) struct Iproto {
    pub(crate) session: Session,
    /// Its requests that are not done while later ones run.
    pub(crate) set_aside: Option<Box<SetAside>>,
}

impl Iproto {
    pub(crate) fn new(session: Session) -> Iproto {
        Iproto { session, set_aside: None }
    }

    /// Whether one of its requests would not be done if the client left now.
    pub(crate) fn is_unfinished(&self) -> bool {
        let is_unfinished = |others: &SetAside| others.has_unfinished();
        self.session.is_unfinished() || self.set_aside.as_deref().is_some_and(is_unfinished)
    }

    /// Forgets that requests were set aside, once none is left.
    pub(crate) fn tidy_set_aside(&mut self) {
        self.set_aside.take_if(|others| others.is_over());
    }

    pub(super) fn held(&self) -> Held {
        let bytes = self.set_aside.as_ref().map_or(0, |others| others.bytes());
        Held { parsed: 0, arguments: bytes, memory: bytes + self.session.untaken_bytes() }
    }

    pub(super) fn leave(self, node: &Node) -> Vec<Garbage> {
        let Iproto { session, set_aside } = self;
        session.leave(node);
        let mut garbage = Vec::new();
        if session.is_long_to_drop() {
            let bytes = session.prepared_bytes();
            garbage.push(Garbage::of_definition(Box::new(session), bytes));
        }
        if let Some(others) = set_aside.filter(|others| others.has_unfinished()) {
            let bytes = others.prepared_bytes();
            garbage.push(Garbage::of_definition(others, bytes));
        }
        garbage
    }
}

pub(super) fn begins_with_request(unread: &[u8]) -> bool {
    let next = frame::next(unread, frame::PACKET_BYTES_MAX);
    !matches!(next, frame::Progress::Incomplete { .. })
}
