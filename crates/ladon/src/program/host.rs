//! The process that a program runs in: its server, its log, its end.

use super::options::{Wanted, in_folder, refused, translate};
use crate::systemd::Systemd;
use crate::terminal::{Line, Terminal};
use crate::{allocator, cli, logging, panics, serve, signals};
use clap::ArgMatches;
use ladon_app::{Data, Host, Inbox, LogRecord, Setting};
use ladon_kernel::durability::{CheckpointError, Shutdown};
use ladon_kernel::node::Node;
use ladon_kernel::place::Place;
use ladon_kernel::program::Program;
use ladon_kernel::upstream::LinkState;
use ladon_server::{Lifecycle, ProgramData, Reload, StopSignal};
use ladon_settings::{Origin, Settings};
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a new read replica waits for the server that it follows, unless `box.cfg` says it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The server's thread, and how it ended.
type ServerThread = JoinHandle<Result<(), String>>;

/// The server of a program, once there is one.
pub(super) struct ProgramServer {
    stop: Arc<StopSignal>,
    thread: Arc<Mutex<Option<ServerThread>>>,
    exchanged: Arc<Exchanged>,
}

/// What becomes of a server whose data is exchanged for another one's, as that of a new read replica is.
/// A program goes on with what it has found, so this may happen before it has begun alone.
#[derive(Default)]
struct Exchanged {
    /// The program has its data.
    has_begun: AtomicBool,
    /// The data was exchanged after that.
    is_late: AtomicBool,
}

impl ProgramServer {
    /// Whether it was asked to stop.
    pub(super) fn is_stopping(&self) -> bool {
        self.stop.is_requested()
    }

    /// Stops it in good order: its log is complete then.
    ///
    /// # Errors
    /// Why it failed.
    pub(super) fn stop(&self) -> Result<(), String> {
        self.stop.request(Shutdown::default());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if self.exchanged.is_late.load(Relaxed) {
            return Err(
                "all data of the server that is followed came anew: the program has to start again"
                    .to_owned(),
            );
        }
        match thread.map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(_)) => Err("the server's thread failed".to_owned()),
            None => Ok(()),
        }
    }
}

/// What a program asks of its process.
pub(super) struct ProgramHost {
    /// The command line.
    matches: ArgMatches,
    inbox: Arc<Inbox>,
    stop: Arc<StopSignal>,
    thread: Arc<Mutex<Option<ServerThread>>>,
    node: Option<Arc<Node>>,
    exchanged: Arc<Exchanged>,
    /// Checkpoints that were made when one was begun.
    made: u64,
    terminal: Arc<ProgramTerminal>,
}

impl ProgramHost {
    pub(super) fn new(matches: ArgMatches, inbox: Arc<Inbox>) -> (ProgramHost, ProgramServer) {
        let (stop, thread) = (Arc::new(StopSignal::default()), Arc::default());
        let exchanged = Arc::<Exchanged>::default();
        let server = ProgramServer {
            stop: Arc::clone(&stop),
            thread: Arc::clone(&thread),
            exchanged: Arc::clone(&exchanged),
        };
        (
            ProgramHost {
                matches,
                inbox,
                stop,
                thread,
                exchanged,
                node: None,
                made: 0,
                terminal: Arc::default(),
            },
            server,
        )
    }

    /// The first `box.cfg`.
    fn start(&mut self, mut wanted: Wanted) -> Result<Box<dyn Data>, String> {
        if let Some(folder) = &wanted.work_dir {
            std::env::set_current_dir(folder)
                .map_err(|error| format!("cannot work in {}: {error}", folder.display()))?;
        }
        for folder in &wanted.folders {
            std::fs::read_dir(folder)
                .map_err(|error| format!("cannot use the folder {}: {error}", folder.display()))?;
        }
        if let Some(place) = wanted.follows.take() {
            wanted.settings.push(("replicaof".to_owned(), place));
        }
        let settings = Arc::new(self.settings(&mut wanted)?);
        let had_data = has_data(&settings);
        if settings.read_only() && settings.replicaof().is_empty() && !had_data {
            return Err("Trying to bootstrap a local read-only instance as master".to_owned());
        }
        if let Some(file) = &wanted.pid_file {
            std::fs::write(file, std::process::id().to_string())
                .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        }
        logging::start(Arc::clone(&settings)).map_err(|error| {
            format!("cannot write the log file {}: {error}", settings.logfile())
        })?;
        ladon_app::set_log(log_record);
        panics::abort_from_now_on();
        serve::make_room_for_clients(&settings);
        let (ready, is_ready) = channel();
        let supervisor = Supervisor {
            ready,
            program: Arc::clone(&self.inbox) as Arc<dyn Program>,
            exchanged: Arc::clone(&self.exchanged),
            stop: Arc::clone(&self.stop),
        };
        self.spawn(settings, supervisor)?;
        let node = self.await_ready(&is_ready)?;
        let timeout = wanted.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
        let node = self.await_copy(node, &is_ready, had_data, timeout)?;
        self.exchanged.has_begun.store(true, Relaxed);
        self.node = Some(Arc::clone(&node));
        let log = Arc::clone(&node.log);
        self.inbox.set_on_long(move || log.write_soon());
        Ok(Box::new(ProgramData::new(node)))
    }

    /// The settings: what `box.cfg` says wins over the command line, and that over what Tarantool
    /// has by default.
    fn settings(&self, wanted: &mut Wanted) -> Result<Settings, String> {
        let text = |error: ladon_settings::LoadError| error.to_string();
        let (given, _) = cli::load(&self.matches).map_err(text)?;
        let defaults = [
            ("resp", "off".to_owned()),
            ("data", in_folder(Path::new("."))),
            ("gate", "write".to_owned()),
        ];
        for (name, value) in defaults {
            let is_given = given.origin(name).is_some_and(|it| it != Origin::Default);
            if !is_given && !wanted.settings.iter().any(|(it, _)| it == name) {
                wanted.settings.push((name.to_owned(), value));
            }
        }
        let (settings, _) = cli::load_with(&self.matches, &wanted.settings).map_err(text)?;
        if settings.cluster_enabled() {
            // A member's data may be exchanged for the cluster's, which a program does not expect.
            return Err("a program cannot run in a member of a cluster yet".to_owned());
        }
        Ok(settings)
    }

    fn spawn(&self, settings: Arc<Settings>, supervisor: Supervisor) -> Result<(), String> {
        let reload = Arc::new(Reload::default());
        let inbox = Arc::clone(&self.inbox);
        let ask = move |stop: &Arc<StopSignal>| ask_to_end(&inbox, stop);
        signals::watch(Arc::clone(&self.stop), Arc::clone(&reload), ask)
            .map_err(|error| format!("cannot watch for signals: {error}"))?;
        let stop = Arc::clone(&self.stop);
        let inbox = Arc::clone(&self.inbox);
        let thread = std::thread::Builder::new().name("ladon-server".into());
        let spawned = thread.spawn(move || {
            let process = Arc::new(allocator::process());
            let ended = ladon_server::run(settings, stop, &reload, process, &supervisor);
            inbox.wake();
            ended.map_err(|error| error.to_string())
        });
        let thread = spawned.map_err(|error| format!("cannot start the server: {error}"))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// The node, once it has its data.
    fn await_ready(&self, is_ready: &Receiver<Arc<Node>>) -> Result<Arc<Node>, String> {
        if let Ok(node) = is_ready.recv() {
            return Ok(node);
        }
        // It has ended without having been ready.
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        match thread.map(JoinHandle::join) {
            Some(Ok(Err(why))) => Err(why),
            _ => Err("the server was stopped before it had its data".to_owned()),
        }
    }

    /// The node of a read replica, once it has all data of the server that it follows. One that had data
    /// before goes on with it after the timeout.
    fn await_copy(
        &self,
        mut node: Arc<Node>,
        is_ready: &Receiver<Arc<Node>>,
        had_data: bool,
        timeout: Duration,
    ) -> Result<Arc<Node>, String> {
        const LOOK_EVERY: Duration = Duration::from_millis(10);
        let since = Instant::now();
        loop {
            let link = node.upstream.as_ref().and_then(|upstream| upstream.view());
            let Some(link) = link else { return Ok(node) };
            if link.state == LinkState::Connected {
                return Ok(node);
            }
            // A first sync takes as long as it takes.
            if since.elapsed() > timeout && link.state != LinkState::Sync {
                let Place { host, port } = &link.primary;
                let why = link.error.as_deref().unwrap_or("it does not answer");
                if had_data {
                    tracing::warn!("{host}:{port} is not followed yet: {why}");
                    return Ok(node);
                }
                return Err(refused("replication", &format!("cannot follow {host}:{port}: {why}")));
            }
            match is_ready.recv_timeout(LOOK_EVERY) {
                Ok(next) => node = next,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.await_ready(is_ready),
            }
        }
    }

    /// Follows nobody any more, or whom it follows. The program goes on with the data that it has, so it
    /// cannot follow another server.
    fn follow(node: &Node, place: &str) -> Result<(), String> {
        let upstream = node.upstream.as_ref();
        let link = upstream.and_then(|upstream| upstream.view());
        let followed = link.map(|link| format!("{} {}", link.primary.host, link.primary.port));
        match (place, followed) {
            (place, Some(followed)) if place == followed => Ok(()),
            ("", None) => Ok(()),
            ("", Some(_)) => upstream.map_or(Ok(()), |upstream| upstream.follow(None)),
            _ => Err(refused(
                "replication",
                "a server is followed from the first box.cfg on, or not at all",
            )),
        }
    }

    /// A later `box.cfg`.
    fn change(&self, node: &Node, wanted: &Wanted) -> Result<(), String> {
        if let Some(place) = &wanted.follows {
            ProgramHost::follow(node, place)?;
        }
        let writes = wanted.settings.iter().any(|(name, to)| name == "read-only" && to == "no");
        if writes && node.upstream.as_ref().is_some_and(|upstream| upstream.view().is_some()) {
            let why = "it follows another server; replication = {} makes it one that takes writes";
            return Err(refused("read_only", why));
        }
        if wanted.work_dir.is_some() || wanted.pid_file.is_some() {
            return Err("Can't set option 'work_dir' or 'pid_file' dynamically".to_owned());
        }
        let changed = match &node.follow_settings {
            Some(follower) => node.settings.set_many_with(&wanted.settings, |next, changed| {
                follower.follow(next, changed, None)
            }),
            None => node.settings.set_many(&wanted.settings),
        };
        let changed = changed.map_err(|error| error.to_string())?;
        if changed.contains(&"gate") {
            node.durability.gate_changed(node.settings.gate());
        }
        Ok(())
    }
}

/// Whether there may be data of a run before.
fn has_data(settings: &Settings) -> bool {
    std::fs::read_dir(settings.data()).is_ok_and(|mut entries| entries.next().is_some())
}

/// The terminal, once it is asked for; lines of the standard input where that is none.
#[derive(Default)]
struct ProgramTerminal {
    opened: Mutex<Option<Terminal>>,
}

impl ladon_app::Terminal for ProgramTerminal {
    fn read_line(&self, prompt: &str) -> Result<Option<String>, String> {
        if !io::stdin().is_terminal() {
            return match io::stdin().lines().next() {
                Some(line) => line.map(Some).map_err(|error| error.to_string()),
                None => Ok(None),
            };
        }
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let terminal = match &mut *opened {
            Some(terminal) => terminal,
            none => none.insert(Terminal::open("console_history", None)?),
        };
        Ok(match terminal.read_line(prompt)? {
            Line::Text(line) => {
                // The process may end by any statement.
                terminal.keep_history();
                Some(line)
            }
            Line::Interrupted => Some(String::new()),
            Line::End => None,
        })
    }
}

impl Host for ProgramHost {
    fn terminal(&mut self) -> Option<Arc<dyn ladon_app::Terminal>> {
        Some(Arc::clone(&self.terminal) as Arc<dyn ladon_app::Terminal>)
    }

    fn configure(
        &mut self,
        options: &[(String, Setting)],
    ) -> Result<Option<Box<dyn Data>>, String> {
        let wanted = translate(options)?;
        let without_meaning = wanted.without_meaning.join(", ");
        let done = match &self.node {
            Some(node) => self.change(&Arc::clone(node), &wanted).map(|()| None),
            None => self.start(wanted).map(Some),
        }?;
        if !without_meaning.is_empty() {
            tracing::warn!("box.cfg: these options have no meaning here: {without_meaning}");
        }
        Ok(done)
    }

    fn log(&mut self, level: u8, text: &str) {
        if self.node.is_none() {
            eprintln!("{text}");
            return;
        }
        log_line(level, text);
    }

    fn begin_checkpoint(&mut self) -> Result<(), String> {
        let node = self.node.as_ref().ok_or("Please call box.cfg{} first")?;
        self.made = node.durability.status().checkpoints_made;
        match node.durability.start_checkpoint() {
            // The one that is being made may lack what was just written.
            Err(CheckpointError::Busy) => Err(CheckpointError::Busy.to_string()),
            Err(error) => Err(error.to_string()),
            Ok(()) => Ok(()),
        }
    }

    fn checkpoint(&mut self) -> Option<Result<(), String>> {
        let Some(node) = &self.node else { return Some(Ok(())) };
        let status = node.durability.status();
        if status.checkpoint_in_progress {
            return None;
        }
        match status.last_checkpoint_ok {
            true => Some(Ok(())),
            false => Some(Err("the checkpoint failed; the server's log says why".to_owned())),
        }
    }

    fn is_stopping(&self) -> bool {
        self.stop.is_requested()
    }
}

/// Asks a program to end, and its server if that has nothing to do before. A program that does not
/// end is left where it is.
fn ask_to_end(inbox: &Inbox, stop: &Arc<StopSignal>) {
    /// A second more than `box.ctl.on_shutdown` gives its functions.
    const PATIENCE: Duration = Duration::from_secs(4);
    if !inbox.ask_to_end() {
        return stop.request(Shutdown::default());
    }
    let late = Arc::clone(stop);
    let watch = move || {
        std::thread::sleep(PATIENCE);
        late.request(Shutdown::default());
    };
    if std::thread::Builder::new().name("ladon-patience".into()).spawn(watch).is_err() {
        stop.request(Shutdown::default());
    }
}

/// A line of the module `log`.
fn log_record(record: &LogRecord<'_>) {
    log_line(record.level, record.text);
}

/// A line of a program, at the server's levels.
fn log_line(level: u8, text: &str) {
    match level {
        0..=3 => tracing::error!("{text}"),
        4 => tracing::warn!("{text}"),
        5 => tracing::info!("{text}"),
        6 => tracing::debug!("{text}"),
        _ => tracing::trace!("{text}"),
    }
}

/// Tells the program that its server is ready.
struct Supervisor {
    ready: Sender<Arc<Node>>,
    program: Arc<dyn Program>,
    exchanged: Arc<Exchanged>,
    stop: Arc<StopSignal>,
}

impl Lifecycle for Supervisor {
    fn ready(&self, node: &Arc<Node>) {
        Systemd.ready(node);
        if self.exchanged.has_begun.load(Relaxed) {
            tracing::error!("the data was exchanged: the program cannot go on with it");
            self.exchanged.is_late.store(true, Relaxed);
            self.stop.request(Shutdown::default());
            self.program.wake();
        }
        // The program waits for it.
        let _ = self.ready.send(Arc::clone(node));
    }

    fn stopping(&self) {
        Systemd.stopping();
        self.program.wake();
    }

    fn program(&self) -> Option<Arc<dyn Program>> {
        Some(Arc::clone(&self.program))
    }
}
