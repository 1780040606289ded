//! Every cut and every flipped bit of small files: cut as a torn tail, or refused by name; never
//! taken for good, never a panic.

use crate::common::files::*;
use crate::common::*;
use ladon_log::segment::segment_path;
use ladon_log::{BlockHeader, RecoverError};
use ladon_record::Lsn;
use ladon_sim_disk::SimDisk;
use std::path::Path;

#[test]
fn every_torn_cut_keeps_the_whole_records_before_it() {
    let (whole, payloads, _) = synced_then_not();
    let last = whole.iter().rposition(|(path, _)| path.extension().is_some_and(|e| e == "log"));
    let last = last.unwrap();
    let mut seen = Vec::new();
    for length in (0..=whole[last].1.len()).rev() {
        let mut cut = whole.clone();
        cut[last].1.truncate(length);
        let node = verdict(&cut).unwrap_or_else(|error| panic!("cut to {length}: {error}"));
        let recovered = node.sink.payloads();
        assert!(payloads.starts_with(&recovered), "cut to {length}");
        let torn_bytes = node.report.torn.as_ref().map_or(0, |torn| torn.bytes);
        let torn_at = node.report.torn.as_ref().map_or(length as u64, |torn| torn.offset);
        assert_eq!(torn_at + torn_bytes, length as u64);
        // The tail may also be there as zeros: prepared space that was not used.
        let mut zeroed = whole.clone();
        zeroed[last].1[length..].fill(0);
        assert_eq!(verdict(&zeroed).unwrap().sink.payloads(), recovered, "zeros from {length}");
        seen.push(recovered.len());
    }
    seen.dedup();
    assert_eq!(seen.first(), Some(&payloads.len()), "the whole file");
    assert!(seen.len() > 5, "cuts between records: {seen:?}");
}

#[test]
fn every_flipped_byte_is_cut_where_unsynced_and_refused_where_synced() {
    let (whole, payloads, synced) = synced_then_not();
    for (index, (path, bytes)) in whole.iter().enumerate() {
        for at in 0..bytes.len() {
            let mut flipped = whole.clone();
            flipped[index].1[at] ^= 1 << (at % 8);
            match verdict(&flipped) {
                Ok(node) => {
                    let recovered = node.sink.payloads();
                    assert!(payloads.starts_with(&recovered));
                    assert!(recovered.len() >= synced, "{path:?} {at}: lost synced records");
                    if path.ends_with("log-end") {
                        assert_eq!(recovered.len(), payloads.len(), "it holds no data");
                        continue;
                    }
                    assert!(recovered.len() < payloads.len(), "{path:?} {at}: unnoticed");
                }
                Err(RecoverError::Damaged(damage)) => {
                    assert_eq!(&damage.path, path);
                    assert!(damage.offset <= at as u64, "{damage} flipped at {at}");
                }
                Err(other) => assert!(path.ends_with("meta"), "{path:?} {at}: {other}"),
            }
        }
    }
}

#[test]
fn after_a_clean_end_only_its_mark_can_be_torn() {
    let disk = SimDisk::new(0);
    let mut node = open(&disk);
    let payloads: Vec<Vec<u8>> = (0..12).map(put).collect();
    for payload in &payloads {
        node.put(payload);
    }
    let records_end = node.log.reserved();
    node.log.close().unwrap();
    drop(node);
    let whole = files(&disk);
    let path = segment_path(Path::new(DIR), Lsn::ZERO);
    let index = whole.iter().position(|file| file.0 == path).unwrap();
    for at in 0..whole[index].1.len() {
        let mut flipped = whole.clone();
        flipped[index].1[at] ^= 0x10;
        match verdict(&flipped) {
            Ok(node) => {
                assert!(at as u64 >= records_end.0 + 64, "byte {at} unnoticed");
                assert_eq!(node.sink.payloads(), payloads);
                assert!(!node.report.clean && node.report.torn.is_some());
            }
            Err(RecoverError::Damaged(damage)) => assert!(damage.offset <= at as u64),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn every_flipped_byte_and_every_cut_of_a_checkpoint_is_refused() {
    let disk = SimDisk::new(0);
    let mut node = open(&disk);
    for number in 0..3 {
        node.put(&put(number));
    }
    let mut writer = node.log.begin_checkpoint().unwrap();
    let lsn = writer.begin_lsn();
    for number in 0..3 {
        let block = BlockHeader { db: 0, hash_first: number, hash_last: number, lsn, keys: 1 };
        writer.block(&block, &put(number)).unwrap();
    }
    let info = writer.finish(lsn, b"meta").unwrap();
    drop(node);
    let whole = files(&disk);
    assert!(verdict(&whole).is_ok());
    let index = whole.iter().position(|file| file.0 == info.path).unwrap();
    for at in 0..whole[index].1.len() {
        let mut flipped = whole.clone();
        flipped[index].1[at] ^= 1 << (at % 8);
        let Err(RecoverError::Damaged(damage)) = verdict(&flipped) else {
            panic!("byte {at} unnoticed")
        };
        assert_eq!(damage.path, info.path);
        let mut cut = whole.clone();
        cut[index].1.truncate(at);
        assert!(matches!(verdict(&cut), Err(RecoverError::Damaged(_))), "cut to {at}");
    }
    let mut longer = whole.clone();
    longer[index].1.push(0);
    assert!(matches!(verdict(&longer), Err(RecoverError::Damaged(_))));
    // Without the log that the checkpoint was taken with, it is no use.
    let mut alone = whole.clone();
    alone.retain(|(path, _)| !path.to_string_lossy().ends_with(".log"));
    assert!(matches!(verdict(&alone), Err(RecoverError::Damaged(_))));
}

#[test]
fn a_missing_segment_is_named() {
    let (whole, ..) = synced_then_not();
    let segments: Vec<_> =
        whole.iter().filter(|(path, _)| path.to_string_lossy().ends_with(".log")).collect();
    // What the last ones hold was never synced.
    for missing in &segments[..segments.len() - 2] {
        let rest: Vec<_> = whole.iter().filter(|file| file != missing).cloned().collect();
        assert!(matches!(verdict(&rest), Err(RecoverError::Damaged(_))), "{:?}", missing.0);
    }
}
