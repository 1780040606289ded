//! A short run of random requests on spaces against a real `tarantool`. `side-by-side-iproto` is
//! the long one.

use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use ladon_conformance::iproto::{Duel, Start, hunt, rights_round, round};
use ladon_conformance::random::Hunt;
use ladon_conformance::{Server, locate};

/// A few seconds.
const HUNT: Hunt = Hunt { seed: 1, commands: 10_000, length: 200, differences: 5 };

fn tarantool() -> Start {
    let tarantool = locate::must("tarantool", locate::program("tarantool", "tarantool"));
    Box::new(move || Server::tarantool(&tarantool))
}

fn ladon(extra: &'static [&str]) -> Start {
    let ladon = locate::must("ladon", locate::ladon());
    Box::new(move || Server::ladon_with_iproto(&ladon, extra))
}

#[test]
fn random_requests_on_spaces_are_answered_alike() {
    let mut duel = locate::must("both", Duel::new(tarantool(), ladon(&[])));
    let mut report = String::new();
    let sum = hunt(HUNT, &mut duel, round, |found| {
        let _ = writeln!(report, "{found}\n");
    });
    let sum = locate::must("the hunt", sum);
    println!("{} requests, {} differences", sum.requests, sum.differences);
    assert!(report.is_empty(), "{report}\n{}", duel.servers().1.output());
}

#[test]
fn users_and_their_rights_are_answered_alike() {
    let mut duel = locate::must("both", Duel::new(tarantool(), ladon(&[])));
    let mut report = String::new();
    let sum = hunt(HUNT, &mut duel, rights_round, |found| {
        let _ = writeln!(report, "{found}\n");
    });
    let sum = locate::must("the hunt", sum);
    println!("{} requests, {} differences", sum.requests, sum.differences);
    assert!(report.is_empty(), "{report}\n{}", duel.servers().1.output());
}

/// The hunt itself: a server that refuses to write has to be caught, in a request or two.
#[test]
fn a_server_of_spaces_that_differs_is_caught() {
    let (reference, subject) = (ladon(&[]), ladon(&["--maxmemory", "1"]));
    let mut duel = locate::must("both", Duel::new(reference, subject));
    let mut found = Vec::new();
    let hunted = hunt(Hunt { differences: 1, ..HUNT }, &mut duel, round, |it| found.push(it));
    let sum = locate::must("the hunt", hunted);
    assert_eq!((sum.differences, found.len()), (1, 1));
    assert!(found[0].requests() <= 2, "{}", found[0]);
}

/// The real server may crash in the midst of a hunt, which goes on with new ones.
#[test]
fn a_hunt_survives_the_end_of_the_real_server() {
    let mut duel = locate::must("both", Duel::new(ladon(&[]), ladon(&[])));
    let victim = duel.servers().0.pid();
    let first = duel.servers().1.pid();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        Command::new("kill").args(["-9", &victim.to_string()]).status()
    });
    let started = Instant::now();
    while duel.crashes.is_empty() && started.elapsed() < Duration::from_secs(60) {
        let sum =
            hunt(Hunt { commands: 1_000, ..HUNT }, &mut duel, round, |found| panic!("{found}"));
        assert!(locate::must("the hunt", sum).requests >= 1_000);
    }
    assert_eq!(duel.crashes.len(), 1, "{:?}", duel.crashes);
    assert_ne!(duel.servers().1.pid(), first, "both begin without data");
    let sum = hunt(Hunt { commands: 1_000, ..HUNT }, &mut duel, round, |found| panic!("{found}"));
    assert!(locate::must("the hunt", sum).requests >= 1_000);
}
