//! *ring* beside aws-lc-rs as rustls' cryptography: records, handshakes, memory.
//!
//! ```sh
//! cargo run --release --manifest-path scripts/tls-providers/Cargo.toml
//! ```
//!
//! Both in turns, round by round; medians. Records are sealed and opened as TLS 1.3 has them.
//! Of a handshake (TLS 1.3, X25519) only the server's part counts.

use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, Iv, MessageDecrypter, MessageEncrypter, OutboundChunks,
    OutboundPlainMessage,
};
use rustls::crypto::{CryptoProvider, aws_lc_rs, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::TLS13;
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, ContentType, HandshakeKind, NamedGroup,
    ProtocolVersion, RootCertStore, ServerConfig, ServerConnection, SupportedCipherSuite,
    Tls13CipherSuite,
};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
/// How long one cell of a round takes.
const CELL: Duration = Duration::from_millis(200);
const RECORD_BYTES: [usize; 2] = [64, 16_384];
/// Sessions whose memory is counted.
const SESSIONS: usize = 200;

fn main() {
    let providers =
        [("ring", ring::default_provider()), ("aws-lc-rs", aws_lc_rs::default_provider())];
    println!("{:48}{:>12}{:>12}{:>18}", "", "ring", "aws-lc-rs", "aws-lc-rs / ring");
    for suite in providers[0].1.cipher_suites.iter().filter_map(SupportedCipherSuite::tls13) {
        if suite.common.suite == CipherSuite::TLS13_AES_128_GCM_SHA256 {
            // Its key is shorter than those that rustls lets others make.
            continue;
        }
        for bytes in RECORD_BYTES {
            let keys = providers.each_ref().map(|(_, provider)| Keys::new(provider, suite, bytes));
            let what = format!("{:?}, {bytes} bytes", suite.common.suite);
            row(&format!("{what}: seal, ns"), &keys, |keys| cell(|| drop(keys.seal())));
            row(&format!("{what}: open, ns"), &keys, |keys| {
                let (number, record) = (keys.number.get(), keys.seal());
                cell(|| keys.open(number, &mut record.clone()))
            });
        }
    }
    let algorithms =
        [("ECDSA P-256", &rcgen::PKCS_ECDSA_P256_SHA256), ("RSA 2048", &rcgen::PKCS_RSA_SHA256)];
    for (name, algorithm) in algorithms {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        let ends =
            providers.each_ref().map(|(_, provider)| Ends::new(provider, &certificate, &key));
        row(&format!("{name}: a full handshake, us"), &ends, |ends| ends.handshakes(true));
        row(&format!("{name}: a resumed handshake, us"), &ends, |ends| ends.handshakes(false));
        row(&format!("{name}: a session's memory, bytes"), &ends, Ends::session_bytes);
    }
}

/// A line: medians of `measure` at both, and of their ratio in a round.
fn row<T>(what: &str, both: &[T; 2], measure: impl Fn(&T) -> f64) {
    let mut rounds: Vec<[f64; 2]> = (0..ROUNDS).map(|_| both.each_ref().map(&measure)).collect();
    let mut median = |value: &dyn Fn(&[f64; 2]) -> f64| {
        rounds.sort_by(|a, b| value(a).total_cmp(&value(b)));
        value(&rounds[ROUNDS / 2])
    };
    let (ring, aws, ratio) =
        (median(&|it| it[0]), median(&|it| it[1]), median(&|it| it[1] / it[0]));
    println!("{what:48}{ring:>12.0}{aws:>12.0}{ratio:>18.2}");
}

/// Nanoseconds of one call.
fn cell(mut call: impl FnMut()) -> f64 {
    let (began, mut calls) = (Instant::now(), 0);
    while began.elapsed() < CELL {
        (0..64).for_each(|_| call());
        calls += 64;
    }
    began.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
}

/// One direction's key of a cipher suite, and what it seals.
struct Keys {
    sealer: RefCell<Box<dyn MessageEncrypter>>,
    opener: RefCell<Box<dyn MessageDecrypter>>,
    /// The next record's number; aws-lc-rs seals none twice.
    number: Cell<u64>,
    plain: Vec<u8>,
}

impl Keys {
    /// The provider's own form of a suite.
    fn new(provider: &CryptoProvider, like: &Tls13CipherSuite, bytes: usize) -> Keys {
        let mut suites = provider.cipher_suites.iter().filter_map(SupportedCipherSuite::tls13);
        let suite = suites.find(|suite| suite.common.suite == like.common.suite).unwrap();
        let (key, iv) = (|| AeadKey::from([1; 32]), || Iv::new([2; 12]));
        Keys {
            sealer: RefCell::new(suite.aead_alg.encrypter(key(), iv())),
            opener: RefCell::new(suite.aead_alg.decrypter(key(), iv())),
            number: Cell::new(0),
            plain: vec![7; bytes],
        }
    }

    fn seal(&self) -> Vec<u8> {
        let number = self.number.replace(self.number.get() + 1);
        let message = OutboundPlainMessage {
            typ: ContentType::ApplicationData,
            version: ProtocolVersion::TLSv1_3,
            payload: OutboundChunks::Single(&self.plain),
        };
        self.sealer.borrow_mut().encrypt(message, number).unwrap().encode()
    }

    /// Opens the record with this number.
    fn open(&self, number: u64, record: &mut [u8]) {
        let kind = ContentType::ApplicationData;
        let record = InboundOpaqueMessage::new(kind, ProtocolVersion::TLSv1_2, &mut record[5..]);
        let opened = self.opener.borrow_mut().decrypt(record, number).unwrap();
        assert_eq!(opened.payload.len(), self.plain.len());
    }
}

/// A server on a provider, and a client whose provider is always the same.
struct Ends {
    server: Arc<ServerConfig>,
    roots: Arc<RootCertStore>,
}

impl Ends {
    fn new(
        provider: &CryptoProvider,
        certificate: &CertificateDer<'static>,
        key: &KeyPair,
    ) -> Ends {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut server = ServerConfig::builder_with_provider(Arc::new(provider.clone()))
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        server.send_tls13_tickets = 1;
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        Ends { server: Arc::new(server), roots: Arc::new(roots) }
    }

    /// A client without a session to resume.
    fn client(&self) -> Arc<ClientConfig> {
        let mut provider = ring::default_provider();
        provider.kx_groups.retain(|group| group.name() == NamedGroup::X25519);
        let builder = ClientConfig::builder_with_provider(Arc::new(provider));
        let builder = builder.with_protocol_versions(&[&TLS13]).unwrap();
        Arc::new(builder.with_root_certificates(Arc::clone(&self.roots)).with_no_client_auth())
    }

    /// Microseconds of a handshake at the server.
    fn handshakes(&self, full: bool) -> f64 {
        let (mut client, mut spent, mut count) = (self.client(), Duration::ZERO, 0);
        self.handshake(&client);
        while spent < CELL {
            if full {
                client = self.client();
            }
            let (server, took) = self.handshake(&client);
            let expected = if full { HandshakeKind::Full } else { HandshakeKind::Resumed };
            assert_eq!(server.handshake_kind(), Some(expected));
            spent += took;
            count += 1;
        }
        spent.as_secs_f64() * 1e6 / f64::from(count)
    }

    /// One handshake with its tickets: the server's end, and how long the server took.
    fn handshake(&self, config: &Arc<ClientConfig>) -> (ServerConnection, Duration) {
        let name = "localhost".try_into().unwrap();
        let mut client = ClientConnection::new(Arc::clone(config), name).unwrap();
        let began = Instant::now();
        let mut server = ServerConnection::new(Arc::clone(&self.server)).unwrap();
        let mut took = began.elapsed();
        loop {
            let mut bytes = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut bytes).unwrap();
            }
            if bytes.is_empty() {
                return (server, took);
            }
            let (began, mut answer) = (Instant::now(), Vec::new());
            server.read_tls(&mut &bytes[..]).unwrap();
            server.process_new_packets().unwrap();
            while server.wants_write() {
                server.write_tls(&mut answer).unwrap();
            }
            took += began.elapsed();
            let mut answer = &answer[..];
            while !answer.is_empty() {
                client.read_tls(&mut answer).unwrap();
                client.process_new_packets().unwrap();
            }
        }
    }

    /// What the allocator has given for an established session and not got back.
    fn session_bytes(&self) -> f64 {
        let client = self.client();
        let mut kept = Vec::with_capacity(SESSIONS);
        kept.push(self.handshake(&client).0);
        let before = allocated();
        for _ in 1..SESSIONS {
            kept.push(self.handshake(&self.client()).0);
        }
        (allocated() - before) as f64 / (SESSIONS - 1) as f64
    }
}

/// Bytes that are allocated, by Rust and by C.
fn allocated() -> usize {
    // SAFETY: it takes nothing and only reads the allocator's counters.
    unsafe { libc::mallinfo2() }.uordblks
}
