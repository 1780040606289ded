//! A value as the argument of `RESTORE`, sent while it is encoded.
//!
//! The argument's length stands before it. So a long value is encoded twice: first to measure it.

use crate::connection::Connection;
use ladon_engine::ValueRef;
use ladon_rdb::payload::{self, FOOTER_BYTES, Sealing};
use ladon_rdb::{Fault, Sink, Version};
use ladon_transfer::{head_of, oldest_version, write};

/// Up to this size a payload is made in memory.
const SHORT_BYTES: usize = 64 << 10;

/// A value's payload, or how long it is.
pub(crate) enum SentValue<'v> {
    Made(Vec<u8>),
    Measured { value: ValueRef<'v>, version: Version, bytes: u64 },
}

impl<'v> SentValue<'v> {
    /// Measures a value.
    ///
    /// # Errors
    /// A value that no version of RDB has.
    pub(crate) fn of(value: ValueRef<'v>) -> Result<SentValue<'v>, Fault> {
        let version = oldest_version(value);
        let mut measure = Measure::default();
        write(value, payload::begin_value(&mut measure, head_of(value)?, version)?)?;
        let Measure { mut begin, gone } = measure;
        if gone == 0 {
            payload::seal(&mut begin, version);
            return Ok(SentValue::Made(begin));
        }
        let bytes = gone + (begin.len() + FOOTER_BYTES) as u64;
        Ok(SentValue::Measured { value, version, bytes })
    }

    /// Sends the argument.
    ///
    /// # Errors
    /// If the target does not take it.
    pub(crate) fn send(&self, connection: &mut Connection) -> Result<(), Fault> {
        match self {
            SentValue::Made(payload) => Ok(connection.word(payload)?),
            SentValue::Measured { value, version, bytes } => {
                connection.begin_word(*bytes);
                let mut out =
                    Sending { connection, sealing: Sealing::new(), piece: Vec::new(), sent: 0 };
                let head = head_of(*value)?;
                write(*value, payload::begin_value(&mut out, head, *version)?)?;
                out.flush()?;
                let Sending { connection, sealing, sent, .. } = out;
                let is_as_announced = sent + FOOTER_BYTES as u64 == *bytes;
                debug_assert!(is_as_announced, "a frozen value has changed");
                if !is_as_announced {
                    // The target would take the rest for another request.
                    return Err(Fault::Malformed("a frozen value has changed"));
                }
                connection.bytes(&sealing.footer(version.number()))?;
                Ok(connection.bytes(b"\r\n")?)
            }
        }
    }
}

/// Counts what is written, and keeps it while it is short.
#[derive(Default)]
struct Measure {
    begin: Vec<u8>,
    gone: u64,
}

impl Sink for Measure {
    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.begin
    }

    fn element_done(&mut self) -> Result<(), Fault> {
        if self.begin.len() > SHORT_BYTES {
            self.gone += self.begin.len() as u64;
            self.begin.clear();
        }
        Ok(())
    }

    fn long(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.gone += bytes.len() as u64;
        Ok(())
    }
}

/// Sends what is written.
struct Sending<'c> {
    connection: &'c mut Connection,
    sealing: Sealing,
    piece: Vec<u8>,
    sent: u64,
}

impl Sending<'_> {
    fn flush(&mut self) -> Result<(), Fault> {
        let mut piece = std::mem::take(&mut self.piece);
        let result = self.send(&piece);
        piece.clear();
        self.piece = piece;
        result
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.sealing.update(bytes);
        self.sent += bytes.len() as u64;
        Ok(self.connection.bytes(bytes)?)
    }
}

impl Sink for Sending<'_> {
    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.piece
    }

    fn element_done(&mut self) -> Result<(), Fault> {
        if self.piece.len() > SHORT_BYTES { self.flush() } else { Ok(()) }
    }

    fn long(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.flush()?;
        self.send(bytes)
    }
}
