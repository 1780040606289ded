//! What a connection speaks: one variant for each protocol, with what the protocol keeps of a
//! connection. The rest of a connection is the same for all.
//!
//! ```text
//! greet       what a new client gets, or why it is refused
//! gather      the next whole requests of the input          (`batch.rs`)
//! run         one of them                                   (`worker/requests.rs`, `packets.rs`)
//! give_up     what is left to say when a reply never becomes safe
//! leave       the connection ends
//! ```
//!
//! A new protocol is a variant here, a crate for its bytes and one for what its requests mean. Its
//! connections are read, queued, gated, limited and closed as all others are.

pub(crate) mod iproto;
pub(crate) mod memcached;
pub(crate) mod resp;

use crate::connection::Connection;
use iproto::Iproto;
use ladon_engine::Garbage;
use ladon_kernel::node::Node;
use ladon_resp::Limits;
use memcached::Memcached;
use resp::Resp;

/// A protocol's part of a connection.
pub(crate) enum Dialect {
    Resp(Resp),
    Iproto(Box<Iproto>),
    Memcached(Box<Memcached>),
}

/// In which order the replies to a connection's requests leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyOrder {
    /// In that of the requests: a request waits for the end of the reply before it.
    Requests,
    /// In any: replies say what they answer. Only those of a stream keep its order.
    Streams,
}

/// Bytes of memory that a dialect keeps of unfinished requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    /// Bytes of the input that are whole arguments of an incomplete request.
    pub(crate) parsed: usize,
    /// Arguments of requests that have begun.
    pub(crate) arguments: usize,
    /// All memory besides the input.
    pub(crate) memory: usize,
}

impl Default for Dialect {
    fn default() -> Dialect {
        Dialect::Resp(Resp::default())
    }
}

impl Dialect {
    #[inline]
    pub(crate) fn resp(&self) -> Option<&Resp> {
        match self {
            Dialect::Resp(resp) => Some(resp),
            Dialect::Iproto(_) | Dialect::Memcached(_) => None,
        }
    }

    #[inline]
    pub(crate) fn resp_mut(&mut self) -> Option<&mut Resp> {
        match self {
            Dialect::Resp(resp) => Some(resp),
            Dialect::Iproto(_) | Dialect::Memcached(_) => None,
        }
    }

    #[inline]
    pub(crate) fn iproto(&self) -> Option<&Iproto> {
        match self {
            Dialect::Iproto(iproto) => Some(iproto),
            Dialect::Resp(_) | Dialect::Memcached(_) => None,
        }
    }

    #[inline]
    pub(crate) fn iproto_mut(&mut self) -> Option<&mut Iproto> {
        match self {
            Dialect::Iproto(iproto) => Some(iproto),
            Dialect::Resp(_) | Dialect::Memcached(_) => None,
        }
    }

    #[inline]
    pub(crate) fn memcached_mut(&mut self) -> Option<&mut Memcached> {
        match self {
            Dialect::Memcached(memcached) => Some(memcached),
            Dialect::Resp(_) | Dialect::Iproto(_) => None,
        }
    }

    pub(crate) fn reply_order(&self) -> ReplyOrder {
        match self {
            Dialect::Resp(_) | Dialect::Memcached(_) => ReplyOrder::Requests,
            Dialect::Iproto(_) => ReplyOrder::Streams,
        }
    }

    /// The next request is read again from where it begins.
    pub(crate) fn read_again(&mut self) {
        match self {
            Dialect::Resp(resp) => resp.read_again(),
            Dialect::Memcached(memcached) => memcached.session.read_again(),
            // Packets say how long they are: nothing of an incomplete one is kept.
            Dialect::Iproto(_) => {}
        }
    }

    /// The peer will send nothing more.
    pub(crate) fn input_ended(&mut self) {
        match self {
            Dialect::Resp(_) | Dialect::Memcached(_) => {}
            Dialect::Iproto(iproto) => iproto.session.input_ended(),
        }
    }

    /// The client sends no more, and a program may be at work for it: that hears of it now.
    pub(crate) fn tell_of_end(&mut self, node: &Node) {
        if let Dialect::Iproto(iproto) = self
            && iproto.set_aside.is_some()
        {
            iproto.session.end_early(node);
        }
    }

    #[inline]
    pub(crate) fn held(&self) -> Held {
        match self {
            Dialect::Resp(resp) => resp.held(),
            Dialect::Iproto(iproto) => iproto.held(),
            // Nothing of an incomplete request is kept.
            Dialect::Memcached(_) => Held::default(),
        }
    }

    /// Whether requests that have left the input are not done yet.
    #[inline]
    pub(crate) fn has_set_aside(&self) -> bool {
        self.iproto().is_some_and(|iproto| iproto.set_aside.is_some())
    }

    /// Whether these bytes begin with a whole request, or with something that is none.
    pub(crate) fn begins_with_request(&self, unread: &[u8], limits: &Limits) -> bool {
        match self {
            Dialect::Resp(_) => resp::begins_with_request(unread, limits),
            Dialect::Iproto(_) => iproto::begins_with_request(unread),
            Dialect::Memcached(memcached) => memcached.session.begins_with_piece(unread),
        }
    }

    /// The connection ends: leaves what the dialect has joined. Returns what takes long to drop.
    pub(crate) fn leave(self, node: &Node) -> Vec<Garbage> {
        match self {
            Dialect::Resp(resp) => resp.leave(),
            Dialect::Iproto(iproto) => iproto.leave(node),
            Dialect::Memcached(_) => Vec::new(),
        }
    }
}

impl Connection {
    /// Answers what cannot be answered: the changes that replies depend on may be lost. Discards
    /// those replies. The number of replies that the client awaits is unknown here, so the
    /// connection ends.
    pub(crate) fn give_up(&mut self, text: &str) {
        let proto = self.session.proto;
        let out = self.replies.replace_waiting();
        match &self.dialect {
            Dialect::Resp(_) => resp::refuse(text, proto, out),
            // Nobody knows which request an error would answer: the connection just ends.
            Dialect::Iproto(_) => {}
            Dialect::Memcached(memcached) => {
                ladon_memcached::gives_up(&memcached.session, text, out);
            }
        }
        self.closing = true;
        self.replies.all_is_sendable();
    }
}
