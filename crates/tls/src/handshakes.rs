//! The thread of the handshakes: it accepts on the TLS listeners, and gives away sockets whose
//! handshake is done.
//!
//! A handshake costs some hundred microseconds of cryptography. So they run here, at low priority,
//! and no more of them begin in a second than the setting allows. Half-open ones are bounded in
//! number and in time; when there are too many, those go first that have sent nothing, of the
//! addresses that have the most.

use crate::config::Config;
pub use crate::half_open::HALF_OPEN_MAX;
use crate::half_open::{End, PATIENCE, Table, tell_of_refusal};
use crate::handshake::{Handshake, HandshakeError};
use crate::rate::Rate;
use crate::records::RecordError;
use crate::session::Session;
use crate::sources::Source;
use arc_swap::ArcSwap;
use ladon_net::{Backend as _, ConnId, ConnInfo, Listener, MioBackend, Waker};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Steps between two looks at the sockets, so that answers are noticed soon.
const STEPS_PER_TURN: usize = 8;

/// Connections that may be accepted for each handshake that may begin: one that sends nothing costs
/// only an accept and a close, and clients wait behind it.
const ACCEPTS_PER_HANDSHAKE: f64 = 16.0;

/// How long the listeners rest when no more may be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(5);

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

/// All handshakes.
pub struct Handshakes {
    backend: MioBackend,
    control: std::sync::Arc<Control>,
    table: Table,
    listeners: Vec<Listener>,
    /// Handshakes that may begin now.
    begins: Rate,
    /// Connections that may be accepted now.
    accepts: Rate,
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
            begins: Rate::new(),
            accepts: Rate::new(),
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
        self.accepts.count(self.per_second() * ACCEPTS_PER_HANDSHAKE);
        // Who waits for this thread is not closed for others; those wait in the kernel's queue.
        let now = Instant::now();
        let most = self.accepts.allowed().min(self.table.room(now));
        self.backend.limit_accepts(most, now + ACCEPT_PAUSE);
        self.backend.poll(&mut self.table, timeout)?;
        for (socket, info) in std::mem::take(&mut self.table.accepted) {
            self.accepts.take();
            let source = Source::of(&info.peer);
            if self.table.sources.is_full(source, HALF_OPEN_MAX) {
                tell_of_refusal(&info, "its address has too many others that do not go on");
                continue;
            }
            if !self.make_room(source) {
                tell_of_refusal(&info, "there are too many others that wait as well");
                continue;
            }
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
        if self.table.sources.to_begin() == 0 {
            return until;
        }
        let per_second = self.per_second();
        self.begins.count(per_second);
        let soon = self.begins.next_in(per_second);
        Some(until.map_or(soon, |until| until.min(soon)))
    }

    fn per_second(&self) -> f64 {
        f64::from(self.control.per_second.load(Relaxed).max(1))
    }

    fn work(&mut self, give: &mut dyn FnMut(Established)) {
        self.begins.count(self.per_second());
        for _ in 0..STEPS_PER_TURN {
            if let Some(conn) = self.table.to_go_on.pop_front() {
                self.advance(conn, give);
                continue;
            }
            if self.begins.allowed() == 0 {
                return;
            }
            let Some(conn) = self.table.sources.pop() else { return };
            if self.advance(conn, give) {
                self.begins.take();
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
        let failed = (half_open.ends == Some(End::Failed)).then_some(half_open.source);
        half_open.out.extend_from_slice(&out);
        if !std::mem::replace(&mut half_open.is_answered, true) {
            self.table.answered.push_back((Instant::now(), conn));
        }
        if let Some(source) = failed {
            self.table.sources.given_up(source);
        }
        self.table.recount(conn);
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
                let Some(source) = self.table.get(conn).map(|half_open| half_open.source) else {
                    return;
                };
                self.table.sources.established(source);
                let Some(half_open) = self.table.remove(conn) else { return };
                let Some(handshake) = half_open.handshake else { return };
                let mut session = handshake.finish();
                // It has sent on while its last answers were on their way.
                session.incoming.extend_from_slice(&half_open.bytes);
                give(Established { socket, info: half_open.info, session });
            }
        }
    }

    /// Closes a connection if there are too many for another of this source. Returns whether there
    /// is room now.
    fn make_room(&mut self, newcomer: Source) -> bool {
        while self.table.count >= HALF_OPEN_MAX {
            let Some(conn) = self.table.one_to_close(newcomer, Instant::now()) else {
                return false;
            };
            if let Some(half_open) = self.table.get(conn) {
                tell_of_refusal(&half_open.info, "there are too many others that wait as well");
                self.drop_connection(conn);
            }
        }
        true
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
        if let Some(source) = self.table.get(conn).map(|half_open| half_open.source) {
            self.table.sources.given_up(source);
        }
        self.table.remove(conn);
        drop(self.backend.release(conn));
    }
}
