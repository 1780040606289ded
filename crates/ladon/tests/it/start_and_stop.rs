//! Orderly ends, and starts that must be refused.

use crate::common::ladon;
use ladon_crash::{Launch, ladon_check};
use ladon_resp::client::Value;
use std::path::Path;
use std::time::{Duration, Instant};

fn launch(dir: &Path, arguments: &[&str]) -> Launch {
    Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir, arguments)
}

#[test]
fn sigterm_and_shutdown_leave_a_clean_log() {
    for gate in ["none", "write", "everysec", "fsync"] {
        for how in [None, Some("SAVE"), Some("NOSAVE")] {
            let dir = tempfile::tempdir().expect("a directory");
            let launch = launch(dir.path(), &["--gate", gate, "--io-threads", "2"]);
            let mut server = launch.start().expect("starts");
            let mut client = server.connect().expect("connects");
            assert_eq!(client.call(&["SET", "k", "v"]).expect("a reply"), ok());
            let status = match how {
                None => server.terminate(),
                Some(how) => {
                    client.request(&["SHUTDOWN", how]).expect("sent");
                    server.wait()
                }
            };
            assert!(status.expect("ends").success(), "{gate} {how:?}: {}", server.output());
            let (code, report) = ladon_check(&launch.program, &launch.data).expect("checks");
            assert_eq!(code, Some(0), "{report}");
            assert!(report.contains("sound; closed in good order"), "{gate} {how:?}: {report}");
            assert_eq!(report.contains(": checkpoint, "), how == Some("SAVE"), "{report}");
            let server = launch.start().expect("starts again");
            let mut client = server.connect().expect("connects");
            assert_eq!(client.call(&["GET", "k"]).expect("a reply"), bulk("v"));
        }
    }
}

#[test]
fn a_stopping_server_answers_what_it_has_read_and_does_not_wait_for_the_silent() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut server = launch(dir.path(), &["--gate", "fsync"]).start().expect("starts");
    let _idle = server.connect().expect("connects");
    let mut half = server.connect().expect("connects");
    half.send(b"*2\r\n$3\r\nGET\r\n$1000\r\nhalf of it").expect("sent");
    let mut client = server.connect().expect("connects");
    assert_eq!(client.call(&["SET", "k", "v"]).expect("a reply"), ok());
    let began = Instant::now();
    assert!(server.terminate().expect("ends").success(), "{}", server.output());
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn a_second_server_on_the_same_directory_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let launch = launch(dir.path(), &[]);
    let server = launch.start().expect("starts");
    let data = launch.data.to_str().expect("a name");
    let socket = dir.path().join("socket").to_str().expect("a name").to_owned();
    let second = ladon(&["serve", "--resp", &format!("unix:{socket}"), "--data", data]);
    assert_eq!(second.code, 3, "{}", second.stderr);
    assert!(second.stderr.contains(data) && second.stderr.contains("in use"), "{}", second.stderr);
    let mut client = server.connect().expect("the first goes on");
    assert_eq!(client.call(&["SET", "k", "v"]).expect("a reply"), ok());
}

#[test]
fn a_port_in_use_is_refused_before_any_data_is_touched() {
    let dir = tempfile::tempdir().expect("a directory");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let data = dir.path().join("data");
    let run = ladon(&["serve", "--resp", &address, "--data", data.to_str().expect("a name")]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(run.stderr.contains(&address) && run.stderr.contains("in use"), "{}", run.stderr);
    assert!(!data.exists(), "nothing was made");
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}
