//! The commands in `docs/operating/` are run, and the metrics that pages, alerts and the dashboard
//! name are exported.

use crate::documents_hold_together::root;
use ladon_testkit::Ports;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

fn pages() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("docs/operating")).expect("the folder");
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    pages.sort();
    pages
}

/// The code blocks that begin with "```sh" alone. Those with `form` show how a command is written, with
/// files and servers that are not here; those with `as-root` need a machine of their own:
/// `scripts/package-test.sh` does what they do.
fn blocks(text: &str) -> Vec<String> {
    let (mut blocks, mut block) = (Vec::new(), None);
    for line in text.lines() {
        match (&mut block, line) {
            (None, "```sh") => block = Some(String::new()),
            (Some(_), "```") => blocks.extend(block.take()),
            (Some(block), line) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, _) => {}
        }
    }
    blocks
}

/// Runs a block in a folder of its own, with ports of its own in place of the usual ones.
fn run(page: &Path, number: usize, block: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let ports = Ports::take(2).expect("ports");
    let [resp, http] = [ports.numbers()[0], ports.numbers()[1]].map(|port| port.to_string());
    let program = Path::new(env!("CARGO_BIN_EXE_ladon"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.parent().expect("a folder").display());
    // What the block leaves in the background ends with it.
    let text = format!(
        "set -euo pipefail\nset -m\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n\
         redis-cli() {{ command redis-cli -p {resp} \"$@\"; }}\n{}",
        block.replace("6379", &resp).replace("9121", &http)
    );
    let mut shell = Command::new("timeout");
    shell
        .args(["60", "bash", "-c", &text])
        .current_dir(dir.path())
        .env("PATH", path)
        .env("LADON_PORT", &resp)
        .stdin(Stdio::null());
    let output = shell.output().expect("a shell");
    assert!(
        output.status.success(),
        "{}, block {}: {}\n{block}\n{}\n{}",
        page.display(),
        number + 1,
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_commands_in_the_pages_work() {
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for (number, block) in blocks(&text).iter().enumerate() {
            run(&page, number, block);
            count += 1;
        }
    }
    assert!(count >= 7, "only {count} blocks were found");
}

/// Words that look like one of our metrics, without what a histogram adds.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let ours = words.filter(|word| word.starts_with("ladon_") || word.starts_with("process_"));
    ours.map(|word| word.trim_end_matches("_bucket").to_owned()).collect()
}

/// The families that a server exports to which everything has happened that makes one appear.
fn exported() -> BTreeSet<String> {
    let dir = tempfile::tempdir().expect("a directory");
    let ports = Ports::take(2).expect("ports");
    let (iproto, http) = (ports.numbers()[0], ports.numbers()[1]);
    let arguments = [
        format!("--iproto=127.0.0.1:{iproto}"),
        format!("--http-admin=127.0.0.1:{http}"),
        "--iproto-admin-password=secret".to_owned(),
        "--save=".to_owned(),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let program = Path::new(env!("CARGO_BIN_EXE_ladon"));
    let launch = ladon_crash::Launch::new(program, dir.path(), &arguments);
    let server = launch.start().expect("starts");
    let mut client = server.connect().expect("connects");
    for words in [&["SET", "k", "v"][..], &["INCR", "k"], &["GET"], &["SAVE"]] {
        client.call(words).expect("a reply");
    }
    let status = Command::new(program)
        .args(["space", "--iproto", &format!("127.0.0.1:{iproto}"), "create", "users"])
        .env("LADON_IPROTO_PASSWORD", "secret")
        .stdout(Stdio::null())
        .status();
    assert!(status.expect("runs").success());
    let mut stream = TcpStream::connect(("127.0.0.1", http)).expect("connects");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    families.filter_map(|rest| rest.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn every_metric_that_is_named_is_exported_and_the_other_way_round() {
    let exported = exported();
    for file in [
        "docs/operating/monitoring.md",
        "packaging/prometheus/alerts.yml",
        "packaging/grafana/ladon.json",
    ] {
        let text = fs::read_to_string(root().join(file)).expect("a file");
        let named = metrics_in(&text);
        assert!(named.len() > 5, "{file} names {named:?}");
        let unknown: Vec<_> = named.difference(&exported).collect();
        assert!(unknown.is_empty(), "{file} names {unknown:?}, which the server does not export");
        if file.ends_with(".md") {
            let missing: Vec<_> = exported.difference(&named).collect();
            assert!(missing.is_empty(), "{file} lacks {missing:?}");
        }
    }
}
