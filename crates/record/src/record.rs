//! A transaction's changes for the log: borrowed, or if they are long, owned and with a checksum
//! computed beforehand, so that logging them costs nothing while locks are held.

use std::borrow::Cow;
use std::sync::Arc;

/// The changes of one transaction.
#[derive(Debug)]
pub enum Record<'a> {
    /// To be copied.
    Changes(&'a [u8]),
    /// To be taken over.
    Large(LargeRecord),
}

impl Record<'_> {
    /// The encoded changes; copied if they are in two pieces.
    pub fn changes(&self) -> Cow<'_, [u8]> {
        match self {
            Record::Changes(changes) => Cow::Borrowed(changes),
            Record::Large(record) => record.changes(),
        }
    }

    /// Whether it has no changes.
    pub fn is_empty(&self) -> bool {
        match self {
            Record::Changes(changes) => changes.is_empty(),
            Record::Large(record) => record.len() == 0,
        }
    }

    /// Passes on a record that has another one's changes behind its own.
    pub fn with<T>(self, other: Record<'_>, pass: impl FnOnce(Record<'_>) -> T) -> T {
        match (self, other) {
            (Record::Changes(own), Record::Changes(other)) => {
                pass(Record::Changes(&[own, other].concat()))
            }
            (own, other) => {
                let mut both = own.into_large();
                both.append(other.into_large());
                pass(Record::Large(both))
            }
        }
    }

    fn into_large(self) -> LargeRecord {
        match self {
            Record::Changes(changes) => LargeRecord::new(changes.to_vec()),
            Record::Large(record) => record,
        }
    }
}

/// Encoded changes and their CRC-32C.
#[derive(Debug, Default)]
pub struct LargeRecord {
    parts: Vec<RecordPart>,
    crc: u32,
}

/// A part of the encoding.
#[derive(Debug)]
pub enum RecordPart {
    /// Memory of the record's own.
    Own(Box<[u8]>),
    /// Bytes that the data holds as well.
    Shared(Arc<Vec<u8>>),
}

impl RecordPart {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            RecordPart::Own(bytes) => bytes,
            RecordPart::Shared(bytes) => bytes,
        }
    }
}

impl LargeRecord {
    /// Computes the checksum, which takes long: call it where no client waits.
    pub fn new(changes: Vec<u8>) -> LargeRecord {
        LargeRecord::of(vec![RecordPart::Own(changes.into_boxed_slice())])
    }

    /// As `new`, of parts that follow each other.
    pub fn of(parts: Vec<RecordPart>) -> LargeRecord {
        let mut record = LargeRecord { parts: Vec::with_capacity(parts.len()), crc: 0 };
        parts.into_iter().for_each(|part| record.push(part));
        record
    }

    /// Adds a part. Its checksum is computed here, so that a record can be made bit by bit.
    pub fn push(&mut self, part: RecordPart) {
        let next = crc_fast::crc32_iscsi(part.bytes());
        self.combine(next, part.bytes().len());
        self.parts.push(part);
    }

    /// Adds another record's changes, in little time.
    pub fn append(&mut self, mut other: LargeRecord) {
        self.combine(other.crc, other.len());
        self.parts.append(&mut other.parts);
    }

    fn combine(&mut self, next: u32, bytes: usize) {
        let algorithm = crc_fast::CrcAlgorithm::Crc32Iscsi;
        let both =
            crc_fast::checksum_combine(algorithm, self.crc.into(), next.into(), bytes as u64);
        self.crc = both as u32;
    }

    /// The encoded changes; copied where they have several parts.
    pub fn changes(&self) -> Cow<'_, [u8]> {
        match &self.parts[..] {
            [only] => Cow::Borrowed(only.bytes()),
            parts => Cow::Owned(parts.iter().flat_map(RecordPart::bytes).copied().collect()),
        }
    }

    /// Length of the encoded changes in bytes.
    #[allow(clippy::len_without_is_empty, reason = "a transaction without changes has no record")]
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.bytes().len()).sum()
    }

    /// The encoded changes and their checksum.
    pub fn into_parts(self) -> (Vec<RecordPart>, u32) {
        (self.parts, self.crc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_follow_each_other() {
        let large = || Record::Large(LargeRecord::new(b"abc".to_vec()));
        for (own, other) in [
            (Record::Changes(b"abc"), Record::Changes(b"de")),
            (large(), Record::Changes(b"de")),
            (Record::Changes(b"abc"), Record::Large(LargeRecord::new(b"de".to_vec()))),
        ] {
            own.with(other, |both| assert_eq!(&*both.changes(), b"abcde"));
        }
        assert!(Record::Changes(b"").is_empty() && !large().is_empty());
    }

    #[test]
    fn parts_are_as_one() {
        let whole: Vec<u8> = (0..300u32).map(|n| (n * 37 % 251) as u8).collect();
        for cut in [0, 1, 17, 299, 300] {
            let (first, second) = whole.split_at(cut);
            let parts = [first, second].map(|part| RecordPart::Shared(Arc::new(part.to_vec())));
            let record = LargeRecord::of(parts.into());
            assert_eq!((&*record.changes(), record.len()), (&whole[..], whole.len()));
            assert_eq!(record.crc, LargeRecord::new(whole.clone()).crc, "cut at {cut}");
            let mut joined = LargeRecord::default();
            for part in [first, second] {
                joined.append(LargeRecord::new(part.to_vec()));
            }
            assert_eq!((&*joined.changes(), joined.crc), (&whole[..], record.crc), "cut at {cut}");
        }
    }
}
