//! Functions on the real binary: durable at their gate, the same on all threads, and no burden to
//! clients that do not use them.

use crate::live::{bulk, call, error, info_number, ok, on_both_backends};
use crate::sick_disk::{SOON, SickDisk, WHILE};
use ladon_crash::{Client, Launch, Server};
use ladon_resp::client::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

fn connect(server: &Server) -> Client {
    server.connect().expect("connects")
}

/// A library with one function that returns a number.
fn library(name: &str, number: usize) -> String {
    format!(
        "#!lua name={name}\nredis.register_function('{name}', function() return {number} end)\n"
    )
}

fn load(client: &mut Client, name: &str, number: usize) {
    let code = library(name, number);
    assert_eq!(call(client, &["FUNCTION", "LOAD", "REPLACE", &code]), bulk(name));
}

fn number_of(client: &mut Client, name: &str) -> i64 {
    match call(client, &["FCALL", name, "0"]) {
        Value::Integer(number) => number,
        other => panic!("{name}: {other:?}"),
    }
}

/// At gate `fsync`, with checkpoints in between, every library whose load was acknowledged is there
/// after `kill -9`, in its last acknowledged version or in the next one.
#[test]
fn acknowledged_libraries_survive_kills() {
    const LIBRARIES: usize = 40;
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--gate", "fsync", "--io-threads", "2"];
    let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &arguments);
    let acknowledged: Vec<AtomicUsize> = (0..LIBRARIES).map(|_| AtomicUsize::new(0)).collect();
    let name = |at: usize| format!("lib{at}");
    for round in 1..=4 {
        let mut server = launch.start().expect("starts");
        let loading = AtomicBool::new(true);
        thread::scope(|scope| {
            for part in 0..2 {
                let (server, loading, acknowledged) = (&server, &loading, &acknowledged);
                scope.spawn(move || {
                    let mut client = connect(server);
                    for turn in 0.. {
                        let at = (2 * turn + part) % LIBRARIES;
                        let number = acknowledged[at].load(SeqCst) + 1;
                        let code = library(&name(at), number);
                        match client.call(&["FUNCTION", "LOAD", "REPLACE", &code]) {
                            Ok(reply) => assert_eq!(reply, bulk(&name(at))),
                            Err(_) => return,
                        }
                        acknowledged[at].store(number, SeqCst);
                        if !loading.load(SeqCst) {
                            return;
                        }
                    }
                });
            }
            let mut client = connect(&server);
            thread::sleep(Duration::from_millis(150));
            if round % 2 == 0 {
                assert_eq!(call(&mut client, &["SAVE"]), ok());
                thread::sleep(Duration::from_millis(50));
            }
            // In the middle of their work; the last round ends by itself.
            if round < 4 {
                let pid = nix::unistd::Pid::from_raw(server.pid() as i32);
                nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("killed");
            }
            loading.store(false, SeqCst);
        });
        server.kill().expect("killed");
        let mut server = launch.start().expect("starts again");
        let mut client = connect(&server);
        for (at, number) in acknowledged.iter().enumerate() {
            let number = number.load(SeqCst);
            if number == 0 {
                continue;
            }
            let found = number_of(&mut client, &name(at));
            let next = number as i64 + 1;
            assert!(found == number as i64 || found == next, "{} is {found}", name(at));
            // What a crash interrupted counts from now on.
            acknowledged[at].store(found as usize, SeqCst);
        }
        server.kill().expect("killed");
    }
    assert!(acknowledged.iter().all(|number| number.load(SeqCst) > 0));
    // Only a checkpoint has them now.
    let mut server = launch.start().expect("starts");
    assert_eq!(call(&mut connect(&server), &["SAVE"]), ok());
    server.kill().expect("killed");
    let server = launch.start().expect("starts");
    let mut client = connect(&server);
    for (at, number) in acknowledged.iter().enumerate() {
        assert_eq!(number_of(&mut client, &name(at)), number.load(SeqCst) as i64);
    }
}

/// Neither the reply of a load nor one that shows the library passes before the disk has it.
#[test]
fn what_depends_on_a_library_waits_at_the_gate_with_it() {
    let disk = SickDisk::new(&["--gate", "fsync", "--io-threads", "2"]);
    let server = disk.start();
    let (mut loader, mut caller) = (connect(&server), connect(&server));
    load(&mut loader, "f", 1);
    assert_eq!(number_of(&mut caller, "f"), 1);
    disk.set("hold-sync");
    let code = library("f", 2);
    loader.request(&["FUNCTION", "LOAD", "REPLACE", &code]).expect("sent");
    assert!(!loader.has_reply_within(WHILE).expect("open"), "the load waits for the disk");
    caller.request(&["FCALL", "f", "0"]).expect("sent");
    assert!(!caller.has_reply_within(WHILE).expect("open"), "so does its caller elsewhere");
    disk.unset("hold-sync");
    assert!(loader.has_reply_within(SOON).expect("open"));
    assert_eq!(loader.reply().expect("a reply"), bulk("f"));
    assert_eq!(caller.reply().expect("a reply"), Value::Integer(2));
}

/// Two threads load libraries whose functions collide: one of them wins each time, for everybody.
#[test]
fn loads_against_each_other_leave_one_owner() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut clients = [connect(server), connect(server)];
        for round in 0..100 {
            let codes = ["a", "b"].map(|name| {
                format!(
                    "#!lua name={name}{round}\nredis.register_function('f{round}', function() \
                     return '{name}' end)"
                )
            });
            for (client, code) in clients.iter_mut().zip(&codes) {
                for _ in 0..3 {
                    client.request(&["FUNCTION", "LOAD", code]).expect("sent");
                }
            }
            let mut loaded = Vec::new();
            for client in &mut clients {
                for _ in 0..3 {
                    match client.reply().expect("a reply") {
                        Value::Bulk(name) => loaded.push(name[..1].to_vec()),
                        Value::Error(_) => {}
                        other => panic!("{other:?}"),
                    }
                }
            }
            let [owner] = &loaded[..] else { panic!("loaded {} times", loaded.len()) };
            for client in &mut clients {
                let called = call(client, &["FCALL", &format!("f{round}"), "0"]);
                assert_eq!(called, Value::Bulk(owner.clone()));
            }
        }
        assert_eq!(info_number(&mut clients[0], "memory", "number_of_libraries"), 100);
    });
}

/// A library that never ends is given up, and nobody else waits for it meanwhile.
#[test]
fn a_library_that_never_ends_holds_up_nobody() {
    on_both_backends(&["--io-threads", "1"], |server| {
        let (mut loader, mut other) = (connect(server), connect(server));
        loader.request(&["FUNCTION", "LOAD", "#!lua name=x\nwhile true do end"]).expect("sent");
        let began = Instant::now();
        let mut longest = Duration::ZERO;
        while !loader.has_reply_within(Duration::from_millis(1)).expect("open") {
            let asked = Instant::now();
            assert_eq!(call(&mut other, &["INCR", "n"]).as_bytes(), None);
            longest = longest.max(asked.elapsed());
            assert!(began.elapsed() < Duration::from_secs(20), "it is given up");
        }
        let text = "ERR Error registering functions: ERR FUNCTION LOAD timeout";
        assert_eq!(loader.reply().expect("a reply"), error(text));
        assert!(longest < Duration::from_millis(300), "somebody waited for {longest:?}");
        assert_eq!(call(&mut loader, &["FUNCTION", "LIST"]), Value::Array(Vec::new()));
    });
}

/// `FUNCTION STATS` tells which function runs, and `FUNCTION KILL` ends it, although it wrote.
#[test]
fn a_function_that_never_ends_is_seen_and_killed() {
    on_both_backends(&["--io-threads", "2", "--busy-reply-threshold", "50"], |server| {
        let (mut caller, mut other) = (connect(server), connect(server));
        let code = "#!lua name=l\nredis.register_function('forever', function(k) \
                    redis.call('set', k[1], 'x') while true do end end)";
        assert_eq!(call(&mut caller, &["FUNCTION", "LOAD", code]), bulk("l"));
        caller.request(&["FCALL", "forever", "1", "k", "arg"]).expect("sent");
        let began = Instant::now();
        let running = loop {
            let Value::Array(stats) = call(&mut other, &["FUNCTION", "STATS"]) else {
                panic!("no array");
            };
            if let Value::Array(running) = &stats[1] {
                break running.clone();
            }
            assert!(began.elapsed() < Duration::from_secs(20), "it runs long");
            thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(running[1], bulk("forever"));
        let command = ["FCALL", "forever", "1", "k", "arg"].map(bulk);
        assert_eq!(running[3], Value::Array(command.to_vec()));
        assert!(matches!(running[5], Value::Integer(ms) if ms >= 50), "{:?}", running[5]);
        let busy = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or \
                    SHUTDOWN NOSAVE.";
        assert_eq!(call(&mut other, &["GET", "k"]), error(busy));
        let script_kill = call(&mut other, &["SCRIPT", "KILL"]);
        assert_eq!(script_kill, error(busy), "it is no script");
        assert_eq!(call(&mut other, &["FUNCTION", "KILL"]), ok());
        let reply = caller.reply().expect("a reply");
        assert!(matches!(&reply, Value::Error(_)), "{reply:?}");
        assert_eq!(call(&mut other, &["GET", "k"]), Value::Null, "what it wrote is taken back");
        let idle = "NOTBUSY No scripts in execution right now.";
        assert_eq!(call(&mut other, &["FUNCTION", "KILL"]), error(idle));
    });
}
