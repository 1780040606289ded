//! What a transaction hands to the log: its encoded changes, borrowed or, where they are long, owned
//! and with their checksum made beforehand, so that logging them costs nothing while locks are held.

/// The changes of one transaction.
#[derive(Debug)]
pub enum Record<'a> {
    /// To be copied.
    Changes(&'a [u8]),
    /// To be taken over.
    Large(LargeRecord),
}

impl Record<'_> {
    /// The encoded changes.
    pub fn changes(&self) -> &[u8] {
        match self {
            Record::Changes(changes) => changes,
            Record::Large(record) => &record.changes,
        }
    }
}

/// Encoded changes and their CRC-32C.
#[derive(Debug)]
pub struct LargeRecord {
    changes: Box<[u8]>,
    crc: u32,
}

impl LargeRecord {
    /// Computes the checksum, which takes its time: call it where nobody waits.
    pub fn new(changes: Vec<u8>) -> LargeRecord {
        let crc = crc_fast::crc32_iscsi(&changes);
        LargeRecord { changes: changes.into_boxed_slice(), crc }
    }

    /// The encoded changes.
    pub fn changes(&self) -> &[u8] {
        &self.changes
    }

    /// The encoded changes and their checksum.
    pub fn into_parts(self) -> (Box<[u8]>, u32) {
        (self.changes, self.crc)
    }
}
