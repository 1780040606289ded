//! The thread of the handshakes: it accepts on the TLS listeners, and gives away sockets whose
//! handshake is done.
//!
//! A handshake costs some hundred microseconds of cryptography. So they run here, at low priority,
//! and no more of them begin in a second than the setting allows. Half-open ones are bounded in
//! number and in time; when there are too many, those go first that have sent nothing.

use crate::config::Config;
use crate::handshake::{Handshake, HandshakeError};
use crate::records::RecordError;
use crate::session::Session;
use arc_swap::ArcSwap;
use ladon_net::{
    Backend as _, CloseReason, ConnId, ConnInfo, Listener, MioBackend, Outgoing, Sink, Waker,
};
use ladon_platform::{Clock as _, Seldom, SystemClock, seldom};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Connections whose handshake is not done, at most. Each has a descriptor.
pub const HALF_OPEN_MAX: usize = 1024;

/// How long a peer may take to begin its handshake, and then to end it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of a peer that may wait for this thread; a read of the backend and more than a handshake
/// needs.
const WAITING_BYTES_MAX: usize = 96 << 10;

/// Steps between two looks at the sockets, so that answers are noticed soon.
const STEPS_PER_TURN: usize = 8;

/// Handshakes that may begin at once after a pause, as a part of a second's.
const BURST_PER_SECOND: f64 = 0.05;

/// What may change while the thread runs.
pub struct Control {
    config: ArcSwap<rustls::ServerConfig>,
    per_second: AtomicU32,
}

impl Control {
    /// `per_second` handshakes may begin in a second.
    pub fn new(config: Config, per_second: u32) -> Control {
        Control { config: ArcSwap::new(config), per_second: per_second.into() }
    }

    /// For handshakes that begin from now on; established connections keep theirs.
    pub fn replace(&self, config: Config) {
        self.config.store(config);
    }

    /// Changes how many may begin in a second.
    pub fn set_per_second(&self, per_second: u32) {
        self.per_second.store(per_second, Relaxed);
    }
}

/// A connection whose handshake is done.
pub struct Established {
    /// The connection.
    pub socket: OwnedFd,
    /// What was known when it was accepted.
    pub info: ConnInfo,
    /// Its keys.
    pub session: Session,
}

/// A connection whose handshake is not done.
struct HalfOpen {
    conn: ConnId,
    info: ConnInfo,
    /// Bytes that the handshake has not seen.
    bytes: Vec<u8>,
    /// Once it has begun.
    handshake: Option<Box<Handshake>>,
    /// It is in a queue.
    is_queued: bool,
    /// What has to be sent after what is on its way.
    out: Vec<u8>,
    is_sending: bool,
    ends: Option<End>,
    deadline: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Established,
    Failed,
}

/// Connections by the slots of the backend, and the queues that they are in.
#[derive(Default)]
struct Table {
    by_slot: Vec<Option<Box<HalfOpen>>>,
    count: usize,
    /// Have sent something for the first time.
    to_begin: VecDeque<ConnId>,
    /// Have answered.
    to_go_on: VecDeque<ConnId>,
    /// What they were sent has left.
    sent: Vec<ConnId>,
    /// Deadlines, in their order, of those that have sent nothing, and of the others. Connections
    /// that are gone stay until their deadline.
    silent: VecDeque<(Instant, ConnId)>,
    begun: VecDeque<(Instant, ConnId)>,
    accepted: Vec<(OwnedFd, ConnInfo)>,
}

impl Table {
    fn get(&mut self, conn: ConnId) -> Option<&mut HalfOpen> {
        let half_open = self.by_slot.get_mut(conn.slot as usize)?.as_deref_mut()?;
        // The slot may have another user by now.
        if half_open.conn == conn { Some(half_open) } else { None }
    }

    fn insert(&mut self, conn: ConnId, info: ConnInfo) {
        let slot = conn.slot as usize;
        if self.by_slot.len() <= slot {
            self.by_slot.resize_with(slot + 1, || None);
        }
        let deadline = Instant::now() + PATIENCE;
        self.by_slot[slot] = Some(Box::new(HalfOpen {
            conn,
            info,
            bytes: Vec::new(),
            handshake: None,
            is_queued: false,
            out: Vec::new(),
            is_sending: false,
            ends: None,
            deadline,
        }));
        self.count += 1;
        self.silent.push_back((deadline, conn));
    }

    fn remove(&mut self, conn: ConnId) -> Option<Box<HalfOpen>> {
        let removed = self.by_slot.get_mut(conn.slot as usize)?.take();
        self.count -= usize::from(removed.is_some());
        removed
    }
}

impl Sink for Table {
    fn incoming(&mut self, socket: OwnedFd, info: ConnInfo) {
        self.accepted.push((socket, info));
    }

    fn received(&mut self, conn: ConnId, bytes: &[u8]) {
        let Some(half_open) = self.get(conn) else { return };
        if half_open.ends == Some(End::Failed) {
            return;
        }
        if half_open.bytes.len() + bytes.len() > WAITING_BYTES_MAX {
            half_open.ends = Some(End::Failed);
            self.sent.push(conn);
            return;
        }
        if half_open.ends.is_some() {
            half_open.bytes.extend_from_slice(bytes);
            return;
        }
        let begins = half_open.handshake.is_none();
        let is_first = begins && half_open.bytes.is_empty() && !half_open.is_queued;
        half_open.bytes.extend_from_slice(bytes);
        if std::mem::replace(&mut half_open.is_queued, true) {
            return;
        }
        if is_first {
            let deadline = Instant::now() + PATIENCE;
            half_open.deadline = deadline;
            self.begun.push_back((deadline, conn));
        }
        match begins {
            true => self.to_begin.push_back(conn),
            false => self.to_go_on.push_back(conn),
        }
    }

    fn sent(&mut self, conn: ConnId, _buffer: Outgoing) {
        if let Some(half_open) = self.get(conn) {
            half_open.is_sending = false;
            self.sent.push(conn);
        }
    }

    fn closed(&mut self, conn: ConnId, _reason: CloseReason) {
        self.remove(conn);
    }
}

/// Says in the server's log why a client was not let in.
#[cold]
fn tell_of_refusal(info: &ConnInfo, why: &str) {
    /// Thousands may be refused for the same.
    static SELDOM: Seldom = Seldom::new(20, Duration::from_secs(10));
    if let Some(left_out) = SELDOM.may_say(SystemClock.unix_ms()) {
        tracing::warn!(
            "closing the TLS connection of {} before its handshake is done: {why}{}",
            info.peer,
            seldom::left_out(left_out)
        );
    }
}

/// All handshakes.
pub struct Handshakes {
    backend: MioBackend,
    control: std::sync::Arc<Control>,
    table: Table,
    listeners: Vec<Listener>,
    /// How many handshakes may begin now, and when that was counted.
    allowed: f64,
    counted_at: Instant,
}

impl Handshakes {
    /// Opens the poller; nobody is accepted yet.
    ///
    /// # Errors
    /// The kernel's: no descriptors left, for example.
    pub fn new(control: std::sync::Arc<Control>) -> io::Result<Handshakes> {
        Ok(Handshakes {
            backend: MioBackend::new()?,
            control,
            table: Table::default(),
            listeners: Vec::new(),
            allowed: 1.0,
            counted_at: Instant::now(),
        })
    }

    /// Ends the wait of [`Handshakes::turn`].
    pub fn waker(&self) -> Waker {
        self.backend.waker()
    }

    /// Accepts on these listeners only.
    ///
    /// # Errors
    /// When a socket cannot be watched.
    pub fn listen(&mut self, wanted: Vec<Listener>) -> io::Result<()> {
        self.backend.retain_listeners(|listener| wanted.contains(listener));
        for listener in wanted.iter().filter(|listener| !self.listeners.contains(listener)) {
            self.backend.listen(listener.clone())?;
        }
        self.listeners = wanted;
        Ok(())
    }

    /// Waits until something happens, goes on with handshakes, and gives away what is established.
    ///
    /// # Errors
    /// When the poller as a whole cannot continue.
    pub fn turn(&mut self, give: &mut dyn FnMut(Established)) -> io::Result<()> {
        let timeout = self.timeout();
        self.backend.poll(&mut self.table, timeout)?;
        for (socket, info) in std::mem::take(&mut self.table.accepted) {
            self.make_room();
            let conn = self.backend.adopt(socket);
            self.table.insert(conn, info);
        }
        for conn in std::mem::take(&mut self.table.sent) {
            self.settle(conn, give);
        }
        self.work(give);
        self.expire();
        Ok(())
    }

    fn timeout(&mut self) -> Option<Duration> {
        if !self.table.to_go_on.is_empty() {
            return Some(Duration::ZERO);
        }
        let now = Instant::now();
        let fronts = [self.table.silent.front(), self.table.begun.front()];
        let deadline = fronts.into_iter().flatten().map(|(at, _)| *at).min();
        let until = deadline.map(|at| at.saturating_duration_since(now));
        if self.table.to_begin.is_empty() {
            return until;
        }
        self.count_allowed();
        let missing = (1.0 - self.allowed).max(0.0);
        let per_second = f64::from(self.control.per_second.load(Relaxed).max(1));
        let soon = Duration::from_secs_f64(missing / per_second);
        Some(until.map_or(soon, |until| until.min(soon)))
    }

    fn count_allowed(&mut self) {
        let per_second = f64::from(self.control.per_second.load(Relaxed).max(1));
        let now = Instant::now();
        let passed = now.duration_since(self.counted_at).as_secs_f64();
        self.counted_at = now;
        let most = (per_second * BURST_PER_SECOND).max(1.0);
        self.allowed = (self.allowed + passed * per_second).min(most);
    }

    fn work(&mut self, give: &mut dyn FnMut(Established)) {
        self.count_allowed();
        for _ in 0..STEPS_PER_TURN {
            if let Some(conn) = self.table.to_go_on.pop_front() {
                self.advance(conn, give);
                continue;
            }
            if self.allowed < 1.0 {
                return;
            }
            let Some(conn) = self.table.to_begin.pop_front() else { return };
            if self.advance(conn, give) {
                self.allowed -= 1.0;
            }
        }
    }

    /// Goes on with a handshake. Returns whether there was one to go on with.
    fn advance(&mut self, conn: ConnId, give: &mut dyn FnMut(Established)) -> bool {
        let Some(half_open) = self.table.get(conn) else { return false };
        half_open.is_queued = false;
        if half_open.ends.is_some() {
            return false;
        }
        let bytes = std::mem::take(&mut half_open.bytes);
        let mut out = Vec::new();
        let result = match &mut half_open.handshake {
            Some(handshake) => handshake.advance(&bytes, &mut out),
            begins => match Handshake::new(self.control.config.load_full()) {
                Ok(handshake) => begins.insert(Box::new(handshake)).advance(&bytes, &mut out),
                Err(error) => Err(error),
            },
        };
        match result {
            Ok(false) => {}
            Ok(true) => half_open.ends = Some(End::Established),
            Err(error) => {
                half_open.ends = Some(End::Failed);
                let hint = match error {
                    HandshakeError::Record(RecordError::NotTls) => {
                        "; clients without TLS have another port"
                    }
                    _ => "",
                };
                tell_of_refusal(&half_open.info, &format!("{error}{hint}"));
            }
        }
        half_open.out.extend_from_slice(&out);
        self.settle(conn, give);
        true
    }

    /// Sends what is to be sent; if that is done, ends what has ended.
    fn settle(&mut self, conn: ConnId, give: &mut dyn FnMut(Established)) {
        let Some(half_open) = self.table.get(conn) else { return };
        if half_open.is_sending {
            return;
        }
        if !half_open.out.is_empty() {
            half_open.is_sending = true;
            self.backend.send(conn, std::mem::take(&mut half_open.out));
            return;
        }
        match half_open.ends {
            None => {}
            Some(End::Failed) => self.backend.close(conn),
            Some(End::Established) => {
                let Some(socket) = self.backend.release(conn) else { return };
                let Some(half_open) = self.table.remove(conn) else { return };
                let Some(handshake) = half_open.handshake else { return };
                let mut session = handshake.finish();
                // It has sent on while its last answers were on their way.
                session.incoming.extend_from_slice(&half_open.bytes);
                give(Established { socket, info: half_open.info, session });
            }
        }
    }

    /// Closes the oldest connection if there are too many: one that has sent nothing, if there is
    /// one.
    fn make_room(&mut self) {
        while self.table.count >= HALF_OPEN_MAX {
            let oldest = self.table.silent.pop_front();
            let Some((at, conn)) = oldest.or_else(|| self.table.begun.pop_front()) else { return };
            if let Some(half_open) = self.table.get(conn)
                && half_open.deadline == at
            {
                tell_of_refusal(&half_open.info, "there are too many others that wait as well");
                self.drop_connection(conn);
            }
        }
    }

    /// Closes the connections whose time is up.
    fn expire(&mut self) {
        let now = Instant::now();
        let is_over = |front: Option<&(Instant, ConnId)>| front.is_some_and(|(at, _)| *at <= now);
        while is_over(self.table.silent.front()) {
            let Some((at, conn)) = self.table.silent.pop_front() else { return };
            self.expire_one(at, conn);
        }
        while is_over(self.table.begun.front()) {
            let Some((at, conn)) = self.table.begun.pop_front() else { return };
            self.expire_one(at, conn);
        }
    }

    fn expire_one(&mut self, at: Instant, conn: ConnId) {
        let Some(half_open) = self.table.get(conn) else { return };
        if half_open.deadline != at {
            return;
        }
        if half_open.is_queued {
            // It waits for this thread, not this thread for it.
            half_open.deadline = Instant::now() + PATIENCE;
            let deadline = half_open.deadline;
            self.table.begun.push_back((deadline, conn));
            return;
        }
        let why = match half_open.handshake {
            None => "it has sent nothing for ten seconds",
            Some(_) => "its handshake took more than ten seconds",
        };
        tell_of_refusal(&half_open.info, why);
        self.drop_connection(conn);
    }

    /// Closes a connection at once: with its descriptor it makes room for another.
    fn drop_connection(&mut self, conn: ConnId) {
        self.table.remove(conn);
        drop(self.backend.release(conn));
    }
}
