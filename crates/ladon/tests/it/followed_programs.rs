//! Programs that say `replication` in `box.cfg`: read replicas of other servers.

use crate::program::{has_tarantool, program};
use ladon_testkit::Ports;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const LADON: &str = env!("CARGO_BIN_EXE_ladon");

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command, dir: &Path, port: u16) -> Running {
    let child = command.current_dir(dir).stdin(Stdio::null()).spawn().expect("starts");
    let running = Running(child);
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "it does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    running
}

/// Starts a server with a program, which others may follow where it has a port for Redis' clients.
fn start_followed(dir: &Path, port: u16, resp: Option<u16>) -> Running {
    let mut command = Command::new(LADON);
    command.arg("tarantool");
    if let Some(resp) = resp {
        command.args(["--resp", &format!("127.0.0.1:{resp}")]);
    }
    start(command.arg(program("followed.lua")).arg(port.to_string()), dir, port)
}

/// Runs `follower.lua` to its end.
fn follow(dir: &Path, own: u16, followed: u16) -> Output {
    let mut command = Command::new(LADON);
    command.arg("tarantool").arg(program("follower.lua"));
    command.arg(own.to_string()).arg(followed.to_string()).current_dir(dir);
    command.stdin(Stdio::null()).output().expect("runs")
}

#[test]
fn a_program_follows_another_server_and_leaves_it() {
    let (their, own) = (tempfile::tempdir().expect("a dir"), tempfile::tempdir().expect("a dir"));
    let ports = Ports::take(3).expect("ports");
    let [port, resp, own_port] = ports.numbers() else { panic!("three ports") };
    let _followed = start_followed(their.path(), *port, Some(*resp));
    let ran = follow(own.path(), *own_port, *port);
    let printed = String::from_utf8_lossy(&ran.stdout);
    let expected = std::fs::read_to_string(program("follower.txt")).expect("a transcript");
    assert_eq!(printed, expected, "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success());
}

#[test]
fn who_cannot_be_followed_is_refused_by_name() {
    let dir = tempfile::tempdir().expect("a dir");
    let ports = Ports::take(3).expect("ports");
    let [port, tarantool, own] = ports.numbers() else { panic!("three ports") };
    let _silent = start_followed(dir.path(), *port, None);
    let refused = |followed: u16| {
        let dir = tempfile::tempdir().expect("a dir");
        let ran = follow(dir.path(), *own, followed);
        assert!(!ran.status.success());
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    let said = refused(*port);
    assert!(said.contains("'replication'") && said.contains("--resp"), "{said}");
    if has_tarantool() {
        let dir = tempfile::tempdir().expect("a dir");
        let mut command = Command::new("tarantool");
        command.arg(program("followed.lua")).arg(tarantool.to_string());
        let _real = start(&mut command, dir.path(), *tarantool);
        let said = refused(*tarantool);
        assert!(said.contains("'replication'") && said.contains("is no Ladon"), "{said}");
    }
}
