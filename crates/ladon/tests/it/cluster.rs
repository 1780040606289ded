//! Three servers as a cluster: made and changed by `ladon cluster`, killed, stopped, restarted.
//!
//! Waits are long, because machines that run tests are busy; nothing is asserted of a time.

mod followers;
mod witness;

use crate::common::{Run, ladon, until};
use crate::iproto::client::{Iproto, array, int, text};
use crate::live::{bulk, call, error, ok};
use ladon_crash::Client;
use ladon_iproto::Request;
use ladon_iproto::request::{Put, SpaceRef};
use ladon_resp::client::Value;
use ladon_testkit::Ports;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// So that a busy machine is no reason to elect anybody.
const FAILOVER_MS: &str = "1500";
const READ_ONLY: &str = "READONLY You can't write against a read only replica.";

struct Nodes {
    dir: TempDir,
    ports: Ports,
    running: Vec<Option<Child>>,
    gate: &'static str,
}

impl Nodes {
    /// So many servers that belong to no cluster yet.
    fn start(count: usize) -> Nodes {
        Nodes::start_at(count, "everysec")
    }

    /// The same at another default gate.
    fn start_at(count: usize, gate: &'static str) -> Nodes {
        let ports = Ports::take(5 * count).expect("free ports");
        let running = (0..count).map(|_| None).collect();
        let mut nodes = Nodes { dir: tempfile::tempdir().expect("a folder"), ports, running, gate };
        (0..count).for_each(|node| nodes.launch(node, "a secret"));
        nodes
    }

    fn port(&self, node: usize) -> u16 {
        self.ports.numbers()[node]
    }

    fn iproto_port(&self, node: usize) -> u16 {
        self.ports.numbers()[2 * self.running.len() + node]
    }

    fn memcached_port(&self, node: usize) -> u16 {
        self.ports.numbers()[3 * self.running.len() + node]
    }

    fn http_port(&self, node: usize) -> u16 {
        self.ports.numbers()[4 * self.running.len() + node]
    }

    fn address(&self, node: usize) -> String {
        format!("127.0.0.1:{}", self.port(node))
    }

    fn data(&self, node: usize) -> PathBuf {
        self.dir.path().join(format!("data-{node}"))
    }

    fn log(&self, node: usize) -> String {
        std::fs::read_to_string(self.dir.path().join(format!("log-{node}"))).unwrap_or_default()
    }

    /// A server of its own, on the directory of a node that runs no more.
    fn launch_alone(&mut self, node: usize) {
        let child = Command::new(env!("CARGO_BIN_EXE_ladon"))
            .args(["serve", "--resp", &self.address(node), "--io-threads", "1", "--data"])
            .arg(self.data(node))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        self.running[node] = Some(child);
        self.is_up(node);
    }

    fn launch(&mut self, node: usize, secret: &str) {
        let mesh = self.ports.numbers()[self.running.len() + node];
        let log = self.dir.path().join(format!("log-{node}"));
        let log = OpenOptions::new().create(true).append(true).open(log).expect("a file");
        let child = Command::new(env!("CARGO_BIN_EXE_ladon"))
            .args(["serve", "--resp", &self.address(node), "--io-threads", "1"])
            .args(["--iproto", &format!("127.0.0.1:{}", self.iproto_port(node))])
            .args(["--iproto-admin-password", "a word"])
            .args(["--memcached", &format!("127.0.0.1:{}", self.memcached_port(node))])
            .args(["--http", &format!("127.0.0.1:{}", self.http_port(node))])
            .args(["--gate", self.gate, "--data"])
            .arg(self.data(node))
            .args(["--cluster-enabled", "yes", "--cluster-secret", secret])
            .args(["--cluster-port", &mesh.to_string(), "--failover-timeout", FAILOVER_MS])
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("starts");
        self.running[node] = Some(child);
        self.is_up(node);
    }

    fn is_up(&self, node: usize) {
        until("an answer", || {
            let mut client = Client::connect(self.port(node)).ok()?;
            client.call(&["PING"]).ok().filter(|reply| *reply == Value::Simple("PONG".into()))
        });
    }

    fn client(&self, node: usize) -> Client {
        until("a connection", || Client::connect(self.port(node)).ok())
    }

    fn kill(&mut self, node: usize) {
        if let Some(mut child) = self.running[node].take() {
            child.kill().expect("kills");
            child.wait().expect("it was killed");
        }
    }

    fn signal(&self, node: usize, signal: Signal) {
        let child = self.running[node].as_ref().expect("it runs");
        kill(Pid::from_raw(child.id() as i32), signal).expect("signals");
    }

    fn cluster(&self, arguments: &[&str]) -> Run {
        ladon(&[&["cluster"], arguments].concat())
    }

    /// Makes a cluster of the first so many.
    fn form(&self, count: usize) {
        let addresses: Vec<String> = (0..count).map(|node| self.address(node)).collect();
        let words: Vec<&str> = ["create", "--timeout", "90"]
            .into_iter()
            .chain(addresses.iter().map(|a| &a[..]))
            .collect();
        let ran = self.cluster(&words);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stdout.matches("follower").count(), count - 1, "{}", ran.stdout);
    }

    fn fact(&self, node: usize, name: &str) -> Option<String> {
        let mut client = Client::connect(self.port(node)).ok()?;
        let timeout = Some(Duration::from_secs(2));
        client.stream().set_read_timeout(timeout).ok()?;
        let Value::Array(status) = client.call(&["LADON.CLUSTER", "STATUS"]).ok()? else {
            return None;
        };
        let text = |value: &Value| String::from_utf8(value.as_bytes()?.to_vec()).ok();
        let at = status.iter().step_by(2).position(|it| text(it).as_deref() == Some(name))?;
        text(&status[2 * at + 1])
    }

    /// Which of these leads.
    fn leader(&self, among: &[usize]) -> usize {
        until("a leader", || {
            let leads = |node: &&usize| self.fact(**node, "role").as_deref() == Some("leader");
            among.iter().find(leads).copied()
        })
    }

    /// Waits until the node shows this value.
    fn shows(&self, node: usize, key: &str, value: &str) {
        until(&format!("{key} at node {node}"), || {
            let mut client = Client::connect(self.port(node)).ok()?;
            client.call(&["GET", key]).ok().filter(|reply| *reply == bulk(value))
        });
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        (0..self.running.len()).for_each(|node| self.kill(node));
    }
}

/// An error's text; of other replies, what tells them apart.
fn told(reply: &Value) -> String {
    match reply {
        Value::Error(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    }
}

/// Says stop even if the thread that holds it panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn quorum(client: &mut Client) {
    assert_eq!(call(client, &["CLIENT", "GATE", "quorum"]), ok());
}

#[test]
fn three_nodes_are_one_and_survive_the_leaders_death() {
    let mut nodes = Nodes::start(3);
    let outside = told(&call(&mut nodes.client(1), &["GET", "a"]));
    assert!(outside.starts_with("CLUSTERDOWN"), "{outside}");
    nodes.form(3);
    let leader = nodes.leader(&[0, 1, 2]);
    let mut client = nodes.client(leader);
    assert_eq!(call(&mut client, &["SET", "a", "1"]), ok());
    assert_eq!(call(&mut client, &["MSET", "b", "2", "c", "3"]), ok());
    let followers: Vec<usize> = (0..3).filter(|&node| node != leader).collect();
    for &node in &followers {
        nodes.shows(node, "c", "3");
        let mut client = nodes.client(node);
        assert_eq!(call(&mut client, &["SET", "a", "9"]), error(READ_ONLY));
        quorum(&mut client);
        assert_eq!(call(&mut client, &["PING"]), Value::Simple("PONG".into()));
        assert_eq!(call(&mut client, &["GET", "a"]), bulk("1"));
    }
    quorum(&mut client);
    for count in 1..=20 {
        assert_eq!(call(&mut client, &["INCR", "count"]), Value::Integer(count));
    }
    nodes.kill(leader);
    let next = nodes.leader(&followers);
    let mut client = nodes.client(next);
    quorum(&mut client);
    assert_eq!(call(&mut client, &["GET", "count"]), bulk("20"));
    assert_eq!(call(&mut client, &["INCR", "count"]), Value::Integer(21));
    // The one that was killed comes back, and follows.
    nodes.launch(leader, "a secret");
    nodes.shows(leader, "count", "21");
    assert_eq!(call(&mut nodes.client(leader), &["DEL", "count"]), error(READ_ONLY));
    // All go, and come back with all data.
    (0..3).for_each(|node| nodes.kill(node));
    (0..3).for_each(|node| nodes.launch(node, "a secret"));
    let leader = nodes.leader(&[0, 1, 2]);
    assert_eq!(
        call(&mut nodes.client(leader), &["MGET", "a", "count"]),
        Value::Array(vec![bulk("1"), bulk("21")])
    );
}

#[test]
fn quorum_is_the_gate_of_all() {
    let nodes = Nodes::start_at(3, "quorum");
    // What tells of no data is answered before there is a cluster, and by followers.
    let is_quick = |node: usize| {
        let mut client = nodes.client(node);
        assert_eq!(call(&mut client, &["PING"]), Value::Simple("PONG".into()));
        assert_eq!(call(&mut client, &["CLIENT", "SETNAME", "name"]), ok());
        assert!(matches!(call(&mut client, &["ROLE"]), Value::Array(_)));
        assert!(call(&mut client, &["INFO"]).as_bytes().is_some());
    };
    (0..3).for_each(is_quick);
    nodes.form(3);
    let leader = nodes.leader(&[0, 1, 2]);
    let mut client = nodes.client(leader);
    assert_eq!(call(&mut client, &["EXISTS", "key"]), Value::Integer(0));
    assert_eq!(call(&mut client, &["SET", "key", "value"]), ok());
    assert_eq!(call(&mut client, &["GET", "key"]), bulk("value"));
    for node in (0..3).filter(|&node| node != leader) {
        is_quick(node);
        // What is committed is told there, too.
        let mut listener = nodes.client(node);
        let events = ["CONFIG", "SET", "notify-keyspace-events", "K$"];
        assert_eq!(call(&mut listener, &events), ok());
        let heard = call(&mut listener, &["SUBSCRIBE", "__keyspace@0__:told"]);
        assert!(matches!(heard, Value::Array(_)), "{heard:?}");
        assert_eq!(call(&mut client, &["SET", "told", "value"]), ok());
        let event = ["message", "__keyspace@0__:told", "set"].map(bulk).to_vec();
        assert_eq!(listener.reply().expect("an event"), Value::Array(event));
        let mut client = nodes.client(node);
        assert_eq!(call(&mut client, &["SET", "key", "other"]), error(READ_ONLY));
        assert_eq!(call(&mut client, &["GET", "key"]), bulk("value"));
    }
}

/// Node 0 is a server of its own that got 300 keys, and perhaps made a checkpoint in their midst.
fn with_data_from_before(saves: bool) -> Nodes {
    let mut nodes = Nodes::start(3);
    nodes.kill(0);
    nodes.launch_alone(0);
    nodes.fill(0, |client, number| {
        if number == 200 && saves {
            assert_eq!(call(client, &["SAVE"]), ok());
        }
    });
    nodes.kill(0);
    nodes.launch(0, "a secret");
    nodes
}

impl Nodes {
    fn fill(&self, node: usize, mut then: impl FnMut(&mut Client, usize)) {
        let mut client = self.client(node);
        for number in 0..300 {
            let (key, value) = (format!("key:{number}"), "v".repeat(number));
            assert_eq!(call(&mut client, &["SET", &key, &value]), ok());
            then(&mut client, number);
        }
    }

    /// Waits until the node shows the last value, and looks at the 300 keys.
    fn shows_all(&self, node: usize, last: &str) {
        self.shows(node, "last", last);
        let mut client = self.client(node);
        for number in 0..300 {
            let value = call(&mut client, &["GET", &format!("key:{number}")]);
            assert_eq!(value, bulk(&"v".repeat(number)), "key:{number} at node {node}");
        }
    }

    fn set_last(&self, last: &str) {
        let mut client = self.client(self.leader(&[0, 1, 2]));
        quorum(&mut client);
        assert_eq!(call(&mut client, &["SET", "last", last]), ok());
    }

    /// All are killed, and know as little of what is committed as after a power cut.
    fn forget_what_is_committed(&mut self) {
        (0..3).for_each(|node| self.kill(node));
        for node in 0..3 {
            std::fs::remove_file(self.data(node).join("committed")).expect("it was there");
            self.launch(node, "a secret");
        }
        self.leader(&[0, 1, 2]);
    }
}

fn a_cluster_begins_with_data(saves: bool) {
    let mut nodes = with_data_from_before(saves);
    nodes.form(3);
    nodes.set_last("1");
    (0..3).for_each(|node| nodes.shows_all(node, "1"));
    nodes.forget_what_is_committed();
    nodes.set_last("2");
    (0..3).for_each(|node| nodes.shows_all(node, "2"));
    // A checkpoint in the midst of an entry, whose records behind it are in no other one.
    nodes.fill(nodes.leader(&[0, 1, 2]), |client, number| {
        if number % 100 == 50 {
            // Another one may be under way.
            let mut begins = || matches!(call(client, &["BGSAVE"]), Value::Simple(_));
            until("a checkpoint", || begins().then_some(()));
        }
    });
    nodes.set_last("3");
    nodes.forget_what_is_committed();
    (0..3).for_each(|node| nodes.shows_all(node, "3"));
}

#[test]
fn what_is_left_of_a_cluster_goes_on_alone_and_as_the_first_of_another() {
    let mut nodes = Nodes::start(3);
    nodes.form(3);
    nodes.fill(nodes.leader(&[0, 1, 2]), |_, _| {});
    nodes.set_last("1");
    nodes.shows_all(1, "1");
    let dir = nodes.data(1);
    let dir = dir.to_str().expect("a name");
    let used = nodes.cluster(&["recover", dir]);
    assert_eq!((used.code, used.stderr.contains("stop it first")), (3, true), "{}", used.stderr);
    // Two burn.
    (0..3).for_each(|node| nodes.kill(node));
    for node in [0, 2] {
        std::fs::remove_dir_all(nodes.data(node)).expect("it was there");
    }
    let asked = nodes.cluster(&["recover", dir]);
    assert_eq!(asked.code, 3, "{}", asked.stderr);
    let consent = asked.stderr.split_once("Then: ").expect("how to go on").1.trim();
    let consent: Vec<&str> = consent.split(' ').collect();
    let other = nodes.cluster(&["recover", dir, "--accept-loss-after", "1"]);
    assert_eq!((other.code, other.stderr.contains("not at 1")), (3, true), "{}", other.stderr);
    let ran = nodes.cluster(&[&["recover", dir], &consent[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    nodes.launch_alone(1);
    nodes.shows_all(1, "1");
    nodes.kill(1);
    (0..3).for_each(|node| nodes.launch(node, "a secret"));
    let addresses = [1, 0, 2].map(|node| nodes.address(node));
    let words = ["create", "--timeout", "90", &addresses[0], &addresses[1], &addresses[2]];
    let ran = nodes.cluster(&words);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    (0..3).for_each(|node| nodes.shows_all(node, "1"));
    nodes.set_last("2");
    (0..3).for_each(|node| nodes.shows_all(node, "2"));
    nodes.forget_what_is_committed();
    (0..3).for_each(|node| nodes.shows_all(node, "2"));
}

#[test]
fn a_server_with_data_becomes_the_first_of_a_cluster() {
    a_cluster_begins_with_data(true);
}

#[test]
fn a_server_whose_log_alone_has_data_becomes_the_first_of_a_cluster() {
    a_cluster_begins_with_data(false);
}

#[test]
fn box_info_tells_of_the_cluster() {
    let nodes = Nodes::start(3);
    nodes.form(3);
    let leader = nodes.leader(&[0, 1, 2]);
    let follower = (leader + 1) % 3;
    let mut infos = Vec::new();
    for node in [leader, follower] {
        let mut client = Iproto::connect(nodes.iproto_port(node));
        client.log_in("admin", "a word").expect("logs in");
        let info = client.call("box.info", &array(&[])).expect("facts").concat();
        let is_there = |words: &[u8]| info.windows(words.len()).any(|part| part == words);
        let number = nodes.fact(node, "member").expect("a number").parse().expect("a number");
        let [ro, state, stream] = match node == leader {
            true => [vec![0xc2], text("leader"), text("downstream")],
            false => [vec![0xc3], text("follower"), text("upstream")],
        };
        for fact in [
            [text("id"), int(number)],
            [text("ro"), ro],
            [text("state"), state],
            [text("quorum"), int(2)],
            [stream, Vec::new()],
        ] {
            let fact = fact.concat();
            assert!(is_there(&fact), "{}: {info:02x?}", String::from_utf8_lossy(&fact));
        }
        assert_eq!(is_there(&[text("ro_reason"), text("election")].concat()), node == follower);
        let space = SpaceRef::Id(272);
        let tuple = &array(&[text("name"), int(1)])[..];
        let put = client.ask(&Request::Replace(Put { space, tuple }));
        infos.push((client.last_sync(), put));
    }
    let (_, refused) = infos.pop().expect("two");
    let refused = refused.expect_err("it follows");
    assert_eq!((refused.0, refused.1.contains("read-only instance")), (7, true), "{refused:?}");
}

#[test]
fn a_leader_that_was_stopped_shows_nothing_old_and_takes_back_what_was_not_committed() {
    let mut nodes = Nodes::start(3);
    nodes.form(3);
    let leader = nodes.leader(&[0, 1, 2]);
    let followers: Vec<usize> = (0..3).filter(|&node| node != leader).collect();
    assert_eq!(call(&mut nodes.client(leader), &["SET", "key", "before"]), ok());
    followers.iter().for_each(|&node| nodes.shows(node, "key", "before"));
    let mut old = nodes.client(leader);
    quorum(&mut old);
    // Killed, not stopped: what reaches the machine of one that stands still waits for it there.
    followers.iter().for_each(|&node| nodes.kill(node));
    let written = call(&mut nodes.client(leader), &["SET", "key", "lost"]);
    nodes.signal(leader, Signal::SIGSTOP);
    followers.iter().for_each(|&node| nodes.launch(node, "a secret"));
    let next = nodes.leader(&followers);
    assert_eq!(call(&mut nodes.client(next), &["GET", "key"]), bulk("before"));
    assert_eq!(call(&mut nodes.client(next), &["SET", "key", "after"]), ok());
    nodes.signal(leader, Signal::SIGCONT);
    // Refused, undecided, or cut off: but not the old value.
    if let Ok(answer) = old.call(&["GET", "key"]) {
        let refused = told(&answer);
        let is_refused = ["NOQUORUM", "UNKNOWNOUTCOME"].iter().any(|it| refused.starts_with(it));
        assert!(is_refused, "{refused}");
    }
    nodes.shows(leader, "key", "after");
    if written == ok() {
        assert_eq!(nodes.fact(leader, "rewinds").as_deref(), Some("1"));
        assert!(nodes.log(leader).contains("it is taken back, and the data is read anew"));
    }
    assert_eq!(call(&mut nodes.client(leader), &["SET", "key", "x"]), error(READ_ONLY));
}

#[test]
fn members_change_and_leaders_hand_over_without_loss() {
    let nodes = Nodes::start(4);
    nodes.form(3);
    let first = nodes.address(0);
    let mut waiting = nodes.client(nodes.leader(&[0, 1, 2]));
    waiting.request(&["BLPOP", "list", "0"]).expect("sends");
    let stop = AtomicBool::new(false);
    thread::scope(|threads| {
        // Follows the leader, and counts with it.
        let writer = threads.spawn(|| {
            let (mut least, mut most) = (0, 0);
            while !stop.load(Relaxed) {
                let mut client = nodes.client(nodes.leader(&[0, 1, 2, 3]));
                if !matches!(client.call(&["CLIENT", "GATE", "quorum"]), Ok(reply) if reply == ok())
                {
                    continue;
                }
                loop {
                    most += 1;
                    match client.call(&["INCR", "count"]) {
                        Ok(Value::Integer(count)) => {
                            assert!(
                                (least + 1..=most).contains(&count),
                                "{count}: {least}, {most}"
                            );
                            (least, most) = (count, count);
                        }
                        // Refused, or undecided.
                        _ => break,
                    }
                    if stop.load(Relaxed) {
                        break;
                    }
                }
            }
            (least, most)
        });
        // The writer ends whatever becomes of this thread: the scope waits for it.
        let stopping = StopOnDrop(&stop);
        for _ in 0..3 {
            let ran = nodes.cluster(&["failover", &first, "--timeout", "90"]);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
        }
        let ran =
            nodes.cluster(&["replace-node", &first, &first, &nodes.address(3), "--timeout", "90"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        drop(stopping);
        let (least, most) = writer.join().expect("no count was lost");
        let leader = nodes.leader(&[1, 2, 3]);
        let count = call(&mut nodes.client(leader), &["GET", "count"]);
        let count: i64 = String::from_utf8_lossy(count.as_bytes().unwrap()).parse().unwrap();
        assert!((least..=most).contains(&count), "{count}, acknowledged {least}, asked {most}");
        nodes.shows(3, "count", &count.to_string());
    });
    let unblocked = told(&waiting.reply().expect("a reply"));
    assert!(unblocked.starts_with("UNBLOCKED"), "{unblocked}");
    let status = nodes.cluster(&["status", &nodes.address(3)]);
    assert!(!status.stdout.contains(&first), "{}", status.stdout);
    let ran = nodes.cluster(&["remove-node", &nodes.address(3), "77"]);
    assert_eq!((ran.code, ran.stderr.contains("the cluster has no member 77")), (2, true));
    // No entry for nothing: a member keeps what changed since its checkpoint.
    let mut client = nodes.client(nodes.leader(&[1, 2, 3]));
    let refused = call(&mut client, &["LADON.CLUSTER", "REMOVE", "77"]);
    assert_eq!(refused, error("ERR there is no member 77"));
}

/// Threads that serve clients look at the cluster, also inside a transaction, while the thread of the
/// cluster waits for them to end what they run.
#[test]
fn who_asks_how_things_stand_keeps_nobody_from_leading() {
    let nodes = Nodes::start(3);
    nodes.form(3);
    let stop = AtomicBool::new(false);
    let asks = |node: usize, requests: &[&[&str]]| {
        while !stop.load(Relaxed) {
            let Ok(mut client) = Client::connect(nodes.port(node)) else { continue };
            for request in requests.iter().cycle() {
                let reply = client.call(request);
                let late = |it: &std::io::Error| it.kind() == std::io::ErrorKind::WouldBlock;
                assert!(!reply.as_ref().is_err_and(late), "node {node} answers no {request:?}");
                if reply.is_err() || stop.load(Relaxed) {
                    break;
                }
            }
        }
    };
    thread::scope(|threads| {
        let stopping = StopOnDrop(&stop);
        let asks = &asks;
        for node in 0..3 {
            threads.spawn(move || asks(node, &[&["LADON.CLUSTER", "STATUS"]]));
            threads.spawn(move || {
                let words: [&[&str]; 5] = [
                    &["MULTI"],
                    &["INCR", "count"],
                    &["ROLE"],
                    &["INFO", "replication"],
                    &["EXEC"],
                ];
                asks(node, &words);
            });
        }
        for _ in 0..12 {
            let ran = nodes.cluster(&["failover", &nodes.address(0), "--timeout", "90"]);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
        }
        drop(stopping);
    });
}

#[test]
fn a_replica_has_the_data_and_no_vote() {
    let mut nodes = Nodes::start(4);
    nodes.form(3);
    nodes.fill(nodes.leader(&[0, 1, 2]), |_, _| {});
    nodes.set_last("1");
    let ran = nodes.cluster(&["add-node", &nodes.address(0), &nodes.address(3), "--replica"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout.matches("  replica  ").count(), 1, "{}", ran.stdout);
    nodes.shows_all(3, "1");
    let mut client = nodes.client(3);
    assert_eq!(call(&mut client, &["SET", "last", "2"]), error(READ_ONLY));
    let refused = told(&call(&mut client, &["REPLICAOF", "NO", "ONE"]));
    assert!(refused.starts_with("ERR this node follows"), "{refused}");
    let leader = nodes.leader(&[0, 1, 2]);
    let mut writer = nodes.client(leader);
    assert_eq!(call(&mut writer, &["WAIT", "3", "0"]), Value::Integer(3));
    let lead = nodes.cluster(&["failover", &nodes.address(0), &nodes.address(3)]);
    assert_eq!((lead.code, lead.stderr.contains("no such voting")), (3, true), "{}", lead.stderr);
    // Alone with one voter it is no majority.
    (0..3).filter(|&node| node != leader).for_each(|node| nodes.kill(node));
    until("the leader to be cut off", || {
        let refused = nodes.client(leader).call(&["SET", "last", "lost"]).ok()?;
        told(&refused).starts_with("NOQUORUM").then_some(())
    });
    (0..3).filter(|&node| node != leader).for_each(|node| nodes.launch(node, "a secret"));
    nodes.leader(&[0, 1, 2]);
    nodes.set_last("3");
    nodes.shows_all(3, "3");
    let ran = nodes.cluster(&["remove-node", &nodes.address(0), &nodes.address(3)]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stdout.contains("replica"), "{}", ran.stdout);
}

#[test]
fn who_does_not_belong_is_refused() {
    let mut nodes = Nodes::start(3);
    for (arguments, told) in [
        (vec!["create", "--shards", "2"], "one shard for now"),
        (vec!["create", "--replicas", "5"], "are 6 nodes (one more with a witness), not 3"),
    ] {
        let addresses: Vec<String> = (0..3).map(|node| nodes.address(node)).collect();
        let words: Vec<&str> =
            arguments.into_iter().chain(addresses.iter().map(|address| &address[..])).collect();
        let ran = nodes.cluster(&words);
        assert_eq!((ran.code, ran.stderr.contains(told)), (2, true), "{}", ran.stderr);
    }
    let two = nodes.cluster(&["create", &nodes.address(0), &nodes.address(1)]);
    assert_eq!((two.code, two.stderr.contains("two nodes stop")), (2, true), "{}", two.stderr);
    nodes.form(1);
    // Another secret.
    nodes.kill(1);
    nodes.launch(1, "another secret");
    let ran = nodes.cluster(&["add-node", &nodes.address(0), &nodes.address(1), "--timeout", "4"]);
    assert_eq!(
        (ran.code, ran.stderr.contains("gave up waiting for member")),
        (3, true),
        "{}",
        ran.stderr
    );
    // A member's directory is nobody else's.
    nodes.kill(0);
    let port = nodes.address(2);
    nodes.kill(2);
    let data = nodes.data(0);
    let ran = ladon(&["serve", "--resp", &port, "--data", data.to_str().expect("a name")]);
    assert!(
        ran.code != 0 && ran.stderr.contains("is the directory of member 1 of a cluster"),
        "{}",
        ran.stderr
    );
    // A plain server has no such gate, and is no node.
    let ran = ladon(&["serve", "--gate", "quorum", "--resp", &port]);
    assert_eq!(
        (ran.code, ran.stderr.contains("for nodes of a cluster")),
        (2, true),
        "{}",
        ran.stderr
    );
}
