//! Another member's data takes the place of a member's own: wholly or not at all, wherever the power
//! goes off, and what the member must not forget stays.

use crate::world::{ManualClock, Sink};
use ladon_log::reader::Batch;
use ladon_log::{BlockHeader, DataDir, Log, LogOptions, RecoverySink};
use ladon_platform::Disk;
use ladon_raft::{DataFile, GroupState, Incoming, LeaderId, Vote, finish_incoming};
use ladon_record::Lsn;
use ladon_sim_disk::SimDisk;
use ladon_testkit::Random;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

const CLUSTER: [u8; 16] = *b"a cluster's id..";

/// The payloads of all records.
#[derive(Default)]
struct Records(Mutex<Vec<Vec<u8>>>);

impl RecoverySink for Records {
    fn block(&self, _: &BlockHeader, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn meta(&self, _: Lsn, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn records(&self, _: usize, batch: &Batch) -> Result<(), (Lsn, String)> {
        self.0.lock().unwrap().extend(batch.records().map(|(_, changes)| changes.to_vec()));
        Ok(())
    }
}

fn options() -> LogOptions {
    LogOptions { segment_bytes: 700, chunk_bytes: 512, ..LogOptions::default() }
}

fn open(disk: &SimDisk, dir: &str, seed: u64) -> DataDir {
    let disk = Arc::new(disk.clone());
    DataDir::open(disk, Arc::<ManualClock>::default(), Path::new(dir), options(), seed).unwrap()
}

/// A directory with these records.
fn make(disk: &SimDisk, dir: &str, seed: u64, records: &[Vec<u8>]) -> Arc<Log> {
    let (log, _) = open(disk, dir, seed).recover(&Sink::default(), 1, &|_| {}).unwrap();
    let mut appender = log.appender();
    for record in records {
        appender.append(record, 7);
        appender.publish();
    }
    log.close().unwrap();
    log
}

fn records(tag: u8, count: u8) -> Vec<Vec<u8>> {
    (0..count).map(|number| [tag, number].repeat(30)).collect()
}

fn vote() -> Vote {
    Vote { leader_id: LeaderId { term: 9, voted_for: 4 }, committed: false }
}

/// Receives everything, in parts of odd sizes.
fn receive(disk: &Arc<dyn Disk>, files: &[(DataFile, Vec<u8>)], end: Lsn) -> io::Result<()> {
    let names = files.iter().map(|(file, _)| file.clone()).collect();
    let mut incoming = Incoming::begin(disk.clone(), Path::new("/data"), names, end)?;
    for (index, (_, bytes)) in files.iter().enumerate() {
        for (part, piece) in bytes.chunks(301).enumerate() {
            incoming.part(index, part as u64 * 301, piece)?;
        }
    }
    incoming.end()
}

#[test]
fn a_directory_becomes_another_ones_wholly_or_not_at_all() {
    let (own, theirs) = (records(1, 9), records(2, 40));
    let (mut kept, mut taken) = (0, 0);
    for seed in 0..400 {
        let (disk, mut random) = (SimDisk::new(seed), Random::new(seed));
        let leader = make(&disk, "/leader", 77, &theirs);
        let mut copy = leader.begin_copy().unwrap();
        let mut files: Vec<(DataFile, Vec<u8>)> = Vec::new();
        for (index, file) in copy.files().to_vec().into_iter().enumerate() {
            let mut bytes = vec![0; file.bytes as usize];
            assert_eq!(copy.read(index, &mut bytes, 0).unwrap(), bytes.len());
            files.push(((file.name, file.bytes), bytes));
        }
        drop(make(&disk, "/data", 5, &own));
        {
            let dir = open(&disk, "/data", 5);
            let disk = Arc::new(disk.clone());
            let mut state = GroupState::open(disk, dir.path(), dir.meta().dir_id).unwrap();
            state.set_member(CLUSTER, 4, Lsn::ZERO).unwrap();
            state.save_vote(vote()).unwrap();
        }
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        disk.cut_power_after(1 + random.below(120));
        let received = receive(&shared, &files, copy.end());
        let has_come = received.is_ok();
        let finished = received.and_then(|()| finish_incoming(&shared, Path::new("/data")));
        // The next starts, some of which do not get far either.
        for _ in 0..random.below(3) {
            disk.power_cut();
            disk.cut_power_after(1 + random.below(30));
            let _ = finish_incoming(&shared, Path::new("/data"));
        }
        disk.power_cut();
        disk.heal();
        finish_incoming(&shared, Path::new("/data")).unwrap();
        let dir = open(&disk, "/data", 5);
        let state = GroupState::open(Arc::new(disk.clone()), dir.path(), dir.meta().dir_id);
        let state = state.unwrap();
        assert_eq!((state.member(), state.cluster(), state.vote()), (4, CLUSTER, Some(vote())));
        let found = Records::default();
        dir.recover(&found, 1, &|_| {}).unwrap();
        let found = found.0.into_inner().unwrap();
        assert!(found == own || found == theirs, "seed {seed}: a mixture of {}", found.len());
        assert!(found == theirs || !has_come, "seed {seed}: what had come is not there");
        if found == own {
            kept += 1
        } else {
            taken += 1
        }
        let _ = finished;
    }
    assert!(kept > 30 && taken > 30, "{kept} kept, {taken} taken");
}

#[test]
fn files_that_are_no_members_are_refused() {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    disk.create_dir_all(Path::new("/data")).unwrap();
    let begin = |files: &[(&str, u64)]| {
        let files = files.iter().map(|&(name, bytes)| (name.to_owned(), bytes)).collect();
        Incoming::begin(disk.clone(), Path::new("/data"), files, Lsn(9))
    };
    for name in [
        "../meta",
        "../00000000000000000000.log",
        "a/00000000000000000000.log",
        "group",
        "x.log",
        "0000000000000000000a.log",
        "",
        "LOCK",
        "users.acl",
    ] {
        let refused = begin(&[("meta", 64), (name, 1)]).err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{name}");
    }
    assert!(begin(&[("00000000000000000000.log", 1)]).is_err(), "without a meta");
    let mut incoming = begin(&[("meta", 4), ("00000000000000000000.log", 3)]).unwrap();
    assert!(incoming.part(0, 1, b"x").is_err(), "not the next part");
    assert!(incoming.part(2, 0, b"x").is_err(), "no such file");
    assert!(incoming.part(0, 0, b"12345").is_err(), "longer than it said");
    incoming.part(0, 0, b"1234").unwrap();
    let told = incoming.end().unwrap_err().to_string();
    assert_eq!(told, "0 of 3 bytes of 00000000000000000000.log have come");
}
