//! Every script against a fresh redis-server and a fresh Ladon, in RESP2 and in RESP3.
//!
//! `CONFORMANCE_SUBJECT=PATH` puts another server with redis-server's arguments in Ladon's
//! place: redis-server itself shows which scripts are not deterministic. `CONFORMANCE_ONLY=TEXT`
//! runs only the scripts whose name holds the text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ladon_conformance::{Script, Server, compare, locate, play};

/// A script that takes longer waits for something that does not come, most likely.
const SLOW: Duration = Duration::from_secs(5);

#[test]
fn resp2() {
    all(2);
}

#[test]
fn resp3() {
    all(3);
}

/// Plays every script at both servers and fails with every difference.
fn all(protocol: u8) {
    let scripts = scripts();
    assert!(!scripts.is_empty(), "no scripts");
    let redis = locate::must("redis-server", locate::program("redis-server", "redis-server"));
    let reference = locate::must("redis-server", Server::redis(&redis));
    let subject = locate::must("the server under test", Server::subject());
    let itself = std::env::var_os("CONFORMANCE_SUBJECT").is_some_and(|path| redis == *path);
    let mut report = String::new();
    let mut families: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for script in scripts {
        if script.only.is_some_and(|only| only != protocol) {
            continue;
        }
        let start = Instant::now();
        let (wanted, got) = std::thread::scope(|scope| {
            let wanted = scope.spawn(|| play(&script, reference.address, protocol));
            let got = play(&script, subject.address, protocol);
            (wanted.join().expect("no panic"), got)
        });
        if start.elapsed() > SLOW {
            println!("RESP{protocol} {}: {:?}", script.name, start.elapsed());
        }
        let wanted = wanted.unwrap_or_else(|error| panic!("{}, redis: {error}", script.name));
        let family = script.name.split('/').next().unwrap_or_default().to_string();
        let counts = families.entry(family).or_default();
        let got = match got {
            Ok(got) => got,
            Err(error) => {
                counts.0 += wanted.entries.len();
                counts.1 += wanted.entries.len();
                let _ = writeln!(report, "{}: {error}\n{}", script.name, subject.output());
                continue;
            }
        };
        for entry in wanted.entries.iter().filter(|entry| entry.reply.timed_out()) {
            let (line, text) = (entry.step.line, &entry.step.text);
            let _ = writeln!(report, "{}:{line}: {text}\n    redis did not answer", script.name);
        }
        let mut mismatches = compare(&script, &wanted, &got);
        if itself {
            // The reference against itself: what 7.2 says otherwise is not its matter.
            mismatches.retain(|it| !expects(&script, &it.place));
        }
        counts.0 += wanted.entries.len();
        counts.1 += mismatches.len();
        for mismatch in mismatches {
            let _ = writeln!(report, "{mismatch}");
        }
    }
    for (family, (replies, wrong)) in &families {
        println!("RESP{protocol} {family}: {replies} replies, {wrong} differ");
    }
    let replies: usize = families.values().map(|counts| counts.0).sum();
    let wrong: usize = families.values().map(|counts| counts.1).sum();
    println!("RESP{protocol} total: {replies} replies, {wrong} differ");
    assert!(report.is_empty(), "RESP{protocol}: {wrong} of {replies} replies differ\n{report}");
}

fn expects(script: &Script, place: &str) -> bool {
    let line = place.rsplit(':').next().and_then(|line| line.parse().ok());
    script.steps.iter().any(|step| {
        Some(step.line) == line && step.expect != ladon_conformance::script::Expect::Reference
    })
}

/// The scripts below `scripts/`, in order of their names.
fn scripts() -> Vec<Script> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let only = std::env::var("CONFORMANCE_ONLY").unwrap_or_default();
    let mut files = Vec::new();
    for family in read(&root) {
        files.extend(read(&family).into_iter().filter(|file| is_script(file)));
    }
    files
        .iter()
        .map(|file| {
            let relative = file.strip_prefix(&root).expect("a file below its root");
            let name = relative.with_extension("").display().to_string();
            let text = std::fs::read_to_string(file).expect("a readable script");
            Script::parse(&name, &text).unwrap_or_else(|error| panic!("{error}"))
        })
        .filter(|script| script.name.contains(&only))
        .collect()
}

fn read(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a readable folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn is_script(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "txt")
}
