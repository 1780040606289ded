use crate::assembly::{Assembly, node_over};
use crate::connection::ConnectionStart;
use crate::loading::nothing_yet;
use crate::protocol::Protocol;
use crate::worker::{Net, Worker, WorkerParts};
use ladon_engine::{Keyspace, KeyspaceOptions};
use ladon_kernel::dataset::Dataset;
use ladon_kernel::loading::Loading;
use ladon_kernel::message::ThreadHandle;
use ladon_kernel::node::Node;
use ladon_log::Log;
use ladon_net::{ConnId, Outgoing};
use ladon_platform::{Clock, SystemClock};
use ladon_settings::Loader;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

const LOADING: &str = "-LOADING Ladon is loading the dataset in memory\r\n";
const NEWS: &str = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n";

/// Takes everything at once.
#[derive(Default)]
struct Wire(VecDeque<(ConnId, Outgoing)>);

impl Net for Wire {
    fn send(&mut self, conn: ConnId, outgoing: Outgoing, _more: bool) {
        self.0.push_back((conn, outgoing));
    }

    fn close(&mut self, conn: ConnId) {
        panic!("{conn:?} was closed");
    }

    fn pause_receive(&mut self, _: ConnId, _: bool) {}
}

/// Two threads over a node that has no data yet.
struct Bench {
    node: Arc<Node>,
    workers: Vec<Worker>,
}

fn conn(slot: u32) -> ConnId {
    ConnId { slot, generation: 0 }
}

impl Bench {
    fn new() -> Bench {
        Bench::with(&[("gate", "none")])
    }

    fn with(set: &[(&str, &str)]) -> Bench {
        let mut loader = Loader::new();
        set.iter().for_each(|(name, value)| loader.flag(name, value));
        let settings = Arc::new(loader.finish().expect("settings").0);
        let assembly = Assembly {
            settings,
            clock: Arc::new(SystemClock),
            threads: (0..2).map(|_| ThreadHandle::new(|| {})).collect(),
            run_id: "0".repeat(40),
            io_backend: "none".to_owned(),
        };
        let shared = assembly.shared();
        let nothing = nothing_yet(&shared, Arc::new(Loading::new(0)), Arc::default());
        let node = Arc::new(node_over(shared, nothing));
        let worker = |thread| {
            let wake = Arc::new(|| {});
            let node = Arc::clone(&node);
            let (dropper, aside) = (None, None);
            Worker::new(WorkerParts { node, thread, seed: 1, wake, dropper, aside })
        };
        Bench { workers: vec![worker(0), worker(1)], node }
    }

    fn connect(&mut self, thread: usize, slot: u32) {
        let start = ConnectionStart {
            certificate: None,
            user: None,
            transport_bytes: 0,
            conn: conn(slot),
            addr: format!("{thread}.{slot}"),
            laddr: String::new(),
            fd: 0,
            unix: false,
            protocol: Protocol::Resp,
        };
        self.workers[thread].opened(start, None);
    }

    fn send(&mut self, thread: usize, slot: u32, line: &str) {
        self.workers[thread].received(conn(slot), format!("{line}\r\n").as_bytes());
    }

    /// One turn of a thread. Returns what it has sent to the connection in this slot.
    fn turn(&mut self, thread: usize, slot: u32) -> String {
        let mut wire = Wire::default();
        self.workers[thread].turn(&mut wire);
        let mut sent = String::new();
        while let Some((to, outgoing)) = wire.0.pop_front() {
            if to == conn(slot) {
                sent += std::str::from_utf8(&outgoing).expect("text");
            }
            self.workers[thread].sent(to, outgoing);
        }
        sent
    }

    fn asked(&mut self, thread: usize, line: &str) -> String {
        self.send(thread, 0, line);
        self.turn(thread, 0)
    }

    /// Other data, whose keys have other hashes, and its keyspace.
    fn exchange(&self) -> Arc<Keyspace> {
        let options = KeyspaceOptions { hash_seed: 7, databases: 16 };
        let keyspace = Arc::new(Keyspace::new(options));
        let clock: Arc<dyn Clock> = Arc::clone(&self.node.clock);
        self.node.exchange(Dataset {
            keyspace: Arc::clone(&keyspace),
            log: Log::nowhere(clock),
            durability: Arc::clone(&self.node.durability),
            loading: None,
        });
        keyspace
    }
}

#[test]
fn no_request_runs_before_all_threads_have_the_new_data() {
    let mut bench = Bench::new();
    for thread in 0..2 {
        bench.connect(thread, 0);
        assert_eq!(bench.asked(thread, "GET k"), LOADING);
    }
    bench.exchange();
    // It has the new data, and the other thread may still run requests on the data before.
    assert_eq!(bench.asked(0, "SET k v"), "");
    assert_eq!(bench.turn(0, 0), "");
    assert_eq!(bench.asked(1, "GET k"), "$-1\r\n", "the last thread need not wait");
    assert_eq!(bench.turn(0, 0), "+OK\r\n");
    assert_eq!(bench.asked(1, "GET k"), "$1\r\nv\r\n");
}

/// At a member that reads its data anew. The log of nothing commits nothing.
#[test]
fn a_refused_transaction_waits_for_no_data_that_is_not_there() {
    let mut bench = Bench::with(&[("cluster-enabled", "yes"), ("gate", "quorum")]);
    for thread in 0..2 {
        bench.connect(thread, 0);
    }
    assert_eq!(bench.asked(0, "MULTI"), "+OK\r\n");
    assert_eq!(bench.asked(0, "SET k v"), LOADING);
    let refused = bench.asked(0, "EXEC");
    assert!(refused.starts_with("-EXECABORT"), "{refused}");
    bench.exchange();
    assert_eq!(bench.asked(0, "PING"), "");
    bench.turn(1, 0);
    assert_eq!(bench.turn(0, 0), "+PONG\r\n");
}

#[test]
fn a_thread_that_runs_nothing_is_not_waited_for() {
    let mut bench = Bench::new();
    bench.connect(0, 0);
    bench.workers.pop();
    bench.exchange();
    assert_eq!(bench.asked(0, "SET k v"), "+OK\r\n");
}

#[test]
fn connections_keep_what_they_have() {
    let mut bench = Bench::new();
    for (thread, slot) in [(0, 0), (1, 0), (1, 1), (1, 2)] {
        bench.connect(thread, slot);
    }
    bench.send(1, 1, "SUBSCRIBE news");
    bench.send(1, 2, "MONITOR");
    assert_eq!(bench.asked(1, "WATCH k"), "+OK\r\n");
    assert_eq!(bench.asked(1, "MULTI"), "+OK\r\n");
    // Half a request.
    bench.workers[0].received(conn(0), b"*2\r\n$4\r\nECHO\r\n$2\r\n");
    bench.turn(0, 0);
    bench.exchange();
    bench.turn(0, 0);
    bench.turn(1, 0);
    bench.workers[0].received(conn(0), b"hi\r\n");
    assert_eq!(bench.turn(0, 0), "$2\r\nhi\r\n");
    assert_eq!(bench.asked(0, "PUBLISH news hi"), ":1\r\n");
    assert_eq!(bench.turn(1, 1), NEWS);
    bench.asked(0, "SET k v");
    assert!(bench.turn(1, 2).contains("\"SET\" \"k\" \"v\""), "it monitors still");
    assert_eq!(bench.asked(1, "EXEC"), "*-1\r\n", "what it watched has come");
}

#[test]
fn the_new_data_gets_the_settings_that_changed_meanwhile() {
    let mut bench = Bench::new();
    for thread in 0..2 {
        bench.connect(thread, 0);
    }
    let keyspace = bench.exchange();
    bench.turn(0, 0);
    // As a request on the data before does that runs after the first thread has the new data.
    bench.node.settings.set_many(&[("set-max-intset-entries", "5")]).expect("a setting");
    bench.node.apply_limits();
    bench.turn(1, 0);
    assert_eq!(keyspace.limits().set_intset_entries.load(Relaxed), 5);
}
