//! What must hold for any bytes; shared with the fuzz target `group_files`.

use bytes::Bytes;
use ladon_platform::Disk;
use ladon_raft::{
    Entry, GroupState, decode_entry, decode_request, decode_response, encode_entry, encode_request,
    encode_response,
};
use ladon_record::Lsn;
use ladon_sim_disk::SimDisk;
use std::path::Path;
use std::sync::Arc;

/// The directory that the kept inputs belong to.
const DIR_ID: u64 = 7;

/// The first byte says what the others are.
pub fn check(data: &[u8]) {
    let Some((what, bytes)) = data.split_first() else { return };
    match what % 6 {
        0 => entry(bytes),
        1 => extent(bytes),
        4 => question(bytes),
        5 => answer(bytes),
        2 => file("group", bytes),
        _ => file("committed", bytes),
    }
}

/// An entry that is read is written as it was, but for ids and members that are there twice or in
/// another order.
fn entry(bytes: &[u8]) {
    if let Ok((id, payload)) = decode_entry(bytes) {
        let again = encode_entry(id, &payload);
        assert!(again.len() <= bytes.len());
        assert_eq!(decode_entry(&again), Ok((id, payload)));
    }
}

/// Bytes that are an entry's have its frame at their end.
fn extent(bytes: &[u8]) {
    let Some((from, frames)) = bytes.split_first_chunk::<8>() else { return };
    let from = Lsn(u64::from_le_bytes(*from));
    if let Ok(entry) = Entry::of_frames(from, Bytes::copy_from_slice(frames)) {
        assert!(entry.extent.is_some_and(|extent| extent.bytes() == frames.len() as u64));
        assert!(frames.ends_with(&encode_entry(entry.id, &entry.payload)));
    }
}

/// A question that is read is written as it was.
fn question(bytes: &[u8]) {
    if let Ok(request) = decode_request(&Bytes::copy_from_slice(bytes)) {
        let again = Bytes::from(encode_request(&request));
        assert_eq!(again, bytes);
    }
}

fn answer(bytes: &[u8]) {
    if let Ok(response) = decode_response(&Bytes::copy_from_slice(bytes)) {
        let again = Bytes::from(encode_response(&response));
        assert_eq!(again, bytes);
    }
}

/// A file that is read has been written by a member, or is refused by name.
fn file(name: &str, bytes: &[u8]) {
    let dir = Path::new("/data");
    let disk = SimDisk::new(1);
    disk.create_dir_all(dir).expect("an empty disk");
    disk.set_contents(&dir.join(name), bytes);
    match GroupState::open(Arc::new(disk.clone()), dir, DIR_ID) {
        Err(error) => assert!(error.to_string().starts_with("/data/group is damaged: ")),
        Ok(state) => {
            let (vote, member) = (state.vote(), state.member());
            let committed = state.committed();
            drop(state);
            let again = GroupState::open(Arc::new(disk), dir, DIR_ID).expect("it was read before");
            assert_eq!((again.vote(), again.member()), (vote, member));
            assert_eq!(again.committed(), committed);
        }
    }
}
