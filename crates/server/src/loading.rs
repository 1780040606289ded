//! Serves clients while the data is being loaded.
//!
//! ```text
//! clients --> LoadingThread: a node without data, which runs what may run without -----.
//!                                                                                      | sockets,
//! data directory --> recovery --> the node, the IO threads <---------------------------' sessions
//! ```
//!
//! As in Redis, commands that the table marks `LOADING` are answered (`INFO` reports the progress),
//! and other commands get `-LOADING`. Once the data is loaded, each connection continues at an IO
//! thread. A load that is soon over refuses nobody: who connects meanwhile waits in the listener's
//! queue, as with Redis.
//!
//! **Invariants:** the memory of each connection is bounded. The rest of a longer request waits in
//! the socket until an IO thread reads it. A client that leaves replies unread gets no further
//! replies.

use crate::io_thread::{Arriving, Handover, refusal, start_of};
use crate::listening::Listening;
use crate::protocol::Protocol;
use crate::shutdown::StopSignal;
use crate::worker::Carried;
use ladon_engine::{Keyspace, KeyspaceOptions, Scratch};
use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::client::session::Session;
use ladon_kernel::loading::Loading;
use ladon_kernel::local::Local;
use ladon_kernel::message::{Message, ThreadHandle};
use ladon_kernel::node::{CheckpointError, PersistenceStatus, Shutdown};
use ladon_kernel::node::{Durability, Node, NodeParts};
use ladon_kernel::pubsub::fan_out::{Delivery, FanOut};
use ladon_kernel::pubsub::published::ForThread;
use ladon_kernel::request::execute::{Request, execute};
use ladon_kernel::request::outcome::Flow;
use ladon_kernel::rng::Rng;
use ladon_kernel::statistics::latency_events::LatencyEvents;
use ladon_kernel::thread_parts::ThreadParts;
use ladon_log::Progress;
use ladon_net::{
    AfterInput, Backend as _, CloseReason, ConnId, ConnInfo, Listener, MioBackend, Outgoing, Sink,
    Waker,
};
use ladon_platform::{Clock, Process};
use ladon_record::{Gate, Lsn};
use ladon_resp::{Arg, Limits, Parser, Progress as Parsed, Proto, Reply};
use ladon_settings::Settings;
use parking_lot::Mutex;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A load that takes no longer than this is not noticed: clients wait that long before they are
/// told. Programs that start a server of their own send commands as soon as it can be connected to.
const SOON_OVER: Duration = Duration::from_millis(500);

/// Unread input of one connection above which reading from it stops.
const INPUT_BYTES_MAX: usize = 64 << 10;

/// Limit on the unread input of all connections together. A connection that sends more is closed.
const INPUT_BYTES_MAX_OF_ALL: usize = 64 << 20;

/// Replies are sent before another one makes them longer than this.
const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// Bytes that a `MONITOR` client or a subscriber may leave unread before it is closed.
const MONITORED_BYTES_MAX: usize = 16 << 20;

/// How long a client may take to read its last reply from this thread after loading.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(5);

/// How often requests held back by `CLIENT PAUSE` are tried again.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What the thread is created from.
#[derive(Clone)]
pub(crate) struct LoadingParts {
    pub(crate) settings: Arc<Settings>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) process: Arc<dyn Process>,
    pub(crate) latency_events: Arc<LatencyEvents>,
    pub(crate) listening: Arc<Listening>,
    pub(crate) stop: Arc<StopSignal>,
    pub(crate) run_id: String,
    pub(crate) io_backend: String,
    pub(crate) seed: u64,
}

/// Handle of the thread that serves clients while the data is being loaded.
pub(crate) struct LoadingThread {
    /// The thread's node, which has no data.
    pub(crate) node: Arc<Node>,
    progress: Arc<Loading>,
    successor: Arc<Mutex<Option<Successor>>>,
    waker: Waker,
    thread: JoinHandle<()>,
}

/// The threads that serve from now on.
struct Successor {
    handovers: Arc<[Handover]>,
    /// Signals that this thread has stopped accepting and running requests.
    resigned: Sender<()>,
}

impl LoadingThread {
    /// Starts it on its backend.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub(crate) fn start(backend: MioBackend, parts: LoadingParts) -> io::Result<LoadingThread> {
        let waker = backend.waker();
        let progress = Arc::new(Loading::new(parts.clock.unix_ms()));
        let databases = u16::try_from(parts.settings.databases()).unwrap_or(u16::MAX);
        let mut node = Node::new(NodeParts {
            keyspace: Arc::new(Keyspace::new(KeyspaceOptions { hash_seed: 0, databases })),
            settings: parts.settings,
            clock: parts.clock,
            durability: Arc::new(NothingYet { stop: Arc::clone(&parts.stop) }),
            threads: vec![ThreadHandle::new({
                let waker = waker.clone();
                move || waker.wake()
            })],
            run_id: parts.run_id,
            io_backend: parts.io_backend,
            table: ladon_commands::families::table(),
        });
        node.process = parts.process;
        node.latency_events = parts.latency_events;
        node.loading = Some(Arc::clone(&progress));
        node.follow_settings = Some(Box::new({
            let listening = Arc::clone(&parts.listening);
            move |settings, changed| listening.follow(settings, changed)
        }));
        let node = Arc::new(node);
        let successor = Arc::default();
        let room = Room {
            clients: Vec::new(),
            arrived: Vec::new(),
            input_bytes: 0,
            local: Local::new(0, Arc::clone(&node.stats[0]), Rng::new(parts.seed)),
            scratch: Scratch::default(),
            args: Vec::new(),
            messages: 0,
            node: Arc::clone(&node),
        };
        let (listening, stop) = (parts.listening, parts.stop);
        stop.add_waker({
            let waker = waker.clone();
            move || waker.wake()
        });
        let successor_of = Arc::clone(&successor);
        let thread = thread::Builder::new()
            .name("ladon-loading".into())
            .stack_size(ladon_kernel::scripts::STACK_BYTES);
        let thread = thread.spawn(move || {
            if let Err(error) = serve(backend, room, &listening, &successor_of, &stop) {
                tracing::error!("clients are not served while the data is loaded: {error}");
            }
        })?;
        Ok(LoadingThread { node, progress, successor, waker, thread })
    }

    /// Returns the callback that reports the loading progress to clients.
    pub(crate) fn note(&self) -> impl Fn(Progress) + Send + Sync + use<> {
        let noted = Arc::clone(&self.progress);
        move |progress| {
            noted.bytes_total.store(progress.bytes_total, Relaxed);
            noted.bytes_done.store(progress.bytes_done, Relaxed);
        }
    }

    /// Ends the thread because the server stops before loading is complete. Returns when nothing
    /// listens any more.
    pub(crate) fn end(self) {
        // A panic ends the process.
        let _ = self.thread.join();
    }

    /// Hands over after loading. Once this returns, no further request runs here. Each connection
    /// moves to an IO thread as soon as its client has read its last reply from here.
    pub(crate) fn resign(self, node: &Arc<Node>, handovers: &Arc<[Handover]>) {
        node.clients.continue_after(&self.node.clients);
        let until_ms = self.node.pause_until_ms();
        if let Some(what) = self.node.paused(node.clock.unix_ms()) {
            node.pause(until_ms, what);
        }
        let (resigned, has_resigned) = channel();
        let handovers = Arc::clone(handovers);
        *self.successor.lock() = Some(Successor { handovers, resigned });
        self.waker.wake();
        // If the backend failed or the server stops, the thread has ended and runs nothing either.
        while has_resigned.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout)
            && !self.thread.is_finished()
        {}
    }
}

struct Client {
    conn: ConnId,
    info: ConnInfo,
    session: Session,
    parser: Parser,
    input: Vec<u8>,
    /// Bytes of `input` whose requests have run.
    consumed: usize,
    output: Vec<u8>,
    in_flight: bool,
    /// Something has happened since this client was last attended to.
    is_awake: bool,
    /// Reading is paused.
    is_full: bool,
    input_ended: bool,
    /// Close the connection once its output is sent.
    closing: bool,
    /// Close the connection now.
    aborted: bool,
}

/// The thread's state, except the sockets.
struct Room {
    /// Indexed by slot.
    clients: Vec<Option<Box<Client>>>,
    arrived: Vec<(OwnedFd, ConnInfo)>,
    input_bytes: usize,
    local: Local,
    scratch: Scratch,
    args: Vec<Arg>,
    /// Published messages that were read so far.
    messages: u64,
    node: Arc<Node>,
}

/// The thread's loop. Ends when a successor has taken over and every client has moved or left, or
/// when the server stops.
fn serve(
    mut backend: MioBackend,
    mut room: Room,
    listening: &Listening,
    successor: &Mutex<Option<Successor>>,
    stop: &StopSignal,
) -> io::Result<()> {
    let mut listeners: Vec<Listener> = Vec::new();
    let serves_from = Instant::now() + SOON_OVER;
    loop {
        let rest = serves_from.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            follow(&mut backend, &mut listeners, listening)?;
            backend.poll(&mut room, Some(LOOK_EVERY))?;
        } else {
            backend.poll(&mut room, Some(rest))?;
        }
        if let Some(successor) = successor.lock().take() {
            backend.retain_listeners(|_| false);
            listening.change_hands();
            let Successor { handovers, resigned } = successor;
            // An error means that no thread waits for the signal.
            let _ = resigned.send(());
            return room.move_out(&mut backend, &handovers);
        }
        if stop.is_requested() {
            return Ok(());
        }
        for (socket, info) in std::mem::take(&mut room.arrived) {
            room.let_in(&mut backend, socket, info);
        }
        room.read_inbox();
        for slot in 0..room.clients.len() {
            room.attend(&mut backend, slot);
        }
    }
}

fn follow(
    backend: &mut MioBackend,
    listeners: &mut Vec<Listener>,
    listening: &Listening,
) -> io::Result<()> {
    let Some(mut wanted) = listening.news() else { return Ok(()) };
    // Who speaks another protocol waits in the listener's queue.
    wanted.retain(|listener| listener.index() == Protocol::Resp.listener_index());
    backend.retain_listeners(|listener| wanted.contains(listener));
    for listener in wanted.iter().filter(|listener| !listeners.contains(listener)) {
        backend.listen(listener.clone())?;
    }
    *listeners = wanted;
    Ok(())
}

impl Sink for Room {
    fn incoming(&mut self, socket: OwnedFd, info: ConnInfo) {
        self.arrived.push((socket, info));
    }

    fn received(&mut self, conn: ConnId, bytes: &[u8]) {
        let Some(client) = &mut self.clients[conn.slot as usize] else { return };
        if self.input_bytes > INPUT_BYTES_MAX_OF_ALL && client.input.len() > INPUT_BYTES_MAX {
            client.aborted = true;
        } else {
            client.input.extend_from_slice(bytes);
            self.input_bytes += bytes.len();
        }
        client.is_awake = true;
    }

    fn input_ended(&mut self, conn: ConnId) -> AfterInput {
        if let Some(client) = &mut self.clients[conn.slot as usize] {
            (client.input_ended, client.is_awake) = (true, true);
        }
        AfterInput::KeepSending
    }

    fn sent(&mut self, conn: ConnId, _buffer: Outgoing) {
        if let Some(client) = &mut self.clients[conn.slot as usize] {
            (client.in_flight, client.is_awake) = (false, true);
        }
    }

    fn closed(&mut self, conn: ConnId, _reason: CloseReason) {
        if let Some(client) = self.clients[conn.slot as usize].take() {
            self.input_bytes -= client.input.len();
            self.node.clients.remove(client.session.info.id);
        }
    }
}

impl Room {
    fn let_in(&mut self, backend: &mut MioBackend, socket: OwnedFd, info: ConnInfo) {
        let refusal = refusal(&self.node, &info);
        let conn = backend.adopt(socket);
        let start = start_of(conn, &info);
        let now_ms = self.node.clock.unix_ms();
        let shown = Arc::new(ClientInfo {
            id: self.node.clients.next_id(),
            slot: conn.slot,
            fd: start.fd,
            addr: start.addr,
            laddr: start.laddr,
            unix: start.unix,
            created_ms: now_ms,
            last_active_ms: now_ms.into(),
            resp: 2.into(),
            multi: (-1).into(),
            ..ClientInfo::default()
        });
        let session = Session::new(Arc::clone(&shown), !self.node.requires_login());
        let mut client = Box::new(Client {
            conn,
            info,
            session,
            parser: Parser::new(),
            input: Vec::new(),
            consumed: 0,
            output: Vec::new(),
            in_flight: false,
            is_awake: true,
            is_full: false,
            input_ended: false,
            closing: false,
            aborted: false,
        });
        if let Some(refusal) = refusal {
            Reply::new(&mut client.output, client.session.proto).error(refusal);
            client.closing = true;
        } else {
            self.node.clients.add(shown);
            self.local.stats.connections_received.add(1);
        }
        let slot = conn.slot as usize;
        if self.clients.len() <= slot {
            self.clients.resize_with(slot + 1, || None);
        }
        self.clients[slot] = Some(client);
    }

    fn read_inbox(&mut self) {
        for message in self.node.threads[0].take() {
            match message {
                Message::Deliver { client: id, slot, bytes, .. } => {
                    let client = self.clients.get_mut(slot as usize).and_then(Option::as_mut);
                    if let Some(client) = client.filter(|it| it.session.info.id == id) {
                        client.output.extend_from_slice(&bytes);
                        // The client does not read the monitor output that it asked for.
                        client.aborted |= client.output.len() > MONITORED_BYTES_MAX;
                        client.is_awake = true;
                    }
                }
                Message::Kill | Message::Evict { .. } => {
                    for client in self.clients.iter_mut().flatten() {
                        client.aborted |= client.session.info.killed.load(Relaxed);
                    }
                }
                Message::Pause => {
                    self.clients.iter_mut().flatten().for_each(|client| client.is_awake = true);
                }
                Message::Publish(message) => self.fan_out(message),
                // There are no keys to track, and only the transactions of data flush them.
                Message::Invalidate(invalid) => {
                    self.messages += 1;
                    self.node.pubsub.delivered(invalid.weight);
                }
                Message::Redirect(invalid) => {
                    self.messages += 1;
                    self.node.pubsub.delivered(invalid.weight);
                }
                // No client waits here for a key, for the log or for a job.
                Message::Answer(_) | Message::Unblock { .. } | Message::Computed { .. } => {}
            }
        }
    }

    /// Passes a message to all of its subscribers.
    fn fan_out(&mut self, message: ForThread) {
        /// Subscribers looked up at a time.
        const SLICE: usize = 64;
        let mut fan_out = FanOut::new(message, self.messages);
        self.messages += 1;
        let mut found = Vec::new();
        while !fan_out.is_over() {
            let bytes = fan_out.next(&self.local.subscribers, SLICE, &mut found);
            for &Delivery { client: id, slot } in &found {
                let client = self.clients.get_mut(slot as usize).and_then(Option::as_mut);
                let Some(client) = client.filter(|it| it.session.info.id == id) else { continue };
                let start = client.output.len();
                client.output.extend_from_slice(bytes);
                if client.session.proto == Proto::Resp3 {
                    client.output[start] = b'>';
                }
                client.aborted |= client.output.len() > MONITORED_BYTES_MAX;
                client.is_awake = true;
            }
        }
        self.node.pubsub.delivered(fan_out.weight);
    }

    /// Runs the requests that a connection has sent, and sends its replies.
    fn attend(&mut self, backend: &mut MioBackend, slot: usize) {
        let Some(mut client) = self.clients[slot].take() else { return };
        if std::mem::take(&mut client.is_awake) {
            let had = client.input.len();
            self.run(&mut client);
            client.input.drain(..client.consumed);
            client.consumed = 0;
            self.input_bytes -= had - client.input.len();
        }
        let is_full = client.input.len() >= INPUT_BYTES_MAX;
        if is_full != client.is_full {
            client.is_full = is_full;
            backend.pause_receive(client.conn, is_full);
        }
        if !client.in_flight && !client.output.is_empty() {
            client.in_flight = true;
            backend.send(client.conn, std::mem::take(&mut client.output));
        }
        let is_done = (client.closing || client.input_ended) && !client.in_flight;
        if client.aborted || is_done {
            self.input_bytes -= client.input.len();
            client.input = Vec::new();
            backend.close(client.conn);
        }
        let (session, info) = (&client.session, &client.session.info);
        info.db.store(session.db, Relaxed);
        info.resp.store(session.proto.number(), Relaxed);
        info.query_bytes.store(client.input.len(), Relaxed);
        info.query_capacity.store(client.input.capacity(), Relaxed);
        info.output_bytes.store(client.output.len(), Relaxed);
        self.clients[slot] = Some(client);
    }

    fn run(&mut self, client: &mut Client) {
        let bulk_bytes_max = self.node.settings.proto_max_bulk_len();
        let limits = Limits { bulk_bytes_max, ..Limits::default() };
        // A client that leaves its replies unread gets no further replies.
        while !client.in_flight
            && !client.closing
            && !client.aborted
            && client.output.len() < OUTPUT_BYTES_MAX
        {
            let unread = &client.input[client.consumed..];
            if unread.is_empty() {
                return;
            }
            self.args.clear();
            let limits = limits.with_authenticated(client.session.authenticated);
            let parsed = client.parser.parse(unread, &limits, &mut self.args);
            let owned;
            let (length, args): (usize, Vec<&[u8]>) = match parsed {
                Ok(Parsed::Complete { consumed }) => {
                    (consumed, self.args.iter().map(|arg| arg.of(unread)).collect())
                }
                Ok(Parsed::Inline { consumed, arguments }) => {
                    owned = arguments;
                    (consumed, owned.iter().map(Vec::as_slice).collect())
                }
                Ok(Parsed::Incomplete { .. }) => return,
                Err(error) => {
                    let proto = client.session.proto;
                    Reply::new(&mut client.output, proto).error(format!("ERR {error}"));
                    client.closing = true;
                    return;
                }
            };
            if args.is_empty() {
                client.consumed += length;
                continue;
            }
            let now_ms = self.node.clock.unix_ms();
            client.session.info.last_active_ms.store(now_ms, Relaxed);
            let request =
                Request { id: self.node.table.find(args[0]), args: &args, first_key: None };
            let mut thread = ThreadParts {
                node: &self.node,
                local: &mut self.local,
                scratch: &mut self.scratch,
                now_ms,
                append: &mut |_| unreachable!("there is no data to change"),
                pump: None,
            };
            let session = &mut client.session;
            let outcome = execute(&mut thread, session, request, &mut client.output);
            match outcome.flow {
                Flow::Continue => {}
                Flow::Close => client.closing = true,
                // No command that runs here waits.
                Flow::Drop | Flow::Block(_) | Flow::Compute => client.aborted = true,
                Flow::Paused
                | Flow::Again
                | Flow::GoesOn
                | Flow::AwaitsCommit
                | Flow::AwaitsReply => {
                    client.parser = Parser::new();
                    client.is_awake = true;
                    return;
                }
            }
            client.consumed += length;
        }
    }

    /// Moves every client to an IO thread, or closes it.
    fn move_out(mut self, backend: &mut MioBackend, handovers: &[Handover]) -> io::Result<()> {
        let until = Instant::now() + OUTPUT_PATIENCE;
        loop {
            for (socket, info) in std::mem::take(&mut self.arrived) {
                hand_over(handovers, Arriving { socket, info, carried: None });
            }
            for slot in 0..self.clients.len() {
                self.move_on(backend, slot, handovers);
            }
            let time = until.saturating_duration_since(Instant::now());
            if self.clients.iter().all(Option::is_none) || time.is_zero() {
                return Ok(());
            }
            backend.poll(&mut self, Some(time.min(LOOK_EVERY)))?;
        }
    }

    fn move_on(&mut self, backend: &mut MioBackend, slot: usize, handovers: &[Handover]) {
        let Some(client) = &mut self.clients[slot] else { return };
        if client.closing || client.aborted {
            if !client.in_flight || client.aborted {
                backend.close(client.conn);
            }
            return;
        }
        if !client.in_flight && !client.output.is_empty() {
            client.in_flight = true;
            backend.send(client.conn, std::mem::take(&mut client.output));
        }
        // Pausing here leaves what follows for the IO thread to read.
        backend.pause_receive(client.conn, true);
        let Some(socket) = backend.release(client.conn) else { return };
        let Some(client) = self.clients[slot].take() else { return };
        let Client { info, session, input, .. } = *client;
        self.node.clients.remove(session.info.id);
        let carried = Some(Box::new(Carried { session, input }));
        hand_over(handovers, Arriving { socket, info, carried });
    }
}

fn hand_over(handovers: &[Handover], arriving: Arriving) {
    if let Some((_, handover)) = Handover::choose(handovers) {
        handover.give(arriving);
    }
}

/// In place of the log and the checkpoints on a node without data.
struct NothingYet {
    stop: Arc<StopSignal>,
}

impl Durability for NothingYet {
    fn reserved(&self) -> Lsn {
        Lsn::ZERO
    }

    fn written(&self) -> Lsn {
        Lsn::ZERO
    }

    fn durable(&self) -> Lsn {
        Lsn::ZERO
    }

    fn want_durable(&self, _: Lsn) {}

    fn accepts_writes(&self) -> bool {
        true
    }

    fn failure(&self) -> Option<String> {
        None
    }

    fn status(&self) -> PersistenceStatus {
        PersistenceStatus { last_checkpoint_ok: true, log_ok: true, ..Default::default() }
    }

    fn start_checkpoint(&self) -> Result<(), CheckpointError> {
        Err(CheckpointError::Failed("the data is being loaded".to_owned()))
    }

    fn checkpoint(&self) -> Result<(), CheckpointError> {
        self.start_checkpoint()
    }

    /// The log reads the setting when it is opened.
    fn gate_changed(&self, _: Gate) {}

    fn request_shutdown(&self, shutdown: Shutdown) {
        self.stop.request(shutdown);
    }
}
