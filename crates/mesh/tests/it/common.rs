//! Nodes on ports that the kernel chooses, and a service that does what the question's kind says.

use bytes::Bytes;
use ladon_mesh::{Identity, Limits, Mesh, Peer, Security, Service};
use parking_lot::Mutex;
use std::future::{Future, pending};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Gives the body back.
pub const ECHO: u8 = 16;
/// Says in words who asks.
pub const WHO: u8 = 17;
/// Fails with the body as its text.
pub const FAIL: u8 = 18;
/// Never answers.
pub const NEVER: u8 = 19;
/// Answers with as many bytes as the body says.
pub const LONG: u8 = 20;

/// Long enough for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct Tasks {
    /// What it is asked, in order.
    pub seen: Mutex<Vec<(u8, usize)>>,
    /// Whose certificates it was shown.
    pub certificates: Mutex<Vec<Option<String>>>,
}

impl Service for Tasks {
    fn knows(&self, kind: u8) -> bool {
        (ECHO..=LONG).contains(&kind)
    }

    async fn answer(
        &self,
        peer: &Peer,
        kind: u8,
        group: u16,
        body: Bytes,
    ) -> Result<Vec<u8>, String> {
        self.seen.lock().push((kind, body.len()));
        let certificate = peer.proven.certificate.as_ref();
        let name = certificate.and_then(|certificate| certificate.common_name.clone());
        self.certificates.lock().push(name);
        match kind {
            ECHO => Ok(body.to_vec()),
            WHO => {
                let Identity { node, address, .. } = &peer.identity;
                Ok(format!("member {node} at {address} asks group {group}").into_bytes())
            }
            FAIL => Err(String::from_utf8_lossy(&body).into_owned()),
            NEVER => pending().await,
            _ => {
                let length = body.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
                Ok((0..length).map(|at| (at % 251) as u8).collect())
            }
        }
    }
}

pub struct Node {
    pub mesh: Mesh,
    pub identity: Arc<Mutex<Identity>>,
    pub address: String,
    pub service: Arc<Tasks>,
    task: JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Member `node` of the tests' cluster, which nobody can reach.
pub fn identity(node: u64) -> Identity {
    Identity {
        cluster: [7; 16],
        node,
        incarnation: 1000 + node,
        address: format!("node-{node}:16379"),
        version: 1,
        features: 0,
    }
}

pub fn secret() -> Security {
    Security::Secret(b"the secret of the tests".to_vec())
}

/// A node that only asks.
pub fn mesh(identity: Identity) -> Mesh {
    mesh_with(identity, secret())
}

pub fn mesh_with(identity: Identity, security: Security) -> Mesh {
    mesh_of(identity, security, Limits::default())
}

pub fn mesh_of(identity: Identity, security: Security, limits: Limits) -> Mesh {
    Mesh::new(Arc::new(Mutex::new(identity)), security, limits)
}

/// A node that listens.
pub fn node_with(identity: Identity, security: Security, limits: Limits) -> Node {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    node_on(listener, identity, security, limits)
}

/// A node that listens at an address that was another's.
pub fn node_at(address: &str, identity: Identity) -> Node {
    let listener = TcpListener::bind(address).expect("the port is free");
    node_on(listener, identity, secret(), Limits::default())
}

fn node_on(listener: TcpListener, identity: Identity, security: Security, limits: Limits) -> Node {
    let address = listener.local_addr().expect("an address").to_string();
    let identity = Arc::new(Mutex::new(identity));
    let mesh = Mesh::new(identity.clone(), security, limits);
    let service = Arc::new(Tasks::default());
    let (listening, answering) = (mesh.clone(), service.clone());
    let task = tokio::spawn(async move {
        let ended = listening.listen(listener, answering).await;
        panic!("it listens until it is dropped: {ended:?}");
    });
    Node { mesh, identity, address, service, task }
}

pub fn node(number: u64) -> Node {
    node_with(identity(number), secret(), Limits::default())
}

/// Runs a test as the server will run a mesh: on one thread.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(test);
}
