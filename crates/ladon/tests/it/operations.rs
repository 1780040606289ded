//! The port for operations: metrics, health, and what its clients cannot do to others.

use crate::common::ladon;
use crate::live::{call, ok, pong};
use crate::sick_disk::{SOON, SickDisk};
use ladon_crash::{Launch, Server};
use ladon_resp::client::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server with a port for operations at a unix socket.
struct Watched {
    server: Server,
    socket: PathBuf,
    _dir: TempDir,
}

fn watched(arguments: &[&str]) -> Watched {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("http.sock");
    let address = format!("unix:{}", socket.display());
    let mut all = vec!["--http-admin", &address];
    all.extend(arguments);
    let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &all);
    Watched { server: launch.start().expect("starts"), socket, _dir: dir }
}

/// Sends bytes and reads until the server hangs up.
fn exchange(socket: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).expect("connects");
    // A server that has answered need not take the rest.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Status and body of a GET with these headers, each with its line's end.
fn get(socket: &Path, path: &str, headers: &str) -> (u16, String) {
    let answer =
        exchange(socket, format!("GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n").as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{head:?}")), body.to_owned())
}

/// Every sample by its name and labels; panics about what is not well-formed.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let (mut kinds, mut helped) = (BTreeMap::new(), BTreeSet::new());
    let mut samples = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a kind");
            assert!(kinds.insert(name, kind).is_none(), "{name} is there twice");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a name and a text");
            assert!(!help.is_empty() && helped.insert(name), "{line}");
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect("a sample and its value");
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        let name = series.split('{').next().unwrap_or_default();
        let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| {
            name.strip_suffix(end).filter(|name| kinds.get(name) == Some(&"histogram"))
        });
        let family = of_histogram.unwrap_or(name);
        let kind = kinds.get(family).unwrap_or_else(|| panic!("{line}: no TYPE"));
        assert!(helped.contains(family), "{line}: no HELP");
        assert_eq!(*kind == "counter", name.ends_with("_total"), "{line}");
        assert!(samples.insert(series.to_owned(), value).is_none(), "{series} is there twice");
    }
    samples
}

#[test]
fn metrics_are_well_formed_and_say_what_happened() {
    let watched = watched(&["--gate", "fsync", "--databases", "4"]);
    let mut client = watched.server.connect().expect("connects");
    for key in ["a", "b", "c"] {
        assert_eq!(call(&mut client, &["SET", key, "v", "EX", "100"]), ok());
    }
    assert_eq!(call(&mut client, &["SELECT", "2"]), ok());
    assert_eq!(call(&mut client, &["SET", "other", "v"]), ok());
    assert_eq!(call(&mut client, &["GET", "nosuch"]), Value::Null);
    assert!(call(&mut client, &["INCR", "other"]).is_error());
    let (status, text) = get(&watched.socket, "/metrics", "");
    assert_eq!(status, 200);
    let samples = samples(&text);
    for (series, expected) in [
        ("ladon_keys{db=\"db0\"}", 3.0),
        ("ladon_keys_expiring{db=\"db0\"}", 3.0),
        ("ladon_keys{db=\"db2\"}", 1.0),
        ("ladon_commands_total{command=\"set\"}", 4.0),
        ("ladon_commands_failed_total{command=\"incr\"}", 1.0),
        ("ladon_command_duration_seconds_count{command=\"set\"}", 4.0),
        ("ladon_error_replies_total{code=\"ERR\"}", 1.0),
        ("ladon_key_misses_total", 1.0),
        ("ladon_clients", 1.0),
        ("ladon_loading", 0.0),
        ("ladon_log_accepts_writes", 1.0),
        ("ladon_gate_info{gate=\"fsync\"}", 1.0),
        ("ladon_checkpoint_changes", 4.0),
    ] {
        assert_eq!(samples.get(series), Some(&expected), "{series}\n{text}");
    }
    // Each write waited for a sync.
    assert!(samples["ladon_gate_wait_seconds_count"] >= 4.0);
    assert!(samples["ladon_sync_duration_seconds_count"] >= 4.0);
    assert!(samples["ladon_gate_wait_seconds_sum"] > 0.0);
    let buckets: Vec<f64> = text
        .lines()
        .filter(|line| line.starts_with("ladon_gate_wait_seconds_bucket"))
        .map(|line| samples[line.rsplit_once(' ').expect("a value").0])
        .collect();
    assert!(buckets.is_sorted(), "{buckets:?}");
    assert_eq!(buckets.last(), Some(&samples["ladon_gate_wait_seconds_count"]));
}

#[test]
fn openmetrics_is_for_those_who_ask() {
    let watched = watched(&[]);
    let accept = "Accept: application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.3\r\n";
    let (status, text) = get(&watched.socket, "/metrics", accept);
    assert!(status == 200 && text.ends_with("# EOF\n"), "{text}");
    assert!(text.contains("# TYPE ladon_connections counter\n"), "{text}");
    let (_, text) = get(&watched.socket, "/metrics", "");
    assert!(text.contains("# TYPE ladon_connections_total counter\n"), "{text}");
}

#[test]
fn the_names_of_redis_exporter_are_those_that_a_real_one_has() {
    let real = include_str!("../../../operations/tests/redis_exporter_1.45_names.txt");
    let real: BTreeSet<&str> = real.lines().collect();
    let watched = watched(&[]);
    let mut client = watched.server.connect().expect("connects");
    assert_eq!(call(&mut client, &["SET", "k", "v", "EX", "100"]), ok());
    assert!(call(&mut client, &["INCR", "k"]).is_error());
    let (_, text) = get(&watched.socket, "/metrics?names=redis", "");
    let samples = samples(&text);
    let ours: BTreeSet<&str> =
        samples.keys().map(|series| series.split('{').next().unwrap_or_default()).collect();
    assert!(ours.len() > 60, "{ours:?}");
    let unknown: Vec<_> = ours.difference(&real).collect();
    assert!(unknown.is_empty(), "redis_exporter has no {unknown:?}");
    assert_eq!(samples["redis_commands_total{cmd=\"set\"}"], 1.0);
    assert_eq!(samples["redis_db_keys{db=\"db0\"}"], 1.0);
    assert_eq!(samples["redis_errors_total{err=\"ERR\"}"], 1.0);
    assert_eq!(get(&watched.socket, "/metrics?names=nosuch", "").0, 400);
}

#[test]
fn a_space_has_metrics_whatever_its_name() {
    let ports = ladon_testkit::Ports::take(1).expect("a port");
    let iproto = format!("127.0.0.1:{}", ports.first());
    let watched = watched(&["--iproto", &iproto, "--iproto-admin-password", "secret"]);
    let name = "a \"space\"\\";
    let mut tool = std::process::Command::new(env!("CARGO_BIN_EXE_ladon"));
    tool.args(["space", "--iproto", &iproto, "create", name, "--field", "id:unsigned"]);
    let run = tool.env("LADON_IPROTO_PASSWORD", "secret").output().expect("runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let (_, text) = get(&watched.socket, "/metrics", "");
    assert!(text.contains("ladon_space_tuples{space=\"a \\\"space\\\"\\\\\"} 0\n"), "{text}");
}

#[test]
fn it_is_ready_once_the_data_is_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("http.sock");
    let mut disk = SickDisk::new(&[]);
    let mut server = disk.start();
    let mut client = server.connect().expect("connects");
    assert_eq!(call(&mut client, &["SET", "k", "v"]), ok());
    server.kill().expect("killed");
    disk.set("hold-read");
    disk.launch.arguments = vec![format!("--http-admin=unix:{}", socket.display())];
    let server = disk.launch.spawn().expect("starts");
    let began = Instant::now();
    while !socket.exists() {
        assert!(began.elapsed() < SOON, "{}", server.output());
        std::thread::sleep(Duration::from_millis(5));
    }
    let (status, text) = get(&socket, "/readyz", "");
    assert!(status == 503 && text.starts_with("loading "), "{status} {text}");
    assert_eq!(get(&socket, "/healthz", "").0, 200);
    let (_, metrics) = get(&socket, "/metrics", "");
    assert_eq!(samples(&metrics)["ladon_loading"], 1.0);
    disk.unset("hold-read");
    while get(&socket, "/readyz", "").0 != 200 {
        assert!(began.elapsed() < SOON, "{}", server.output());
        std::thread::sleep(Duration::from_millis(5));
    }
    // Beyond the age of a text made before.
    std::thread::sleep(Duration::from_millis(250));
    let (_, metrics) = get(&socket, "/metrics", "");
    let samples = samples(&metrics);
    assert_eq!((samples["ladon_loading"], samples["ladon_keys{db=\"db0\"}"]), (0.0, 1.0));
}

#[test]
fn a_password_is_asked_for_metrics_and_not_for_probes() {
    let watched = watched(&[]);
    let mut client = watched.server.connect().expect("connects");
    assert_eq!(call(&mut client, &["CONFIG", "SET", "requirepass", "s3cret"]), ok());
    let status = |path, headers| get(&watched.socket, path, headers).0;
    assert_eq!(status("/metrics", ""), 401);
    assert_eq!(status("/", ""), 401);
    assert_eq!(status("/metrics", "Authorization: Bearer wrong\r\n"), 401);
    assert_eq!(status("/metrics", "Authorization: Bearer s3cret\r\n"), 200);
    // default:s3cret
    assert_eq!(status("/metrics", "Authorization: Basic ZGVmYXVsdDpzM2NyZXQ=\r\n"), 200);
    assert_eq!((status("/healthz", ""), status("/readyz", "")), (200, 200));
    let output = watched.server.output();
    assert!(output.contains("a login failed") && !output.contains("s3cret"), "{output}");
}

#[test]
fn bad_requests_get_answers_and_nothing_else() {
    let watched = watched(&[]);
    for (bytes, expected) in [
        ("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n", "405 "),
        ("GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", "413 "),
        ("GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "413 "),
        ("GET /nosuch HTTP/1.1\r\nHost: x\r\n\r\n", "404 "),
        ("GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "404 "),
        ("GET http://elsewhere/metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200 "),
        ("*1\r\n$4\r\nPING\r\n", "400 "),
        ("\u{0}\u{1}\u{2}\r\n\r\n", "400 "),
    ] {
        let answer = exchange(&watched.socket, bytes.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{bytes:?}: {answer}");
    }
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(65));
    assert!(exchange(&watched.socket, many.as_bytes()).starts_with("HTTP/1.1 431 "));
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    let answer = exchange(&watched.socket, long.as_bytes());
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    assert_eq!(get(&watched.socket, "/healthz", "").0, 200);
}

/// Those that send half a request, and those that read nothing, have to leave before others.
#[test]
fn a_thousand_half_requests_keep_nobody_from_a_scrape() {
    let watched = watched(&["--maxclients", "100"]);
    let mut client = watched.server.connect().expect("connects");
    let mut half = Vec::new();
    for number in 0..1000 {
        let mut stream = UnixStream::connect(&watched.socket).expect("connects");
        let bytes: &[u8] = match number % 3 {
            0 => b"",
            1 => b"GET /metrics HT",
            _ => b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
        };
        // The port may have sent it away already.
        let _ = stream.write_all(bytes);
        half.push(stream);
        if number % 250 == 0 {
            assert_eq!(get(&watched.socket, "/metrics", "").0, 200);
            assert_eq!(call(&mut client, &["PING"]), pong());
        }
    }
    assert_eq!(get(&watched.socket, "/readyz", "").0, 200);
    let files = std::fs::read_dir(format!("/proc/{}/fd", watched.server.pid()));
    let files = files.expect("its files").count();
    assert!(files < 200, "{files} open files");
}

#[test]
fn addresses_that_cannot_be_had_stop_the_start() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let data = data.to_str().expect("UTF-8");
    let ports = ladon_testkit::Ports::take(1).expect("a port");
    let resp = format!("127.0.0.1:{}", ports.first());
    let run = ladon(&["--data", data, "--resp", &resp, "--http-admin", "192.0.2.1:9121"]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(run.stderr.contains("give another address with --http-admin"), "{}", run.stderr);
    assert!(!dir.path().join("data").exists(), "nothing was started");
}

#[test]
fn ping_says_whether_the_server_answers() {
    let watched = watched(&[]);
    let mut client = watched.server.connect().expect("connects");
    assert_eq!(call(&mut client, &["CONFIG", "SET", "requirepass", "s3cret"]), ok());
    let address = format!("127.0.0.1:{}", watched.server.port);
    let run = ladon(&["ping", "--resp", &address, "--requirepass", "s3cret"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "PONG\n"), "{}", run.stderr);
    let run = ladon(&["ping", "--resp", &address]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let run = ladon(&["ping", "--resp", &address, "--requirepass", "wrong"]);
    assert_eq!(run.code, 3, "{}", run.stdout);
    drop(watched);
    let run = ladon(&["ping", "--resp", &address]);
    assert_eq!(run.code, 3);
    assert!(run.stderr.starts_with("ladon: no answer from"), "{}", run.stderr);
}
