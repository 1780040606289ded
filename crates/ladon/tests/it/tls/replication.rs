//! A read replica that reaches its primary over TLS, and those that must not.

use super::certificates::{Authority, Identity, text};
use super::{Door, await_log};
use crate::common::until;
use crate::live::{bulk, call, ok};
use ladon_crash::{Client, Launch, Server};
use ladon_testkit::Ports;
use std::path::Path;
use tempfile::TempDir;

/// A server on a folder of its own.
fn start(folder: &TempDir, port: u16, arguments: &[&str]) -> Server {
    let binary = Path::new(env!("CARGO_BIN_EXE_ladon"));
    let mut launch = Launch::new(binary, folder.path(), arguments);
    launch.port = Some(port);
    launch.start().expect("starts")
}

/// How a replica shows who it is, and whom it trusts.
fn trusting<'a>(of: &'a str, ca: &'a Path, own: &'a Identity) -> Vec<&'a str> {
    let files = [("--tls-ca-cert-file", ca), ("--tls-cert-file", &own.cert_file)];
    let files = files.into_iter().chain([("--tls-key-file", &*own.key_file)]);
    let files = files.flat_map(|(name, file)| [name, text(file)]);
    ["--tls-replication", "yes", "--replicaof", of].into_iter().chain(files).collect()
}

#[test]
fn a_replica_follows_over_tls_whom_it_trusts_and_who_trusts_it() {
    let door = Door::new();
    let stranger = Authority::new();
    let (folders, ports) =
        ([(); 4].map(|()| tempfile::tempdir().expect("a folder")), Ports::take(4));
    let (ports, tls) = (ports.expect("ports").numbers().to_vec(), door.port().to_string());
    let ca = door.authority.ca_file();
    let mut arguments = vec!["--tls-port", &tls, "--tls-ca-cert-file", text(&ca)];
    arguments.extend(["--tls-cert-file", text(&door.server.cert_file)]);
    arguments.extend(["--tls-key-file", text(&door.server.key_file)]);
    let primary = start(&folders[0], ports[0], &arguments);
    let mut writer = Client::connect(ports[0]).expect("connects");
    assert_eq!(call(&mut writer, &["SET", "before", "1"]), ok());

    let of = format!("localhost {tls}");
    let own = door.authority.client("replica");
    let follower = start(&folders[1], ports[1], &trusting(&of, &ca, &own));
    // A first sync closes the connections of clients.
    let shows = |key: &str, value: &str| {
        let reply = || Client::connect(ports[1]).ok()?.call(&["GET", key]).ok();
        until(key, || (reply()? == bulk(value)).then_some(()));
    };
    shows("before", "1");
    assert_eq!(call(&mut writer, &["SET", "after", "2"]), ok());
    shows("after", "2");
    let mut reader = Client::connect(ports[1]).expect("connects");

    // The primary's authority is not one that this replica trusts.
    let other = stranger.ca_file();
    let doubting = start(&folders[2], ports[2], &trusting(&of, &other, &own));
    await_log(&doubting, "invalid peer certificate");
    // This one's certificate is by an authority that the primary does not trust.
    let foreign = stranger.client("replica");
    let unknown = start(&folders[3], ports[3], &trusting(&of, &ca, &foreign));
    await_log(&unknown, "fatal alert");
    for port in &ports[2..] {
        let mut client = Client::connect(*port).expect("connects");
        assert_eq!(call(&mut client, &["GET", "before"]), ladon_resp::client::Value::Null);
    }
    // Without TLS there is nothing to hear at that port, and the way back is there.
    let plain = ["CONFIG", "SET", "tls-replication", "no"];
    assert_eq!(call(&mut reader, &plain), ok());
    let away = ["REPLICAOF", "127.0.0.1", &tls];
    assert_eq!(call(&mut reader, &away), ok());
    assert_eq!(call(&mut writer, &["SET", "later", "3"]), ok());
    assert_eq!(call(&mut reader, &["CONFIG", "SET", "tls-replication", "yes"]), ok());
    assert_eq!(call(&mut reader, &["REPLICAOF", "localhost", &tls]), ok());
    shows("later", "3");
    drop((primary, follower));
}
