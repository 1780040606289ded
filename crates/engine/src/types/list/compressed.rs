//! A compressed chunk between the ends of a long list (`list-compress-depth`).
//!
//! Only in memory: no file contains this form, so it may change from release to release.

use super::chunk::Chunk;
use crate::types::buffer::Buffer;
use lz4_flex::block;

/// As in Redis: a smaller chunk is not worth compressing.
const PLAIN_BYTES_MIN: usize = 48;

/// LZ4 counts up to 2^31 - 2^25 bytes.
const PLAIN_BYTES_MAX: usize = 1 << 30;

/// As in Redis: minimum saving of compression.
const SAVED_BYTES_MIN: usize = 8;

/// The entries of a chunk in an LZ4 block.
pub(super) struct Compressed {
    block: Buffer,
    plain_bytes: u32,
}

impl Compressed {
    /// The chunk's entries, if they take less memory compressed.
    pub(super) fn of(chunk: &Chunk) -> Option<Compressed> {
        let entries = chunk.entries();
        if !(PLAIN_BYTES_MIN..=PLAIN_BYTES_MAX).contains(&entries.len()) {
            return None;
        }
        let block = Buffer::of(&block::compress(entries));
        let pays = block.capacity() + SAVED_BYTES_MIN <= entries.len();
        pays.then_some(Compressed { block, plain_bytes: entries.len() as u32 })
    }

    /// Bytes of memory that the elements take.
    pub(super) fn bytes(&self) -> usize {
        self.block.capacity()
    }

    /// How long the entries are.
    pub(super) fn plain_bytes(&self) -> usize {
        self.plain_bytes as usize
    }

    /// The entries, decompressed into `out`, whose content they replace.
    pub(super) fn entries<'a>(&self, out: &'a mut Vec<u8>) -> &'a [u8] {
        out.resize(self.plain_bytes(), 0);
        let unpacked = block::decompress_into(&self.block, out);
        assert_eq!(unpacked.ok(), Some(self.plain_bytes()), "a chunk is as it was compressed");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::End;
    use super::super::entry::Entry;
    use super::*;

    fn chunk(elements: &[&[u8]]) -> Chunk {
        let mut chunk = Chunk::default();
        elements.iter().for_each(|element| chunk.push(End::Back, &Entry::new(element)));
        chunk
    }

    #[test]
    fn a_chunk_is_compressed_where_that_pays() {
        let similar = chunk(&[b"job:00000001:waiting".as_slice(); 40]);
        let compressed = Compressed::of(&similar).expect("it shrinks");
        assert!(compressed.bytes() < similar.entries().len() / 4);
        assert_eq!(compressed.entries(&mut vec![7; 9]), similar.entries());
        assert!(
            Compressed::of(&chunk(&[b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"])).is_none()
        );
        let noise: Vec<u8> =
            (0..200u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        assert!(Compressed::of(&chunk(&[&noise])).is_none());
    }
}
