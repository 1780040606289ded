//! What the tests share: a backend under watch.

#![allow(dead_code, reason = "the binaries of single tests use a part")]

use ladon_net::*;
use std::collections::{HashMap, HashSet};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Long enough for a busy machine; a test that waits so long has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Opens the backend, or says loudly why its tests do not run here.
pub fn open(choice: BackendChoice) -> Option<AnyBackend> {
    match AnyBackend::new(choice) {
        Ok((backend, None)) => Some(backend),
        Err(error) if choice == BackendChoice::IoUring => {
            eprintln!("\n*** NOT TESTED: {error} ***\n");
            None
        }
        other => panic!("{:?}", other.err()),
    }
}

/// Keeps what was reported, and fails on a report that breaks the contract.
#[derive(Default)]
pub struct Recorder {
    pub incoming: Vec<(OwnedFd, ConnInfo)>,
    pub live: HashSet<ConnId>,
    pub received: HashMap<ConnId, Vec<u8>>,
    pub ended: HashSet<ConnId>,
    pub sent: Vec<(ConnId, Outgoing)>,
    pub closed: HashMap<ConnId, CloseReason>,
    pub keep_sending: bool,
}

impl Sink for Recorder {
    fn incoming(&mut self, socket: OwnedFd, info: ConnInfo) {
        self.incoming.push((socket, info));
    }

    fn received(&mut self, conn: ConnId, bytes: &[u8]) {
        assert!(!bytes.is_empty());
        assert!(self.live.contains(&conn), "received after the end");
        assert!(!self.ended.contains(&conn), "received after the end of input");
        self.received.entry(conn).or_default().extend_from_slice(bytes);
    }

    fn input_ended(&mut self, conn: ConnId) -> AfterInput {
        assert!(self.live.contains(&conn) && self.ended.insert(conn));
        if self.keep_sending { AfterInput::KeepSending } else { AfterInput::Close }
    }

    fn sent(&mut self, conn: ConnId, buffer: Outgoing) {
        assert!(self.live.contains(&conn), "sent after the end");
        self.sent.push((conn, buffer));
    }

    fn closed(&mut self, conn: ConnId, reason: CloseReason) {
        assert!(self.live.remove(&conn), "closed twice, or never adopted");
        assert!(self.closed.insert(conn, reason).is_none());
    }
}

pub struct Rig {
    pub backend: AnyBackend,
    pub seen: Recorder,
}

impl Rig {
    pub fn new(backend: AnyBackend) -> Rig {
        Rig { backend, seen: Recorder::default() }
    }

    /// Listens on a free port of the loopback.
    pub fn listen(&mut self) -> SocketAddr {
        let any = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
        let listener = Listener::bind(&any, &ListenOptions::default(), 0).expect("bind");
        let address = tcp(listener.local());
        self.backend.listen(listener).expect("listen");
        address
    }

    pub fn adopt(&mut self, socket: OwnedFd) -> ConnId {
        let conn = self.backend.adopt(socket);
        assert!(!self.seen.live.iter().any(|other| other.slot == conn.slot), "slot still in use");
        assert!(self.seen.live.insert(conn));
        conn
    }

    /// A TCP connection: our side adopted, the peer's side returned.
    pub fn connect(&mut self, address: SocketAddr) -> (ConnId, TcpStream) {
        let peer = TcpStream::connect(address).expect("connect");
        self.until("a connection comes in", |seen| !seen.incoming.is_empty());
        let (socket, info) = self.seen.incoming.remove(0);
        assert_eq!(tcp(&info.peer), peer.local_addr().expect("address"));
        (self.adopt(socket), peer)
    }

    pub fn poll(&mut self, timeout: Duration) {
        self.backend.poll(&mut self.seen, Some(timeout)).expect("poll");
    }

    pub fn until(&mut self, what: &str, done: impl Fn(&Recorder) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !done(&self.seen) {
            assert!(
                Instant::now() < deadline,
                "waited in vain until {what}; {} came in, {} received, {} sent, {} closed",
                self.seen.incoming.len(),
                self.seen.received.len(),
                self.seen.sent.len(),
                self.seen.closed.len(),
            );
            self.poll(Duration::from_millis(50));
        }
    }

    /// Sends back what was received, until `done`.
    pub fn echo_until(&mut self, what: &str, done: impl Fn(&Recorder) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut sending = HashSet::new();
        while !done(&self.seen) {
            assert!(Instant::now() < deadline, "waited in vain until {what}");
            for (socket, _) in std::mem::take(&mut self.seen.incoming) {
                self.adopt(socket);
            }
            for (conn, _) in self.seen.sent.drain(..) {
                sending.remove(&conn);
            }
            for (conn, bytes) in &mut self.seen.received {
                if !bytes.is_empty() && sending.insert(*conn) {
                    // More may come while this one is under way, so it is not the last.
                    self.backend.send(*conn, std::mem::take(bytes));
                }
            }
            self.poll(Duration::from_millis(50));
        }
    }
}

pub fn tcp(address: &PeerAddr) -> SocketAddr {
    match address {
        PeerAddr::Tcp(address) => *address,
        PeerAddr::Unix(path) => panic!("{} is no TCP address", path.display()),
    }
}

/// Bytes that tell their own position.
pub fn pattern(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}
