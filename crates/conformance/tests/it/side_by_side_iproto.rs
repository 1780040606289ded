//! A short run of random requests on spaces against a real `tarantool`. `side-by-side-iproto` is
//! the long one.

use std::fmt::Write as _;

use ladon_conformance::iproto::{Duel, hunt};
use ladon_conformance::random::Hunt;
use ladon_conformance::{Server, locate};

/// A few seconds.
const HUNT: Hunt = Hunt { seed: 1, commands: 10_000, length: 200, differences: 5 };

#[test]
fn random_requests_on_spaces_are_answered_alike() {
    let tarantool = locate::must("tarantool", locate::program("tarantool", "tarantool"));
    let reference = locate::must("tarantool", Server::tarantool(&tarantool));
    let ladon = locate::must("ladon", locate::ladon());
    let subject = locate::must("ladon", Server::ladon_with_iproto(&ladon, &[]));
    let mut duel = locate::must("both", Duel::new(&reference, &subject));
    let mut report = String::new();
    let sum = hunt(HUNT, &mut duel, |found| {
        let _ = writeln!(report, "{found}\n");
    });
    let sum = locate::must("the hunt", sum);
    println!("{} requests, {} differences", sum.requests, sum.differences);
    assert!(report.is_empty(), "{report}\n{}", subject.output());
}

/// The hunt itself: a server that refuses to write has to be caught, in a request or two.
#[test]
fn a_server_of_spaces_that_differs_is_caught() {
    let ladon = locate::must("ladon", locate::ladon());
    let reference = locate::must("the reference", Server::ladon_with_iproto(&ladon, &[]));
    let full = Server::ladon_with_iproto(&ladon, &["--maxmemory", "1"]);
    let subject = locate::must("the subject", full);
    let mut duel = locate::must("both", Duel::new(&reference, &subject));
    let mut found = Vec::new();
    let hunted = hunt(Hunt { differences: 1, ..HUNT }, &mut duel, |it| found.push(it));
    let sum = locate::must("the hunt", hunted);
    assert_eq!((sum.differences, found.len()), (1, 1));
    assert!(found[0].requests() <= 2, "{}", found[0]);
}
