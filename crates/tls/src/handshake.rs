//! One handshake: bytes in, bytes out, an established session at the end. No socket.
//!
//! rustls gets whole records one by one, so that it stops exactly behind the handshake: what the
//! peer sent after it belongs to the IO thread.

use crate::peer::PeerCertificate;
use crate::records::{RecordError, whole_record};
use crate::session::{Session, encode};
use rustls::ServerConfig;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use std::sync::Arc;
use thiserror::Error;

/// Bytes of a handshake that may wait to be processed. A client's certificates are the longest
/// part.
const INCOMING_BYTES_MAX: usize = 64 << 10;

/// Why a handshake failed.
#[derive(Debug, Error)]
pub(crate) enum HandshakeError {
    /// These are no records.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// rustls refuses it.
    #[error("{0}")]
    Tls(#[from] rustls::Error),
    /// More bytes than any handshake needs.
    #[error("its handshake is too long")]
    TooLong,
    /// The peer ended it.
    #[error("it ended the handshake")]
    Ended,
    /// Something that has no place here.
    #[error("it sends what has no place in a handshake")]
    Misplaced,
}

pub(crate) struct Handshake {
    conn: UnbufferedServerConnection,
    incoming: Vec<u8>,
    /// Bytes of `incoming` that rustls has seen and still needs.
    seen: usize,
}

impl Handshake {
    pub(crate) fn new(config: Arc<ServerConfig>) -> Result<Handshake, HandshakeError> {
        let conn = UnbufferedServerConnection::new(config)?;
        Ok(Handshake { conn, incoming: Vec::new(), seen: 0 })
    }

    /// Goes on with the peer's bytes. Appends to `out` what the peer has to get, an alert as well.
    /// Returns whether the handshake is done.
    pub(crate) fn advance(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, HandshakeError> {
        self.incoming.extend_from_slice(bytes);
        if self.incoming.len() > INCOMING_BYTES_MAX {
            return Err(HandshakeError::TooLong);
        }
        loop {
            if !self.process(out)? {
                continue;
            }
            if !self.conn.is_handshaking() {
                // A part of a further handshake message would be left.
                return if self.seen == 0 { Ok(true) } else { Err(HandshakeError::Misplaced) };
            }
            match whole_record(&self.incoming[self.seen..])? {
                Some(length) => self.seen += length,
                None => return Ok(false),
            }
        }
    }

    /// Bytes of the peer that wait for more.
    pub(crate) fn held_bytes(&self) -> usize {
        self.incoming.len()
    }

    /// One step. Returns whether rustls needs another record.
    fn process(&mut self, out: &mut Vec<u8>) -> Result<bool, HandshakeError> {
        let seen = &mut self.incoming[..self.seen];
        let UnbufferedStatus { discard, state } = self.conn.process_tls_records(seen);
        let result = match state {
            Ok(ConnectionState::EncodeTlsData(data)) => {
                encode(data, out);
                Ok(false)
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                Ok(false)
            }
            Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => Ok(true),
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Err(HandshakeError::Ended),
            Ok(_) => Err(HandshakeError::Misplaced),
            Err(error) => Err(HandshakeError::Tls(error)),
        };
        self.incoming.drain(..discard);
        self.seen -= discard;
        if let Err(HandshakeError::Tls(_)) = result {
            let seen = &mut self.incoming[..self.seen];
            let UnbufferedStatus { state, .. } = self.conn.process_tls_records(seen);
            if let Ok(ConnectionState::EncodeTlsData(data)) = state {
                encode(data, out);
            }
        }
        result
    }

    /// The session, once the handshake is done.
    pub(crate) fn finish(self) -> Session {
        let mut incoming = self.incoming;
        incoming.shrink_to_fit();
        let certificate = self.conn.peer_certificates().and_then(|chain| chain.first());
        let peer = certificate.map(|der| PeerCertificate::of(der));
        Session::new(self.conn, incoming, peer)
    }
}
