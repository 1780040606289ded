//! The way to one address: connected when somebody asks, and not too often.

use crate::hello::{HelloError, Introduction};
use crate::identity::{Identity, Peer, Proven};
use crate::inbox::Side;
use crate::link::{Link, LinkError};
use crate::mesh::{Limits, Security, socket_options};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

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
}

/// What an attempt needs.
pub(crate) struct Attempt {
    pub(crate) identity: Identity,
    pub(crate) security: Security,
    pub(crate) limits: Limits,
}

impl Target {
    pub(crate) fn new(address: &str) -> Target {
        Target {
            address: address.to_owned(),
            state: Mutex::new(State::Down(None)),
            last_attempt: Mutex::new(None),
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
        attempt: impl Fn() -> Attempt,
    ) -> io::Result<Arc<Link>> {
        loop {
            let mut attempt_ends = {
                let mut state = self.state.lock();
                if let State::Up(link) = &*state {
                    let attempt = attempt();
                    let is_unknown =
                        expected.is_some_and(|node| node != 0) && link.peer.identity.node == 0;
                    match link.ended() {
                        Some(error) => *state = State::Down(Some(error)),
                        // It says something else of itself now, or the other one may.
                        None if link.ours != attempt.identity
                            || is_unknown && self.may_try(&attempt.limits) =>
                        {
                            *state = State::Down(None);
                        }
                        None => return Ok(link.clone()),
                    }
                }
                if let State::Down(error) = &*state {
                    let attempt = attempt();
                    if let Some(error) = error
                        && !self.may_try(&attempt.limits)
                    {
                        return Err(error.error());
                    }
                    *self.last_attempt.lock() = Some(Instant::now());
                    let (sender, receiver) = watch::channel(());
                    tokio::spawn(self.clone().connect(attempt, sender));
                    *state = State::Connecting(receiver);
                }
                let State::Connecting(ends) = &*state else { continue };
                ends.clone()
            };
            // It is dropped at the attempt's end, so this is an error then.
            let _ = attempt_ends.changed().await;
            match &*self.state.lock() {
                State::Down(Some(error)) => return Err(error.error()),
                State::Up(link) => return Ok(link.clone()),
                _ => {}
            }
        }
    }

    fn may_try(&self, limits: &Limits) -> bool {
        self.last_attempt.lock().is_none_or(|last| last.elapsed() >= limits.backoff)
    }

    async fn connect(self: Arc<Target>, attempt: Attempt, ends: watch::Sender<()>) {
        let made = timeout(attempt.limits.connect_time, attempt.run(&self.address)).await;
        let made = made.unwrap_or(Err(HelloError::Late));
        *self.state.lock() = match made {
            Ok(link) => State::Up(Arc::new(link)),
            Err(error) => {
                let kind = match &error {
                    HelloError::Io(error) => error.kind(),
                    HelloError::Late => io::ErrorKind::TimedOut,
                    HelloError::Foreign => io::ErrorKind::InvalidData,
                    HelloError::Protocol(_) => io::ErrorKind::Unsupported,
                    HelloError::Secret | HelloError::Stranger(_) => io::ErrorKind::PermissionDenied,
                    HelloError::Refused(_) => io::ErrorKind::ConnectionRefused,
                };
                State::Down(Some(LinkError { kind, text: error.to_string().into() }))
            }
        };
        drop(ends);
    }
}

impl Attempt {
    async fn run(self, address: &str) -> Result<Link, HelloError> {
        let mut stream = TcpStream::connect(address).await?;
        socket_options(&stream)?;
        let address = stream.peer_addr()?;
        let Security::Secret(secret) = &self.security;
        let introduction = Introduction {
            side: Side::Asks,
            identity: &self.identity,
            secret: Some(secret),
            session: &[],
        };
        let identity = introduction.run(&mut stream).await?;
        let proven = Proven { secret: true, certificate: false };
        let peer = Peer { identity, proven, address };
        Ok(Link::start(stream, peer, self.identity, &self.limits))
    }
}
