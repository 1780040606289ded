//! A whole RDB file out of plain values.

mod value;

use std::io::Write;

use crc_fast::{CrcAlgorithm, Digest};

use crate::error::Fault;
use crate::payload;
use crate::text::put_length;
use crate::value::Value;

pub use value::{Head, NodeShare, ValueWriter};
pub(crate) use value::{canonical_number, put_string, put_value};

/// Which servers are to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Redis 5 and newer, and every Valkey.
    Redis9,
    /// Redis 7.0 and newer, and every Valkey.
    Redis10,
    /// Redis 7.2 and newer, and every Valkey.
    Redis11,
    /// Redis 7.4 and newer.
    Redis12,
    /// Valkey 9 and newer.
    Valkey80,
}

impl Version {
    /// All of them.
    pub const ALL: [Version; 5] =
        [Version::Redis9, Version::Redis10, Version::Redis11, Version::Redis12, Version::Valkey80];

    /// The number in a file.
    pub fn number(self) -> u16 {
        match self {
            Version::Redis9 => 9,
            Version::Redis10 => 10,
            Version::Redis11 => 11,
            Version::Redis12 => 12,
            Version::Valkey80 => 80,
        }
    }
}

/// What is written of a key beside its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyFacts {
    /// When it expires, in milliseconds since 1970.
    pub expires_at_ms: Option<i64>,
    /// How long nobody has used it.
    pub idle_s: Option<u64>,
    /// How often it is used, as a logarithm.
    pub frequency: Option<u8>,
}

/// Writes a file. It ends with [`Self::finish`]; without it, it has no end that a reader accepts.
pub struct Writer<W> {
    write: W,
    version: Version,
    digest: Digest,
    /// What goes out next.
    out: Vec<u8>,
}

/// This many bytes go out together.
const PIECE_BYTES: usize = 64 << 10;

/// Where a value is written to: a file ([`Writer`]) or a payload.
pub trait Sink {
    /// What the next bytes are appended to.
    fn out(&mut self) -> &mut Vec<u8>;

    /// Called behind each element.
    ///
    /// # Errors
    /// If what was appended cannot go out.
    fn element_done(&mut self) -> Result<(), Fault>;

    /// Appends a long string.
    ///
    /// # Errors
    /// If it cannot go out.
    fn long(&mut self, bytes: &[u8]) -> Result<(), Fault>;
}

impl Sink for Vec<u8> {
    fn out(&mut self) -> &mut Vec<u8> {
        self
    }

    fn element_done(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    fn long(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

impl<W: Write> Sink for Writer<W> {
    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    fn element_done(&mut self) -> Result<(), Fault> {
        if self.out.len() >= PIECE_BYTES { self.flush() } else { Ok(()) }
    }

    fn long(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.flush()?;
        self.digest.update(bytes);
        Ok(self.write.write_all(bytes)?)
    }
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// As of `write`; so do all functions here.
    pub fn new(write: W, version: Version) -> Result<Writer<W>, Fault> {
        let digest = Digest::new(CrcAlgorithm::Crc64Redis);
        let mut writer = Writer { write, version, digest, out: Vec::new() };
        let number = version.number();
        let head = match version {
            Version::Valkey80 => format!("VALKEY{number:03}"),
            _ => format!("REDIS{number:04}"),
        };
        writer.out.extend_from_slice(head.as_bytes());
        Ok(writer)
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.digest.update(&self.out);
        self.write.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// A fact about the file.
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub fn aux(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        self.out.push(0xfa);
        put_string(&mut self.out, name);
        put_string(&mut self.out, value);
        self.element_done()
    }

    /// The keys that follow are in this database.
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub fn select_db(&mut self, database: u64) -> Result<(), Fault> {
        self.out.push(0xfe);
        put_length(&mut self.out, database);
        self.element_done()
    }

    /// How many keys follow in this database.
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub fn resize_db(&mut self, keys: u64, expiring: u64) -> Result<(), Fault> {
        self.out.push(0xfb);
        put_length(&mut self.out, keys);
        put_length(&mut self.out, expiring);
        self.element_done()
    }

    /// A library of functions.
    ///
    /// # Errors
    /// As of [`Self::new`], and a version before functions.
    pub fn function(&mut self, source: &[u8]) -> Result<(), Fault> {
        if self.version < Version::Redis10 {
            return Err(Fault::Unsupported("RDB version 9 has no functions".to_owned()));
        }
        self.out.push(0xf5);
        put_string(&mut self.out, source);
        self.element_done()
    }

    /// A key and its value.
    ///
    /// # Errors
    /// As of [`Self::new`], and a value that servers of this version do not know: then nothing of
    /// the key is written.
    pub fn key(&mut self, name: &[u8], facts: &KeyFacts, value: &Value) -> Result<(), Fault> {
        value::check(value, self.version)?;
        self.facts(facts);
        let version = self.version;
        put_value(self, Some(name), value, version)
    }

    /// A key with the value of a payload of `DUMP`.
    ///
    /// # Errors
    /// As of [`Self::key`], and a payload that is none.
    pub fn payload_key(
        &mut self,
        name: &[u8],
        facts: &KeyFacts,
        payload: &[u8],
    ) -> Result<(), Fault> {
        const NONE: Fault = Fault::Malformed("a payload's version or checksum is wrong");
        let (body, dialect) = payload::open(payload).ok_or(NONE)?;
        let is_known = payload::version_of(payload) <= Some(self.version.number());
        let (Some((encoding, value)), true) =
            (body.split_first(), is_known && self.version != Version::Valkey80)
        else {
            let value = payload::read_value(body, dialect).map_err(|error| error.fault)?;
            return self.key(name, facts, &value);
        };
        self.facts(facts);
        self.out.push(*encoding);
        put_string(&mut self.out, name);
        if value.len() < PIECE_BYTES {
            self.out.extend_from_slice(value);
            return self.element_done();
        }
        self.long(value)
    }

    /// A key, whose value the caller writes element by element.
    ///
    /// # Errors
    /// As of [`Self::key`].
    pub fn begin_key(
        &mut self,
        name: &[u8],
        facts: &KeyFacts,
        head: Head,
    ) -> Result<ValueWriter<'_, Self>, Fault> {
        let version = self.version;
        head.check(version)?;
        self.facts(facts);
        ValueWriter::begin(self, Some(name), head, version)
    }

    fn facts(&mut self, facts: &KeyFacts) {
        if let Some(at) = facts.expires_at_ms {
            self.out.push(0xfc);
            self.out.extend_from_slice(&at.to_le_bytes());
        }
        if let Some(idle) = facts.idle_s {
            self.out.push(0xf8);
            put_length(&mut self.out, idle);
        }
        if let Some(frequency) = facts.frequency {
            self.out.extend_from_slice(&[0xf9, frequency]);
        }
    }

    /// What is written to. Some of the file may not have reached it yet.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.write
    }

    /// The version that is written.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Ends the file.
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub fn finish(mut self) -> Result<W, Fault> {
        self.out.push(0xff);
        self.flush()?;
        self.write.write_all(&self.digest.finalize().to_le_bytes())?;
        self.write.flush()?;
        Ok(self.write)
    }
}
