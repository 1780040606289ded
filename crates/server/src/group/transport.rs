//! The way to the other members: questions of the raft crate as messages of the mesh.

use super::answers::Answers;
use bytes::Bytes;
use ladon_mesh::{Body, Mesh, Peer, Service};
use ladon_raft::{
    Member, MemberId, Request, Response, Transport, decode_request, decode_response,
    encode_response, request_parts,
};
use openraft_rt_tokio::TokioRuntime;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

/// The mesh's kind of a question of the group.
const GROUP_QUESTION: u8 = 16;

/// The first group of a cluster; there is one so far.
const GROUP: u16 = 0;

/// What this version can do, as bits of a member's identity.
pub(super) const FEATURES: u64 = KNOWS_READ_INDEX;

/// It can be asked for its position ([`Request::ReadIndex`]).
const KNOWS_READ_INDEX: u64 = 1;

/// Other members, through the mesh.
pub(crate) struct ByMesh {
    pub(crate) mesh: Mesh,
    /// How long to wait for an answer.
    pub(crate) patience: Duration,
    /// Members of whom the log says already that they lack something.
    pub(crate) lacking: Mutex<BTreeSet<MemberId>>,
}

impl Transport for ByMesh {
    async fn ask(&self, to: MemberId, member: &Member, request: Request) -> io::Result<Response> {
        if matches!(request, Request::ReadIndex) {
            self.may_ask(to, member).await?;
        }
        let body = Body::from_iter(request_parts(&request));
        // Memory of a long entry is given back by who has it last: by the mesh, which can.
        drop(request);
        // A large entry takes as long as it takes; the mesh ends a link that stands still.
        let patience = self.patience.max(Duration::from_millis(body.len() as u64 >> 13));
        let address = &member.address;
        let asked = self.mesh.ask(address, Some(to), GROUP_QUESTION, GROUP, body, patience);
        let answer = asked.await?;
        decode_response(&answer).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn lacks(&self, to: MemberId, told: &str) {
        if self.lacking.lock().insert(to) {
            tracing::error!("{told}");
        }
    }
}

impl ByMesh {
    /// Whether the member can be asked for its position.
    async fn may_ask(&self, to: MemberId, member: &Member) -> io::Result<()> {
        let features = self.mesh.features(&member.address, Some(to), self.patience).await?;
        match features & KNOWS_READ_INDEX {
            0 => Err(io::ErrorKind::Unsupported.into()),
            _ => Ok(()),
        }
    }
}

impl Service for Answers<TokioRuntime> {
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
        self.respond(request).await.map(|response| encode_response(&response))
    }
}
