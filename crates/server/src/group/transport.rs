//! The way to the other members: questions of the raft crate as messages of the mesh.

use bytes::Bytes;
use ladon_mesh::{Mesh, Peer, Service};
use ladon_raft::{
    Member, MemberId, Request, Response, Transport, answer, decode_request, decode_response,
    encode_request, encode_response,
};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The mesh's kind of a question of the group.
const GROUP_QUESTION: u8 = 16;

/// The first group of a cluster; there is one so far.
const GROUP: u16 = 0;

/// Other members, through the mesh.
pub(crate) struct ByMesh {
    pub(crate) mesh: Mesh,
    /// How long to wait for an answer.
    pub(crate) patience: Duration,
}

impl Transport for ByMesh {
    async fn ask(&self, to: MemberId, member: &Member, request: Request) -> io::Result<Response> {
        let body = encode_request(&request);
        // A large entry takes as long as it takes; the mesh ends a link that stands still.
        let patience = self.patience.max(Duration::from_millis(body.len() as u64 >> 13));
        let address = &member.address;
        let asked = self.mesh.ask(address, Some(to), GROUP_QUESTION, GROUP, body, patience);
        let answer = asked.await?;
        decode_response(&answer).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// A node of the group, while there is one.
pub(crate) type Running = super::thread::RaftNode;

/// Answers the other members.
pub(crate) struct Answers {
    pub(crate) node: Mutex<Option<Running>>,
    /// Before this moment, the node gives no vote: before it was started, it may have promised a
    /// leader not to elect another one for a while, and does not know any more.
    pub(crate) silent_until: Mutex<Option<Instant>>,
}

impl Answers {
    pub(crate) fn new() -> Arc<Answers> {
        Arc::new(Answers { node: Mutex::new(None), silent_until: Mutex::new(None) })
    }

    fn must_not_vote(&self) -> bool {
        self.silent_until.lock().is_some_and(|until| Instant::now() < until)
    }
}

impl Service for Answers {
    fn knows(&self, kind: u8) -> bool {
        kind == GROUP_QUESTION
    }

    async fn answer(&self, peer: &Peer, _: u8, group: u16, body: Bytes) -> Result<Vec<u8>, String> {
        if group != GROUP {
            return Err(format!("this node has no group {group}"));
        }
        if peer.identity.node == 0 {
            return Err("only members of the cluster take part in it".to_owned());
        }
        let request = decode_request(&body).map_err(|error| error.to_string())?;
        if matches!(request, Request::Vote { .. }) && self.must_not_vote() {
            return Err("this node has just started, and gives no vote yet".to_owned());
        }
        let node = self.node.lock().clone();
        let node = node.ok_or_else(|| "this node takes no part at the moment".to_owned())?;
        // Not dropped half-way if the other one waits no longer.
        let answered = tokio::spawn(async move { answer(&node, request).await });
        let answered = answered.await.map_err(|error| error.to_string())?;
        answered.map(|response| encode_response(&response))
    }
}
