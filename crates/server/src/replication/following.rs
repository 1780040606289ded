//! Whom this server follows, and the thread that does it, for as long as the server runs.

use super::failover::Handover;
use super::link::{Link, LinkError, own_port};
use super::place::FollowedData;
use ladon_kernel::replication::Place;
use ladon_kernel::role::Role;
use ladon_kernel::upstream::{FailoverOrder, FailoverState, LinkState, Upstream, UpstreamView};
use ladon_record::Lsn;
use ladon_settings::{Id, Primary, Settings};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long `REPLICAOF` may take.
const ORDER_TIME: Duration = Duration::from_secs(15);
/// After a break, the next attempt is made after so long,
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// or, if only the position is to be asked for, after so long,
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// and after so long at most when all data was to come, again and again.
const SYNC_RETRY_AFTER_MAX: Duration = Duration::from_secs(32);

/// How the thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was told to.
    Stopped,
    /// Another server's data is here, and takes the place of this one's.
    Replaced,
}

/// What is wanted, as of one moment.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) place: Option<Place>,
    pub(super) number: u64,
    /// The other server is a replica that takes over first; also if it lacks something (`true`).
    pub(super) hands_over: Option<bool>,
}

/// Whom this server follows.
pub(crate) struct Following {
    settings: Arc<Settings>,
    run_id: String,
    pub(super) this: Weak<Following>,
    pub(super) inner: Mutex<Inner>,
    changed: Condvar,
}

pub(super) struct Inner {
    pub(super) wanted: Wanted,
    /// A failover that is under way, and how many there were.
    pub(super) handover: Option<Handover>,
    pub(super) handovers: u64,
    data: Weak<FollowedData>,
    /// The number of what was wanted and is so.
    done: u64,
    /// Why it is not.
    refused: Option<String>,
    /// Ends the thread.
    stop: bool,
    /// Starts the thread, while there is data and no thread.
    start: Option<Box<dyn FnOnce() + Send>>,
    socket: Option<TcpStream>,
    view: UpstreamView,
    heard: Option<Instant>,
    down: Instant,
}

impl Following {
    /// As the settings say.
    pub(crate) fn new(settings: Arc<Settings>, run_id: String) -> Arc<Following> {
        let primary = Primary::of(&settings.replicaof());
        let place = primary.map(|Primary { host, port }| Place { host, port });
        let view =
            UpstreamView { primary: place.clone().unwrap_or_default(), ..Default::default() };
        let wanted = Wanted { place, number: 1, hands_over: None };
        let inner = Inner {
            wanted,
            handover: None,
            handovers: 0,
            data: Weak::new(),
            done: 0,
            refused: None,
            stop: false,
            start: None,
            socket: None,
            view,
            heard: None,
            down: Instant::now(),
        };
        let (inner, changed) = (Mutex::new(inner), Condvar::new());
        Arc::new_cyclic(|this| {
            let this = Weak::clone(this);
            Following { settings, run_id, this, inner, changed }
        })
    }

    /// Whether the server is to follow another one.
    pub(crate) fn is_wanted(&self) -> bool {
        self.inner.lock().wanted.place.is_some()
    }

    /// There is data. Calls `start`, now or once the server is to follow another one.
    pub(crate) fn may_start(
        &self,
        data: &Arc<FollowedData>,
        start: impl FnOnce() + Send + 'static,
    ) {
        let mut inner = self.inner.lock();
        inner.stop = false;
        inner.data = Arc::downgrade(data);
        match inner.wanted.place {
            Some(_) => start(),
            None => inner.start = Some(Box::new(start)),
        }
    }

    /// Starts the thread. Calls `then` when it ends by itself.
    ///
    /// # Errors
    /// The system has none.
    pub(crate) fn begin(
        self: &Arc<Self>,
        data: Arc<FollowedData>,
        then: impl FnOnce(Ended) + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let following = Arc::clone(self);
        let thread = std::thread::Builder::new().name("ladon-replica".to_owned());
        thread.spawn(move || then(following.run(&data)))
    }

    /// Tells the thread to end.
    pub(crate) fn stop(&self) {
        let mut inner = self.inner.lock();
        inner.stop = true;
        inner.start = None;
        if let (Some(_), Some(data)) = (inner.handover.take(), inner.data.upgrade()) {
            data.shared().unpause();
        }
        self.interrupt(&mut inner);
    }

    /// The server's data, once there is some.
    pub(super) fn data(&self) -> Option<Arc<FollowedData>> {
        self.inner.lock().data.upgrade()
    }

    fn interrupt(&self, inner: &mut Inner) {
        if let Some(socket) = inner.socket.take() {
            // It may be closed.
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.changed.notify_all();
    }

    fn run(&self, data: &FollowedData) -> Ended {
        let (mut pause, mut of) = (RETRY_AFTER, 0);
        loop {
            let wanted = {
                let inner = self.inner.lock();
                if inner.stop {
                    return Ended::Stopped;
                }
                inner.wanted.clone()
            };
            // What broke before was something else.
            if of != wanted.number {
                (pause, of) = (RETRY_AFTER, wanted.number);
            }
            let Some(place) = &wanted.place else {
                let written = if data.follows() { data.write() } else { Ok(()) };
                if written.is_ok() {
                    tracing::info!("this server follows nobody any more, and takes writes");
                }
                self.has_done(&wanted, written);
                self.await_change(&wanted, Duration::MAX);
                continue;
            };
            let follows = if data.follows() { Ok(()) } else { data.follow() };
            let is_so = follows.is_ok();
            self.has_done(&wanted, follows);
            if !is_so {
                self.await_change(&wanted, RETRY_AFTER);
                continue;
            }
            match self.attempt(data, &wanted, place) {
                Ok(()) => {
                    self.inner.lock().view.full_syncs += 1;
                    return Ended::Replaced;
                }
                Err(LinkError::NoTakeover { said }) => self.leads_on(&wanted, data, &said),
                Err(error) => {
                    let was_sync = self.broke(data, &error);
                    pause = match was_sync {
                        true => (pause * 2).min(SYNC_RETRY_AFTER_MAX),
                        false => RETRY_AFTER,
                    };
                    self.await_change(&wanted, pause);
                }
            }
        }
    }

    fn attempt(
        &self,
        data: &FollowedData,
        wanted: &Wanted,
        place: &Place,
    ) -> Result<(), LinkError> {
        self.show_old(data);
        {
            let mut inner = self.inner.lock();
            inner.view.state = LinkState::Connecting;
            inner.view.received = data.log().reserved();
            inner.view.applied = data.applied();
        }
        let mut link = Link::connect(self, data, wanted, place)?;
        if let Some(force) = wanted.hands_over {
            link.hand_over(force)?;
            self.has_handed_over(wanted, data);
        }
        loop {
            match link.run() {
                Err(error) if error.is_resync() => {
                    tracing::info!("asks for its position again: {error}");
                    self.await_change(wanted, ASK_AGAIN_AFTER);
                }
                other => return other,
            }
        }
    }

    /// Notes why the link is down. Returns whether all data was to come.
    fn broke(&self, data: &FollowedData, error: &LinkError) -> bool {
        let was_sync = {
            let mut inner = self.inner.lock();
            inner.socket = None;
            let before = std::mem::replace(&mut inner.view.state, LinkState::Connect);
            if before == LinkState::Connected {
                inner.down = Instant::now();
            }
            let text = error.to_string();
            let is_news = inner.view.error.as_ref() != Some(&text);
            if is_news && !matches!(error, LinkError::Changed) {
                tracing::warn!("{text}; tries again");
                inner.view.error = Some(text);
            }
            before == LinkState::Sync
        };
        self.show_old(data);
        was_sync
    }

    /// While the link is down, clients see what is here, or nothing.
    fn show_old(&self, data: &FollowedData) {
        let shows = self.settings.replica_serve_stale_data();
        data.take_role(if shows { Role::Follows } else { Role::Stale });
    }

    fn has_done(&self, wanted: &Wanted, outcome: io::Result<()>) {
        let mut inner = self.inner.lock();
        inner.done = inner.done.max(wanted.number);
        inner.refused = outcome.err().map(|error| {
            tracing::error!("the server's part in replication stays as it is: {error}");
            error.to_string()
        });
        self.changed.notify_all();
    }

    /// Sleeps, unless something else is wanted.
    fn await_change(&self, wanted: &Wanted, most: Duration) {
        let mut inner = self.inner.lock();
        let until = Instant::now().checked_add(most);
        while !inner.stop && inner.wanted.number == wanted.number {
            match until {
                None => self.changed.wait(&mut inner),
                Some(until) => {
                    if self.changed.wait_until(&mut inner, until).timed_out() {
                        return;
                    }
                }
            }
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What tells this process from others, and where it is reached.
    pub(super) fn own_name(&self) -> (String, String, u16) {
        let host = match self.settings.replica_announce_ip() {
            host if host.is_empty() => "-".to_owned(),
            host => host,
        };
        let port = match self.settings.replica_announce_port() {
            0 => own_port(&self.settings),
            port => port,
        };
        (self.run_id.clone(), host, port)
    }

    /// What is wanted now.
    #[cfg(test)]
    pub(super) fn wanted(&self) -> Wanted {
        self.inner.lock().wanted.clone()
    }

    pub(super) fn still_wants(&self, wanted: &Wanted) -> bool {
        let inner = self.inner.lock();
        !inner.stop && inner.wanted.number == wanted.number
    }

    /// The connection may be ended by this socket.
    pub(super) fn may_interrupt(
        &self,
        wanted: &Wanted,
        socket: TcpStream,
    ) -> Result<(), LinkError> {
        let mut inner = self.inner.lock();
        if inner.stop || inner.wanted.number != wanted.number {
            return Err(LinkError::Changed);
        }
        inner.socket = Some(socket);
        Ok(())
    }

    /// Something came.
    pub(super) fn heard(&self) {
        self.inner.lock().heard = Some(Instant::now());
    }

    pub(super) fn tell(&self, state: LinkState) {
        let mut inner = self.inner.lock();
        inner.view.state = state;
        if state == LinkState::Connected {
            inner.view.error = None;
        }
    }

    pub(super) fn tell_sync(&self, done: u64, total: u64) {
        self.inner.lock().view.sync = (done, total);
    }

    pub(super) fn tell_received(&self, received: Lsn, applied: Lsn) {
        let mut inner = self.inner.lock();
        (inner.view.received, inner.view.applied) = (received, applied);
    }

    /// Waits until what is wanted is so.
    fn await_done(&self, mut inner: MutexGuard<'_, Inner>, number: u64) -> Result<(), String> {
        let deadline = Instant::now() + ORDER_TIME;
        while inner.done < number {
            if self.changed.wait_until(&mut inner, deadline).timed_out() {
                let seconds = ORDER_TIME.as_secs();
                return Err(format!("it is not done after {seconds} s, and will still be"));
            }
        }
        match &inner.refused {
            Some(why) if inner.done == number => Err(why.clone()),
            _ => Ok(()),
        }
    }
}

impl Following {
    /// Follows another one from now on, or nobody, and waits until that is so.
    pub(super) fn change(&self, primary: Option<Place>) -> Result<(), String> {
        let mut inner = self.inner.lock();
        if inner.wanted.place == primary && inner.refused.is_none() {
            return Ok(());
        }
        self.want(&mut inner, primary, None)?;
        let number = inner.wanted.number;
        self.await_done(inner, number)
    }

    /// Notes what is wanted, for the thread.
    pub(super) fn want(
        &self,
        inner: &mut Inner,
        primary: Option<Place>,
        hands_over: Option<bool>,
    ) -> Result<(), String> {
        let text = primary.as_ref().map(|place| format!("{} {}", place.host, place.port));
        self.settings.note(Id::replicaof, &text.unwrap_or_default())?;
        inner.view.primary = primary.clone().unwrap_or_default();
        inner.view.error = None;
        (inner.heard, inner.down) = (None, Instant::now());
        inner.wanted = Wanted { place: primary, number: inner.wanted.number + 1, hands_over };
        self.interrupt(inner);
        if let Some(start) = inner.start.take() {
            start();
        }
        Ok(())
    }
}

impl Upstream for Following {
    fn view(&self) -> Option<UpstreamView> {
        let inner = self.inner.lock();
        inner.wanted.place.as_ref()?;
        let is_up = inner.view.state == LinkState::Connected;
        Some(UpstreamView {
            heard: inner.heard.map(|at| at.elapsed()),
            down: (!is_up).then(|| inner.down.elapsed()),
            ..inner.view.clone()
        })
    }

    fn follow(&self, primary: Option<Place>) -> Result<(), String> {
        if self.inner.lock().handover.is_some() {
            return Err("REPLICAOF not allowed while failing over.".to_owned());
        }
        self.change(primary)
    }

    fn fail_over(&self, order: FailoverOrder) -> Result<(), String> {
        self.begin_failover(order)
    }

    fn abort_failover(&self) -> Result<(), String> {
        self.stop_failover()
    }

    fn failover_state(&self) -> FailoverState {
        self.inner.lock().handover.as_ref().map_or(FailoverState::No, Handover::state)
    }

    fn take_over(&self, run: &str, end: Lsn, force: bool) -> Result<(), String> {
        self.take_over_from(run, end, force)
    }
}
