//! New certificates and settings on a running server.

use super::certificates::{Authority, text};
use super::client::{BOTH, TlsClient, config};
use super::{Door, NO_CLIENTS, await_log};
use crate::live::{error, ok, pong};
use ladon_crash::{Client, Server};
use ladon_testkit::Ports;
use nix::sys::signal::Signal;
use rustls::HandshakeKind;
use std::fs;

fn set(server: &Server, words: &[&str]) -> ladon_resp::client::Value {
    let mut client = server.connect().expect("connects");
    client.call(&[&["CONFIG", "SET"], words].concat()).expect("a reply")
}

/// The certificate that the server shows now.
fn shown(door: &Door) -> Vec<u8> {
    let config = config(&door.authority, None, BOTH);
    let mut client = TlsClient::connect(door.port(), &config);
    assert_eq!(client.call(&["PING"]).unwrap(), pong());
    client.tls.peer_certificates().expect("a certificate")[0].to_vec()
}

#[test]
fn new_files_hold_for_new_connections_and_nobody_is_dropped() {
    let door = Door::new();
    let first = door.server.chain[0].to_vec();
    let second = door.authority.server("second");
    door.on_both(NO_CLIENTS, |server| {
        let mut stays = TlsClient::connect(door.port(), &config(&door.authority, None, BOTH));
        assert_eq!(stays.call(&["PING"]).unwrap(), pong());
        assert_eq!(shown(&door), first);
        let (cert, key) = (text(&second.cert_file), text(&second.key_file));
        assert_eq!(set(server, &["tls-cert-file", cert, "tls-key-file", key]), ok());
        assert_eq!(shown(&door), second.chain[0].to_vec());

        // The same names, and other contents: by CONFIG SET, and by SIGHUP.
        let third = door.authority.server("third");
        let before = [fs::read(cert).expect("read"), fs::read(key).expect("read")];
        fs::copy(&third.cert_file, cert).expect("copied");
        fs::copy(&third.key_file, key).expect("copied");
        assert_eq!(shown(&door), second.chain[0].to_vec(), "nobody has asked for it yet");
        assert_eq!(set(server, &["tls-cert-file", cert]), ok());
        assert_eq!(shown(&door), third.chain[0].to_vec());
        fs::write(cert, &before[0]).expect("written");
        fs::write(key, &before[1]).expect("written");
        server.signal(Signal::SIGHUP).expect("sent");
        await_log(server, "TLS: certificates and keys were read again");
        assert_eq!(shown(&door), second.chain[0].to_vec());
        assert_eq!(stays.call(&["PING"]).unwrap(), pong(), "who was in stays in");
    });
}

#[test]
fn what_cannot_be_used_is_named_and_changes_nothing() {
    let door = Door::new();
    let first = door.server.chain[0].to_vec();
    door.on_both(NO_CLIENTS, |server| {
        let failed = |name: &str, reason: &str| {
            error(&format!(
                "ERR CONFIG SET failed (possibly related to argument '{name}') - \
                 Unable to update TLS configuration. {reason}"
            ))
        };
        let missing = "/nonexistent.crt: No such file or directory (os error 2)";
        let refused = failed("tls-cert-file", missing);
        assert_eq!(set(server, &["tls-cert-file", "/nonexistent.crt"]), refused);
        assert_eq!(
            set(server, &["maxmemory", "77mb", "tls-cert-file", "/nonexistent.crt"]),
            refused
        );
        let invalid = "tls-protocols: Invalid tls-protocols specified. Use a combination of \
                       'TLSv1.2' and 'TLSv1.3'.";
        assert_eq!(set(server, &["tls-protocols", "SSLv3"]), failed("tls-protocols", invalid));
        assert_eq!(shown(&door), first);
        let mut plain = server.connect().expect("connects");
        assert_eq!(crate::live::info_number(&mut plain, "memory", "maxmemory"), 0);

        let saved = fs::read(&door.server.cert_file).expect("read");
        fs::write(&door.server.cert_file, "broken").expect("written");
        server.signal(Signal::SIGHUP).expect("sent");
        await_log(server, "there is no certificate in it");
        assert!(server.output().contains("the certificates in force stay"));
        assert_eq!(shown(&door), first);
        fs::write(&door.server.cert_file, saved).expect("written");
    });
}

#[test]
fn a_session_does_not_survive_the_authority_that_let_it_in() {
    let door = Door::new();
    let ada = door.authority.client("ada");
    let other = Authority::new();
    door.on_both(&[], |server| {
        let config = config(&door.authority, Some(&ada), BOTH);
        let mut client = TlsClient::connect(door.port(), &config);
        assert_eq!(client.call(&["PING"]).unwrap(), pong());
        let mut client = TlsClient::connect(door.port(), &config);
        assert_eq!(client.call(&["PING"]).unwrap(), pong());
        assert_eq!(client.tls.handshake_kind(), Some(HandshakeKind::Resumed));
        assert_eq!(set(server, &["tls-ca-cert-file", text(&other.ca_file())]), ok());
        let mut client = TlsClient::connect(door.port(), &config);
        assert!(client.call(&["PING"]).is_err(), "its authority is not trusted any more");
    });
}

#[test]
fn tls_is_switched_on_off_and_elsewhere() {
    let door = Door::new();
    let other = Ports::take(1).expect("a port");
    crate::live::on_both_backends(&["--io-threads", "2"], |server| {
        let port = door.port().to_string();
        let refused = set(server, &["tls-port", &port]);
        assert!(matches!(refused, ladon_resp::client::Value::Error(_)), "there is no certificate");
        let ca = door.authority.ca_file();
        let files = [
            "tls-cert-file",
            text(&door.server.cert_file),
            "tls-key-file",
            text(&door.server.key_file),
            "tls-ca-cert-file",
            text(&ca),
            "tls-auth-clients",
            "no",
        ];
        assert_eq!(set(server, &files), ok());
        assert_eq!(set(server, &["tls-port", &port]), ok());
        let config = config(&door.authority, None, BOTH);
        let mut stays = TlsClient::connect(door.port(), &config);
        assert_eq!(stays.call(&["PING"]).unwrap(), pong());
        assert_eq!(set(server, &["tls-port", &other.first().to_string()]), ok());
        assert!(Client::connect(door.port()).is_err(), "the port before is closed");
        let mut client = TlsClient::connect(other.first(), &config);
        assert_eq!(client.call(&["PING"]).unwrap(), pong());
        assert_eq!(set(server, &["tls-port", "0"]), ok());
        assert!(Client::connect(other.first()).is_err());
        assert_eq!(stays.call(&["PING"]).unwrap(), pong(), "who was in stays in");
        assert_eq!(set(server, &["tls-port", &port]), ok());
        let mut client = TlsClient::connect(door.port(), &config);
        assert_eq!(client.call(&["PING"]).unwrap(), pong());
        assert_eq!(set(server, &["tls-port", "0"]), ok());
    });
}
