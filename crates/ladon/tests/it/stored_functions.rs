//! Persistent functions on the threads that have the requests: without a program nothing else runs
//! them. Each is one transaction, and what cannot run there leaves nothing behind.

use crate::iproto::client::{Iproto, array, int};
use crate::program::{Serving, number};
use ladon_iproto::Request;
use ladon_iproto::request::Call;
use ladon_testkit::{Ports, Random};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::scope;
use std::time::{Duration, Instant};

const LADON: &str = env!("CARGO_BIN_EXE_ladon");
const SUM: u64 = 20 * 1000;
const NOTHING: &[u8] = &[0x90];

/// A server without a program, on the data of one; killed when dropped.
struct Alone {
    process: Child,
    ports: Ports,
}

impl Alone {
    fn start(dir: &Path) -> Alone {
        let ports = Ports::take(2).expect("ports");
        let resp = format!("127.0.0.1:{}", ports.first());
        let iproto = format!("127.0.0.1:{}", ports.first() + 1);
        let mut command = Command::new(LADON);
        command.args(["serve", "--data", "ladon", "--io-threads", "4"]);
        command.args(["--resp", &resp, "--iproto", &iproto, "--gate", "write"]);
        let process = command.current_dir(dir).stdout(Stdio::null()).spawn().expect("starts");
        let alone = Alone { process, ports };
        let began = Instant::now();
        while std::net::TcpStream::connect(&iproto).is_err() {
            assert!(began.elapsed() < Duration::from_secs(30), "it does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        alone
    }

    fn client(&self) -> Iproto {
        Iproto::connect(self.ports.first() + 1)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A folder with what the program defines.
fn defined() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let serving = Serving::start_program(dir.path(), &[], "stored.lua");
    serving.client();
    drop(serving);
    dir
}

/// The sum of all money, and the length of the journal.
fn state(client: &mut Iproto) -> (u64, u64) {
    let values = client.call("state", NOTHING).expect("the state");
    (number(&values[0]), number(&values[1]))
}

fn moves(random: &mut Random) -> (&'static [u8], Vec<u8>) {
    let name: &[u8] = if random.below(2) == 0 { b"there" } else { b"back" };
    (name, array(&[int(random.below(10) + 1), int(random.below(10) + 1), int(1)]))
}

#[test]
fn functions_that_lock_in_each_order_are_transactions() {
    let dir = defined();
    let alone = Alone::start(dir.path());
    let is_over = AtomicBool::new(false);
    const EACH: u64 = 300;
    scope(|threads| {
        let movers: Vec<_> = (0..4)
            .map(|seed| {
                let mut client = alone.client();
                threads.spawn(move || {
                    let mut random = Random::new(seed);
                    for _ in 0..EACH {
                        let (name, arguments) = moves(&mut random);
                        let call = Call { name, arguments: &arguments };
                        client.ask(&Request::Call(call)).expect("moves");
                    }
                })
            })
            .collect();
        let watcher = threads.spawn(|| {
            let mut client = alone.client();
            while !is_over.load(Relaxed) {
                assert_eq!(state(&mut client).0, SUM, "a transfer was seen in its middle");
            }
        });
        movers.into_iter().for_each(|mover| mover.join().expect("moves"));
        is_over.store(true, Relaxed);
        watcher.join().expect("watches");
    });
    assert_eq!(state(&mut alone.client()), (SUM, 4 * EACH));
}

#[test]
fn what_cannot_run_there_is_refused_and_leaves_nothing() {
    let dir = defined();
    let alone = Alone::start(dir.path());
    let mut client = alone.client();
    let refused = |client: &mut Iproto, name: &str, arguments: &[u8], why: &str| {
        let began = Instant::now();
        let (code, message) = client.call(name, arguments).unwrap_err();
        assert_eq!(code, 5, "{message}");
        assert!(message.contains(why), "{message}");
        assert!(began.elapsed() < Duration::from_secs(10));
    };
    // More often than a function is given up with a program.
    for _ in 0..20 {
        refused(&mut client, "endless", NOTHING, "takes too long");
        refused(&mut client, "large", NOTHING, "too much memory");
        refused(&mut client, "global", NOTHING, "asks for os.exit, which is not there");
        refused(&mut client, "keeps", NOTHING, "asks for a change of a space");
        refused(&mut client, "patterns", &array(&[int(2_000)]), "takes too long");
        assert_eq!(state(&mut client), (SUM, 0));
    }
    // Other functions of the same machines run on.
    let call = Call { name: b"there", arguments: &array(&[int(1), int(2), int(5)]) };
    client.ask(&Request::Call(call)).expect("moves");
    assert_eq!(state(&mut client), (SUM, 1));
}

#[test]
fn killed_functions_are_wholly_there_or_not_at_all() {
    const ROUNDS: u64 = 6;
    let dir = defined();
    let mut random = Random::new(5);
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let mut alone = Alone::start(dir.path());
        let mut client = alone.client();
        let (sum, journal) = state(&mut client);
        assert_eq!(sum, SUM, "round {round}");
        assert!(journal >= acknowledged, "{journal} of {acknowledged} acknowledged transfers");
        assert!(journal <= acknowledged + 1, "{journal}: one at most was in flight");
        acknowledged = journal;
        scope(|threads| {
            let process = &mut alone.process;
            threads.spawn(move || {
                std::thread::sleep(Duration::from_millis(100 + 30 * round));
                process.kill().expect("killed");
            });
            loop {
                let (name, arguments) = moves(&mut random);
                let call = Call { name, arguments: &arguments };
                match client.try_ask(&Request::Call(call)) {
                    Some(done) => done.expect("moves"),
                    None => break,
                };
                acknowledged += 1;
            }
        });
    }
    assert!(acknowledged > ROUNDS, "there was something to lose");
}
