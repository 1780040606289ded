//! Starts a server and runs it until its clean shutdown.

use crate::aside::Aside;
use crate::assembly::{Assembly, dataset, node_over};
use crate::background::Threads;
use crate::checkpointer::Checkpointer;
use crate::configured_users;
use crate::console_door::ConsoleDoor;
use crate::dropper::Dropper;
use crate::exposure;
use crate::followed::FollowedRecords;
use crate::group::{Ended, Membership};
use crate::io_thread::{Handover, IoThread};
use crate::listening::{FollowedBy, Listening, bind};
use crate::loading::{load, nothing_yet};
use crate::protocol::ListenerKind;
use crate::random::{random_hex, random_u64};
use crate::recovery::Recovered;
use crate::reload::Reload;
use crate::replication::{self, FollowedData, Following, Runs};
use crate::reports::Reports;
use crate::run_error::{RunError, starting};
use crate::shutdown::StopSignal;
use crate::tls;
use crate::worker::{Worker, WorkerParts};
use ladon_engine::{Locks, Scratch};
use ladon_http::HttpBackend;
use ladon_kernel::cluster::Cluster;
use ladon_kernel::dataset::Dataset;
use ladon_kernel::loading::Loading;
use ladon_kernel::message::ThreadHandle;
use ladon_kernel::node::Node;
use ladon_kernel::program::Program;
use ladon_kernel::role::Role;
use ladon_kernel::shared::Shared;
use ladon_kernel::upstream::Upstream;
use ladon_log::RecoveryReport;
use ladon_net::{AnyBackend, Backend, BackendChoice};
use ladon_operations::{Door, Listeners, Port, State};
use ladon_peers::TcpPeers;
use ladon_platform::{Process, SystemClock, SystemDisk};
use ladon_settings::{IoBackend, Settings};
use ladon_tls::TlsBackend;
use parking_lot::Mutex;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What becomes of the server, for whoever supervises its process.
pub trait Lifecycle {
    /// Clients are served, and all data is there.
    fn ready(&self, node: &Arc<Node>);
    /// It stops.
    fn stopping(&self);

    /// The program that runs beside the data, if there is one. Its thread has the last place among
    /// the node's.
    fn program(&self) -> Option<Arc<dyn Program>> {
        None
    }
}

/// Runs a server until `stop` is requested, and prints the banner when it is ready. It reads files
/// again when `reload` is requested. `process` is the process that the server runs in.
///
/// # Errors
/// See [`RunError`]; if the server did not start, nothing was changed.
pub fn run(
    settings: Arc<Settings>,
    stop: Arc<StopSignal>,
    reload: &Reload,
    process: Arc<dyn Process>,
    lifecycle: &dyn Lifecycle,
) -> Result<(), RunError> {
    let tls = settings.has_tls().then(|| tls::options(&settings).load()).transpose()?;
    let program = lifecycle.program();
    let listeners = bind(&settings, program.is_some())?;
    let port_listeners = ladon_operations::bind(&settings)?;
    let port_addresses = port_listeners.addresses();
    let Backends { backends, fallback, name: backend_name } = open_backends(&settings)?;
    let listening = Arc::new(Listening::new(listeners, backends[0].waker(), &settings));
    let mut shared = shared(&settings, process, (&listening, program), &backends);
    let membership = Membership::of(&settings, Arc::clone(&shared.threads))?;
    shared.cluster = membership.as_ref().map(|it| Arc::clone(&it.handle) as Arc<dyn Cluster>);
    let following = match &membership {
        Some(_) => None,
        None => Some(Following::new(Arc::clone(&settings), shared.run_id.lock().clone())),
    };
    shared.upstream = following.as_ref().map(|it| Arc::clone(it) as Arc<dyn Upstream>);
    configured_users::load(&shared)?;
    let progress = Arc::new(Loading::new(shared.started_ms));
    let nothing = nothing_yet(&shared, Arc::clone(&progress), Arc::clone(&stop));
    let node = Arc::new(node_over(shared, nothing));
    let parts = IoThreadParts::of(&node, &backends, Arc::clone(&stop))?;
    listening.tls().attach(Arc::clone(&parts.handovers), Arc::clone(&stop));
    if let Some(config) = tls {
        let installed =
            listening.tls().install(&listening, config, settings.tls_handshakes_per_second());
        installed.map_err(starting("the thread of TLS' handshakes"))?;
    }
    reload.add({
        let (listening, settings) = (Arc::clone(&listening), Arc::clone(&settings));
        move || listening.reload_tls(&settings)
    });
    let io_threads = parts.start(backends, &listening)?;

    let operations = State::new(Arc::clone(&node));
    let door = Arc::new(ConsoleDoor(Arc::clone(&parts.handovers)));
    let _port = open_port(port_listeners, &operations, door)?;
    start_touching_memory()?;

    let dropper = parts.dropper.clone();
    let mut server =
        Server { settings, stop, listening, operations, node, membership, following, dropper };
    let mut io_threads = Some(io_threads);
    let mut progress = progress;
    let ready = |server: &Server, keys: u64, recovery: &Duration| {
        let Server { settings, listening, .. } = server;
        exposure::warn_of(server.node.shared(), listening);
        // A client that has read the banner can read the data.
        let banner = Banner { settings, listening, http: &port_addresses };
        // The standard output is the program's, where there is one.
        let prints = server.node.program.is_none();
        banner.print(prints, (backend_name, fallback.as_deref()), keys, recovery);
        lifecycle.ready(&server.node);
    };
    loop {
        let Some(mut life) = server.load(Arc::clone(&progress))? else {
            // Their error has nothing to say any more.
            let _ = io_threads.take().map(IoThreads::join);
            server.listening.close();
            tracing::info!("stopped before the data was loaded; the files are unchanged");
            return Ok(());
        };
        ready(&server, life.keys, &life.recovery);
        let reports = Reports::new(Arc::clone(&server.node), Arc::clone(&life.recovered.log));
        life.checkpoint_thread = Some(start_checkpointer(&life.checkpointer, reports)?);
        if server.live(&mut life)? {
            progress = server.take_back(life);
        } else {
            lifecycle.stopping();
            return server.end(life, io_threads.take());
        }
    }
}

/// What the main thread waits for.
enum Event {
    /// The server has to stop.
    Stop,
    /// The data must be read anew: it has what the cluster has not, or another node's takes its place.
    Diverged,
    /// The server is to follow another one.
    Follow,
}

/// The parts of a server that outlive its data.
struct Server {
    settings: Arc<Settings>,
    stop: Arc<StopSignal>,
    listening: Arc<Listening>,
    operations: State,
    node: Arc<Node>,
    membership: Option<Membership>,
    /// Whom it follows, unless it may be a member of a cluster.
    following: Option<Arc<Following>>,
    dropper: Dropper,
}

/// The data of a server, and the threads that work on it.
struct Life {
    recovered: Recovered,
    checkpointer: Arc<Checkpointer>,
    checkpoint_thread: Option<JoinHandle<()>>,
    writer: ladon_log::WriterThread,
    events: Receiver<Event>,
    news: Sender<Event>,
    /// The data as a replica's.
    followed: Option<Arc<FollowedData>>,
    link_thread: Option<JoinHandle<()>>,
    keys: u64,
    recovery: Duration,
}

impl Server {
    /// Loads the data and gives it to the IO threads; `None` if the server stops first.
    fn load(&mut self, progress: Arc<Loading>) -> Result<Option<Life>, RunError> {
        let loaded = load(self.node.shared(), progress, &self.listening, &self.stop);
        let Some(recovered) = loaded.transpose() else { return Ok(None) };
        let mut recovered = recovered?;
        let keys = count_keys(&recovered);
        tell_of(&recovered.report, keys, &self.settings);
        warn_of(&recovered.report);
        let follows = self.following.as_ref().is_some_and(|following| following.is_wanted());
        if recovered.group.is_some() || follows {
            // No mark and no record of its own comes in front of the others'.
            recovered.log.set_follower(true);
            recovered.keyspace.set_follower(true);
        }
        let writer = recovered.log.spawn_writer().map_err(starting("the log's writer"))?;
        // The dropper returns the memory of empty slabs to the system.
        recovered.keyspace.allow_compaction();
        let shared = self.node.shared();
        let (data, checkpointer) = dataset(shared, &recovered, keys, Arc::clone(&self.stop));
        let (news, events) = self.take_part(&mut recovered, &checkpointer)?;
        let followed = self.may_follow(&recovered, &checkpointer, follows, &news);
        self.node = exchange(Arc::clone(&self.node), data, &self.stop);
        self.operations.exchange(Arc::clone(&self.node));
        self.listening.open();
        let recovery = recovered.report.duration;
        Ok(Some(Life {
            recovered,
            checkpointer,
            checkpoint_thread: None,
            writer,
            events,
            news,
            followed,
            link_thread: None,
            keys,
            recovery,
        }))
    }

    /// Lets the node follow another server, now or when it is told to, and be followed. `None` at a node
    /// of a cluster.
    fn may_follow(
        &self,
        recovered: &Recovered,
        checkpointer: &Checkpointer,
        follows: bool,
        news: &Sender<Event>,
    ) -> Option<Arc<FollowedData>> {
        let (shared, log) = (self.node.shared(), &recovered.log);
        let Some(following) = &self.following else {
            // Its log is the group's from now on.
            if let Err(error) = Runs::remove(&SystemDisk, log.dir()) {
                tracing::error!("cannot remove the file 'runs': {error}");
            }
            return None;
        };
        let replicas = checkpointer.replicas();
        let runs = Runs::at_start(&SystemDisk, log, follows).unwrap_or_else(|error| {
            tracing::error!("this server has no replicas: it cannot note what its log is: {error}");
            Runs::default()
        });
        replicas.open(Arc::clone(shared), runs.clone());
        let records = FollowedRecords {
            shared: Arc::clone(shared),
            keyspace: Arc::clone(&recovered.keyspace),
            dropper: Some(self.dropper.clone()),
        };
        let runs = (Arc::clone(replicas), runs);
        let rest = Box::new(std::thread::sleep);
        let place = (Arc::clone(log), Arc::new(SystemDisk) as _, rest as _);
        let planted = Default::default();
        let followed = FollowedData::new(records, place, runs, follows, planted);
        checkpointer.follows(Arc::clone(&followed) as _);
        shared.role.set(match (follows, self.settings.replica_serve_stale_data()) {
            (false, _) => Role::Alone,
            (true, true) => Role::Follows,
            (true, false) => Role::Stale,
        });
        let news = news.clone();
        // Nobody listens any more to what came before.
        following.may_start(&followed, move || drop(news.send(Event::Follow)));
        Some(followed)
    }

    /// Waits until the data has to be read anew. Returns false if the server has to stop.
    fn live(&self, life: &mut Life) -> Result<bool, RunError> {
        loop {
            match life.events.recv() {
                Ok(Event::Diverged) => return Ok(true),
                Ok(Event::Stop) | Err(_) => return Ok(false),
                Ok(Event::Follow) => {
                    let (Some(following), Some(followed)) = (&self.following, &life.followed)
                    else {
                        continue;
                    };
                    let news = life.news.clone();
                    let thread = following.begin(Arc::clone(followed), move |ended| {
                        if ended == replication::Ended::Replaced {
                            drop(news.send(Event::Diverged));
                        }
                    });
                    life.link_thread = Some(thread.map_err(starting("the replica's thread"))?);
                }
            }
        }
    }

    /// Ends what takes part in replication.
    fn end_following(&self, life: &mut Life) {
        if let Some(following) = &self.following {
            following.stop();
        }
        // A panic ends the process before this line.
        let _ = life.link_thread.take().map(JoinHandle::join);
    }

    /// Lets the node take part in its cluster, if it is a node of one. Returns what ends its life.
    fn take_part(
        &mut self,
        recovered: &mut Recovered,
        checkpointer: &Checkpointer,
    ) -> Result<(Sender<Event>, Receiver<Event>), RunError> {
        let (sender, events) = channel();
        let news = sender.clone();
        self.stop.add_waker({
            let sender = sender.clone();
            // Nobody listens any more to what came before.
            move || drop(sender.send(Event::Stop))
        });
        if let Some(membership) = &mut self.membership {
            let dropper = self.dropper.clone();
            let standing =
                membership.begin(self.node.shared(), recovered, dropper, move |ended| {
                    if let Ok(Ended::Diverged | Ended::Replaced) = ended {
                        drop(sender.send(Event::Diverged));
                    }
                })?;
            checkpointer.follows(standing);
        }
        Ok((news, events))
    }

    /// Lets the data go, and the clients that have seen it. Returns the progress of the next load.
    fn take_back(&mut self, mut life: Life) -> Arc<Loading> {
        self.end_following(&mut life);
        let shared = self.node.shared();
        let progress = Arc::new(Loading::new(shared.clock.unix_ms()));
        let nothing = nothing_yet(shared, Arc::clone(&progress), Arc::clone(&self.stop));
        if let Some(membership) = &mut self.membership {
            membership.end();
        }
        self.node = exchange(Arc::clone(&self.node), nothing, &self.stop);
        self.operations.exchange(Arc::clone(&self.node));
        life.checkpointer.stop();
        let _ = life.checkpoint_thread.map(JoinHandle::join);
        life.writer.stop();
        life.recovered.log.let_go();
        progress
    }

    fn end(mut self, mut life: Life, io_threads: Option<IoThreads>) -> Result<(), RunError> {
        let how = self.stop.wait();
        self.operations.stops();
        tracing::info!("stopping: no new connections, finishing replies");
        if let Some(membership) = &self.membership {
            membership.hand_over(self.node.shared());
        }
        self.end_following(&mut life);
        let failure = io_threads.and_then(IoThreads::join);
        self.listening.close();
        life.checkpointer.stop();
        let _ = life.checkpoint_thread.map(JoinHandle::join);
        if how.save == Some(true)
            && let Err(error) = life.checkpointer.make()
        {
            tracing::error!("the checkpoint at shutdown failed: {error}; the log holds everything");
        }
        if let Some(membership) = &mut self.membership {
            membership.end();
        }
        life.writer.stop();
        life.recovered.log.close()?;
        if let Some(failure) = failure {
            return Err(RunError::Thread(failure));
        }
        tracing::info!("stopped; the log is complete");
        Ok(())
    }
}

/// Opens the port for operations, unless it has no addresses.
fn open_port(
    listeners: Listeners,
    state: &State,
    door: Arc<dyn Door>,
) -> Result<Option<Port>, RunError> {
    if listeners.is_empty() {
        return Ok(None);
    }
    let port = Port::start(listeners, state.clone(), door);
    port.map(Some).map_err(starting("the port for operations"))
}

/// What is not about data.
fn shared(
    settings: &Arc<Settings>,
    process: Arc<dyn Process>,
    (listening, program): (&Arc<Listening>, Option<Arc<dyn Program>>),
    backends: &[AnyBackend],
) -> Shared {
    let of_program = program.clone().map(|it| ThreadHandle::new(move || it.wake()));
    let assembly = Assembly {
        settings: Arc::clone(settings),
        clock: Arc::new(SystemClock),
        threads: backends.iter().map(thread_handle).chain(of_program).collect(),
        run_id: random_hex(),
        io_backend: backends.first().map_or("", |backend| backend.name()).to_owned(),
    };
    let mut shared = assembly.shared();
    shared.program = program;
    shared.process = process;
    shared.background = Some(Box::new(Threads::default()));
    shared.peers = Some(Box::new(TcpPeers::new(Arc::clone(&shared.clock))));
    let listening = Arc::clone(listening);
    shared.follow_settings = Some(Box::new(FollowedBy(listening)));
    shared
}

/// Gives the IO threads the data. Returns once all of them have it, unless the server stops.
fn exchange(node: Arc<Node>, data: Dataset, stop: &StopSignal) -> Arc<Node> {
    /// How often to look whether the server stops.
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    node.exchange(data);
    let node = Arc::new(node.renewed());
    while !node.await_taken(LOOK_EVERY) && !stop.is_requested() {}
    node
}

/// One backend for each IO thread.
struct Backends {
    backends: Vec<AnyBackend>,
    /// Why io_uring is not used, if it was asked for and cannot be.
    fallback: Option<String>,
    name: &'static str,
}

fn open_backends(settings: &Settings) -> Result<Backends, RunError> {
    let choice = match settings.io_backend() {
        IoBackend::Auto => BackendChoice::Auto,
        IoBackend::IoUring => BackendChoice::IoUring,
        IoBackend::Mio => BackendChoice::Mio,
    };
    let mut backends = Vec::new();
    let mut fallback = None;
    for _ in 0..settings.io_threads() {
        let (backend, reason) = AnyBackend::new(choice).map_err(starting("an IO backend"))?;
        fallback = fallback.or(reason);
        backends.push(backend);
    }
    if let Some(reason) = &fallback {
        tracing::warn!("io_uring is not available ({reason}); using mio");
    }
    let name = backends.first().map_or("", |backend| backend.name());
    Ok(Backends { backends, fallback, name })
}

/// Says what a start has found.
fn tell_of(report: &RecoveryReport, keys: u64, settings: &Settings) {
    let checkpoint = report.checkpoint.as_ref();
    let checkpoint = checkpoint.map_or("no checkpoint".to_owned(), |info| {
        format!("the checkpoint {} of {} keys", info.path.display(), info.keys)
    });
    let end = match report.clean {
        true => "the log was closed in good order",
        false if report.records == 0 && report.checkpoint.is_none() => "the log is empty",
        false => "the log was not closed in good order: the server before was killed, or crashed",
    };
    tracing::info!(
        "recovered {keys} keys from {} in {:.3} s: {checkpoint}, {} records of the log ({} bytes); {end}",
        settings.data(),
        report.duration.as_secs_f64(),
        report.records,
        report.log_bytes
    );
}

/// Warns about what recovery found damaged.
fn warn_of(report: &RecoveryReport) {
    if let Some(torn) = &report.torn {
        tracing::warn!(
            "the log ended in a torn frame: {} was cut at byte {} ({} bytes dropped, found: {})",
            torn.path.display(),
            torn.offset,
            torn.bytes,
            torn.found
        );
    }
    if let Some(damage) = &report.given_up {
        tracing::warn!(
            "all changes after LSN {} are discarded because of accept-log-loss-after: {} at byte {}: {}",
            report.end,
            damage.path.display(),
            damage.offset,
            damage.found
        );
    }
    if let Some(damage) = &report.log_end_fault {
        tracing::warn!(
            "{} was not usable ({}) and is written anew: nobody can tell whether the end of the log \
             was missing",
            damage.path.display(),
            damage.found
        );
    }
}

fn thread_handle(backend: &AnyBackend) -> ThreadHandle {
    let waker = backend.waker();
    ThreadHandle::new(move || waker.wake())
}

fn start_checkpointer(
    checkpointer: &Arc<Checkpointer>,
    mut reports: Reports,
) -> Result<JoinHandle<()>, RunError> {
    let checkpointer = Arc::clone(checkpointer);
    thread::Builder::new()
        .name("ladon-checkpoint".into())
        // The checkpointer paces itself. With a low priority it would hold its locks for long.
        .spawn(move || checkpointer.run_and(|| reports.look()))
        .map_err(starting("the checkpointer"))
}

/// Starts the thread that gives the engine's memory its pages before an IO thread needs them.
fn start_touching_memory() -> Result<(), RunError> {
    let thread = thread::Builder::new().name("ladon-pages".into());
    let spawned = thread.spawn(ladon_engine::touch_memory_ahead);
    spawned.map(drop).map_err(starting("the thread that touches memory"))
}

/// What all IO threads share.
struct IoThreadParts {
    node: Arc<Node>,
    dropper: Dropper,
    aside: Aside,
    handovers: Arc<[Handover]>,
    stop: Arc<StopSignal>,
}

/// The IO threads, running.
struct IoThreads {
    handles: Vec<JoinHandle<()>>,
    /// Why a thread ended too early.
    failure: Arc<Mutex<Option<String>>>,
}

impl IoThreadParts {
    fn of(
        node: &Arc<Node>,
        backends: &[AnyBackend],
        stop: Arc<StopSignal>,
    ) -> Result<IoThreadParts, RunError> {
        let shared = node.shared();
        let dropper = Dropper::start(shared).map_err(starting("the dropper"))?;
        let aside = Aside::start(shared).map_err(starting("the threads for long jobs"))?;
        let wakers = || backends.iter().map(Backend::waker);
        let handovers = wakers().map(Handover::new).collect();
        wakers().for_each(|waker| stop.add_waker(move || waker.wake()));
        Ok(IoThreadParts { node: Arc::clone(node), dropper, aside, handovers, stop })
    }

    /// Starts a thread on each backend; the first one accepts.
    fn start(
        &self,
        backends: Vec<AnyBackend>,
        listening: &Arc<Listening>,
    ) -> Result<IoThreads, RunError> {
        let mut threads = IoThreads { handles: Vec::new(), failure: Arc::default() };
        for (index, backend) in backends.into_iter().enumerate() {
            let waker = backend.waker();
            let worker = Worker::new(WorkerParts {
                node: Arc::clone(&self.node),
                thread: index,
                seed: random_u64(),
                wake: Arc::new(move || waker.wake()),
                dropper: Some(self.dropper.clone()),
                aside: Some(self.aside.clone()),
            });
            let io_thread = IoThread {
                index,
                node: Arc::clone(self.node.shared()),
                worker,
                backend: HttpBackend::new(TlsBackend::new(backend), listening.http_rules()),
                handovers: Arc::clone(&self.handovers),
                stop: Arc::clone(&self.stop),
                listening: (index == 0).then(|| Arc::clone(listening)),
                listeners: Vec::new(),
            };
            let (failure, stop) = (Arc::clone(&threads.failure), Arc::clone(&self.stop));
            let thread = thread::Builder::new()
                .name(format!("ladon-io-{index}"))
                .stack_size(ladon_kernel::scripts::STACK_BYTES);
            let spawned = thread.spawn(move || {
                if let Err(error) = io_thread.run() {
                    *failure.lock() = Some(error.to_string());
                    stop.request(ladon_kernel::durability::Shutdown::default());
                }
            });
            threads.handles.push(spawned.map_err(starting("an IO thread"))?);
        }
        Ok(threads)
    }
}

impl IoThreads {
    /// Waits until all have ended; returns why one ended too early.
    fn join(self) -> Option<String> {
        for handle in self.handles {
            // A panic ends the process before this line.
            let _ = handle.join();
        }
        self.failure.lock().take()
    }
}

fn count_keys(recovered: &Recovered) -> u64 {
    let mut scratch = Scratch::default();
    let mut tx = recovered.keyspace.begin(Locks::All, &mut scratch, 0);
    (0..recovered.keyspace.databases()).map(|db| tx.len(db) as u64).sum()
}

/// Where the server can be reached, for the first lines of its output.
struct Banner<'a> {
    settings: &'a Settings,
    listening: &'a Listening,
    http: &'a [String],
}

impl Banner<'_> {
    fn print(
        &self,
        prints: bool,
        (backend, fallback): (&str, Option<&str>),
        keys: u64,
        recovery: &Duration,
    ) {
        let settings = self.settings;
        let mut banner = format!("Ladon {}\n", env!("CARGO_PKG_VERSION"));
        let of_kind = |kind: ListenerKind| (kind.name(), self.listening.addresses(kind));
        let mut listeners: Vec<(&str, Vec<String>)> = ListenerKind::ALL.map(of_kind).to_vec();
        listeners.push(("HTTP admin", self.http.to_vec()));
        listeners.retain(|(_, addresses)| !addresses.is_empty());
        for (name, addresses) in &listeners {
            let _ = writeln!(banner, "  {name:<10} {}", addresses.join(", "));
        }
        let all: Vec<String> = listeners.into_iter().flat_map(|(_, addresses)| addresses).collect();
        let all = all.join(", ");
        tracing::info!("ready: {keys} keys, listening on {all}");
        let fallback = fallback.map_or(String::new(), |reason| format!(" (io_uring: {reason})"));
        let threads = settings.io_threads();
        let _ = writeln!(banner, "  backend    {backend}{fallback}, {threads} IO threads");
        let _ = writeln!(banner, "  data       {}, gate {}", settings.data(), settings.gate());
        let _ = writeln!(banner, "  recovered {keys} keys in {:.3} s", recovery.as_secs_f64());
        if !prints {
            return;
        }
        print!("{banner}");
        let _ = io::Write::flush(&mut io::stdout());
    }
}
