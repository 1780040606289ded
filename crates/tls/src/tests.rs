//! Handshakes and sessions against rustls' client, without sockets.

use crate::config::{AuthClients, Config, TlsOptions};
use crate::handshake::Handshake;
use crate::session::{Opened, Session};
use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

fn options(dir: &Path) -> (TlsOptions, CertificateDer<'static>) {
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let (cert_file, key_file) = (dir.join("a.crt"), dir.join("a.key"));
    fs::write(&cert_file, certificate.pem()).unwrap();
    fs::write(&key_file, key.serialize_pem()).unwrap();
    let options = TlsOptions {
        cert_file,
        key_file,
        auth_clients: AuthClients::No,
        session_caching: true,
        session_cache_size: 8,
        session_cache_timeout: 300,
        ..TlsOptions::default()
    };
    (options, certificate.der().clone())
}

struct Pair {
    server: Config,
    client: Arc<ClientConfig>,
}

impl Pair {
    fn new(version: &'static SupportedProtocolVersion, fragment: Option<usize>) -> Pair {
        let dir = tempfile::tempdir().unwrap();
        let (options, certificate) = options(dir.path());
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let mut client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.max_fragment_size = fragment;
        Pair { server: options.load().unwrap(), client: Arc::new(client) }
    }

    /// A finished handshake whose bytes came `piece` at a time; `early` is sent right behind it.
    fn connect(&self, piece: usize, early: &[u8]) -> (ClientConnection, Session) {
        let name = "localhost".try_into().unwrap();
        let mut client = ClientConnection::new(Arc::clone(&self.client), name).unwrap();
        let mut server = Handshake::new(Arc::clone(&self.server)).unwrap();
        let mut is_done = false;
        client.writer().write_all(early).unwrap();
        while !is_done {
            let mut bytes = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut bytes).unwrap();
            }
            assert!(!bytes.is_empty(), "the client waits, the server too");
            let mut answer = Vec::new();
            for piece in bytes.chunks(piece) {
                is_done = server.advance(piece, &mut answer).unwrap();
            }
            feed(&mut client, &answer);
        }
        (client, server.finish())
    }
}

/// Gives the client records; returns their content.
fn feed(client: &mut ClientConnection, mut bytes: &[u8]) -> Vec<u8> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        client.read_tls(&mut bytes).unwrap();
        client.process_new_packets().unwrap();
        // More may come later, which is an error here.
        let _ = client.reader().read_to_end(&mut found);
    }
    found
}

#[test]
fn handshakes_come_in_pieces_and_stop_where_they_end() {
    for version in VERSIONS {
        for fragment in [None, Some(64)] {
            let pair = Pair::new(version, fragment);
            for piece in [1, 7, 100, 100_000] {
                let (mut client, mut session) = pair.connect(piece, b"early");
                let mut early = Vec::new();
                // In TLS 1.3 it came right behind the handshake, in 1.2 the client waits for the
                // handshake's end.
                let mut records = std::mem::take(&mut session.incoming);
                while client.wants_write() {
                    client.write_tls(&mut records).unwrap();
                }
                let (opened, outcome) =
                    session.open(&mut records, 8, |bytes| early.extend_from_slice(bytes));
                assert_eq!((opened, outcome), (records.len(), Opened::All));
                assert_eq!(early, b"early", "{version:?} {fragment:?} {piece}");
            }
        }
    }
}

#[test]
fn bytes_come_out_as_they_went_in() {
    for version in VERSIONS {
        let pair = Pair::new(version, None);
        let (mut client, mut session) = pair.connect(100_000, b"");
        for length in [1, 100, 16_384, 16_385, 49_152, 50_000] {
            let plain: Vec<u8> = (0..length).map(|at| (at * 7 % 251) as u8).collect();
            let mut records = Vec::new();
            session.seal(&plain, &mut records).unwrap();
            assert!(feed(&mut client, &records) == plain, "{length}");
            client.writer().write_all(&plain).unwrap();
            let mut records = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut records).unwrap();
            }
            let mut found = Vec::new();
            let (opened, _) = session.open(&mut records, 100, |bytes| found.extend(bytes));
            assert!((opened, found) == (records.len(), plain), "{length}");
        }
        let mut records = Vec::new();
        session.seal_end(&mut records);
        feed(&mut client, &records);
        assert_eq!(client.reader().read(&mut [0; 8]).unwrap(), 0, "a clean end");
    }
}

#[test]
fn no_more_records_are_opened_than_allowed() {
    let pair = Pair::new(VERSIONS[1], None);
    let (mut client, mut session) = pair.connect(100_000, b"");
    let mut records = Vec::new();
    for byte in 0..10 {
        client.writer().write_all(&[byte]).unwrap();
        client.write_tls(&mut records).unwrap();
    }
    let mut found = Vec::new();
    let (first, outcome) = session.open(&mut records, 4, |bytes| found.extend_from_slice(bytes));
    assert_eq!((found.len(), outcome), (4, Opened::Some));
    let (second, outcome) =
        session.open(&mut records[first..], 6, |bytes| found.extend_from_slice(bytes));
    assert_eq!((first + second, outcome), (records.len(), Opened::All));
    assert_eq!(found, Vec::from_iter(0..10));
}

#[test]
fn a_record_that_was_changed_ends_the_session_with_an_alert() {
    let pair = Pair::new(VERSIONS[1], None);
    for at in [0, 3, 5, 20] {
        let (mut client, mut session) = pair.connect(100_000, b"");
        client.writer().write_all(b"PING\r\n").unwrap();
        let mut records = Vec::new();
        client.write_tls(&mut records).unwrap();
        records[at] ^= 0x80;
        let (_, outcome) = session.open(&mut records, 8, |_| panic!("nothing to pass on"));
        assert!(matches!(outcome, Opened::Failed(_)), "{at}: {outcome:?}");
        let is_answered = !session.owed.is_empty();
        assert_eq!(is_answered, at >= 5, "{at}: rustls sees whole records only");
    }
}

#[test]
fn an_encrypted_key_is_opened_by_its_password() {
    let dir = tempfile::tempdir().unwrap();
    let (options, _) = options(dir.path());
    let key = fs::read_to_string(&options.key_file).unwrap();
    let (_, der) = pkcs8::SecretDocument::from_pem(&key).unwrap();
    let info = pkcs8::PrivateKeyInfoRef::try_from(der.as_bytes()).unwrap();
    let parameters = pkcs8::pkcs5::pbes2::Parameters::generate_pbkdf2_sha256_aes256cbc(
        2048,
        b"salt8888",
        [7; 16],
    );
    let encrypted = info.encrypt_with_params(parameters.unwrap(), "open sesame").unwrap();
    let pem = encrypted.to_pem("ENCRYPTED PRIVATE KEY", Default::default()).unwrap();
    fs::write(&options.key_file, pem.as_bytes()).unwrap();
    let with = |password: &str| {
        let options = TlsOptions { key_file_pass: password.to_owned().into(), ..options.clone() };
        options.load().map(|_| ()).map_err(|error| error.to_string())
    };
    let path = options.key_file.display();
    assert_eq!(with("open sesame"), Ok(()));
    let wrong = format!("{path}: tls-key-file-pass does not open the key");
    assert_eq!(with("open barley"), Err(wrong));
    let missing = format!("{path}: the key is encrypted, and tls-key-file-pass is empty");
    assert_eq!(with(""), Err(missing));
}
