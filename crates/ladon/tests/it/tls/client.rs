//! A client on TLS: rustls, and RESP on top of it.

use super::certificates::{Authority, Identity};
use ladon_resp::client::{Decoder, Value, write_request};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, ClientConnection, SupportedProtocolVersion};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

pub const BOTH: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12, &rustls::version::TLS13];

/// What a client is made of.
pub fn config(
    authority: &Authority,
    identity: Option<&Identity>,
    versions: &[&'static SupportedProtocolVersion],
) -> Arc<ClientConfig> {
    config_with(ring::default_provider(), authority, identity, versions)
}

pub fn config_with(
    provider: CryptoProvider,
    authority: &Authority,
    identity: Option<&Identity>,
    versions: &[&'static SupportedProtocolVersion],
) -> Arc<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .expect("versions")
        .with_root_certificates(authority.roots());
    Arc::new(match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder
            .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
            .expect("a certificate"),
    })
}

pub fn connection(config: &Arc<ClientConfig>) -> ClientConnection {
    let name = "localhost".try_into().expect("a name");
    ClientConnection::new(Arc::clone(config), name).expect("a connection")
}

pub fn socket(port: u16) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    socket.set_nodelay(true).expect("set");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    socket.set_write_timeout(Some(Duration::from_secs(60))).expect("set");
    socket
}

pub struct TlsClient {
    pub tls: ClientConnection,
    pub socket: TcpStream,
    decoder: Decoder,
    input: Vec<u8>,
}

impl TlsClient {
    /// Connects; the handshake is done with the first request.
    pub fn connect(port: u16, config: &Arc<ClientConfig>) -> TlsClient {
        TlsClient {
            tls: connection(config),
            socket: socket(port),
            decoder: Decoder::default(),
            input: Vec::new(),
        }
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        rustls::Stream::new(&mut self.tls, &mut self.socket).write_all(bytes)
    }

    /// Reads some plain bytes; none at a clean end.
    pub fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        rustls::Stream::new(&mut self.tls, &mut self.socket).read(bytes)
    }

    pub fn reply(&mut self) -> io::Result<Value> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let decoded = self.decoder.decode(&self.input).expect("RESP");
            self.input.drain(..decoded.consumed);
            if let Some(value) = decoded.value {
                return Ok(value);
            }
            match self.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.input.extend_from_slice(&buffer[..read]),
            }
        }
    }

    pub fn call(&mut self, words: &[&str]) -> io::Result<Value> {
        let mut bytes = Vec::new();
        write_request(&mut bytes, words);
        self.send(&bytes)?;
        self.reply()
    }
}
