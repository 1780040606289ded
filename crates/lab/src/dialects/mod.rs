//! Bytes to operations and back, one file per protocol. No sockets, no systems, no workloads.
//!
//! One `Dialect` serves all connections of a load. Where it must remember something of a connection
//! (how the server framed its last reply, say) it does so by the operation that is expected.
//!
//! **Architecture invariant:** each dialect is verified against the real server in the tests.

pub mod http;
pub mod http_commands;
pub mod iproto;
pub mod memcached;
pub mod prefixed;
pub mod resp;
pub mod slots;
pub mod sql;

use crate::operation::{Answer, Operation, OperationKind};

/// What is at the front of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framed {
    /// Not a whole reply yet.
    Incomplete,
    /// A whole reply.
    Frame {
        /// Its bytes.
        length: usize,
        /// Whose reply it is; `None` where replies come in the order of requests.
        tag: Option<u64>,
    },
}

/// The bytes cannot be a reply of this protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a reply: {0}")]
pub struct Malformed(pub String);

/// The server's refusal, in its own words; or a reply of a kind that does not answer the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// One protocol of one system, seen from the client.
pub trait Dialect: Send {
    /// Whether it can ask for operations of this kind at all.
    ///
    /// # Errors
    /// What this system cannot do, in words: its cell stays empty with them.
    fn can(&self, kind: OperationKind) -> Result<(), String>;

    /// How many bytes the server says first on each connection.
    fn greeting_bytes(&self) -> usize {
        0
    }

    /// Appends the client's first message (authentication, identification), and returns how many
    /// replies that will cause. `greeting` is the server's first message.
    ///
    /// # Errors
    /// If the greeting is not this protocol's.
    fn hello(&mut self, greeting: &[u8], out: &mut Vec<u8>) -> Result<usize, Malformed>;

    /// Judges reply number `number` (from 0) to [`Self::hello`], cut out by [`Self::frame`].
    ///
    /// # Errors
    /// The server's refusal.
    fn check_hello(&self, number: usize, frame: &[u8]) -> Result<(), Refused>;

    /// Whether replies carry the tags of their requests, and so may come in any order.
    fn tags_replies(&self) -> bool {
        false
    }

    /// Appends the request. Where replies may come out of order it carries `tag`, and the reply
    /// does.
    fn encode(&mut self, tag: u64, operation: &Operation, out: &mut Vec<u8>);

    /// Finds the first whole reply in `bytes`, which is not empty. `expecting` is the operation
    /// that it answers where replies come in order; `None` during [`Self::hello`].
    ///
    /// # Errors
    /// When the bytes cannot be a reply.
    fn frame(&self, expecting: Option<&Operation>, bytes: &[u8]) -> Result<Framed, Malformed>;

    /// What a whole reply says.
    ///
    /// # Errors
    /// The server's error, in its words.
    fn answer(&self, operation: &Operation, frame: &[u8]) -> Result<Answer, Refused>;

    /// Whether the reply is `expected`. The same as comparing [`Self::answer`] with it, which is
    /// what it does unless a dialect knows how to without allocating.
    fn is_right(&self, operation: &Operation, expected: &Answer, frame: &[u8]) -> bool {
        self.answer(operation, frame).is_ok_and(|answer| answer.means_the_same(expected, operation))
    }

    /// The value within a reply to [`Operation::Get`]: for callers that know which values are right
    /// without having one at hand. `None` when the key is not there.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn value<'a>(
        &self,
        operation: &Operation,
        frame: &'a [u8],
    ) -> Result<Option<std::borrow::Cow<'a, [u8]>>, Refused> {
        match self.answer(operation, frame)? {
            Answer::Value(value) => Ok(value.map(std::borrow::Cow::Owned)),
            other => Err(Refused(format!("answered a read with {other:?}"))),
        }
    }
}
