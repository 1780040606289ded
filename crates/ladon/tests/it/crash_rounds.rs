//! A few rounds of `cargo run --release -p ladon-crash`: load, `kill -9`, restart, check.

use ladon_crash::{
    Bank, Counting, GATES, HttpClient, IprotoClient, Launch, MemcachedClient, Plan, SharedCounter,
    Summary, run,
};
use ladon_testkit::Ports;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

fn rounds(count: u64, gates: &[&str], trust_none: bool) -> Result<Summary, String> {
    let dir = tempfile::tempdir().expect("a directory");
    run(&Plan {
        program: env!("CARGO_BIN_EXE_ladon").into(),
        dir: Path::new(dir.path()).to_owned(),
        rounds: count,
        seed: 7,
        lanes: 3,
        filler_keys: 3000,
        backends: vec!["auto".to_owned(), "mio".to_owned()],
        gates: gates.iter().map(|&gate| gate.to_owned()).collect(),
        trust_none,
        verbose: false,
    })
}

#[test]
fn what_was_acknowledged_survives_and_nothing_is_half_there() {
    let summary = rounds(8, &GATES, false).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(summary.rounds, 8);
    assert!(summary.kills >= 4 && summary.operations > 100, "{summary:?}");
    assert!(
        summary.handed_over > 10 && summary.transfers > 10 && summary.conflicts > 0,
        "{summary:?}"
    );
    assert!(summary.memcached > 10 && summary.http > 10, "{summary:?}");
}

/// The counter notices an increment that one dialect acknowledged too early: here at the gate `none`.
#[track_caller]
fn check_that_the_counter_notices<C: Counting + Send>(
    setting: &str,
    connect: fn(u16) -> std::io::Result<C>,
) {
    let dir = tempfile::tempdir().expect("a directory");
    let ports = Ports::take(1).expect("a port");
    let address = format!("127.0.0.1:{}", ports.first());
    let arguments = ["--gate", "none", setting, &address];
    let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &arguments);
    let counter = &SharedCounter::default();
    let lost = (0..40).find_map(|_| {
        let mut server = launch.start().expect("starts");
        let checked = counter.check(&mut server.connect().expect("connects"), false);
        if checked.is_ok() {
            let mut client = connect(ports.first()).expect("connects");
            let answered = &AtomicU64::new(0);
            std::thread::scope(|scope| {
                let work = scope.spawn(move || counter.count(&mut client, answered));
                std::thread::sleep(Duration::from_millis(30));
                server.kill().expect("killed");
                work.join().expect("no panic").expect("sound replies");
                assert!(answered.load(SeqCst) > 0);
            });
        }
        checked.err()
    });
    let lost = lost.expect("forty kills at `none` lose something");
    assert!(lost.contains("went back"), "{lost}");
}

#[test]
fn the_counter_notices_what_memcacheds_clients_were_told_too_early() {
    check_that_the_counter_notices("--memcached", MemcachedClient::connect);
}

#[test]
fn the_counter_notices_what_clients_of_http_were_told_too_early() {
    check_that_the_counter_notices("--http", HttpClient::connect);
}

/// The canary: at `none` acknowledged operations are lost by design, and the check must say so.
#[test]
fn the_check_notices_what_the_gate_none_loses() {
    let error = rounds(40, &["none"], true).expect_err("forty kills at `none` lose something");
    // Of a counter, a key, or the queue.
    let losses = ["acknowledged", "went back", "are gone", "is gone", "is still in"];
    assert!(losses.iter().any(|loss| error.contains(loss)), "{error}");
}

/// The bank notices what the gate `none` loses: a transfer whose COMMIT was acknowledged.
#[test]
fn the_bank_notices_a_transfer_that_is_gone() {
    let dir = tempfile::tempdir().expect("a directory");
    let ports = Ports::take(1).expect("a port");
    let iproto = format!("127.0.0.1:{}", ports.first());
    let (gate, password) = (["--gate", "none"], ["--iproto-admin-password", "secret"]);
    let arguments = [&gate[..], &password, &["--iproto", &iproto]].concat();
    let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &arguments);
    let bank = &Bank::default();
    let connect = || IprotoClient::connect(ports.first(), "secret").expect("connects");
    let mut server = launch.start().expect("starts");
    bank.open(&mut connect()).expect("opens");
    let saved = server.connect().expect("connects").call(&["SAVE"]).expect("a reply");
    assert!(!saved.is_error(), "{saved:?}");
    let lost = (0..40).find_map(|round| {
        std::thread::scope(|scope| {
            let mut teller = connect();
            let work = scope.spawn(move || bank.work(&mut teller, round));
            std::thread::sleep(Duration::from_millis(30));
            server.kill().expect("killed");
            work.join().expect("no panic").expect("sound replies");
        });
        server = launch.start().expect("starts");
        bank.check(&mut connect(), false).err()
    });
    let lost = lost.expect("forty kills at `none` lose something");
    assert!(lost.contains("was acknowledged, and is gone"), "{lost}");
}
