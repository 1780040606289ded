//! The servers that follow this one: what each has, and the log that is kept for it.
//!
//! A replica asks for bytes of the log, and says what it has; this is all that is known of it. What it
//! lacks stays in the log's files: up to `replica-log-max`, for an hour if it is gone, and not on a
//! full disk.

use super::log_wait::LogWait;
use super::planted::Planted;
use super::runs::Runs;
use ladon_kernel::message::Message;
use ladon_kernel::replication::Place;
use ladon_kernel::shared::Shared;
use ladon_kernel::upstream::{
    FramesError, FramesWanted, Position, ReplicaName, ReplicaView, Replicas,
};
use ladon_log::{Log, LogBytes, PinGuard};
use ladon_platform::Clock;
use ladon_record::{Gate, Lsn};
use ladon_settings::Settings;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Each has log that is kept for it, and a thread while it waits.
const REPLICAS_MAX: usize = 64;
/// For one that is gone, log is kept for so long.
const GONE_NS_MAX: u64 = 3600 * 1_000_000_000;
/// At the gates that need a sync, how often replicas ask for one that no client has asked for.
const SYNC_EVERY: Duration = Duration::from_millis(5);
/// Bytes that one answer has at most.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// An answer costs as much as some requests do, so the next one comes the later the more this one has:
/// at once for a record of a hundred bytes; under load, with the records of about
const PAUSE_NS_MAX: u64 = 1_000_000;
const PAUSE_NS_PER_BYTE: u64 = 250;

/// The replicas of a server's data.
pub(crate) struct ReadReplicas {
    log: Arc<Log>,
    settings: Arc<Settings>,
    clock: Arc<dyn Clock>,
    /// Not set where there can be no replicas.
    shared: OnceLock<Arc<Shared>>,
    inner: Mutex<Inner>,
    /// When a sync was last asked for, in monotonic nanoseconds.
    asked_ns: AtomicU64,
    pub(super) planted: Planted,
}

#[derive(Default)]
struct Inner {
    runs: Runs,
    /// By the identity of their processes.
    known: BTreeMap<String, Known>,
}

struct Known {
    place: Place,
    client: u64,
    /// On its disk; `None` until it follows.
    durable: Option<Lsn>,
    heard_ns: u64,
    pin: Option<(Lsn, PinGuard)>,
    /// Not here while it is read from.
    bytes: Option<LogBytes>,
    /// It gets no bytes before.
    pause_until_ns: u64,
}

impl Inner {
    fn of_client(&mut self, client: u64) -> Option<&mut Known> {
        self.known.values_mut().find(|known| known.client == client)
    }
}

impl ReadReplicas {
    pub(crate) fn new(
        log: Arc<Log>,
        settings: Arc<Settings>,
        clock: Arc<dyn Clock>,
    ) -> ReadReplicas {
        let (shared, inner) = (OnceLock::new(), Mutex::default());
        let (asked_ns, planted) = (AtomicU64::new(0), Planted::Nothing);
        ReadReplicas { log, settings, clock, shared, inner, asked_ns, planted }
    }

    /// From now on there may be replicas.
    pub(crate) fn open(&self, shared: Arc<Shared>, runs: Runs) {
        self.set_runs(&shared, runs);
        // The data belongs to one server.
        let _ = self.shared.set(shared);
    }

    /// The log is another one from now on: replicas have to ask for their positions.
    pub(crate) fn set_runs(&self, shared: &Shared, runs: Runs) {
        if let Some(last) = runs.last() {
            last.clone_into(&mut shared.replication_id.lock());
        }
        self.inner.lock().runs = runs;
    }

    /// Forgets who has been gone for long, and those for whom too much log would be kept. To be called
    /// about once a second.
    pub(crate) fn look(&self) {
        let Some(shared) = self.shared.get() else { return };
        let (now_ns, end) = (self.clock.monotonic_ns(), self.log.reserved());
        let most = self.settings.replica_log_max();
        let silent_ns_max = self.settings.repl_timeout() * 1_000_000_000;
        let inner = &mut *self.inner.lock();
        inner.known.retain(|_, known| {
            is_connected(shared, known) || now_ns.saturating_sub(known.heard_ns) <= GONE_NS_MAX
        });
        for known in inner.known.values_mut() {
            if now_ns.saturating_sub(known.heard_ns) > silent_ns_max {
                give_up(shared, known);
            }
            let behind = known.pin.as_ref().map_or(0, |(from, _)| end.0.saturating_sub(from.0));
            if behind > most {
                known.pin = None;
                let Place { host, port } = &known.place;
                tracing::warn!(
                    "the replica at {host}:{port} lacks {behind} bytes of the log, more than \
                     replica-log-max: no log is kept for it, and it will get all data anew"
                );
            }
        }
        self.tell(shared, inner);
    }

    /// Keeps no log for anybody, because the disk is full.
    pub(crate) fn make_room(&self) {
        let mut inner = self.inner.lock();
        let kept = inner.known.values_mut().filter_map(|known| known.pin.take()).count();
        if kept > 0 {
            tracing::warn!("disk space is short: no log is kept for {kept} replicas any more");
        }
    }

    /// Tells those who wait for replicas.
    fn tell(&self, shared: &Shared, inner: &Inner) {
        let now_ns = self.clock.monotonic_ns();
        let lag_ns = u64::from(self.settings.min_replicas_max_lag()) * 1_000_000_000;
        let connected = || inner.known.values().filter(|known| is_connected(shared, known));
        let has: Vec<Lsn> = connected().filter_map(|known| known.durable).collect();
        let is_good = |known: &&Known| {
            known.durable.is_some() && now_ns.saturating_sub(known.heard_ns) <= lag_ns
        };
        let good = connected().filter(is_good).count();
        self.log.others_reach(&has);
        shared.good_replicas.store(good as u64, SeqCst);
    }

    /// Notes what a replica has. Returns where its bytes are read from, and not before when.
    fn note(&self, client: u64, wanted: &FramesWanted) -> Result<(LogBytes, u64), FramesError> {
        let Some(shared) = self.shared.get() else { return Err(nobody()) };
        let inner = &mut *self.inner.lock();
        follows(inner, wanted)?;
        let known = inner.of_client(client).ok_or_else(nobody)?;
        known.heard_ns = self.clock.monotonic_ns();
        known.durable = Some(wanted.durable);
        // One frame may be longer than what is asked for, and is begun again after a break.
        let from = wanted.durable.min(wanted.from);
        if known.pin.as_ref().is_none_or(|(at, _)| *at != from) {
            let before = known.pin.replace((from, self.log.pin(from)));
            drop(before);
        }
        let bytes = known.bytes.take();
        let bytes = bytes.unwrap_or_else(|| LogBytes::new(Arc::clone(&self.log)));
        let pause_until_ns = known.pause_until_ns;
        self.tell(shared, inner);
        Ok((bytes, pause_until_ns))
    }

    /// Waits until there is something for a replica, or somebody waits for what it has and has not
    /// said. Returns up to where it may have bytes.
    fn await_bytes(&self, wanted: &FramesWanted, pause_until_ns: u64) -> Lsn {
        let FramesWanted { from, durable, wait, .. } = *wanted;
        let next = Lsn(from.0.saturating_add(1));
        let untold = if durable < from { Lsn(durable.0 + 1) } else { Lsn::MAX };
        let began_ns = self.clock.monotonic_ns();
        let left = || {
            let passed = self.clock.monotonic_ns().saturating_sub(began_ns);
            wait.saturating_sub(Duration::from_nanos(passed))
        };
        // Before anybody is to wake this thread.
        let pause = Duration::from_nanos(pause_until_ns.saturating_sub(began_ns)).min(wait);
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
        let gives_written = self.gives_written();
        let end = || if gives_written { self.log.written() } else { self.log.durable() };
        if end() < next {
            let waiter = LogWait::new(&self.log);
            let is_written = waiter.written_or_wanted(next, untold, left());
            if is_written && !gives_written && !waiter.synced(next, self.until_sync().min(left())) {
                self.asked_ns.store(self.clock.monotonic_ns(), Relaxed);
                waiter.durable(next, left());
            }
        }
        end()
    }

    /// Whether replicas get what is not on the disk yet: where clients of this server see it, too, and
    /// may lose it with the machine's power. A replica's own log is no end of such a kind: what it
    /// lost, it gets anew, and is not to be shorter meanwhile than what follows it.
    fn gives_written(&self) -> bool {
        let is_lax = self.settings.gate() < Gate::Fsync && !self.log.is_follower();
        is_lax || self.planted.gives_what_is_not_durable()
    }
}

impl ReadReplicas {
    /// How long not to ask for another sync.
    fn until_sync(&self) -> Duration {
        let asked_ns = self.asked_ns.load(Relaxed);
        let passed = self.clock.monotonic_ns().saturating_sub(asked_ns);
        SYNC_EVERY.saturating_sub(Duration::from_nanos(passed))
    }
}

/// Whether the connection is there on which a replica asks.
fn is_connected(shared: &Shared, known: &Known) -> bool {
    shared.clients.find(known.client).is_some_and(|info| !info.is_gone())
}

/// Closes the connection of a replica that is silent, if it is there.
fn give_up(shared: &Shared, known: &Known) {
    let Some(info) = shared.clients.find(known.client).filter(|info| !info.is_gone()) else {
        return;
    };
    info.killed.store(true, SeqCst);
    if let Some(thread) = shared.threads.get(info.thread) {
        thread.send(Message::Kill);
    }
    let Place { host, port } = &known.place;
    tracing::warn!("the replica at {host}:{port} was silent for repl-timeout: it is given up");
}

fn nobody() -> FramesError {
    FramesError::Failed("this connection is none of a replica: LADON.REPLICA HELLO".to_owned())
}

/// A replica that follows another run has to ask for its position.
fn follows(inner: &Inner, wanted: &FramesWanted) -> Result<(), FramesError> {
    match inner.runs.last() == Some(&wanted.run) {
        true => Ok(()),
        false => Err(FramesError::Resync("another run of the log has begun".to_owned())),
    }
}

impl Replicas for ReadReplicas {
    fn greet(&self, client: u64, name: &ReplicaName) -> Result<(), String> {
        let Some(shared) = self.shared.get() else {
            return Err("this server has no read replicas: a member of a cluster is followed by \
                        'ladon cluster add-node MEMBER NODE --replica'"
                .to_owned());
        };
        let inner = &mut *self.inner.lock();
        if inner.runs.last().is_none() {
            return Err("this server is a replica that has no data yet".to_owned());
        }
        // The process before, at the same place.
        inner.known.retain(|run_id, known| {
            *run_id == name.run_id || known.place != name.place || is_connected(shared, known)
        });
        if inner.known.len() >= REPLICAS_MAX && !inner.known.contains_key(&name.run_id) {
            return Err(format!("there are {REPLICAS_MAX} replicas already, or were an hour ago"));
        }
        let heard_ns = self.clock.monotonic_ns();
        let before = inner.known.remove(&name.run_id);
        let pin = before.and_then(|known| known.pin);
        let place = name.place.clone();
        let known =
            Known { place, client, durable: None, heard_ns, pin, bytes: None, pause_until_ns: 0 };
        inner.known.insert(name.run_id.clone(), known);
        tracing::info!("the replica at {}:{} connects", name.place.host, name.place.port);
        Ok(())
    }

    fn position(&self, client: u64, run: &str, end: Lsn) -> Result<Position, String> {
        let inner = &mut *self.inner.lock();
        // Before the log is looked at: from now on it is kept.
        let pin = self.log.pin(end);
        let is_part = inner.runs.has(run, end, self.log.reserved())
            || self.planted.ignores_runs() && end <= self.log.reserved();
        let continues = is_part && self.log.oldest() <= end;
        let runs = inner.runs.list().to_vec();
        let now_ns = self.clock.monotonic_ns();
        let known = inner.of_client(client).ok_or_else(|| nobody().to_string())?;
        known.heard_ns = now_ns;
        if continues {
            known.pin = Some((end, pin));
        }
        Ok(Position { continues, runs })
    }

    fn frames(&self, client: u64, wanted: &FramesWanted) -> Result<Vec<u8>, FramesError> {
        let (mut bytes, pause_until_ns) = self.note(client, wanted)?;
        let from = wanted.from;
        let until = self.await_bytes(wanted, pause_until_ns);
        if self.log.reserved() < from {
            return Err(FramesError::Resync(format!("the log does not reach LSN {from}")));
        }
        let most = wanted.bytes.min(ANSWER_BYTES_MAX) as u64;
        let mut answer = vec![0; until.0.saturating_sub(from.0).min(most) as usize];
        bytes.read(from, &mut answer).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FramesError::Resync(error.to_string()),
            _ => FramesError::Failed(format!("cannot read the log: {error}")),
        })?;
        let inner = &mut *self.inner.lock();
        // What was read may be another run's.
        follows(inner, wanted)?;
        if let Some(known) = inner.of_client(client) {
            known.bytes = Some(bytes);
            let pause_ns = (answer.len() as u64 * PAUSE_NS_PER_BYTE).min(PAUSE_NS_MAX);
            known.pause_until_ns = self.clock.monotonic_ns() + pause_ns;
        }
        Ok(answer)
    }

    fn list(&self) -> Vec<ReplicaView> {
        let Some(shared) = self.shared.get() else { return Vec::new() };
        let now_ns = self.clock.monotonic_ns();
        let inner = self.inner.lock();
        let connected = inner.known.values().filter(|known| is_connected(shared, known));
        let view = |known: &Known| ReplicaView {
            place: known.place.clone(),
            durable: known.durable,
            silent: Duration::from_nanos(now_ns.saturating_sub(known.heard_ns)),
        };
        connected.map(view).collect()
    }

    fn runs(&self) -> (String, Option<(String, Lsn)>) {
        let inner = self.inner.lock();
        let last = inner.runs.last().map(str::to_owned);
        let known = || self.shared.get().map(|shared| shared.replication_id.lock().clone());
        (last.or_else(known).unwrap_or_else(|| "0".repeat(40)), inner.runs.before_last())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly::Assembly;
    use crate::recovery::{Recovered, recover};
    use ladon_kernel::client::clients::ClientInfo;
    use ladon_log::{DataDir, LogOptions};
    use ladon_platform::SystemClock;
    use ladon_record::{Change, ChangeBuffer, ValueKind};
    use ladon_settings::Id;
    use ladon_sim_disk::SimDisk;
    use std::path::Path;

    struct Primary {
        log: Arc<Log>,
        replicas: ReadReplicas,
        shared: Arc<Shared>,
    }

    fn primary(gate: Gate) -> Primary {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let disk = Arc::new(SimDisk::new(1));
        let options = LogOptions::default();
        let dir = DataDir::open(disk, Arc::clone(&clock), Path::new("/data"), options, 42);
        let recovered = recover(dir.unwrap(), 16, clock.unix_ms(), 1, |_| {}, &|_| {}, None);
        let Recovered { log, .. } = recovered.unwrap();
        let settings = Arc::new(Settings::new());
        settings.note(Id::gate, gate.name()).unwrap();
        let assembly = Assembly {
            settings: Arc::clone(&settings),
            clock: Arc::clone(&clock),
            threads: Vec::new(),
            run_id: "a".repeat(40),
            io_backend: String::new(),
        };
        let shared = Arc::new(assembly.shared());
        shared.clients.add(Arc::new(ClientInfo { id: 7, ..ClientInfo::default() }));
        let replicas = ReadReplicas::new(Arc::clone(&log), settings, clock);
        let mut runs = Runs::default();
        runs.begin(log.reserved());
        replicas.open(Arc::clone(&shared), runs);
        let name = ReplicaName { run_id: "b".repeat(40), place: Place::default() };
        replicas.greet(7, &name).unwrap();
        Primary { log, replicas, shared }
    }

    impl Primary {
        fn append(&self) -> Lsn {
            let mut changes = ChangeBuffer::new();
            let (kind, body) = (ValueKind::String, b"value");
            changes.push(Change::Put { db: 0, key: b"key", expire_at: 0, kind, body });
            let mut appender = self.log.appender();
            let end = appender.append(changes.as_bytes(), 0);
            appender.publish();
            self.log.write_published().unwrap();
            end
        }

        fn frames(&self, run: &str, from: Lsn) -> Result<Vec<u8>, FramesError> {
            self.frames_within(run, (from, from), Duration::from_millis(20))
        }

        /// Of a replica that has this, and said to have that on its disk.
        fn frames_within(
            &self,
            run: &str,
            (from, durable): (Lsn, Lsn),
            wait: Duration,
        ) -> Result<Vec<u8>, FramesError> {
            let (run, applied, bytes) = (run.to_owned(), from, 1 << 20);
            let wanted = FramesWanted { run, from, durable, applied, wait, bytes };
            self.replicas.frames(7, &wanted)
        }
    }

    #[test]
    fn only_what_is_on_the_disk_is_given() {
        let primary = primary(Gate::Fsync);
        let run = primary.replicas.runs().0;
        let begin = primary.log.reserved();
        let end = primary.append();
        assert!(primary.log.written() >= end && primary.log.durable() < end);
        // Nobody syncs here.
        assert_eq!(primary.frames(&run, begin), Ok(Vec::new()));
        primary.log.make_durable(end).unwrap();
        let bytes = primary.frames(&run, begin).unwrap();
        assert_eq!(bytes.len() as u64, primary.log.durable().0 - begin.0);
        assert_eq!(primary.log.others_have(begin), 1);
        assert_eq!(primary.shared.good_replicas.load(SeqCst), 1);
    }

    #[test]
    fn at_a_lax_gate_what_is_written_is_given_unless_this_is_a_replica_itself() {
        let primary = primary(Gate::EverySec);
        let run = primary.replicas.runs().0;
        let begin = primary.log.reserved();
        let end = primary.append();
        assert!(primary.log.durable() < end);
        let bytes = primary.frames(&run, begin).unwrap();
        assert_eq!(bytes.len() as u64, end.0 - begin.0);
        primary.log.set_follower(true);
        assert_eq!(primary.frames(&run, begin), Ok(Vec::new()));
    }

    #[test]
    fn who_waits_for_others_has_a_replica_say_what_it_has() {
        const LONG: Duration = Duration::from_secs(60);
        let primary = primary(Gate::EverySec);
        let run = primary.replicas.runs().0;
        let begin = primary.log.reserved();
        let end = primary.append();
        let began = std::time::Instant::now();
        let answer = std::thread::scope(|threads| {
            let waits = || primary.frames_within(&run, (end, begin), LONG);
            let waits = threads.spawn(waits);
            std::thread::sleep(Duration::from_millis(50));
            primary.log.want_committed(end);
            waits.join().unwrap()
        });
        assert_eq!(answer, Ok(Vec::new()));
        assert!(began.elapsed() < LONG);
        // Once it has said that, it waits for more.
        let short = Duration::from_millis(20);
        let began = std::time::Instant::now();
        assert_eq!(primary.frames_within(&run, (end, end), short), Ok(Vec::new()));
        assert!(began.elapsed() >= short);
    }

    #[test]
    fn a_replica_of_another_run_asks_for_its_position_again() {
        let primary = primary(Gate::Fsync);
        let run = primary.replicas.runs().0;
        let end = primary.append();
        primary.log.make_durable(end).unwrap();
        let resync = |answer| matches!(answer, Err(FramesError::Resync(_)));
        assert!(resync(primary.frames(&"c".repeat(40), Lsn::ZERO)));
        assert!(resync(primary.frames(&run, Lsn(1 << 40))));
        let mut runs = Runs::of_list(vec![(run.clone(), Lsn::ZERO)]).unwrap();
        runs.begin(end);
        primary.replicas.set_runs(&primary.shared, runs);
        assert!(resync(primary.frames(&run, Lsn::ZERO)));
        let goes_on = |end| primary.replicas.position(7, &run, end).unwrap().continues;
        assert_eq!((goes_on(end), goes_on(Lsn(end.0 + 1))), (true, false));
        assert!(primary.replicas.position(8, &run, end).is_err());
    }

    #[test]
    fn a_replica_whose_connection_is_gone_counts_for_nothing() {
        let primary = primary(Gate::Fsync);
        let run = primary.replicas.runs().0;
        primary.frames(&run, primary.log.durable()).unwrap();
        assert_eq!(primary.replicas.list().len(), 1);
        primary.shared.clients.remove(7);
        primary.replicas.look();
        assert_eq!(primary.replicas.list(), []);
        assert_eq!(primary.log.others_have(Lsn::ZERO), 0);
        assert_eq!(primary.shared.good_replicas.load(SeqCst), 0);
    }
}
