//! What a transaction hands to the log: its encoded changes, borrowed or, where they are long, owned
//! and with their checksum made beforehand, so that logging them costs nothing while locks are held.

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
    /// The encoded changes; copied where they are in two places.
    pub fn changes(&self) -> Cow<'_, [u8]> {
        match self {
            Record::Changes(changes) => Cow::Borrowed(changes),
            Record::Large(record) => record.changes(),
        }
    }
}

/// Encoded changes and their CRC-32C.
#[derive(Debug)]
pub struct LargeRecord {
    changes: Box<[u8]>,
    /// How the encoding goes on.
    shared: Option<Arc<Vec<u8>>>,
    crc: u32,
}

impl LargeRecord {
    /// Computes the checksum, which takes its time: call it where nobody waits.
    pub fn new(changes: Vec<u8>) -> LargeRecord {
        let crc = crc_fast::crc32_iscsi(&changes);
        LargeRecord { changes: changes.into_boxed_slice(), shared: None, crc }
    }

    /// As `new`, of changes whose encoding ends with bytes that the data has too.
    pub fn with_shared(changes: Vec<u8>, shared: Arc<Vec<u8>>) -> LargeRecord {
        let algorithm = crc_fast::CrcAlgorithm::Crc32Iscsi;
        let [first, second] = [&changes, &*shared].map(|part| crc_fast::crc32_iscsi(part).into());
        let crc = crc_fast::checksum_combine(algorithm, first, second, shared.len() as u64) as u32;
        LargeRecord { changes: changes.into_boxed_slice(), shared: Some(shared), crc }
    }

    /// The encoded changes; copied where they are in two places.
    pub fn changes(&self) -> Cow<'_, [u8]> {
        match &self.shared {
            None => Cow::Borrowed(&self.changes),
            Some(shared) => Cow::Owned([&self.changes[..], shared].concat()),
        }
    }

    /// Length of the encoded changes in bytes.
    #[allow(clippy::len_without_is_empty, reason = "a transaction without changes has no record")]
    pub fn len(&self) -> usize {
        self.changes.len() + self.shared.as_ref().map_or(0, |shared| shared.len())
    }

    /// The encoded changes, in one or two parts, and their checksum.
    pub fn into_parts(self) -> (Box<[u8]>, Option<Arc<Vec<u8>>>, u32) {
        (self.changes, self.shared, self.crc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_parts_are_as_one() {
        let whole: Vec<u8> = (0..300u32).map(|n| (n * 37 % 251) as u8).collect();
        for cut in [0, 1, 17, 299, 300] {
            let (first, second) = whole.split_at(cut);
            let record = LargeRecord::with_shared(first.to_vec(), Arc::new(second.to_vec()));
            assert_eq!((&*record.changes(), record.len()), (&whole[..], whole.len()));
            assert_eq!(record.crc, LargeRecord::new(whole.clone()).crc, "cut at {cut}");
        }
    }
}
