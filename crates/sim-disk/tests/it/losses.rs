//! The disk does lose, tear and refuse: every kind of loss is seen over some seeds, and nothing
//! that was synced is ever touched.

use ladon_platform::Disk;
use ladon_sim_disk::{Fault, SimDisk};
use std::collections::BTreeSet;
use std::path::Path;

const DIR: &str = "/d";

fn file() -> &'static Path {
    Path::new("/d/file")
}

/// A disk with a synced file of sixteen `a`.
fn with_synced_file(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.create_dir_all(Path::new(DIR)).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    let handle = disk.create_new(file()).unwrap();
    handle.write_all_at(&[b'a'; 16], 0).unwrap();
    handle.sync_data().unwrap();
    disk.sync_dir(Path::new(DIR)).unwrap();
    disk
}

#[test]
fn unsynced_writes_survive_whole_in_part_in_any_order_or_not() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..400 {
        let disk = with_synced_file(seed);
        let handle = disk.open(file()).unwrap();
        handle.write_all_at(b"bb", 16).unwrap();
        handle.write_all_at(b"cc", 18).unwrap();
        assert_eq!(disk.contents(file()).unwrap()[16..], *b"bbcc");
        disk.power_cut();
        assert!(handle.write_all_at(b"x", 0).is_err(), "the process is gone");
        let left = disk.contents(file()).unwrap();
        assert_eq!(left[..16], [b'a'; 16]);
        outcomes.insert(left[16..].to_vec());
    }
    for wanted in [&b""[..], b"bbcc", b"bb", b"b", b"\0\0cc", b"\0b\0c"] {
        assert!(outcomes.contains(wanted), "never {wanted:?} among {outcomes:?}");
    }
}

#[test]
fn unsynced_names_survive_or_not_each_for_itself() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..200 {
        let disk = with_synced_file(seed);
        let (new, renamed) = (Path::new("/d/new"), Path::new("/d/renamed"));
        disk.create_new(new).unwrap();
        disk.rename(file(), renamed).unwrap();
        disk.power_cut();
        let there = |path| disk.contents(path).is_some();
        assert_ne!(there(file()), there(renamed), "a rename is all or nothing");
        outcomes.insert((there(new), there(renamed)));
    }
    assert_eq!(outcomes.len(), 4);
}

#[test]
fn a_directory_whose_name_was_not_synced_goes_with_all_that_is_in_it() {
    let mut left = 0;
    for seed in 0..100 {
        let disk = with_synced_file(seed);
        let (inner, kept) = (Path::new("/d/inner"), Path::new("/d/inner/kept"));
        disk.create_dir_all(inner).unwrap();
        disk.create_new(kept).unwrap().sync_data().unwrap();
        disk.sync_dir(inner).unwrap();
        disk.power_cut();
        assert!(disk.contents(file()).is_some(), "its own directory was synced");
        left += u32::from(disk.contents(kept).is_some());
    }
    assert!((20..80).contains(&left), "left {left} times of 100");
}

#[test]
fn after_a_failed_sync_only_a_repeated_write_is_synced() {
    let mut lost = 0;
    for seed in 0..100 {
        let disk = with_synced_file(seed);
        let handle = disk.open(file()).unwrap();
        handle.write_all_at(b"lost", 16).unwrap();
        disk.fail_next(Fault::Sync, 1);
        assert!(handle.sync_data().is_err());
        assert!(handle.sync_data().is_ok(), "and that is the lie");
        assert_eq!(disk.contents(file()).unwrap()[16..], *b"lost", "still to be seen");
        handle.write_all_at(b"kept", 20).unwrap();
        handle.sync_data().unwrap();
        disk.power_cut();
        let left = disk.contents(file()).unwrap();
        assert_eq!(left[20..], *b"kept");
        lost += u32::from(left[16..20] != *b"lost");
    }
    assert!(lost > 50, "lost {lost} times of 100");
}

#[test]
fn a_full_disk_takes_a_part() {
    let disk = with_synced_file(1);
    let handle = disk.open(file()).unwrap();
    disk.set_capacity(Some(20));
    let error = handle.write_all_at(b"too long", 16).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(disk.contents(file()).unwrap()[16..], *b"too ");
    handle.write_all_at(b"over", 0).unwrap();
    disk.heal();
    handle.write_all_at(b"too long", 16).unwrap();
}

#[test]
fn power_fails_in_the_middle_and_stays_off() {
    let disk = with_synced_file(2);
    let handle = disk.open(file()).unwrap();
    disk.cut_power_after(2);
    handle.write_all_at(b"first", 0).unwrap();
    assert!(handle.write_all_at(b"second", 5).is_err());
    assert!(disk.power_is_off() && handle.sync_data().is_err() && disk.open(file()).is_err());
    disk.power_cut();
    assert!(!disk.power_is_off() && disk.open(file()).is_ok());
}

#[test]
fn a_lock_is_held_until_drop_or_the_end_of_the_process() {
    let disk = SimDisk::new(3);
    let path = Path::new("/d/LOCK");
    let lock = disk.lock(path).unwrap();
    assert!(disk.lock(path).is_err());
    disk.kill();
    let second = disk.lock(path).unwrap();
    drop(lock);
    assert!(disk.lock(path).is_err(), "the dead process' lock is not this one");
    drop(second);
    assert!(disk.lock(path).is_ok());
}

#[test]
fn one_seed_one_story() {
    let story = |seed| {
        let disk = with_synced_file(seed);
        let handle = disk.open(file()).unwrap();
        disk.fail_one_in(Fault::Write, 3);
        let outcomes: Vec<bool> =
            (0..40).map(|at| handle.write_all_at(&[at as u8; 30], at * 10).is_ok()).collect();
        disk.power_cut();
        (outcomes, disk.contents(file()))
    };
    assert_eq!(story(7), story(7));
    assert_ne!(story(7), story(8));
}
