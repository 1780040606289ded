//! A member's directory as the first version of the format wrote it still reads:
//! `fixtures/v2-group` has a segment from before the group (format 1), segments with entries
//! (format 2), `group` and `committed`.
//!
//! `cargo test -p ladon-raft --test it write_fixtures -- --ignored` writes it; do that only for a
//! new format, into a new folder.

use crate::world::{ManualClock, Sink};
use ladon_log::{DataDir, LogOptions};
use ladon_platform::SystemDisk;
use ladon_raft::{
    Cut, EntryId, ExtentLog, Group, GroupLog, GroupState, Index, LeaderId, Member, Payload,
    Planted, Storage, Vote, Writers, decode_entry,
};
use ladon_record::Lsn;
use openraft::Membership;
use openraft::storage::RaftLogStorage;
use openraft_rt_sim::SimRuntime;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

struct Nobody;

impl Writers for Nobody {
    fn stop(&self) {}
    fn may_begin(&self, _: ladon_raft::EntryId) {}
    fn was_cut(&self, _: Lsn) {}
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/v2-group")
}

fn id(term: u64, index: u64) -> EntryId {
    let bytes = [&index.to_le_bytes()[..], &term.to_le_bytes(), &[0]].concat();
    decode_entry(&bytes).unwrap().0
}

fn members() -> Membership<u64, Member> {
    let member = |id: u64| {
        let address = format!("node{id}.example:16379");
        let client = format!("node{id}.example:6379");
        (id, Member { address, client, is_witness: id == 3, is_replica: false })
    };
    Membership::from(BTreeMap::from([1, 2, 3].map(member)))
}

fn payload(index: u64) -> Payload {
    match index {
        0 => Payload::Membership(members()),
        1 | 5 => Payload::Blank,
        _ => Payload::Normal(Cut),
    }
}

fn entry_id(index: u64) -> EntryId {
    id(if index < 5 { 3 } else { 4 }, index)
}

fn vote() -> Vote {
    Vote { leader_id: LeaderId { term: 4, voted_for: 1 }, committed: true }
}

fn open(path: &Path) -> GroupLog {
    let options = LogOptions { segment_bytes: 700, node_id: 5, ..LogOptions::default() };
    let clock = Arc::new(ManualClock::default());
    let disk = Arc::new(SystemDisk);
    let dir = DataDir::open(disk.clone(), clock.clone(), path, options, 0x5eed).unwrap();
    let dir_id = dir.meta().dir_id;
    let sink = Sink::default();
    let (log, _) = dir.recover(&sink, 1, &|_| {}).unwrap();
    let index = sink.into_entries().into_index(Lsn::ZERO, Lsn::ZERO).unwrap();
    let state = GroupState::open(disk, path, dir_id).unwrap();
    GroupLog::new(log, clock, Arc::new(Nobody), (index, state), Planted::Nothing).unwrap()
}

#[test]
fn a_members_directory_of_the_first_format_reads() {
    let copy = tempfile::tempdir().unwrap();
    for file in fs::read_dir(folder()).unwrap() {
        let from = file.unwrap().path();
        fs::copy(&from, copy.path().join(from.file_name().unwrap())).unwrap();
    }
    let log = open(copy.path());
    assert_eq!(log.bounds(), (None, Some(entry_id(9))));
    for (index, entry) in log.entries(0, 10).unwrap().into_iter().enumerate() {
        let index = index as u64;
        assert_eq!((entry.id, entry.payload), (entry_id(index), payload(index)));
    }
    assert_eq!(log.vote().unwrap(), Some(vote()));
    assert_eq!(log.committed().unwrap(), Some(entry_id(8)));
    assert_eq!(log.members_at(entry_id(8)).unwrap(), Some((entry_id(0), members())));
    log.with_state(|state| {
        assert_eq!(state.member(), 1);
        assert_eq!(state.changes(), [(entry_id(0), members())]);
    });
}

/// Who belongs is kept for the time when the log has purged it: a question for an older entry, as for
/// that of a checkpoint, changes nothing of it.
#[test]
fn an_older_question_does_not_forget_newer_members() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    log.with_state(|state| state.set_member(*b"0123456789abcdef", 1, Lsn::ZERO)).unwrap();
    let alone =
        Membership::from(BTreeMap::from([(1, members().nodes().next().unwrap().1.clone())]));
    let changes = [(0, members()), (3, alone.clone())];
    for index in 0..5 {
        let found = changes.iter().find(|(at, _)| *at == index);
        let payload = found.map_or(Payload::Blank, |(_, it)| Payload::Membership(it.clone()));
        log.append_entry(entry_id(index), &payload).unwrap();
    }
    let newest = Some((entry_id(3), alone));
    assert_eq!(log.members_at(entry_id(4)).unwrap(), newest);
    assert_eq!(log.members_at(entry_id(2)).unwrap(), Some((entry_id(0), members())));
    assert_eq!(log.with_state(|state| state.changes().first().cloned()), newest);
}

#[test]
fn an_index_of_another_log_is_refused() {
    let mut index = Index::after(None, Lsn::ZERO);
    index.push(entry_id(0), &payload(0), Lsn(10));
    assert_eq!(index.last(), Some(entry_id(0)));
    // What a checkpoint needs must be covered by an entry.
    let none = Sink::default().into_entries().into_index(Lsn(5), Lsn::ZERO).unwrap_err();
    assert!(none.starts_with("no entry of the group covers"), "{none}");
}

#[test]
#[ignore = "writes the fixtures of the newest format"]
fn write_fixtures() {
    let path = folder();
    let _ = fs::remove_dir_all(&path);
    let options = LogOptions { segment_bytes: 700, node_id: 5, ..LogOptions::default() };
    let clock = Arc::new(ManualClock::default());
    let dir = DataDir::open(Arc::new(SystemDisk), clock, &path, options, 0x5eed).unwrap();
    let (log, _) = dir.recover(&Sink::default(), 1, &|_| {}).unwrap();
    let mut appender = log.appender();
    appender.append(b"before the group", 1_800_000_000_000);
    appender.publish();
    log.close().unwrap();
    drop((appender, log));
    let log = open(&path);
    log.with_state(|state| state.set_member(*b"0123456789abcdef", 1, Lsn::ZERO)).unwrap();
    log.save_vote(&vote()).unwrap();
    let mut appender = log.log().appender();
    for index in 0..10 {
        log.append_entry(entry_id(index), &payload(index)).unwrap();
        appender.append(&[index as u8; 100], 1_800_000_000_000 + index);
        appender.publish();
    }
    log.members_at(entry_id(8)).unwrap();
    log.save_committed(Some(entry_id(8))).unwrap();
    log.log().make_durable(log.log().reserved()).unwrap();
    drop((appender, log));
    let _ = fs::remove_file(path.join("LOCK"));
}

/// openraft takes a vote that is on the disk for a sign that all entries in front of it are, and tells a
/// leader so: the vote has to wait for them.
#[test]
fn a_vote_waits_for_the_entries_in_front_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(open(folder.path()));
    let mut storage = Storage::new(Arc::clone(&log));
    log.append_entry(entry_id(0), &payload(0)).unwrap();
    let vote = vote();
    let mut saves = pin!(RaftLogStorage::<Group<SimRuntime>>::save_vote(&mut storage, &vote));
    let mut context = Context::from_waker(Waker::noop());
    assert!(saves.as_mut().poll(&mut context).is_pending());
    assert_eq!(log.vote().unwrap(), None, "the entry is not on the disk");
    log.log().step();
    log.serve();
    assert!(matches!(saves.as_mut().poll(&mut context), Poll::Ready(Ok(()))));
    assert_eq!(log.vote().unwrap(), Some(vote));
}
