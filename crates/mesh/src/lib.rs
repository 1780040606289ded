//! Messages between the nodes of a cluster, over TCP ([the wire](../../docs/format/mesh.md)).
//!
//! ```text
//!   Mesh::ask --> Target (connects, not too often) --> Link --frames--> Reception (who is it?)
//!        ^                                               |                  |
//!        '------------- answers in any order ------------'              Service::answer
//! ```
//! Who connects asks, who accepts answers: two nodes that ask each other have two connections.
//!
//! | to | use |
//! |---|---|
//! | ask another node, answer others | [`Mesh`] with a [`Service`] |
//! | say who this node is, and learn who asks | [`Identity`], [`Peer`] |
//! | say how nodes prove that they belong | [`Security`] |
//! | bound what others cost | [`Limits`] |
//!
//! **Architecture invariant:** bodies are opaque; neither Raft nor the log is known here.
//!
//! **Architecture invariant:** nothing is allocated by an announced length, and whatever a stranger
//! or a node does, it costs a bounded number of connections, bytes and time.

mod accepted;
mod answering;
mod body;
mod frame;
mod hello;
mod identity;
mod inbox;
mod link;
mod listen;
mod memory;
mod mesh;
mod outbox;
mod pump;
mod secure;
mod sockets;
mod strangers;
mod target;

pub use body::Body;
pub use frame::{
    ANSWER, BODY_BYTES_MAX, BadFrame, FAILURE, FIRST_SERVICE_KIND, HEAD_BYTES, Head, LARGE_MAX,
    MORE,
};
pub use hello::PROTOCOL;
pub use identity::{Identity, Peer, Proven};
pub use inbox::{Inbox, Message, Side, Sizes};
pub use mesh::{Counts, Limits, Mesh, Security, Service};
