//! Running servers for tests, and short words for what they answer.

pub mod large;

use ladon_crash::{Client, Launch, Server};
use ladon_resp::client::Value;
use std::path::Path;
use std::time::Duration;

/// Runs a test on a fresh server with io_uring (where there is one) and on one with mio.
pub fn on_both_backends(arguments: &[&str], test: impl Fn(&Server)) {
    for backend in ["auto", "mio"] {
        let dir = tempfile::tempdir().expect("a directory");
        let mut all = vec!["--io-backend", backend, "--gate", "none"];
        all.extend(arguments);
        // A flag given twice is an error, so the test's own gate counts.
        if arguments.contains(&"--gate") {
            all.drain(2..4);
        }
        let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &all);
        let mut server = launch.start().expect("starts");
        test(&server);
        let output = server.output();
        let status = server.terminate().expect("ends");
        assert!(status.success() && !output.contains("panicked"), "{backend}: {output}");
    }
}

pub fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

pub fn pong() -> Value {
    Value::Simple(b"PONG".to_vec())
}

pub fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

pub fn error(text: &str) -> Value {
    Value::Error(text.as_bytes().to_vec())
}

/// One request and its reply.
pub fn call(client: &mut Client, words: &[&str]) -> Value {
    client.call(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

/// Whether the server hangs up within so many seconds, whatever it says before.
pub fn closed_within(client: &mut Client, seconds: u64) -> bool {
    let time = Duration::from_secs(seconds).max(Duration::from_millis(50));
    loop {
        match client.has_reply_within(time) {
            Err(_) => return true,
            Ok(false) => return false,
            Ok(true) => {
                if client.reply().is_err() {
                    return true;
                }
            }
        }
    }
}

/// What the process holds in memory.
pub fn rss_bytes(server: &Server) -> u64 {
    status_bytes(server, "VmRSS:")
}

/// The most that it has ever had.
pub fn peak_bytes(server: &Server) -> u64 {
    status_bytes(server, "VmHWM:")
}

fn status_bytes(server: &Server, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("Linux");
    let line = status.lines().find(|line| line.starts_with(field)).expect(field);
    let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    kib * 1024
}

/// A number out of INFO.
pub fn info_number(client: &mut Client, section: &str, field: &str) -> u64 {
    let info = call(client, &["INFO", section]);
    let info = String::from_utf8_lossy(info.as_bytes().unwrap_or_default()).into_owned();
    let line = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|number| number.trim().parse().ok())
        .unwrap_or_else(|| panic!("{field} in {info}"))
}
