//! The tools of the command line as clients with TLS.

use super::certificates::{Authority, text};
use super::{Door, NO_CLIENTS};
use crate::live::ok;
use std::process::Command;

/// The exit code, and what was said.
fn ladon(arguments: &[&str]) -> (Option<i32>, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_ladon")).args(arguments).output().expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn ping_trusts_the_servers_own_settings_or_what_it_is_given() {
    let door = Door::new();
    let (other, other_ca) = (Authority::new(), Authority::new());
    let other_certificate = other.server("other");
    door.on_both(NO_CLIENTS, |_| {
        let (port, ca, foreign) =
            (door.port().to_string(), door.authority.ca_file(), other_ca.ca_file());
        let check = |more: &[&str], expected: &str| {
            let server = ["ping", "--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"];
            let (code, said) = ladon(&[&server, more].concat());
            assert!(said.contains(expected), "{more:?}: {said}");
            assert_eq!(code, Some(if expected == "PONG" { 0 } else { 3 }), "{more:?}: {said}");
        };
        let own = text(&door.server.cert_file);
        check(&["--tls-cert-file", own], "PONG");
        check(
            &[
                "--tls-ca-cert-file",
                text(&ca),
                "--tls-cert-file",
                text(&other_certificate.cert_file),
            ],
            "PONG",
        );
        check(&["--tls-cert-file", text(&other_certificate.cert_file)], "invalid peer certificate");
        check(&["--tls", "--cacert", text(&ca), "--sni", "localhost"], "PONG");
        check(
            &["--tls", "--cacert", text(&foreign), "--sni", "localhost"],
            "invalid peer certificate",
        );
        check(&["--tls", "--cacert", text(&ca), "--sni", "other.test"], "invalid peer certificate");
        check(&["--tls", "--insecure"], "PONG");
        check(&["--tls", "--cacert", "/dev/zero"], "it is no regular file");
    });
}

#[test]
fn files_go_in_and_out_with_a_clients_certificate() {
    let door = Door::new();
    let ada = door.authority.client("ada");
    let dir = tempfile::tempdir().expect("a directory");
    door.on_both(&[], |server| {
        let mut client = server.connect().expect("connects");
        assert_eq!(client.call(&["SET", "key", "value"]).expect("a reply"), ok());
        let (file, ca) = (dir.path().join("out.rdb"), door.authority.ca_file());
        let _ = std::fs::remove_file(&file);
        let address = format!("localhost:{}", door.port());
        let tls = ["--tls", "--cacert", text(&ca), "--cert", text(&ada.cert_file)];
        let tls = [&tls[..], &["--key", text(&ada.key_file)]].concat();
        let (code, said) =
            ladon(&[&["export", text(&file), "--from", &address], &tls[..]].concat());
        assert_eq!(code, Some(0), "{said}");
        let words = ["import", text(&file), "--into", &address, "--replace"];
        let (code, said) = ladon(&[&words, &tls[..]].concat());
        assert_eq!(code, Some(0), "{said}");
        // Without its certificate, and without TLS.
        let (code, said) = ladon(&[&words[..], &tls[..3]].concat());
        assert_eq!(code, Some(3), "{said}");
        let (code, said) = ladon(&[&words[..], &tls[1..3]].concat());
        assert!(code == Some(3) && said.contains("need --tls"), "{said}");
    });
}
