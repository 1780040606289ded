//! What the loop alone costs: a responder that knows only PING, on each backend; and how
//! unevenly 50 connections spread over threads.
//!
//! ```text
//! cargo run --profile fast -p ladon-net --example echo -- cpu [ROUNDS [PIPELINE...]]
//! cargo run --profile fast -p ladon-net --example echo -- balance
//! cargo run --profile fast -p ladon-net --example echo -- serve io_uring|mio PORT [CORE]
//! cargo run --profile fast -p ladon-net --example echo -- load PORT SECONDS PIPELINE
//! ```
//!
//! `cpu` gives the responder the first core and the load, a loop of the same kind that has as
//! many requests under way per connection as `PIPELINE` says, the second (it needs `taskset`).
//! Its figures are microseconds of the responder's thread per request (the scheduler's own count,
//! kernel side included), medians of interleaved rounds.

use ladon_net::*;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

const BACKENDS: [(&str, BackendChoice); 2] =
    [("io_uring", BackendChoice::IoUring), ("mio", BackendChoice::Mio)];
const ROUND: Duration = Duration::from_millis(800);
const PONG: &[u8] = b"+PONG\r\n";
const CONNECTIONS: usize = 50;
/// `*1 $4 PING`, as redis-benchmark sends it.
const PING_BYTES: usize = 14;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["cpu", ref rest @ ..] => {
            let mut numbers = rest.iter().filter_map(|text| text.parse::<usize>().ok());
            let rounds = numbers.next().unwrap_or(5);
            let mut pipelines: Vec<usize> = numbers.collect();
            if pipelines.is_empty() {
                pipelines = vec![1, 16, 64];
            }
            cpu(rounds, &pipelines);
        }
        ["balance"] => balance(),
        ["serve", backend, port, ref core @ ..] if core.len() < 2 => {
            let choice = BACKENDS.iter().find(|(name, _)| *name == backend).expect("a backend").1;
            let stop = Arc::new(AtomicBool::new(false));
            let port = port.parse().expect("a port");
            if let [core] = core {
                pin(core.parse().expect("a core"));
            }
            let responder = Responder::new(choice, stop, listener(port, false).0);
            responder.run(None);
        }
        ["load", port, seconds, pipeline] => {
            let port: u16 = port.parse().expect("a port");
            pin(1);
            load(
                ([127, 0, 0, 1], port).into(),
                pipeline.parse().expect("a number"),
                Duration::from_secs(seconds.parse().expect("seconds")),
            );
        }
        _ => {
            eprintln!(
                "echo cpu [ROUNDS [PIPELINE...]] | balance | serve BACKEND PORT [CORE] | load PORT SECONDS PIPELINE"
            );
            std::process::exit(2);
        }
    }
}

fn cpu(rounds: usize, pipelines: &[usize]) {
    println!(
        "CPU us per request, median of {rounds} interleaved rounds, {CONNECTIONS} connections"
    );
    for &pipeline in pipelines {
        let mut figures = [Vec::new(), Vec::new()];
        for round in 0..rounds {
            for turn in 0..BACKENDS.len() {
                let which = (turn + round) % BACKENDS.len();
                figures[which].push(measure(BACKENDS[which].1, pipeline));
            }
        }
        for (which, figures) in figures.iter_mut().enumerate() {
            figures.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (us, per_turn) = figures[figures.len() / 2];
            println!(
                "P={pipeline:<3} {:<9} {us:.3} us   {per_turn:.1} requests/turn   ({:.3} to {:.3})",
                BACKENDS[which].0,
                figures[0].0,
                figures[figures.len() - 1].0
            );
        }
    }
}

/// CPU microseconds per request, and requests per turn of the loop.
fn measure(choice: BackendChoice, pipeline: usize) -> (f64, f64) {
    let stop = Arc::new(AtomicBool::new(false));
    let (listener, address) = listener(0, false);
    let responder = Responder::new(choice, stop.clone(), listener);
    let waker = responder.backend.waker();
    let worker = thread::spawn(move || {
        pin(0);
        let before = on_cpu_ns();
        let counts = responder.run(None);
        (on_cpu_ns() - before, counts)
    });
    let load = thread::spawn(move || {
        pin(1);
        load(address, pipeline, ROUND);
    });
    load.join().expect("the load");
    stop.store(true, Ordering::Relaxed);
    waker.wake();
    let (ns, counts) = worker.join().expect("the responder");
    let requests = counts.requests as f64;
    (ns as f64 / 1000.0 / requests, requests / counts.turns as f64)
}

/// Asks for as long as `time` on all connections, `pipeline` requests at a time on each.
fn load(address: SocketAddr, pipeline: usize, time: Duration) {
    let mut backend = MioBackend::new().expect("mio");
    let mut state = State::default();
    for _ in 0..CONNECTIONS {
        let socket = TcpStream::connect(address).expect("connect");
        socket.set_nodelay(true).expect("nodelay");
        let conn = backend.adopt(socket.into());
        state.partial.push(0);
        state.owed.push((conn, pipeline));
    }
    let ask = b"*1\r\n$4\r\nPING\r\n".repeat(pipeline);
    let answer_bytes = PONG.len() * pipeline;
    let until = Instant::now() + time;
    while Instant::now() < until {
        for (conn, _) in state.owed.drain(..) {
            let mut buffer = state.spare.pop().unwrap_or_default();
            buffer.extend_from_slice(&ask);
            backend.send_last(conn, buffer);
        }
        let mut sink = Answers { state: &mut state, answer_bytes };
        backend.poll(&mut sink, Some(ROUND)).expect("poll");
    }
}

struct Answers<'a> {
    state: &'a mut State,
    answer_bytes: usize,
}

impl Sink for Answers<'_> {
    fn incoming(&mut self, _socket: OwnedFd, _info: ConnInfo) {}

    fn received(&mut self, conn: ConnId, bytes: &[u8]) {
        let partial = &mut self.state.partial[conn.slot as usize];
        *partial += bytes.len();
        if *partial == self.answer_bytes {
            *partial = 0;
            self.state.owed.push((conn, 1));
        }
    }

    fn sent(&mut self, conn: ConnId, buffer: Outgoing) {
        self.state.sent(conn, buffer);
    }

    fn closed(&mut self, _conn: ConnId, _reason: CloseReason) {}
}

fn balance() {
    const TRIALS: usize = 40;
    println!("{CONNECTIONS} connections, {TRIALS} trials: connections of the busiest thread");
    for threads in [2, 4] {
        let even = CONNECTIONS.div_ceil(threads);
        for hand_over in [false, true] {
            let mut busiest: Vec<usize> =
                (0..TRIALS).map(|_| spread(threads, hand_over)).map(|s| s[0]).collect();
            busiest.sort_unstable();
            println!(
                "{threads} threads, {:<18} even {even}   median {}   worst {}",
                if hand_over { "acceptor hands over" } else { "SO_REUSEPORT" },
                busiest[TRIALS / 2],
                busiest[TRIALS - 1],
            );
        }
    }
}

/// Connections per thread, the busiest first.
fn spread(threads: usize, hand_over: bool) -> Vec<usize> {
    let stop = Arc::new(AtomicBool::new(false));
    let (first, address) = listener(0, !hand_over);
    let mut first = Some(first);
    let mut workers = Vec::new();
    let mut wakers = Vec::new();
    let counters: Arc<Vec<AtomicUsize>> =
        Arc::new((0..threads).map(|_| AtomicUsize::new(0)).collect());
    let (senders, inboxes): (Vec<_>, Vec<_>) = (0..threads).map(|_| channel()).unzip();
    let mut backends: Vec<_> =
        (0..threads).map(|_| AnyBackend::new(BackendChoice::Auto).expect("a backend").0).collect();
    wakers.extend(backends.iter().map(Backend::waker));
    for (index, inbox) in inboxes.into_iter().enumerate() {
        let mut backend = backends.remove(0);
        if index == 0 {
            backend.listen(first.take().expect("once")).expect("listen");
        } else if !hand_over {
            backend.listen(listener(address.port(), true).0).expect("listen");
        }
        let responder = Responder { backend, stop: stop.clone(), state: State::default() };
        let mates = Mates {
            inbox,
            others: hand_over.then(|| senders.iter().cloned().zip(wakers.clone()).collect()),
            next: 0,
        };
        let counters = counters.clone();
        workers.push(thread::spawn(move || {
            let counts = responder.run(Some(mates));
            counters[index].store(counts.connections, Ordering::Relaxed);
        }));
    }
    let clients: Vec<_> =
        (0..CONNECTIONS).map(|_| TcpStream::connect(address).expect("connect")).collect();
    thread::sleep(Duration::from_millis(20));
    stop.store(true, Ordering::Relaxed);
    wakers.iter().for_each(Waker::wake);
    workers.into_iter().for_each(|worker| worker.join().expect("a worker"));
    drop(clients);
    let mut counts: Vec<_> =
        counters.iter().map(|counter| counter.load(Ordering::Relaxed)).collect();
    assert_eq!(counts.iter().sum::<usize>(), CONNECTIONS);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

fn listener(port: u16, reuse_port: bool) -> (Listener, SocketAddr) {
    let address = ListenAddress::Tcp(([127, 0, 0, 1], port).into());
    let options = ListenOptions { reuse_port, ..ListenOptions::default() };
    let listener = Listener::bind(&address, &options, 0).expect("bind");
    let PeerAddr::Tcp(address) = listener.local() else { unreachable!("it is a TCP listener") };
    let address = *address;
    (listener, address)
}

/// One thread's loop.
struct Responder {
    backend: AnyBackend,
    stop: Arc<AtomicBool>,
    state: State,
}

/// The other threads, for the acceptor that deals sockets out in turn.
struct Mates {
    inbox: Receiver<OwnedFd>,
    others: Option<Vec<(Sender<OwnedFd>, Waker)>>,
    next: usize,
}

#[derive(Default)]
struct State {
    incoming: Vec<OwnedFd>,
    /// Replies owed this turn.
    owed: Vec<(ConnId, usize)>,
    /// Bytes of an incomplete request, by slot.
    partial: Vec<usize>,
    spare: Vec<Vec<u8>>,
    counts: Counts,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    requests: u64,
    turns: u64,
    connections: usize,
}

impl Responder {
    fn new(choice: BackendChoice, stop: Arc<AtomicBool>, listener: Listener) -> Responder {
        let (mut backend, _) = AnyBackend::new(choice).expect("a backend");
        backend.listen(listener).expect("listen");
        Responder { backend, stop, state: State::default() }
    }

    fn run(self, mut mates: Option<Mates>) -> Counts {
        let Responder { mut backend, stop, mut state } = self;
        while !stop.load(Ordering::Relaxed) {
            backend.poll(&mut state, Some(Duration::from_millis(100))).expect("poll");
            if let Some(mates) = &mut mates {
                mates.deal(&mut state.incoming);
                state.incoming.extend(mates.inbox.try_iter());
            }
            for socket in state.incoming.drain(..) {
                let conn = backend.adopt(socket);
                state.counts.connections += 1;
                if state.partial.len() <= conn.slot as usize {
                    state.partial.resize(conn.slot as usize + 1, 0);
                }
                state.partial[conn.slot as usize] = 0;
            }
            state.counts.turns += u64::from(!state.owed.is_empty());
            for (conn, replies) in state.owed.drain(..) {
                state.counts.requests += replies as u64;
                let mut buffer = state.spare.pop().unwrap_or_default();
                for _ in 0..replies {
                    buffer.extend_from_slice(PONG);
                }
                backend.send_last(conn, buffer);
            }
        }
        state.counts
    }
}

impl Mates {
    fn deal(&mut self, sockets: &mut Vec<OwnedFd>) {
        let Some(others) = &self.others else { return };
        for socket in sockets.drain(..) {
            let (sender, waker) = &others[self.next % others.len()];
            self.next += 1;
            sender.send(socket).expect("the thread lives");
            waker.wake();
        }
    }
}

impl Sink for State {
    fn incoming(&mut self, socket: OwnedFd, _info: ConnInfo) {
        self.incoming.push(socket);
    }

    fn received(&mut self, conn: ConnId, bytes: &[u8]) {
        if bytes.starts_with(b"*3") {
            // redis-benchmark asks for the configuration first, and takes no for an answer.
            self.owed.push((conn, 1));
            return;
        }
        let partial = &mut self.partial[conn.slot as usize];
        *partial += bytes.len();
        let replies = *partial / PING_BYTES;
        *partial %= PING_BYTES;
        if replies > 0 {
            // One buffer in flight per connection: what came in pieces is answered at once.
            match self.owed.last_mut() {
                Some((last, owed)) if *last == conn => *owed += replies,
                _ => self.owed.push((conn, replies)),
            }
        }
    }

    fn sent(&mut self, _conn: ConnId, buffer: Outgoing) {
        let Outgoing::Buffer(mut buffer) = buffer else { return };
        buffer.clear();
        self.spare.push(buffer);
    }

    fn closed(&mut self, _conn: ConnId, _reason: CloseReason) {}
}

fn pin(core: usize) {
    let tid = fs::read_link("/proc/thread-self").expect("proc");
    let tid = tid.file_name().expect("a task").to_string_lossy().into_owned();
    let pinned = Command::new("taskset")
        .args(["-cp", &core.to_string(), &tid])
        .stdout(Stdio::null())
        .status();
    assert!(pinned.is_ok_and(|status| status.success()), "taskset");
}

/// Nanoseconds that this thread was on a CPU.
fn on_cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    text.split(' ').next().and_then(|field| field.parse().ok()).expect("a number")
}
