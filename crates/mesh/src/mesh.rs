//! The handle: asks others, and has others' questions answered.

use crate::body::Body;
use crate::frame::{BODY_BYTES_MAX, FIRST_SERVICE_KIND};
use crate::identity::{Identity, Peer};
use crate::inbox::Sizes;
use crate::link::Link;
use crate::listen::listen;
use crate::target::Target;
use bytes::Bytes;
use ladon_tls::NodeTls;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;
use tokio::time::timeout;

/// Addresses without a link that are remembered.
const DOWN_MAX: usize = 256;

/// Answers other nodes' questions.
pub trait Service: Send + Sync + 'static {
    /// Whether there are such questions. Another kind ends the link of who asks.
    fn knows(&self, kind: u8) -> bool;

    /// Answers `peer`, or says why not. The future is dropped if nobody waits for the answer any
    /// more; what must not stop half-way has to run in a task of its own.
    fn answer(
        &self,
        peer: &Peer,
        kind: u8,
        group: u16,
        body: Bytes,
    ) -> impl Future<Output = Result<Vec<u8>, String>> + Send;
}

/// How nodes prove that they belong to the cluster.
#[derive(Clone)]
pub enum Security {
    /// All of them know this secret. Nobody learns it from what they say, but everybody on the way
    /// can read what they say, and change it: for loopback and for networks that nobody else has
    /// access to. Whoever has seen a hello can try secrets at leisure, so it has to be long and
    /// random.
    Secret(Vec<u8>),
    /// Both have a certificate of the cluster's authority.
    Tls(NodeTls),
    /// They have that, and know the secret too.
    SecretOnTls(Vec<u8>, NodeTls),
}

impl Security {
    pub(crate) fn secret(&self) -> Option<&[u8]> {
        match self {
            Security::Secret(secret) | Security::SecretOnTls(secret, _) => Some(secret),
            Security::Tls(_) => None,
        }
    }

    pub(crate) fn tls(&self) -> Option<&NodeTls> {
        match self {
            Security::Tls(tls) | Security::SecretOnTls(_, tls) => Some(tls),
            Security::Secret(_) => None,
        }
    }
}

/// Without the secret.
impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Security::Secret(_) => "Secret",
            Security::Tls(_) => "Tls",
            Security::SecretOnTls(..) => "SecretOnTls",
        })
    }
}

/// What others may cost this node.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a message. Not more than [`Limits::link_bytes_max`].
    pub message_bytes_max: usize,
    /// Bytes of the messages of several frames that are half here, and as many that the service
    /// has; the same on all nodes.
    pub link_bytes_max: usize,
    /// Questions under way on a link; who asks waits for a place.
    pub questions_max: usize,
    /// Connections that have not proven anything yet.
    pub strangers_max: usize,
    /// How long they may take.
    pub hello_time: Duration,
    /// How many of them begin with TLS in a second.
    pub hellos_per_second: u32,
    /// Connections of other nodes to this one.
    pub links_max: usize,
    /// How long it may take to connect to another node, hello included.
    pub connect_time: Duration,
    /// An address without a link is tried once in this time.
    pub backoff: Duration,
    /// An idle side says so often that it is there.
    pub alive_interval: Duration,
    /// A link ends when nothing came for so long, or nothing could be sent.
    pub silence_max: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            message_bytes_max: 1 << 30,
            link_bytes_max: 1 << 30,
            questions_max: 256,
            strangers_max: 64,
            hello_time: Duration::from_secs(2),
            hellos_per_second: 200,
            links_max: 256,
            connect_time: Duration::from_secs(2),
            backoff: Duration::from_millis(100),
            alive_interval: Duration::from_secs(1),
            silence_max: Duration::from_secs(5),
        }
    }
}

impl Limits {
    pub(crate) fn sizes(&self) -> Sizes {
        let (message, link) = (self.message_bytes_max, self.link_bytes_max);
        Sizes { frame: BODY_BYTES_MAX, message, link }
    }

    /// Units of 64 KiB that a link's large messages may have.
    pub(crate) fn link_permits(&self) -> usize {
        self.link_bytes_max.div_ceil(BODY_BYTES_MAX).clamp(1, u32::MAX as usize >> 1)
    }

    /// How many of them a message of so many bytes needs, if it is large.
    pub(crate) fn permits_of(&self, bytes: usize) -> Option<u32> {
        let units = bytes.div_ceil(BODY_BYTES_MAX).min(self.link_permits());
        (bytes > BODY_BYTES_MAX).then_some(units as u32)
    }
}

/// What there is now, and what there was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Links of other nodes to this one.
    pub answering: usize,
    /// Connections that have not proven anything yet.
    pub strangers: usize,
    /// Those that were closed because others needed their places, ever.
    pub evicted: u64,
    /// Those that were refused, or were too slow, ever.
    pub not_let_in: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) answering: AtomicUsize,
    pub(crate) strangers: AtomicUsize,
    pub(crate) evicted: AtomicU64,
    pub(crate) not_let_in: AtomicU64,
}

pub(crate) struct Inner {
    pub(crate) identity: Arc<Mutex<Identity>>,
    security: Mutex<Security>,
    pub(crate) limits: Limits,
    targets: Mutex<HashMap<String, Arc<Target>>>,
    pub(crate) counters: Arc<Counters>,
}

impl Inner {
    /// What a new link needs.
    pub(crate) fn now(&self) -> (Identity, Security) {
        (self.identity.lock().clone(), self.security.lock().clone())
    }
}

/// Messages between this node and others. A clone is the same mesh; when the last one goes, its
/// links end.
#[derive(Clone)]
pub struct Mesh {
    inner: Arc<Inner>,
}

impl Mesh {
    /// A mesh of this node, without any connection yet. When the identity changes, links are made
    /// anew when they are needed next.
    ///
    /// # Panics
    /// If a message may have more bytes than a link.
    pub fn new(identity: Arc<Mutex<Identity>>, security: Security, limits: Limits) -> Mesh {
        assert!(limits.message_bytes_max <= limits.link_bytes_max, "a message fits into a link");
        let (targets, counters) = (Mutex::default(), Arc::<Counters>::default());
        let security = Mutex::new(security);
        Mesh { inner: Arc::new(Inner { identity, security, limits, targets, counters }) }
    }

    /// From now on, new links prove themselves like this.
    pub fn secure(&self, security: Security) {
        *self.inner.security.lock() = security;
    }

    /// What there is now, and what there was.
    pub fn counts(&self) -> Counts {
        let counters = &self.inner.counters;
        Counts {
            answering: counters.answering.load(Relaxed),
            strangers: counters.strangers.load(Relaxed),
            evicted: counters.evicted.load(Relaxed),
            not_let_in: counters.not_let_in.load(Relaxed),
        }
    }

    /// Answers those who connect to `listener`, until the future is dropped; then their links end.
    ///
    /// # Errors
    /// The listener cannot be used.
    pub async fn listen(
        &self,
        listener: std::net::TcpListener,
        service: Arc<impl Service>,
    ) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        listen(self.inner.clone(), listener, service).await
    }

    /// Asks the node at `address` and waits for its answer. It has to be the node that is expected,
    /// if one is. If there is no connection, one is made, unless that has just failed.
    ///
    /// # Errors
    /// The connection cannot be made or breaks, the node refuses or is another one, the time is
    /// over; the node's own text, if it has no answer.
    pub async fn ask(
        &self,
        address: &str,
        expected_node: Option<u64>,
        kind: u8,
        group: u16,
        body: impl Into<Body>,
        limit: Duration,
    ) -> io::Result<Bytes> {
        let body = body.into();
        let refused = |text: String| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        if kind < FIRST_SERVICE_KIND {
            return refused(format!("kind {kind} is one of the mesh's own"));
        }
        if body.len() > self.inner.limits.message_bytes_max {
            return refused(format!("{address}: a question of {} bytes is too long", body.len()));
        }
        let target = self.target(address);
        let asked = async {
            let link = self.link(&target, expected_node).await?;
            let answer = link.ask(kind, group, body).await;
            answer.map_err(|error| error.error())?.map_err(io::Error::other)
        };
        within(address, limit, asked).await
    }

    /// What the node at `address` can do, in its own words ([`Identity::features`]): those of the link to
    /// it, which is made if there is none, as by [`Mesh::ask`].
    ///
    /// # Errors
    /// The connection cannot be made, the node refuses or is another one, the time is over.
    pub async fn features(
        &self,
        address: &str,
        expected_node: Option<u64>,
        limit: Duration,
    ) -> io::Result<u64> {
        let target = self.target(address);
        let asked = async {
            let link = self.link(&target, expected_node).await?;
            Ok(link.peer.identity.features)
        };
        within(address, limit, asked).await
    }

    /// The link to the node that is expected.
    async fn link(
        &self,
        target: &Arc<Target>,
        expected_node: Option<u64>,
    ) -> io::Result<Arc<Link>> {
        let link = target.link(expected_node, &self.inner).await?;
        let node = link.peer.identity.node;
        match expected_node.filter(|expected| *expected != node) {
            None => Ok(link),
            Some(expected) => {
                let text = format!("member {node} is there, and not member {expected}");
                Err(io::Error::new(io::ErrorKind::NotFound, text))
            }
        }
    }

    fn target(&self, address: &str) -> Arc<Target> {
        let mut targets = self.inner.targets.lock();
        if let Some(target) = targets.get(address) {
            return target.clone();
        }
        if targets.len() >= DOWN_MAX {
            targets.retain(|_, target| !target.is_down());
        }
        let target = Arc::new(Target::new(address));
        targets.insert(address.to_owned(), target.clone());
        target
    }
}

/// What comes of it within the time; an error says at which address.
async fn within<T>(
    address: &str,
    limit: Duration,
    asked: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let late = |_| {
        let text = format!("no answer in {} ms", limit.as_millis());
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    };
    let answer = timeout(limit, asked).await.unwrap_or_else(late);
    answer.map_err(|error| io::Error::new(error.kind(), format!("{address}: {error}")))
}
