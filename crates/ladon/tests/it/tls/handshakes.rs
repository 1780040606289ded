//! Who is let in, and with what: certificates, versions, suites, tickets.

use super::certificates::{Authority, text};
use super::client::{BOTH, TlsClient, config, config_with};
use super::{Door, NO_CLIENTS, await_log};
use crate::common::ladon;
use crate::live::pong;
use rustls::HandshakeKind;
use rustls::crypto::ring;
use std::fs;

#[test]
fn clients_need_a_certificate_of_the_authority() {
    let door = Door::new();
    let ada = door.authority.client("ada");
    let stranger = Authority::new().client("stranger");
    for (mode, without, of_a_stranger) in
        [("yes", false, false), ("optional", true, false), ("no", true, true)]
    {
        door.on_both(&["--tls-auth-clients", mode], |server| {
            for versions in [&BOTH[..1], &BOTH[1..]] {
                let tries = [(None, without), (Some(&ada), true), (Some(&stranger), of_a_stranger)];
                for (identity, is_let_in) in tries {
                    let config = config(&door.authority, identity, versions);
                    let mut client = TlsClient::connect(door.port(), &config);
                    let reply = client.call(&["PING"]).ok();
                    assert_eq!(reply.is_some(), is_let_in, "{mode} {}", identity.is_some());
                }
            }
            if !without {
                await_log(server, "peer sent no certificates");
            }
            if !of_a_stranger {
                await_log(server, "invalid peer certificate: ");
            }
        });
    }
}

#[test]
fn authorities_may_be_in_a_directory() {
    let door = Door::new();
    let ada = door.authority.client("ada");
    let directory = tempfile::tempdir().expect("a directory");
    fs::copy(door.authority.ca_file(), directory.path().join("0f1e2d3c.0")).expect("copied");
    fs::create_dir(directory.path().join("other")).expect("made");
    let arguments = ["--tls-ca-cert-dir", text(directory.path())];
    let none = Authority::new();
    door.on_both(&arguments, |server| {
        let config = config(&door.authority, Some(&ada), BOTH);
        let mut client = TlsClient::connect(door.port(), &config);
        assert_eq!(client.call(&["PING"]).unwrap(), pong());
        // The directory alone does as well.
        let mut plain = server.connect().expect("connects");
        for file in ["", text(&none.ca_file())] {
            let set = plain.call(&["CONFIG", "SET", "tls-ca-cert-file", file]);
            assert_eq!(set.expect("a reply"), crate::live::ok());
            let mut client = TlsClient::connect(door.port(), &config);
            assert_eq!(client.call(&["PING"]).unwrap(), pong());
        }
    });
}

#[test]
fn versions_and_suites_are_those_of_the_settings() {
    let door = Door::new();
    let only = |versions: &[&'static rustls::SupportedProtocolVersion]| {
        let config = config(&door.authority, None, versions);
        let mut client = TlsClient::connect(door.port(), &config);
        client.call(&["PING"]).ok()?;
        client.tls.negotiated_cipher_suite().map(|suite| format!("{:?}", suite.suite()))
    };
    let arguments = ["--tls-protocols", "TLSv1.3", "--tls-ciphersuites", "TLS_AES_128_GCM_SHA256"];
    door.on_both(&[NO_CLIENTS, &arguments].concat(), |_| {
        assert_eq!(only(&BOTH[..1]), None);
        assert_eq!(only(BOTH).as_deref(), Some("TLS13_AES_128_GCM_SHA256"));
    });
    let suite = "ECDHE-ECDSA-CHACHA20-POLY1305:!aNULL";
    let arguments = ["--tls-protocols", "TLSv1.2", "--tls-ciphers", suite];
    door.on_both(&[NO_CLIENTS, &arguments].concat(), |_| {
        assert_eq!(only(&BOTH[1..]), None);
        let suite = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256";
        assert_eq!(only(BOTH).as_deref(), Some(suite));
    });
}

#[test]
fn the_order_of_the_suites_is_the_clients_or_the_servers() {
    let door = Door::new();
    let mut provider = ring::default_provider();
    // The client prefers the last one of the server's.
    provider.cipher_suites.sort_by_key(|suite| !format!("{suite:?}").contains("AES_128"));
    let config = config_with(provider, &door.authority, None, &BOTH[1..]);
    for (prefers, expected) in
        [("no", "TLS13_AES_128_GCM_SHA256"), ("yes", "TLS13_AES_256_GCM_SHA384")]
    {
        door.on_both(&[NO_CLIENTS, &["--tls-prefer-server-ciphers", prefers]].concat(), |_| {
            let mut client = TlsClient::connect(door.port(), &config);
            assert_eq!(client.call(&["PING"]).unwrap(), pong());
            let suite = client.tls.negotiated_cipher_suite().expect("a suite").suite();
            assert_eq!(format!("{suite:?}"), expected);
        });
    }
}

#[test]
fn a_client_that_returns_goes_on_with_its_session_if_it_may() {
    let door = Door::new();
    let ada = door.authority.client("ada");
    for (caching, expected) in [("yes", HandshakeKind::Resumed), ("no", HandshakeKind::Full)] {
        door.on_both(&["--tls-session-caching", caching], |_| {
            for versions in [&BOTH[..1], &BOTH[1..]] {
                let config = config(&door.authority, Some(&ada), versions);
                let kind = || {
                    let mut client = TlsClient::connect(door.port(), &config);
                    assert_eq!(client.call(&["PING"]).unwrap(), pong());
                    assert_eq!(client.call(&["QUIT"]).unwrap(), crate::live::ok());
                    client.tls.handshake_kind()
                };
                assert_eq!(kind(), Some(HandshakeKind::Full));
                assert_eq!(kind(), Some(expected), "{caching} {versions:?}");
            }
        });
    }
}

#[test]
fn settings_that_cannot_be_used_stop_the_start_and_name_the_file() {
    let door = Door::new();
    let dir = door.authority.dir.path();
    let (cert, key) = (text(&door.server.cert_file), text(&door.server.key_file));
    let other = door.authority.server("other");
    let empty = dir.join("empty.pem");
    fs::write(&empty, "nothing").expect("written");
    let data = dir.join("data");
    let port = door.port().to_string();
    let check = |more: &[&str], expected: &str| {
        let mut arguments = vec!["serve", "--resp", "off", "--tls-port", &port];
        arguments.extend(["--bind", "127.0.0.1", "--data", text(&data)]);
        arguments.extend(more);
        let run = ladon(&arguments);
        assert_ne!(run.code, 0);
        assert!(run.stderr.contains(expected), "{expected:?} is not in {}", run.stderr);
    };
    let without = &["--tls-auth-clients", "no"];
    check(without, "No tls-cert-file configured!");
    check(&[&without[..], &["--tls-cert-file", cert]].concat(), "No tls-key-file configured!");
    let both = |cert: &'static str, key: &'static str| {
        ["--tls-auth-clients", "no", "--tls-cert-file", cert, "--tls-key-file", key]
    };
    let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let (cert, key, empty) = (leak(cert), leak(key), leak(text(&empty)));
    check(&both("/nonexistent.crt", key), "/nonexistent.crt: No such file");
    check(&both(empty, key), &format!("{empty}: there is no certificate in it"));
    check(&both(cert, empty), &format!("{empty}: there is no private key in it"));
    let wrong = leak(text(&other.key_file));
    check(&both(cert, wrong), &format!("{wrong}: it is not the key of {cert}"));
    check(&both(cert, key)[2..], "Either tls-ca-cert-file or tls-ca-cert-dir must be specified");
    let word = [&both(cert, key)[..], &["--tls-protocols", "TLSv1.1"]].concat();
    check(&word, "tls-protocols: TLSv1.1 is broken and not supported");
    let word = [&both(cert, key)[..], &["--tls-ciphers", "AES128-SHA"]].concat();
    check(&word, "tls-ciphers: 'AES128-SHA' is not supported; there are ECDHE-ECDSA-AES256");
}
