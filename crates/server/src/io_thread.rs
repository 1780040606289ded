//! One IO thread: a backend, a worker, and the thread's connections.
//!
//! Thread 0 accepts, and gives each connection to the thread that has the fewest. A connection
//! never changes threads.

use crate::connection::ConnectionStart;
use crate::listening::Listening;
use crate::protocol::{ListenerKind, Protocol};
use crate::shutdown::StopSignal;
use crate::worker::{Net, Worker};
use ladon_http::{HTTP_BYTES, HttpBackend};
use ladon_identity::User;
use ladon_kernel::blocking::SendNow;
use ladon_kernel::client::clients::CertificateNames;
use ladon_kernel::shared::Shared;
use ladon_net::{
    AfterInput, AnyBackend, Backend, CloseReason, ConnId, ConnInfo, Listener, Outgoing, PeerAddr,
    Sink, Waker,
};
use ladon_tls::{PeerCertificate, SEALED_BYTES, Session, TlsBackend};
use parking_lot::Mutex;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Longest time for which a stopping server waits to send replies.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// A connection on its way to a thread.
pub(crate) struct Arriving {
    pub(crate) socket: OwnedFd,
    pub(crate) info: ConnInfo,
    /// Of a connection with TLS, whose handshake is done.
    pub(crate) session: Option<Box<Session>>,
    /// Of a connection that the server has made to itself, for this user.
    pub(crate) user: Option<Arc<User>>,
}

/// The connections on their way to a thread, and the number of connections that the thread has.
pub(crate) struct Handover {
    sockets: Mutex<Vec<Arriving>>,
    connections: AtomicUsize,
    waker: Waker,
}

impl Handover {
    pub(crate) fn new(waker: Waker) -> Handover {
        Handover { sockets: Mutex::default(), connections: AtomicUsize::new(0), waker }
    }

    /// Chooses the thread with the fewest connections, and counts one more for it. Returns its
    /// number too.
    pub(crate) fn choose(all: &[Handover]) -> Option<(usize, &Handover)> {
        let least = all.iter().enumerate();
        let least = least.min_by_key(|(_, handover)| handover.connections.load(Relaxed))?;
        least.1.connections.fetch_add(1, Relaxed);
        Some(least)
    }

    /// Queues a connection for the thread.
    pub(crate) fn give(&self, arriving: Arriving) {
        self.sockets.lock().push(arriving);
        self.waker.wake();
    }
}

pub(crate) struct IoThread {
    pub(crate) index: usize,
    pub(crate) node: Arc<Shared>,
    pub(crate) worker: Worker,
    pub(crate) backend: HttpBackend<TlsBackend<AnyBackend>>,
    pub(crate) handovers: Arc<[Handover]>,
    pub(crate) stop: Arc<StopSignal>,
    /// Only for the thread that accepts: the addresses to listen on, and the sockets in use.
    pub(crate) listening: Option<Arc<Listening>>,
    pub(crate) listeners: Vec<Listener>,
}

/// Passes a poll's events to the worker, and accepted sockets to a thread.
struct ThreadSink<'a> {
    index: usize,
    worker: &'a mut Worker,
    handovers: &'a [Handover],
    mine: &'a mut Vec<Arriving>,
}

impl Sink for ThreadSink<'_> {
    fn incoming(&mut self, socket: OwnedFd, info: ConnInfo) {
        let Some((index, handover)) = Handover::choose(self.handovers) else { return };
        let arriving = Arriving { socket, info, session: None, user: None };
        if index == self.index {
            self.mine.push(arriving);
        } else {
            handover.give(arriving);
        }
    }

    #[inline]
    fn received(&mut self, conn: ConnId, bytes: &[u8]) {
        self.worker.received(conn, bytes);
    }

    fn input_ended(&mut self, conn: ConnId) -> AfterInput {
        self.worker.input_ended(conn);
        AfterInput::KeepSending
    }

    #[inline]
    fn sent(&mut self, conn: ConnId, outgoing: Outgoing) {
        self.worker.sent(conn, outgoing);
    }

    fn holds(&mut self, conn: ConnId, bytes: usize) {
        self.worker.transport_holds(conn, bytes);
    }

    fn closed(&mut self, conn: ConnId, _reason: CloseReason) {
        self.handovers[self.index].connections.fetch_sub(1, Relaxed);
        self.worker.closed(conn);
    }
}

/// The thread's sockets, as its worker sees them.
struct Sockets<'a> {
    index: usize,
    node: &'a Shared,
    backend: &'a mut HttpBackend<TlsBackend<AnyBackend>>,
    handovers: &'a [Handover],
    stop: &'a StopSignal,
    /// Connections that this thread has accepted for itself.
    mine: &'a mut Vec<Arriving>,
}

impl Net for Sockets<'_> {
    #[inline]
    fn send(&mut self, conn: ConnId, outgoing: Outgoing, more: bool) {
        if more {
            Backend::send(self.backend, conn, outgoing);
        } else {
            Backend::send_last(self.backend, conn, outgoing);
        }
    }

    fn close(&mut self, conn: ConnId) {
        Backend::close(self.backend, conn);
    }

    fn pause_receive(&mut self, conn: ConnId, paused: bool) {
        Backend::pause_receive(self.backend, conn, paused);
    }

    fn has_ended(&mut self, conn: ConnId) -> bool {
        Backend::has_ended(self.backend, conn)
    }

    fn poll(&mut self, worker: &mut Worker) -> bool {
        // An error is found again by the thread's own poll.
        let _ = self.take_in(worker, Duration::ZERO);
        !self.stop.is_requested()
    }

    fn send_now(&mut self, conn: ConnId) -> Option<SendNow> {
        let sender = Backend::direct_sender(self.backend, conn)?;
        Some(Box::new(move |bytes| sender.send(bytes)))
    }
}

impl Sockets<'_> {
    /// Passes events and new connections to the worker.
    fn take_in(&mut self, worker: &mut Worker, timeout: Duration) -> std::io::Result<()> {
        let Sockets { index, handovers, .. } = *self;
        let mut sink = ThreadSink { index, worker: &mut *worker, handovers, mine: self.mine };
        self.backend.poll(&mut sink, Some(timeout))?;
        if !worker.takes_connections() {
            return Ok(());
        }
        // Whoever holds it may have a lower priority than this thread, and wakes it afterwards.
        let handed = handovers[index].sockets.try_lock();
        let handed = handed.map(|mut sockets| std::mem::take(&mut *sockets)).unwrap_or_default();
        for arriving in std::mem::take(self.mine).into_iter().chain(handed) {
            self.adopt(worker, arriving);
        }
        Ok(())
    }

    fn adopt(&mut self, worker: &mut Worker, arriving: Arriving) {
        let Arriving { socket, info, session, user } = arriving;
        let refusal = refusal(self.node, &info);
        let mut start = start_of(&info);
        start.user = user;
        start.conn = match session {
            None => self.backend.adopt(socket),
            Some(mut session) => {
                start.certificate = session.take_peer().map(names_of);
                start.transport_bytes = SEALED_BYTES;
                self.backend.inner().adopt_session(socket, *session)
            }
        };
        if start.protocol == Protocol::Http {
            self.backend.speak_http(start.conn, start.transport_bytes);
            start.transport_bytes += HTTP_BYTES;
        }
        worker.opened(start, refusal);
    }
}

impl IoThread {
    /// Runs until the server stops and all owed replies are sent.
    pub(crate) fn run(mut self) -> std::io::Result<()> {
        self.follow_listening()?;
        let mut mine = Vec::new();
        let mut stopping_since: Option<Instant> = None;
        loop {
            let timeout = if stopping_since.is_some() {
                self.worker.timeout().min(Duration::from_millis(10))
            } else {
                self.worker.timeout()
            };
            let (worker, mut sockets) = self.parts(&mut mine);
            sockets.take_in(worker, timeout)?;
            if stopping_since.is_none() {
                self.follow_listening()?;
            }
            let (worker, mut sockets) = self.parts(&mut mine);
            worker.turn(&mut sockets);
            if self.stop.is_requested() {
                let since = *stopping_since.get_or_insert_with(|| {
                    self.backend.stop_listening();
                    self.worker.stop();
                    Instant::now()
                });
                if self.worker.is_drained() || since.elapsed() > DRAIN_MAX {
                    return Ok(());
                }
            }
        }
    }

    /// The worker, and what it has of this thread.
    fn parts<'a>(&'a mut self, mine: &'a mut Vec<Arriving>) -> (&'a mut Worker, Sockets<'a>) {
        let sockets = Sockets {
            index: self.index,
            node: &self.node,
            backend: &mut self.backend,
            handovers: &self.handovers,
            stop: &self.stop,
            mine,
        };
        (&mut self.worker, sockets)
    }

    fn follow_listening(&mut self) -> std::io::Result<()> {
        let news = self.listening.as_ref().and_then(|listening| listening.news());
        let Some(wanted) = news else { return Ok(()) };
        self.backend.retain_listeners(|listener| wanted.contains(listener));
        for listener in wanted.iter().filter(|listener| !self.listeners.contains(listener)) {
            self.backend.listen(listener.clone())?;
        }
        self.listeners = wanted;
        Ok(())
    }
}

/// What the worker is told about a new connection.
fn start_of(info: &ConnInfo) -> ConnectionStart {
    ConnectionStart {
        conn: ConnId { slot: 0, generation: 0 },
        addr: shown(&info.peer),
        laddr: shown(&info.local),
        fd: info.fd,
        unix: matches!(info.peer, PeerAddr::Unix(_)),
        protocol: ListenerKind::of_listener(info.listener).protocol,
        certificate: None,
        user: None,
        transport_bytes: 0,
    }
}

fn names_of(peer: PeerCertificate) -> Box<CertificateNames> {
    let PeerCertificate { common_name, uris } = peer;
    Box::new(CertificateNames { common_name, uris })
}

/// Why a connection beyond `maxclients` is refused.
pub(crate) const TOO_MANY_CLIENTS: &str = "ERR max number of clients reached";

/// Why a connection is refused, if so; the refusal is counted.
fn refusal(node: &Shared, info: &ConnInfo) -> Option<&'static str> {
    let settings = &node.settings;
    let refusal = if node.clients.count() >= settings.maxclients() {
        TOO_MANY_CLIENTS
    } else if let PeerAddr::Tcp(peer) = &info.peer
        && settings.protected_mode()
        && !peer.ip().to_canonical().is_loopback()
        && node.accounts.users().default_user().needs_no_password()
    {
        "DENIED Ladon runs in protected mode: no password is set, so it serves clients of this \
         machine only. Set 'requirepass', or 'protected-mode no' if every network that reaches it \
         is trusted."
    } else {
        return None;
    };
    node.rejected_connections.fetch_add(1, Relaxed);
    Some(refusal)
}

fn shown(address: &PeerAddr) -> String {
    match address {
        // Redis shows a unix client as the path and port zero.
        PeerAddr::Unix(path) => format!("{}:0", path.display()),
        PeerAddr::Tcp(address) => address.to_string(),
    }
}
