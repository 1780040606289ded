//! Any bytes as a segment file: raw behind their first byte if that is even, else as a recipe.
//!
//! A recipe makes frames whose checksums are right, so that the fuzzer gets behind them: per frame
//! a byte of flags, a length and the payload. Flags: 1 wrong checksum, 2 wrong place, 4 zeros
//! instead, 8 and 16 the kind, 32 the next segment begins here, 64 that one's header is bad.

use super::{DIR, DIR_ID, Input, disk, judge};
use ladon_log::frame::{FrameKind, encode_frame};
use ladon_log::segment::{SegmentHeader, segment_path};
use ladon_record::Lsn;
use std::path::{Path, PathBuf};

/// One input.
pub fn check(data: &[u8]) {
    let Some((&mode, data)) = data.split_first() else { return };
    let first = segment_path(Path::new(DIR), Lsn::ZERO);
    if mode.is_multiple_of(2) {
        judge(&disk(&[(&first, data)]));
        return;
    }
    let files = follow(&mut Input(data));
    let files: Vec<(&Path, &[u8])> =
        files.iter().map(|(path, bytes)| (path.as_path(), bytes.as_slice())).collect();
    judge(&disk(&files));
}

fn header(base: u64, durable: u64) -> Vec<u8> {
    let (base, durable) = (Lsn(base), Lsn(durable));
    SegmentHeader { node: 0, dir_id: DIR_ID, base, durable, created_ms: 0, has_entries: false }
        .encode()
        .to_vec()
}

fn follow(input: &mut Input<'_>) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let (mut base, mut file) = (0, header(0, 0));
    while !input.is_empty() {
        let flags = input.byte();
        let length = input.byte() as usize;
        let payload = input.bytes(length);
        let position = base + file.len() as u64 - 64;
        if flags & 32 != 0 && position > base {
            files.push((segment_path(Path::new(DIR), Lsn(base)), std::mem::take(&mut file)));
            let durable = position.saturating_sub(length as u64 / 2);
            (base, file) = (position, header(position, durable));
            if flags & 64 != 0 {
                file[20] ^= 1;
            }
        }
        let kind = match flags >> 3 & 3 {
            1 => FrameKind::SyncMark,
            2 => FrameKind::CleanEnd,
            _ => FrameKind::Changes,
        };
        let start = position + u64::from(flags & 2 != 0);
        let mut frame = encode_frame(kind, 0, 0, Lsn(start), payload);
        if flags & 1 != 0 {
            frame[0] ^= 1;
        }
        if flags & 4 != 0 {
            frame.fill(0);
        }
        file.extend_from_slice(&frame);
    }
    files.push((segment_path(Path::new(DIR), Lsn(base)), file));
    files
}
