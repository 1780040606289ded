//! Every script against a fresh redis-server and a fresh Ladon, in RESP2 and in RESP3.
//!
//! `CONFORMANCE_SUBJECT=PATH` puts another server with redis-server's arguments in Ladon's
//! place: redis-server itself shows which scripts are not deterministic. `CONFORMANCE_ONLY=TEXT`
//! runs only the scripts whose name holds the text.
//!
//! The real server's replies are also recorded, below `recorded/`, and Ladon is compared with these
//! too, which needs no real server. `CONFORMANCE_RECORD=1` records them anew, of all scripts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ladon_conformance::{Recording, Script, Server, compare, locate, play};

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

#[test]
fn resp2_as_recorded() {
    as_recorded(2);
}

#[test]
fn resp3_as_recorded() {
    as_recorded(3);
}

/// Plays every script at Ladon and compares with what the real server has answered before.
fn as_recorded(protocol: u8) {
    if is_recording() {
        return record(protocol);
    }
    let subject = locate::must("the server under test", Server::subject());
    let mut recordings: BTreeMap<String, Recording> = BTreeMap::new();
    let (mut report, mut scripts_played) = (String::new(), 0);
    for script in scripts().into_iter().filter(|script| script.is_for(protocol)) {
        let family = family_of(&script);
        let recording = recordings.entry(family.clone()).or_insert_with(|| {
            let path = recorded_path(protocol, &family);
            let text = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            Recording::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        });
        let got = play(&script, subject.address, protocol)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}", script.name, subject.output()));
        for mismatch in recording.compare(&script, &got) {
            let _ = writeln!(report, "{mismatch}");
        }
        scripts_played += 1;
    }
    assert!(scripts_played > 0, "no scripts");
    assert!(report.is_empty(), "RESP{protocol}, compared with recorded replies:\n{report}");
}

/// Records the real server's replies to every script.
fn record(protocol: u8) {
    let redis = locate::must("redis-server", locate::program("redis-server", "redis-server"));
    let reference = locate::must("redis-server", Server::redis(&redis));
    let mut recordings: BTreeMap<String, Recording> = BTreeMap::new();
    let scripts: Vec<Script> =
        scripts().into_iter().filter(|script| script.is_for(protocol)).collect();
    for script in &scripts {
        let replies = play(script, reference.address, protocol)
            .unwrap_or_else(|error| panic!("{}: {error}", script.name));
        let family = family_of(script);
        let before = || {
            let text = std::fs::read_to_string(recorded_path(protocol, &family)).ok()?;
            Recording::parse(&text).ok()
        };
        let recording =
            recordings.entry(family.clone()).or_insert_with(|| before().unwrap_or_default());
        recording.add(script, &replies);
    }
    for (family, mut recording) in recordings {
        recording.keep_only(&scripts);
        let path = recorded_path(protocol, &family);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, recording.write()).expect("a writable file");
    }
}

fn is_recording() -> bool {
    std::env::var_os("CONFORMANCE_RECORD").is_some()
}

fn recorded_path(protocol: u8, family: &str) -> PathBuf {
    let folder = format!("recorded/resp{protocol}");
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(family).with_extension("txt")
}

fn family_of(script: &Script) -> String {
    script.name.split('/').next().unwrap_or_default().to_string()
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
        if !script.is_for(protocol) {
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
        let counts = families.entry(family_of(&script)).or_default();
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
