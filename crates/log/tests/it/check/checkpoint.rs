//! Any bytes as a checkpoint file beside an empty log: raw behind their first byte if that is even,
//! else as a recipe.
//!
//! A recipe makes parts whose checksums are right: per part a byte of flags, a length and the
//! payload. Flags: 1 wrong checksum, 2 metadata, 4 end at once, 8 a length that is not so, 16 a
//! newer LSN than the log's. An end with the right sums follows, unless the recipe's first byte is
//! odd.

use super::{DIR, DIR_ID, Input, disk, judge};
use ladon_log::BlockHeader;
use ladon_log::checkpoint::format::{CheckpointHeader, PartHeader, PartKind, checkpoint_path};
use ladon_log::segment::{SegmentHeader, segment_path};
use ladon_record::Lsn;
use std::path::Path;

/// One input.
pub fn check(data: &[u8]) {
    let Some((&mode, data)) = data.split_first() else { return };
    let recipe;
    let file = if mode.is_multiple_of(2) {
        data
    } else {
        recipe = follow(&mut Input(data));
        &recipe
    };
    let (base, durable) = (Lsn::ZERO, Lsn::ZERO);
    let log =
        SegmentHeader { node: 0, dir_id: DIR_ID, base, durable, created_ms: 0, has_entries: false }
            .encode();
    let checkpoint = checkpoint_path(Path::new(DIR), Lsn::ZERO);
    let segment = segment_path(Path::new(DIR), Lsn::ZERO);
    judge(&disk(&[(&checkpoint, file), (&segment, &log)]));
}

fn follow(input: &mut Input<'_>) -> Vec<u8> {
    let header = CheckpointHeader { node: 0, dir_id: DIR_ID, begin: Lsn::ZERO, created_ms: 0 };
    let mut file = header.encode().to_vec();
    let ends = input.byte().is_multiple_of(2);
    let mut sums = BlockHeader { db: 0, hash_first: 0, hash_last: 0, lsn: Lsn::ZERO, keys: 0 };
    while !input.is_empty() {
        let flags = input.byte();
        let length = input.byte() as usize;
        let payload = input.bytes(length);
        let kind = match flags >> 1 & 3 {
            0 => PartKind::Block,
            1 => PartKind::Meta,
            _ => PartKind::End,
        };
        let lsn = Lsn(u64::from(flags & 16 != 0));
        let keys = length as u64 & 3;
        let block = BlockHeader { db: 0, hash_first: 0, hash_last: u64::MAX, lsn, keys };
        let mut part = PartHeader::encode(kind, &block, payload);
        part[0] ^= flags & 1;
        part[8] ^= flags & 8;
        file.extend_from_slice(&part);
        file.extend_from_slice(payload);
        sums.hash_first += u64::from(kind == PartKind::Block);
        sums.keys += if kind == PartKind::Block { keys } else { 0 };
        sums.hash_last += payload.len() as u64;
        sums.lsn = sums.lsn.max(lsn);
    }
    if ends {
        file.extend_from_slice(&PartHeader::encode(PartKind::End, &sums, &[]));
    }
    file
}
