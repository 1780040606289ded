//! `ladon serve` as a process: its start, its refusals, its end.

use crate::common::{ladon, write_data};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Far more than any step here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server; killed when a test ends early.
struct Server {
    child: Child,
    banner: String,
    socket: PathBuf,
    /// Holds the socket, which no other test can have taken, as it could a port.
    _dir: TempDir,
}

impl Server {
    /// Starts `ladon` on a unix socket with these arguments, and waits for the banner.
    fn start(data: &Path, more: &[&str]) -> Server {
        let dir = TempDir::new().expect("a directory");
        let socket = dir.path().join("socket");
        let listen = ["--port", "0", "--unixsocket", text(&socket)];
        let mut child = Command::new(env!("CARGO_BIN_EXE_ladon"))
            .args(["serve", "--data", text(data), "--io-threads", "1"])
            .args(listen)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ladon starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut banner = String::new();
        // The last line of the banner says what was recovered.
        while !banner.contains("recovered") {
            let Some(Ok(line)) = lines.next() else {
                let mut stderr = String::new();
                let _ = child.stderr.take().expect("piped").read_to_string(&mut stderr);
                panic!("no banner but {banner:?}; stderr: {stderr}");
            };
            banner += &line;
            banner.push('\n');
        }
        Server { child, banner, socket, _dir: dir }
    }

    fn ask(&self, request: &str, reply_bytes: usize) -> String {
        let mut stream = UnixStream::connect(&self.socket).expect("connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.write_all(request.as_bytes()).expect("writes");
        let mut reply = vec![0; reply_bytes];
        stream.read_exact(&mut reply).expect("a reply");
        String::from_utf8(reply).expect("UTF-8")
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Waits for the end; gives exit code and standard error output.
    fn end(mut self) -> (i32, String) {
        let began = Instant::now();
        while self.child.try_wait().expect("waits").is_none() {
            assert!(began.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut stderr = String::new();
        let mut pipe = self.child.stderr.take().expect("piped");
        pipe.read_to_string(&mut stderr).expect("UTF-8");
        let status = self.child.wait().expect("waits");
        (status.code().unwrap_or(-1), stderr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_server_answers_and_ends_in_good_order_on_either_signal() {
    for signal in ["-TERM", "-INT"] {
        let dir = TempDir::new().expect("a directory");
        let data = dir.path().join("data");
        let server = Server::start(&data, &["--gate", "fsync"]);
        assert!(server.banner.contains(text(&server.socket)), "{}", server.banner);
        assert!(server.banner.contains("gate fsync"), "{}", server.banner);
        assert_eq!(server.ask("SET k v\r\n", 5), "+OK\r\n");
        server.signal("-HUP");
        assert_eq!(server.ask("GET k\r\n", 7), "$1\r\nv\r\n");
        server.signal(signal);
        let (code, stderr) = server.end();
        assert_eq!(code, 0, "{signal}: {stderr}");
        let run = ladon(&["check", text(&data)]);
        assert!(run.stdout.ends_with("sound; closed in good order\n"), "{}", run.stdout);
        let again = Server::start(&data, &[]);
        assert!(again.banner.contains("recovered 1 keys"), "{}", again.banner);
        assert_eq!(again.ask("GET k\r\n", 7), "$1\r\nv\r\n");
    }
}

#[test]
fn messages_go_to_the_log_file() {
    let dir = TempDir::new().expect("a directory");
    let (data, log) = (dir.path().join("data"), dir.path().join("ladon.log"));
    let server = Server::start(&data, &["--logfile", text(&log)]);
    // Moved away while it is in use, as logrotate does.
    server.signal("-HUP");
    let began = Instant::now();
    while !fs::read_to_string(&log).expect("reads").contains("SIGHUP") {
        assert!(began.elapsed() < PATIENCE, "no message");
        std::thread::sleep(Duration::from_millis(10));
    }
    fs::rename(&log, dir.path().join("old.log")).expect("renames");
    server.signal("-TERM");
    let (code, stderr) = server.end();
    assert_eq!((code, stderr.as_str()), (0, ""));
    let messages = fs::read_to_string(&log).expect("reads");
    assert!(messages.contains(" INFO SIGTERM: stopping"), "{messages}");
}

/// What an operator looks for in the messages afterwards.
#[test]
fn the_messages_tell_what_happened() {
    let dir = TempDir::new().expect("a directory");
    let (data, log) = (dir.path().join("data"), dir.path().join("ladon.log"));
    let arguments = ["--logfile", text(&log), "--gate", "fsync"];
    let wait_for = |words: &str| {
        let began = Instant::now();
        loop {
            let messages = fs::read_to_string(&log).expect("reads");
            if messages.contains(words) {
                return messages;
            }
            assert!(began.elapsed() < PATIENCE, "no {words:?} in {messages}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let mut server = Server::start(&data, &arguments);
    wait_for("recovered 0 keys");
    assert_eq!(server.ask("SET k v\r\n", 5), "+OK\r\n");
    assert_eq!(server.ask("SAVE\r\n", 5), "+OK\r\n");
    wait_for("checkpoint begins: a client waits for it");
    wait_for(": 1 keys, ");
    assert_eq!(server.ask("CONFIG SET timeout 77 requirepass hush\r\n", 5), "+OK\r\n");
    let messages = wait_for("CONFIG SET by client id=");
    assert!(messages.contains("timeout '77'") && messages.contains("requirepass (not shown)"));
    assert!(!messages.contains("hush"), "{messages}");
    let _ = server.ask("AUTH hush\r\nSET l v\r\n", 10);
    server.child.kill().expect("killed");
    drop(server);

    let _server = Server::start(&data, &arguments);
    let messages = wait_for("recovered 2 keys");
    assert!(messages.contains("the log was not closed in good order"), "{messages}");
}

#[test]
fn evictions_and_refusals_are_told() {
    for (policy, words) in [("allkeys-lru", "evicted "), ("noeviction", "(OOM)")] {
        let dir = TempDir::new().expect("a directory");
        let (data, log) = (dir.path().join("data"), dir.path().join("ladon.log"));
        let memory = ["--maxmemory", "20mb", "--maxmemory-policy", policy];
        let server = Server::start(&data, &[&["--logfile", text(&log)], &memory[..]].concat());
        let value = "x".repeat(1 << 20);
        for number in 0..40 {
            let set = format!("*3\r\n$3\r\nSET\r\n$2\r\n{number:02}\r\n$1048576\r\n{value}\r\n");
            let reply = server.ask(&set, 4);
            assert!(reply == "+OK\r" || reply == "-OOM", "{reply}");
        }
        let began = Instant::now();
        while !fs::read_to_string(&log).expect("reads").contains(words) {
            assert!(began.elapsed() < PATIENCE, "no message");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn the_same_signal_twice_stops_in_good_order() {
    let dir = TempDir::new().expect("a directory");
    let server = Server::start(&dir.path().join("data"), &[]);
    let id = server.child.id().to_string();
    // Both come from one process, a moment apart.
    let both = format!("kill -TERM {id}; kill -TERM {id}");
    let status = Command::new("sh").args(["-c", &both]).stderr(Stdio::null()).status();
    status.expect("sh runs");
    let (code, stderr) = server.end();
    assert_eq!(code, 0, "{stderr}");
}

/// The file would be made as the user that runs Ladon, and keep Redis from its own log.
#[test]
fn the_log_of_redis_own_service_is_left_alone() {
    let dir = TempDir::new().expect("a directory");
    let (data, log) = (dir.path().join("data"), dir.path().join("redis-server.log"));
    let conf = dir.path().join("redis.conf");
    fs::write(&conf, format!("logfile {}\n", text(&log))).expect("writes");
    let server = Server::start(&data, &["--redis-conf", text(&conf)]);
    server.signal("-TERM");
    let (code, stderr) = server.end();
    assert_eq!(code, 0, "{stderr}");
    assert!(!log.exists() && stderr.contains("without effect here: logfile"), "{stderr}");
}

#[test]
fn a_few_open_files_are_enough_for_some_clients() {
    let dir = TempDir::new().expect("a directory");
    let program = env!("CARGO_BIN_EXE_ladon");
    let data = dir.path().join("data");
    let socket = dir.path().join("socket");
    let command = format!(
        "ulimit -n 64; exec {program} serve --io-threads 2 --port 0 --unixsocket {} --data {}",
        text(&socket),
        text(&data)
    );
    let child = Command::new("sh").args(["-c", &command]).stdout(Stdio::null()).spawn();
    let mut child = child.expect("sh runs");
    let began = Instant::now();
    while !socket.exists() {
        assert!(began.elapsed() < PATIENCE, "no socket");
        std::thread::sleep(Duration::from_millis(10));
    }
    // As many as Redis takes, which reserves 32.
    let mut clients: Vec<UnixStream> =
        (0..31).map(|_| UnixStream::connect(&socket).expect("connects")).collect();
    let served = clients.iter_mut().filter_map(|client| {
        client.set_read_timeout(Some(PATIENCE)).ok()?;
        client.write_all(b"PING\r\n").ok()?;
        let mut reply = [0; 7];
        client.read_exact(&mut reply).ok()?;
        (reply == *b"+PONG\r\n").then_some(())
    });
    let served = served.count();
    child.kill().expect("killed");
    child.wait().expect("ends");
    assert_eq!(served, 31);
}

#[test]
fn the_redis_conf_of_debian_starts_a_server() {
    let dir = TempDir::new().expect("a directory");
    let data = dir.path().join("data");
    let conf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../settings/tests/debian_redis_7.0.15.conf");
    let arguments = ["--redis-conf", text(&conf), "--logfile", ""];
    let server = Server::start(&data, &arguments);
    assert!(server.banner.contains("gate none"), "{}", server.banner);
    assert_eq!(server.ask("PING\r\n", 7), "+PONG\r\n");
    server.signal("-TERM");
    let (code, stderr) = server.end();
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("WARN") && stderr.contains("daemonize"), "{stderr}");
}

/// Starts a server that cannot start; checks its exit code and that its last words hold these.
#[track_caller]
fn check_refused(arguments: &[&str], code: i32, words: &[&str]) {
    let run = ladon(&[&["serve"], arguments].concat());
    let last = run.stderr.trim_end().lines().last().unwrap_or_default();
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{}", run.stderr);
    for word in words {
        assert!(last.contains(word), "{word:?} in {}", run.stderr);
    }
}

#[test]
fn what_cannot_start_says_why_and_what_to_do() {
    let dir = TempDir::new().expect("a directory");
    let data = dir.path().join("data");
    let _server = Server::start(&data, &[]);
    let other = dir.path().join("other");
    let socket = format!("unix:{}", text(&dir.path().join("socket")));

    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    check_refused(
        &["--port", &port, "--data", text(&other)],
        3,
        &["ladon: ", &port, "in use", "--port"],
    );
    check_refused(
        &["--resp", &socket, "--data", text(&data)],
        3,
        &["in use by another", text(&data)],
    );
    // A file is where the directory should be: nobody may make one there, root included.
    let file = dir.path().join("file");
    fs::write(&file, "x").expect("writes");
    check_refused(&["--resp", &socket, "--data", text(&file)], 3, &[text(&file), "--data"]);
    check_refused(
        &["--resp", &socket, "--data", text(&other), "--logfile", "/nonexistent/log"],
        3,
        &["/nonexistent/log", "--logfile"],
    );
    check_refused(&["--port", "0"], 2, &["nothing to listen on", "--resp"]);
    check_refused(&["--gate", "sometimes"], 2, &["nothing was started"]);
    check_refused(&["--maxmemory-policy", "allkeys-fifo"], 2, &["nothing was started"]);
}

#[test]
fn damaged_data_is_never_served() {
    let dir = TempDir::new().expect("a directory");
    write_data(dir.path());
    let checkpoint = fs::read_dir(dir.path())
        .expect("lists")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.extension().is_some_and(|extension| extension == "checkpoint"))
        .expect("a checkpoint");
    let mut bytes = fs::read(&checkpoint).expect("reads");
    bytes[64 + 50] ^= 1;
    fs::write(&checkpoint, bytes).expect("writes");
    let socket = format!("unix:{}", text(&dir.path().join("socket")));
    let name = checkpoint.file_name().expect("a name").to_str().expect("UTF-8");
    check_refused(
        &["--resp", &socket, "--data", text(dir.path())],
        1,
        &[name, "is damaged at byte", "remove this file"],
    );
}

#[test]
fn an_optional_address_may_be_missing() {
    let dir = TempDir::new().expect("a directory");
    let data = dir.path().join("data");
    // 2001:db8::/32 is for documentation: no machine has it.
    let server = Server::start(&data, &["--bind", "-2001:db8::1", "--port", "6379"]);
    assert_eq!(server.ask("PING\r\n", 7), "+PONG\r\n");
    drop(server);
    for bind in ["2001:db8::1", "-2001:db8::1"] {
        check_refused(&["--data", text(&data), "--bind", bind], 3, &["2001:db8::1"]);
    }
}

#[test]
fn log_keep_bytes_keeps_log_behind_a_checkpoint() {
    let log_files = |keep: &str| {
        let dir = TempDir::new().expect("a directory");
        let arguments = ["--log-segment-bytes", "1mb", "--log-keep-bytes", keep, "--save", "1 1"];
        let server = Server::start(dir.path(), &arguments);
        let value = "x".repeat(1 << 20);
        for number in 0..5 {
            let set = format!("*3\r\n$3\r\nSET\r\n$1\r\n{number}\r\n$1048576\r\n{value}\r\n");
            assert_eq!(server.ask(&set, 5), "+OK\r\n");
        }
        let count = |extension: &str| {
            let entries = fs::read_dir(dir.path()).expect("lists");
            let paths = entries.map(|entry| entry.expect("an entry").path());
            paths.filter(|path| path.extension().is_some_and(|found| found == extension)).count()
        };
        let began = Instant::now();
        while count("checkpoint") == 0 {
            assert!(began.elapsed() < PATIENCE, "no checkpoint");
            std::thread::sleep(Duration::from_millis(10));
        }
        server.signal("-TERM");
        assert_eq!(server.end().0, 0);
        count("log")
    };
    let (few, all) = (log_files("1"), log_files("64mb"));
    assert!(few < all && all >= 5, "{few} files, {all} with log-keep-bytes");
}
