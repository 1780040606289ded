//! Client-side caching on the real binary: no copy stays outdated, whichever threads its keeper and
//! the writers live on; nothing is shown before its gate; slow and vanished clients are bounded.

use crate::live::{bulk, call, info_number, ok, on_both_backends};
use crate::sick_disk::{SOON, SickDisk, WHILE};
use ladon_crash::{Client, Launch, Server};
use ladon_resp::client::Value;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const FOUR_THREADS: &[&str] = &["--io-threads", "4"];

/// After this long without an invalidation, none is on its way.
const QUIET: Duration = Duration::from_millis(300);

fn connect(server: &Server) -> Client {
    server.connect().expect("connects")
}

/// A client that keeps copies of what it reads.
struct Cacher {
    client: Client,
    copies: HashMap<String, Value>,
    invalidations: usize,
}

impl Cacher {
    /// Over RESP3, tracked with these options.
    fn new(server: &Server, options: &[&str]) -> Cacher {
        let mut client = connect(server);
        call(&mut client, &["HELLO", "3"]);
        let words = [&["CLIENT", "TRACKING", "ON"], options].concat();
        assert_eq!(call(&mut client, &words), ok());
        Cacher { client, copies: HashMap::new(), invalidations: 0 }
    }

    /// Forgets what a push says.
    fn invalidate(&mut self, push: &[Value]) {
        self.invalidations += 1;
        match push {
            [kind, Value::Array(keys)] if *kind == bulk("invalidate") => {
                for key in keys {
                    let key = key.as_bytes().expect("a key");
                    self.copies.remove(&*String::from_utf8_lossy(key));
                }
            }
            [kind, Value::Null] if *kind == bulk("invalidate") => self.copies.clear(),
            other => panic!("{other:?}"),
        }
    }

    fn reply(&mut self) -> Value {
        loop {
            match self.client.reply().expect("a reply") {
                Value::Push(push) => self.invalidate(&push),
                reply => return reply,
            }
        }
    }

    fn call(&mut self, words: &[&str]) -> Value {
        self.client.request(words).expect("sent");
        self.reply()
    }

    /// Reads some keys in one pipeline, and keeps their values.
    fn read(&mut self, keys: &[&str]) {
        for key in keys {
            self.client.request(&["GET", key]).expect("sent");
        }
        for key in keys {
            let value = self.reply();
            self.copies.insert((*key).to_owned(), value);
        }
    }

    /// Handles what comes until nothing does.
    fn settle(&mut self) {
        while self.client.has_reply_within(QUIET).expect("open") {
            match self.client.reply().expect("a push") {
                Value::Push(push) => self.invalidate(&push),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Compares each copy with the value that it is of.
    fn check(&mut self, server: &Server, what: &str) {
        self.settle();
        let mut reader = connect(server);
        for (key, copy) in &self.copies {
            assert_eq!(call(&mut reader, &["GET", key]), *copy, "{what}: {key}");
        }
    }
}

/// Changes a few keys in every way, as often as a test's readers need.
fn write_until(server: &Server, seed: u64, end: &AtomicBool) {
    let mut client = connect(server);
    let mut random = seed;
    while !end.load(Relaxed) {
        for _ in 0..20 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (key, value) = (format!("k{}", random >> 33 & 7), random.to_string());
            let words: &[&str] = match random >> 40 & 15 {
                0 => &["DEL", &key],
                1 => &["MSET", "k0", &value, &key, &value],
                2 => &["SET", &key, &value, "PX", "1"],
                3 => &["RENAME", &key, "k3"],
                4 => &["APPEND", &key, "x"],
                _ => &["SET", &key, &value],
            };
            client.request(words).expect("sent");
        }
        (0..20).for_each(|_| drop(client.reply().expect("a reply")));
    }
}

#[test]
fn no_copy_stays_outdated() {
    const KEYS: [&str; 8] = ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"];
    for options in [&[][..], &["NOLOOP"], &["BCAST"], &["BCAST", "PREFIX", "k"]] {
        on_both_backends(FOUR_THREADS, |server| {
            let end = AtomicBool::new(false);
            let mut cachers: Vec<Cacher> = (0..8).map(|_| Cacher::new(server, options)).collect();
            thread::scope(|scope| {
                let end = &end;
                let writers: Vec<_> = (1..5)
                    .map(|seed| scope.spawn(move || write_until(server, seed, end)))
                    .collect();
                let readers: Vec<_> = cachers
                    .iter_mut()
                    .map(|cacher| {
                        scope.spawn(move || {
                            for round in 0..400 {
                                cacher.read(&KEYS[round % 3..]);
                                if round % 10 == 0 {
                                    // Its own change, among its own reads.
                                    cacher.call(&["MULTI"]);
                                    cacher.call(&["INCRBY", "k-own", "1"]);
                                    cacher.call(&["GET", "k-own"]);
                                    cacher.call(&["EXEC"]);
                                    cacher.read(&["k-own"]);
                                }
                            }
                        })
                    })
                    .collect();
                readers.into_iter().for_each(|reader| reader.join().expect("no panic"));
                end.store(true, Relaxed);
                writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
            });
            // Keys that were to expire have.
            thread::sleep(Duration::from_millis(20));
            for cacher in &mut cachers {
                cacher.check(server, &format!("{options:?}"));
                assert!(cacher.invalidations > 100, "{}", cacher.invalidations);
            }
        });
    }
}

/// The keys of the next invalidation.
fn invalid(client: &mut Client) -> Vec<String> {
    let reply = client.reply().expect("a push");
    let Value::Push(parts) = &reply else { panic!("{reply:?}") };
    match parts.as_slice() {
        [_, Value::Array(keys)] => keys
            .iter()
            .map(|key| String::from_utf8_lossy(key.as_bytes().expect("a key")).into_owned())
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_invalidation_waits_for_its_receivers_gate() {
    for backend in ["auto", "mio"] {
        let arguments = ["--gate", "fsync", "--io-threads", "2", "--io-backend", backend];
        let disk = SickDisk::new(&arguments);
        let server = disk.start();
        let mut writer = connect(&server);
        let mut cachers: Vec<Cacher> =
            [&[][..], &["BCAST"]].map(|options| Cacher::new(&server, options)).into();
        let mut target = connect(&server);
        let Value::Integer(id) = call(&mut target, &["CLIENT", "ID"]) else { panic!("a number") };
        call(&mut target, &["HELLO", "3"]);
        cachers.push(Cacher::new(&server, &["REDIRECT", &id.to_string()]));
        assert_eq!(call(&mut writer, &["CLIENT", "GATE", "none"]), ok());
        assert_eq!(call(&mut writer, &["SET", "k", "old"]), ok());
        for cacher in &mut cachers {
            cacher.settle();
            cacher.read(&["k"]);
        }
        let mut receivers: Vec<Client> = cachers.drain(..2).map(|cacher| cacher.client).collect();
        receivers.push(target);
        for words in [&["SET", "k", "new"][..], &["FLUSHALL"]] {
            disk.set("hold-sync");
            assert_eq!(call(&mut writer, words), ok(), "it does not wait");
            for receiver in &mut receivers {
                assert!(!receiver.has_reply_within(WHILE).expect("open"), "{words:?}: too early");
            }
            disk.unset("hold-sync");
            for receiver in &mut receivers {
                assert!(receiver.has_reply_within(SOON).expect("open"), "{words:?}");
                receiver.reply().expect("a push");
            }
        }
    }
}

/// Rounds of `kill -9` while a client writes at the gate `none`. Returns the keys of which a
/// tracker at its own gate learned that they had changed, and which are gone.
fn lost(gate: &str, rounds: u32) -> BTreeSet<String> {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--io-threads", "2", "--gate", "none"];
    let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &arguments);
    let mut lost = BTreeSet::new();
    for round in 0..rounds {
        let mut server = launch.start().expect("starts");
        let mut tracker = connect(&server);
        call(&mut tracker, &["HELLO", "3"]);
        assert_eq!(call(&mut tracker, &["CLIENT", "GATE", gate]), ok());
        assert_eq!(call(&mut tracker, &["CLIENT", "TRACKING", "ON", "BCAST"]), ok());
        let mut writer = connect(&server);
        let is_told = AtomicBool::new(false);
        let told: Vec<String> = thread::scope(|scope| {
            scope.spawn(move || {
                for at in 0.. {
                    let mut sent = writer.request(&["SET", &format!("{round}.{at}"), "v"]);
                    if at % 20 == 19 {
                        while writer.has_reply_within(Duration::from_micros(10)).unwrap_or(false) {
                            sent = sent.and_then(|()| writer.reply().map(drop));
                        }
                    }
                    if sent.is_err() {
                        return;
                    }
                }
            });
            let reader = scope.spawn(|| {
                let mut told = Vec::new();
                while let Ok(Value::Push(parts)) = tracker.reply() {
                    let Some(Value::Array(keys)) = parts.get(1) else { continue };
                    let keys = keys.iter().filter_map(Value::as_bytes);
                    told.extend(keys.map(|key| String::from_utf8_lossy(key).into_owned()));
                    is_told.store(true, Relaxed);
                }
                told
            });
            thread::sleep(Duration::from_millis(u64::from(20 + round * 7 % 30)));
            // On a busy machine, a sync may take longer.
            let begun = Instant::now();
            while !is_told.load(Relaxed) && begun.elapsed() < SOON {
                thread::sleep(Duration::from_millis(1));
            }
            server.kill().expect("killed");
            reader.join().expect("no panic")
        });
        let mut server = launch.start().expect("starts again");
        let mut reader = connect(&server);
        assert!(!told.is_empty(), "nobody was told of anything");
        for key in told {
            if call(&mut reader, &["GET", &key]) != bulk("v") {
                lost.insert(key);
            }
        }
        server.kill().expect("killed");
    }
    lost
}

#[test]
fn nobody_learns_of_a_change_that_a_crash_takes_back() {
    let lost = lost("fsync", 6);
    assert!(lost.is_empty(), "{lost:?}");
}

/// The disk writes nothing, and the server is killed: at the gate `none` the tracker has learned of
/// the change that is gone, at the others it has not.
#[test]
fn a_tracker_learns_what_a_crash_takes_back_at_the_gate_none_only() {
    for (gate, learns) in [("none", true), ("write", false), ("fsync", false)] {
        let disk = SickDisk::new(&["--gate", "none", "--io-threads", "2"]);
        let mut server = disk.start();
        let mut writer = connect(&server);
        let mut tracker = Cacher::new(&server, &["BCAST"]);
        tracker.call(&["CLIENT", "GATE", gate]);
        disk.set("hold-write");
        assert_eq!(call(&mut writer, &["SET", "k", "v"]), ok());
        let wait = if learns { SOON } else { WHILE };
        assert_eq!(tracker.client.has_reply_within(wait).expect("open"), learns, "{gate}");
        server.kill().expect("killed");
        disk.unset("hold-write");
        let server = disk.start();
        assert_eq!(call(&mut connect(&server), &["GET", "k"]), Value::Null, "{gate}");
    }
}

/// A wait that another thread serves: its reply may be on its way when the value changes again.
#[test]
fn an_invalidation_follows_the_reply_of_a_wait() {
    on_both_backends(&["--io-threads", "3", "--gate", "fsync"], |server| {
        let mut writers: Vec<Client> = (0..2).map(|_| connect(server)).collect();
        let mut cacher = Cacher::new(server, &[]);
        for round in 0..300 {
            let stream = format!("s{round}");
            cacher.client.request(&["XREAD", "BLOCK", "0", "STREAMS", &stream, "0"]).expect("sent");
            while info_number(&mut writers[0], "clients", "blocked_clients") == 0 {}
            // Both at once: the second may come before the first one's reply has passed its gate.
            for writer in &mut writers {
                writer.request(&["XADD", &stream, "*", "f", "v"]).expect("sent");
            }
            writers.iter_mut().for_each(|writer| drop(writer.reply().expect("an id")));
            // What the client knows in the end: how many entries it has read, if that is still
            // valid.
            let mut known = None;
            while known.is_none() || cacher.client.has_reply_within(SHORT).expect("open") {
                match cacher.client.reply().expect("something") {
                    Value::Push(_) if known.is_some() => known = Some(None),
                    Value::Push(_) => {}
                    Value::Map(map) => {
                        let Value::Array(entries) = &map[0].1 else { panic!("{map:?}") };
                        known = Some(Some(entries.len()));
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert!(matches!(known, Some(None | Some(2))), "round {round}: {known:?} of 2 entries");
        }
    });
}

/// Longer than an invalidation takes that nothing holds back.
const SHORT: Duration = Duration::from_millis(20);

#[test]
fn the_table_is_bounded_and_forgets_clients_that_left() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        let set = ["CONFIG", "SET", "tracking-table-max-keys", "1000"];
        assert_eq!(call(&mut control, &set), ok());
        let names: Vec<String> = (0..20_000).map(|at| format!("key:{at}")).collect();
        let mut cachers: Vec<Cacher> = (0..4).map(|_| Cacher::new(server, &[])).collect();
        for cacher in &mut cachers {
            for part in names.chunks(500) {
                let part: Vec<&str> = part.iter().map(String::as_str).collect();
                cacher.read(&part);
            }
        }
        // Who is no longer tracked for a key was told.
        for cacher in &mut cachers {
            cacher.settle();
        }
        let number = |control: &mut Client, name| info_number(control, "stats", name);
        let keys = number(&mut control, "tracking_total_keys");
        assert!((500..=1000).contains(&keys), "{keys}");
        let copies: BTreeSet<&String> =
            cachers.iter().flat_map(|cacher| cacher.copies.keys()).collect();
        assert!(copies.len() <= keys as usize, "{} copies of {keys} keys", copies.len());
        let items: usize = cachers.iter().map(|cacher| cacher.copies.len()).sum();
        assert_eq!(number(&mut control, "tracking_total_items"), items as u64);
        // A lower limit, without any reading.
        let set = ["CONFIG", "SET", "tracking-table-max-keys", "10"];
        assert_eq!(call(&mut control, &set), ok());
        cachers.iter_mut().for_each(Cacher::settle);
        // Two threads may both take out the last one that is too many.
        let keys = number(&mut control, "tracking_total_keys");
        assert!((6..=10).contains(&keys), "{keys}");
        // Clients leave, and their numbers go to others, who have read nothing.
        let left = cachers.split_off(2);
        let of_left = left.iter().map(|cacher| cacher.copies.len()).sum::<usize>() as u64;
        let before = number(&mut control, "tracking_total_items");
        drop(left);
        let mut tries = 0;
        // Who had nothing left to forget may leave last.
        while number(&mut control, "tracking_total_items") != before - of_left
            || info_number(&mut control, "clients", "tracking_clients") != 2
        {
            tries += 1;
            assert!(tries < 100, "clients that left are not forgotten");
            thread::sleep(Duration::from_millis(20));
        }
        let mut fresh: Vec<Cacher> = (0..4).map(|_| Cacher::new(server, &[])).collect();
        // The last ten may all have been of those who left.
        let set = ["CONFIG", "SET", "tracking-table-max-keys", "1000"];
        assert_eq!(call(&mut control, &set), ok());
        cachers.iter_mut().for_each(|cacher| cacher.read(&["key:0", "key:1"]));
        let told = cachers.iter().map(|cacher| cacher.invalidations).sum::<usize>();
        let all: Vec<&str> = names.iter().flat_map(|name| [name.as_str(), "v"]).collect();
        let mset = [&["MSET"][..], &all].concat();
        assert_eq!(call(&mut control, &mset), ok());
        cachers.iter_mut().chain(&mut fresh).for_each(Cacher::settle);
        assert!(fresh.iter().all(|cacher| cacher.invalidations == 0));
        let copies: usize = cachers.iter().map(|cacher| cacher.copies.len()).sum();
        let told_now = cachers.iter().map(|cacher| cacher.invalidations).sum::<usize>();
        assert!(copies == 0 && told_now > told, "{copies} outdated copies");
        assert_eq!(number(&mut control, "tracking_total_keys"), 0);
    });
}

#[test]
fn everybody_learns_of_a_flush_and_the_first_change_of_a_key() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut writer = connect(server);
        let mut cachers: Vec<Client> = (0..300).map(|_| Cacher::new(server, &[]).client).collect();
        for round in 0..3 {
            for client in &mut cachers {
                call(client, &["GET", "k"]);
            }
            assert_eq!(call(&mut writer, &["SET", "k", &round.to_string()]), ok());
            assert_eq!(call(&mut writer, &["SET", "k", "again"]), ok());
            for client in &mut cachers {
                assert_eq!(invalid(client), ["k"], "round {round}");
            }
        }
        assert_eq!(call(&mut writer, &["FLUSHALL"]), ok());
        for client in &mut cachers {
            let push = client.reply().expect("a push");
            assert_eq!(push, Value::Push(vec![bulk("invalidate"), Value::Null]));
            assert!(!client.has_reply_within(Duration::from_millis(1)).expect("open"));
        }
    });
}

#[test]
fn invalidations_go_to_the_connection_that_was_chosen_until_it_leaves() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut writer = connect(server);
        // On four threads, so that most are not on the receiver's.
        let mut receiver = connect(server);
        let Value::Integer(id) = call(&mut receiver, &["CLIENT", "ID"]) else { panic!("a number") };
        call(&mut receiver, &["SUBSCRIBE", "__redis__:invalidate"]);
        let mut readers: Vec<Client> =
            (0..8).map(|_| Cacher::new(server, &["REDIRECT", &id.to_string()]).client).collect();
        for (at, reader) in readers.iter_mut().enumerate() {
            call(reader, &["GET", &format!("k{at}")]);
            call(reader, &["GET", "all"]);
        }
        let message = |name: &str| {
            let (kind, channel) = (bulk("message"), bulk("__redis__:invalidate"));
            Value::Array(vec![kind, channel, Value::Array(vec![bulk(name)])])
        };
        for at in 0..8 {
            let name = format!("k{at}");
            call(&mut writer, &["SET", &name, "v"]);
            assert_eq!(receiver.reply().expect("a message"), message(&name));
        }
        call(&mut writer, &["SET", "all", "v"]);
        for _ in 0..8 {
            assert_eq!(receiver.reply().expect("a message"), message("all"));
        }
        drop(receiver);
        while info_number(&mut writer, "clients", "connected_clients") != 9 {
            thread::sleep(Duration::from_millis(5));
        }
        for reader in &mut readers {
            call(reader, &["GET", "all"]);
        }
        call(&mut writer, &["SET", "all", "v"]);
        for reader in &mut readers {
            let broken = vec![bulk("tracking-redir-broken"), Value::Integer(id)];
            assert_eq!(reader.reply().expect("a push"), Value::Push(broken));
        }
    });
}
