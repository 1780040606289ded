//! The way to one address: connected when somebody asks, and not too often.

use crate::hello::HelloError;
use crate::identity::Identity;
use crate::inbox::Side;
use crate::link::{Link, LinkError};
use crate::mesh::{Inner, Limits, Security};
use crate::secure::meet;
use parking_lot::Mutex;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

#[derive(Debug)]
enum State {
    /// There is no link, with what the last attempt ended.
    Down(Option<LinkError>),
    /// The sender is dropped at the attempt's end.
    Connecting(watch::Receiver<()>),
    Up(Arc<Link>),
}

/// The way to an address.
#[derive(Debug)]
pub(crate) struct Target {
    address: String,
    state: Mutex<State>,
    last_attempt: Mutex<Option<Instant>>,
    attempts: AtomicUsize,
    /// A resolver may hang for longer than an attempt takes, on a thread that cannot be stopped:
    /// there is one at a time.
    resolving: Arc<tokio::sync::Mutex<()>>,
}

impl Target {
    pub(crate) fn new(address: &str) -> Target {
        Target {
            address: address.to_owned(),
            state: Mutex::new(State::Down(None)),
            last_attempt: Mutex::new(None),
            attempts: AtomicUsize::new(0),
            resolving: Arc::default(),
        }
    }

    /// Whether there is no link, and none is being made.
    pub(crate) fn is_down(&self) -> bool {
        match &*self.state.lock() {
            State::Down(_) => true,
            State::Connecting(_) => false,
            State::Up(link) => link.ended().is_some(),
        }
    }

    /// The link, which is made if there is none.
    pub(crate) async fn link(
        self: &Arc<Target>,
        expected: Option<u64>,
        mesh: &Inner,
    ) -> io::Result<Arc<Link>> {
        loop {
            let mut attempt_ends = match self.now(expected, mesh)? {
                Way::Link(link) => return Ok(link),
                Way::Attempt(ends) => ends,
            };
            // It is dropped at the attempt's end, so this is an error then.
            let _ = attempt_ends.changed().await;
            match &*self.state.lock() {
                State::Down(Some(error)) => return Err(error.error()),
                State::Up(link) => return Ok(link.clone()),
                // Somebody else has begun another attempt.
                _ => {}
            }
        }
    }

    /// The link, if there is one that can be used; otherwise an attempt, which is begun if it is
    /// time.
    fn now(self: &Arc<Target>, expected: Option<u64>, mesh: &Inner) -> io::Result<Way> {
        let mut state = self.state.lock();
        if let State::Up(link) = &*state {
            let is_same = link.ours == *mesh.identity.lock();
            // It was no member when the link was made, and may be one now.
            let is_new = link.peer.identity.node == 0 && expected.is_some_and(|node| node != 0);
            match link.ended() {
                Some(error) => *state = State::Down(Some(error)),
                None if !is_same || is_new && self.may_try(&mesh.limits) => {
                    *state = State::Down(None);
                }
                None => return Ok(Way::Link(link.clone())),
            }
        }
        if let State::Down(error) = &*state {
            if let Some(error) = error
                && !self.may_try(&mesh.limits)
            {
                return Err(error.error());
            }
            *self.last_attempt.lock() = Some(Instant::now());
            let (sender, receiver) = watch::channel(());
            let (identity, security) = mesh.now();
            let limits = mesh.limits.clone();
            tokio::spawn(self.clone().connect(identity, security, limits, sender));
            *state = State::Connecting(receiver);
        }
        match &*state {
            State::Connecting(ends) => Ok(Way::Attempt(ends.clone())),
            _ => unreachable!("an attempt is under way"),
        }
    }

    fn may_try(&self, limits: &Limits) -> bool {
        self.last_attempt.lock().is_none_or(|last| last.elapsed() >= limits.backoff)
    }

    async fn connect(
        self: Arc<Target>,
        identity: Identity,
        security: Security,
        limits: Limits,
        _ends: watch::Sender<()>,
    ) {
        let made = timeout(limits.connect_time, async {
            let mut found = self.resolve().await?;
            // One of them may take all the time: the next attempt begins with another.
            let first = self.attempts.fetch_add(1, Relaxed) % found.len().max(1);
            found.rotate_left(first);
            let stream = TcpStream::connect(found.as_slice()).await?;
            let (stream, peer) = meet(stream, Side::Asks, &identity, &security).await?;
            Ok(Link::start(stream, peer, identity, &limits))
        });
        let made = made.await.unwrap_or(Err(HelloError::Late));
        *self.state.lock() = match made {
            Ok(link) => State::Up(Arc::new(link)),
            Err(error) => State::Down(Some(LinkError::from(&error))),
        };
    }

    async fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = self.address.parse() {
            return Ok(vec![address]);
        }
        let (address, resolving) = (self.address.clone(), self.resolving.clone());
        let found = tokio::spawn(async move {
            let _one_at_a_time = resolving.lock().await;
            lookup_host(address).await.map(|found| found.take(ADDRESSES_MAX).collect())
        });
        found.await.map_err(io::Error::other)?
    }
}

/// How to a node.
enum Way {
    Link(Arc<Link>),
    /// Closed at its end.
    Attempt(watch::Receiver<()>),
}

impl From<&HelloError> for LinkError {
    fn from(error: &HelloError) -> LinkError {
        let kind = match error {
            HelloError::Io(error) => error.kind(),
            HelloError::Closed => io::ErrorKind::UnexpectedEof,
            HelloError::Late => io::ErrorKind::TimedOut,
            HelloError::Tls(_) | HelloError::Foreign => io::ErrorKind::InvalidData,
            HelloError::Protocol(_) => io::ErrorKind::Unsupported,
            HelloError::Secret | HelloError::Stranger(_) => io::ErrorKind::PermissionDenied,
            HelloError::Refused(_) => io::ErrorKind::ConnectionRefused,
        };
        LinkError { kind, text: error.to_string().into() }
    }
}
