//! A short run of random requests against each real server that is to be had: the `redis-server` on
//! the path, and those that `scripts/install-peers.sh` installs, where it did. `side-by-side` is
//! the long one.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ladon_conformance::random::{Duel, Hunt, grammar};
use ladon_conformance::{Server, locate};

/// Where `install-peers.sh` puts its servers.
const TREES: [&str; 2] = ["/opt/ladon-peers", "/opt/peers"];
/// A few seconds for each server.
const HUNT: Hunt = Hunt { seed: 1, commands: 6_000, length: 300, differences: 5 };

#[test]
fn random_requests_are_answered_alike() {
    let redis = locate::must("redis-server", locate::program("redis-server", "redis-server"));
    let mut peers: Vec<PathBuf> = vec![redis];
    for name in ["redis-server", "valkey-server"] {
        let programs = TREES.iter().map(|tree| Path::new(tree).join("usr/bin").join(name));
        match programs.into_iter().find(|it| it.is_file()) {
            Some(program) => peers.push(program),
            None => println!("no recent {name}: scripts/install-peers.sh installs one"),
        }
    }
    let subject = locate::must("the server", Server::subject());
    let mut report = String::new();
    for peer in peers {
        let reference = locate::must("the real server", Server::redis(&peer));
        let duel = Duel::new(reference.address, subject.address);
        let mut duel = locate::must("the real server", duel);
        let families = grammar::families(&duel.peer().name).expect("grammar");
        let name = duel.peer().name.clone();
        let sum = HUNT.run(&mut duel, &families, |found| {
            let _ = writeln!(report, "{name}:\n{found}\n");
        });
        let sum = locate::must(&name, sum);
        println!("{name}: {} requests, {} differences", sum.requests, sum.differences);
    }
    assert!(report.is_empty(), "{report}\n{}", subject.output());
}

/// The hunt itself: a server that knows one database only has to be caught, in two requests or so.
#[test]
fn a_server_that_differs_is_caught() {
    let ladon = locate::must("ladon", locate::ladon());
    // One thread, as a real server: of several clients, two PINGs tell that all has been written.
    let reference = Server::ladon(&ladon, "none", &["--io-threads", "1"]);
    let reference = locate::must("the reference", reference);
    let subject = Server::ladon(&ladon, "none", &["--databases", "1"]);
    let subject = locate::must("the subject", subject);
    let mut duel = locate::must("both", Duel::new(reference.address, subject.address));
    let mut families = grammar::families(&duel.peer().name).expect("grammar");
    families.retain(|family| family.name == "generic");
    let mut found = Vec::new();
    let hunt = Hunt { differences: 1, ..HUNT };
    let sum = locate::must("the hunt", hunt.run(&mut duel, &families, |it| found.push(it)));
    assert_eq!((sum.differences, found.len()), (1, 1));
    assert!(found[0].requests() <= 3, "{}", found[0]);
}
