//! What a supervisor sees of the server: systemd's messages, and the log.

use crate::live::{call, ok};
use ladon_crash::Launch;
use serde_json::Value;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

fn launch(dir: &Path, arguments: &[&str]) -> Launch {
    Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir, arguments)
}

#[test]
fn systemd_hears_when_it_is_ready_alive_and_stops() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    let mut launch = launch(dir.path(), &[]);
    let text = path.to_str().expect("UTF-8").to_owned();
    launch.environment =
        vec![("NOTIFY_SOCKET".to_owned(), text), ("WATCHDOG_USEC".to_owned(), "200000".to_owned())];
    let mut server = launch.start().expect("starts");
    let next = || {
        let mut bytes = [0; 4096];
        let length = socket.recv(&mut bytes).expect("a message");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let first = next();
    assert!(first.contains("READY=1\n"), "{first}");
    for _ in 0..3 {
        assert_eq!(next().trim_end(), "WATCHDOG=1");
    }
    let until = |wanted: &str| {
        loop {
            let message = next();
            if message.contains(wanted) {
                return message;
            }
            assert_eq!(message.trim_end(), "WATCHDOG=1");
        }
    };
    server.signal(nix::sys::signal::Signal::SIGHUP).expect("sent");
    let reloading = until("RELOADING=1\n");
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    until("READY=1\n");
    server.signal(nix::sys::signal::Signal::SIGTERM).expect("sent");
    until("STOPPING=1");
    // Nobody reads what it says from now on; that must not keep it from stopping.
    assert!(server.wait().expect("ends").success());
}

#[test]
fn the_log_says_what_an_operator_needs_and_no_secrets() {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--logformat", "json", "--requirepass", "s3cret", "--maxmemory", "10mb"];
    let mut launch = launch(dir.path(), &arguments);
    launch.environment = vec![("LADON_MAXMEMORY_POLICY".to_owned(), "noeviction".to_owned())];
    // Not `start`: without the password, no PONG comes.
    let mut server = launch.spawn().expect("starts");
    let mut client = loop {
        match server.connect() {
            Ok(client) => break client,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    assert!(call(&mut client, &["AUTH", "wr0ng"]).is_error());
    assert_eq!(call(&mut client, &["AUTH", "s3cret"]), ok());
    assert_eq!(call(&mut client, &["CONFIG", "SET", "maxmemory", "3mb"]), ok());
    assert_eq!(call(&mut client, &["CONFIG", "SET", "requirepass", "an0ther"]), ok());
    assert!(call(&mut client, &["SET", "k", &"x".repeat(1 << 20)]).is_error());
    assert_eq!(call(&mut client, &["SAVE"]), ok());
    assert!(server.terminate().expect("ends").success());
    let output = server.output();
    let lines: Vec<Value> = output
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect();
    for (level, text) in [
        ("info", "ready: 0 keys, listening on 127.0.0.1:"),
        ("warn", "a login failed: user 'default', client id="),
        ("info", "CONFIG SET by client id="),
        ("info", "checkpoint made in "),
        ("info", "stopped; the log is complete"),
    ] {
        let is_it = |line: &&Value| line["message"].as_str().is_some_and(|it| it.starts_with(text));
        let line = lines.iter().find(is_it).unwrap_or_else(|| panic!("no {text:?} in {output}"));
        assert_eq!(line["level"], level, "{line}");
    }
    for secret in ["s3cret", "wr0ng", "an0ther"] {
        assert!(!output.contains(secret), "{secret} in {output}");
    }
}

#[test]
fn a_setting_of_the_environment_yields_to_a_flag() {
    let program = env!("CARGO_BIN_EXE_ladon");
    let config = |arguments: &[&str]| {
        let mut command = std::process::Command::new(program);
        command.args(["config", "--json"]).args(arguments).env("LADON_TIMEOUT", "7");
        let output = command.output().expect("runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (all["timeout"]["value"].clone(), all["timeout"]["origin"].clone())
    };
    assert_eq!(config(&[]), ("7".into(), "LADON_TIMEOUT".into()));
    assert_eq!(config(&["--timeout", "8"]), ("8".into(), "--timeout".into()));
}
