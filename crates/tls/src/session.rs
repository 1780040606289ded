//! An established connection: records to plain bytes and back.
//!
//! rustls gets one whole record at a time. A peer may not split a handshake message over records
//! once the handshake is done (nobody has a reason to), so rustls never has to see a byte twice,
//! and nothing is kept but an incomplete record.

use crate::peer::PeerCertificate;
use crate::records::{HEADER_BYTES, whole_record};
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError,
    UnbufferedStatus,
};

/// Plain bytes of a record at most.
const FRAGMENT_BYTES: usize = 1 << 14;
/// What a record adds to its bytes at most: header, explicit nonce or content type, tag.
const RECORD_OVERHEAD_BYTES: usize = HEADER_BYTES + 8 + 16 + 1;
/// Bytes of answers to the peer's key updates and alerts that may wait to be sent. A peer that
/// causes more does not read.
const OWED_BYTES_MAX: usize = 16 << 10;

/// The two ends of an established TLS connection's keys.
pub struct Session {
    conn: Box<UnbufferedServerConnection>,
    /// Records of the peer that were not opened yet; empty with most connections.
    pub(crate) incoming: Vec<u8>,
    /// Records that have to leave before any other: answers to key updates, alerts.
    pub(crate) owed: Vec<u8>,
    peer: Option<PeerCertificate>,
}

/// What became of the records that were opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// All whole records were opened.
    All,
    /// As many as may be opened at once; there are more.
    Some,
    /// The peer will send nothing more.
    Ended,
    /// The peer broke the protocol; an alert is owed.
    Failed(String),
}

impl Session {
    pub(crate) fn new(
        conn: UnbufferedServerConnection,
        incoming: Vec<u8>,
        peer: Option<PeerCertificate>,
    ) -> Session {
        Session { conn: Box::new(conn), incoming, owed: Vec::new(), peer }
    }

    /// Who the peer is by its certificate, if it has shown one; it was verified.
    pub fn take_peer(&mut self) -> Option<PeerCertificate> {
        self.peer.take()
    }

    /// Opens the records in `bytes`, at most `records_max`, and passes on their content. Returns
    /// how many bytes were opened too.
    pub(crate) fn open(
        &mut self,
        bytes: &mut [u8],
        records_max: usize,
        mut pass_on: impl FnMut(&[u8]),
    ) -> (usize, Opened) {
        let mut at = 0;
        for _ in 0..records_max {
            let length = match whole_record(&bytes[at..]) {
                Ok(Some(length)) => length,
                Ok(None) => return (at, Opened::All),
                Err(error) => return (at, Opened::Failed(error.to_string())),
            };
            match self.open_record(&mut bytes[at..at + length], &mut pass_on) {
                Ok(false) => at += length,
                Ok(true) => return (bytes.len(), Opened::Ended),
                Err(error) => return (bytes.len(), Opened::Failed(error)),
            }
        }
        match whole_record(&bytes[at..]) {
            Ok(None) => (at, Opened::All),
            _ => (at, Opened::Some),
        }
    }

    /// Opens one record. Returns whether it was the peer's last one.
    fn open_record(
        &mut self,
        record: &mut [u8],
        pass_on: &mut impl FnMut(&[u8]),
    ) -> Result<bool, String> {
        let mut at = 0;
        loop {
            let UnbufferedStatus { discard, state } =
                self.conn.process_tls_records(&mut record[at..]);
            let state = match state {
                Ok(state) => state,
                Err(error) => {
                    self.take_alert(&mut record[at + discard..]);
                    return Err(error.to_string());
                }
            };
            at += discard;
            match state {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(Ok(content)) = traffic.next_record() {
                        pass_on(content.payload);
                    }
                    if at == record.len() {
                        return Ok(false);
                    }
                }
                ConnectionState::EncodeTlsData(data) => encode(data, &mut self.owed),
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed | ConnectionState::Closed => return Ok(true),
                ConnectionState::WriteTraffic(_) => break,
                _ => return Err("it sends what has no place after a handshake".to_owned()),
            }
        }
        if at != record.len() {
            return Err("it splits a handshake message after the handshake".to_owned());
        }
        if self.owed.len() > OWED_BYTES_MAX {
            return Err("it asks for answers and does not read them".to_owned());
        }
        Ok(false)
    }

    /// The alert that rustls has for the peer after an error.
    fn take_alert(&mut self, rest: &mut [u8]) {
        let UnbufferedStatus { state, .. } = self.conn.process_tls_records(rest);
        if let Ok(ConnectionState::EncodeTlsData(data)) = state {
            encode(data, &mut self.owed);
        }
    }

    /// Appends the records of `bytes` to `out`, behind what is owed.
    pub(crate) fn seal(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let records = bytes.len().div_ceil(FRAGMENT_BYTES);
        let room = bytes.len() + records * RECORD_OVERHEAD_BYTES;
        loop {
            // All that rustls was given was opened, so it may be given nothing.
            let UnbufferedStatus { state, .. } = self.conn.process_tls_records(&mut []);
            match state.map_err(|error| error.to_string())? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    out.append(&mut self.owed);
                    return append(out, room, |out| traffic.encrypt(bytes, out));
                }
                ConnectionState::EncodeTlsData(data) => encode(data, &mut self.owed),
                ConnectionState::TransmitTlsData(data) => data.done(),
                // The peer's end was reported when it was read; it may still read.
                ConnectionState::PeerClosed => {}
                _ => return Err("the connection is over".to_owned()),
            }
        }
    }

    /// Appends the message that nothing more will come.
    pub(crate) fn seal_end(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.owed);
        let UnbufferedStatus { state, .. } = self.conn.process_tls_records(&mut []);
        if let Ok(ConnectionState::WriteTraffic(mut traffic)) = state {
            // An exhausted key has nothing more to say, the end neither.
            let _ = append(out, 64, |out| traffic.queue_close_notify(out));
        }
    }
}

/// Appends what `write` writes, which is `room` bytes at most, or says how many it needs.
fn append(
    out: &mut Vec<u8>,
    mut room: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, EncryptError>,
) -> Result<(), String> {
    let start = out.len();
    loop {
        out.resize(start + room, 0);
        match write(&mut out[start..]) {
            Ok(written) => {
                out.truncate(start + written);
                return Ok(());
            }
            // With an answer to a key update in front.
            Err(EncryptError::InsufficientSize(InsufficientSizeError { required_size }))
                if required_size > room =>
            {
                room = required_size;
            }
            Err(error) => {
                out.truncate(start);
                return Err(error.to_string());
            }
        }
    }
}

/// Appends a message of rustls' own.
pub(crate) fn encode<Data>(mut data: EncodeTlsData<'_, Data>, out: &mut Vec<u8>) {
    let start = out.len();
    let needed = match data.encode(&mut []) {
        Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => {
            required_size
        }
        _ => return,
    };
    out.resize(start + needed, 0);
    let written = data.encode(&mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
}
