//! A log that follows another one: equal positions, own marks, and an end that can be taken back.
//!
//! Oracle of the stories: after any crash the follower's log is a prefix of what its leaders sent,
//! in order; it reaches at least as far as it was durable; and recovery takes neither a leader's
//! marks nor a cut that was interrupted for damage. `LADON_SEED=n` replays one story,
//! `LADON_SEEDS=n` sets how many. The harness works: bugs that are planted are caught.

use crate::common::*;
use ladon_log::frame::{FrameKind, encode_frame};
use ladon_log::{CutError, Log, LogBytes, LogOptions, Planted, RecoverError};
use ladon_record::Lsn;
use ladon_sim_disk::SimDisk;
use ladon_testkit::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};

const LEADER: u16 = 9;

/// A frame as a leader has it.
#[derive(Clone)]
struct Sent {
    end: Lsn,
    kind: FrameKind,
    bytes: Vec<u8>,
}

fn payloads(sent: &[Sent]) -> Vec<Vec<u8>> {
    let changes = sent.iter().filter(|frame| frame.kind == FrameKind::Changes);
    changes.map(|frame| frame.bytes[24..].to_vec()).collect()
}

struct Story {
    random: Random,
    disk: SimDisk,
    options: LogOptions,
    /// The leader's log; the follower has a prefix of it.
    sent: Vec<Sent>,
    /// How many of them the follower was given.
    given: usize,
    durable: Lsn,
    numbers: u64,
}

impl Story {
    fn new(seed: u64, planted: Planted) -> Story {
        let mut random = Random::new(seed);
        let disk = SimDisk::new(random.next_u64());
        let options = LogOptions { planted, ..small() };
        let durable = Lsn::ZERO;
        Story { random, disk, options, sent: vec![], given: 0, durable, numbers: 0 }
    }

    fn end(&self, count: usize) -> Lsn {
        count.checked_sub(1).map_or(Lsn::ZERO, |last| self.sent[last].end)
    }

    /// The leader appends; it believes that everything of its own is on the disk.
    fn lead(&mut self) {
        let start = self.end(self.sent.len());
        self.numbers += 1;
        let (kind, payload) = match self.random.below(8) {
            0 => (FrameKind::SyncMark, start.0.to_le_bytes().to_vec()),
            1 => (FrameKind::Entry, vec![1; self.random.below(40) as usize]),
            2 => (FrameKind::Changes, vec![self.numbers as u8; self.random.below(1500) as usize]),
            _ => (FrameKind::Changes, self.numbers.to_le_bytes().to_vec()),
        };
        let bytes = encode_frame(kind, LEADER, 7, start, &payload);
        let end = Lsn(start.0 + bytes.len() as u64);
        self.sent.push(Sent { end, kind, bytes });
    }

    fn life(&mut self) {
        let Some(mut node) = self.recover() else { return };
        if self.random.chance(1, 2) {
            self.disk.cut_power_after(1 + self.random.below(60));
        }
        for _ in 0..self.random.below(80) {
            if self.disk.power_is_off() {
                break;
            }
            match self.random.below(12) {
                0..=2 => self.lead(),
                3..=6 => self.give(&mut node),
                7 => drop(node.log.write_published()),
                8 => drop(node.log.step()),
                9 => node.log.want_durable(node.log.reserved()),
                _ if !self.cut(&node) => break,
                _ => {}
            }
            self.durable = self.durable.max(node.log.durable());
        }
        let power = self.disk.power_is_off() || self.random.chance(1, 2);
        drop(node);
        if power {
            self.disk.power_cut();
        } else {
            self.disk.kill();
        }
    }

    fn give(&mut self, node: &mut Node) {
        let until = (self.given + 1 + self.random.below(5) as usize).min(self.sent.len());
        let frames = &self.sent[self.given..until];
        let bytes: Vec<u8> = frames.iter().flat_map(|frame| frame.bytes.clone()).collect();
        let end = node.log.append_frames(&mut node.appender, &bytes).unwrap();
        assert_eq!(end, self.end(until));
        self.given = until;
    }

    /// Another leader: it has only a part of what this follower has, and goes on from there. False
    /// if the power failed meanwhile.
    fn cut(&mut self, node: &Node) -> bool {
        let kept = self.random.below(self.given as u64 + 1) as usize;
        let to = self.end(kept);
        // Also if it is cut only in part.
        self.durable = self.durable.min(to);
        match node.log.cut_after(to) {
            Ok(()) => {
                assert_eq!(node.log.reserved(), to);
                assert!(node.log.written() <= to && node.log.durable() <= to);
                // The next leader may be this one.
                assert!(node.log.records_end() <= to, "a record that is gone ends behind {to}");
                (self.given, _) = (kept, self.sent.truncate(kept));
                true
            }
            Err(CutError::Io { .. } | CutError::Log(_)) if self.disk.power_is_off() => false,
            Err(error) => panic!("{error}"),
        }
    }

    fn recover(&mut self) -> Option<Node> {
        if self.random.chance(1, 4) {
            self.disk.cut_power_after(1 + self.random.below(12));
        }
        let node = match try_open(&self.disk, self.options, 1) {
            Ok(node) => node,
            Err(RecoverError::Io { .. }) if self.disk.power_is_off() => {
                self.disk.power_cut();
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let end = node.report.end;
        assert!(end >= self.durable, "durable up to {}, recovered to {end}", self.durable);
        let kept = self.sent.iter().take_while(|frame| frame.end <= end).count();
        assert_eq!(self.end(kept), end, "the end is that of a frame");
        assert!(kept <= self.given);
        assert_eq!(node.sink.payloads(), payloads(&self.sent[..kept]));
        self.given = kept;
        self.durable = end;
        node.log.set_follower(true);
        if node.log.begin_entries().is_err() {
            assert!(self.disk.power_is_off());
            self.disk.power_cut();
            return None;
        }
        Some(node)
    }
}

fn live(seed: u64, planted: Planted) {
    let mut story = Story::new(seed, planted);
    for _ in 0..8 {
        story.life();
    }
    story.disk.power_cut();
    // The power stays on for this one.
    while story.recover().is_none() {}
}

fn stories() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
    match number("LADON_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LADON_SEEDS").unwrap_or(400),
    }
}

#[test]
fn a_follower_keeps_what_it_was_sent() {
    for seed in stories() {
        let told = catch_unwind(AssertUnwindSafe(|| live(seed, Planted::Nothing)));
        assert!(told.is_ok(), "LADON_SEED={seed}");
    }
}

#[test]
fn planted_bugs_are_caught() {
    for planted in [Planted::ForeignMarkTrusted, Planted::NoteNotLowered] {
        let caught = (0..400).any(|seed| catch_unwind(|| live(seed, planted)).is_err());
        assert!(caught, "{planted:?} was not noticed");
    }
}

/// Two nodes with directories of their own: the follower's log has the leader's positions.
#[test]
fn bytes_are_read_and_appended() {
    let (leader_disk, disk) = (SimDisk::new(1), SimDisk::new(2));
    let (mut leader, mut node) = (open(&leader_disk), open(&disk));
    leader.put(b"before the group");
    leader.log.begin_entries().unwrap();
    node.log.set_follower(true);
    node.log.begin_entries().unwrap();
    let mut random = Random::new(3);
    let mut bytes = LogBytes::new(leader.log.clone());
    let mut expected = vec![b"before the group".to_vec()];
    for number in 0..200u64 {
        let payload = vec![number as u8; random.below(600) as usize];
        leader.put(&payload);
        expected.push(payload);
        if number % 7 == 0 {
            leader.appender.append_entry(&number.to_le_bytes(), 7);
            leader.appender.publish();
            leader.log.make_durable(leader.log.reserved()).unwrap();
            let from = node.log.reserved();
            let mut buffer = vec![0; (leader.log.written().0 - from.0) as usize];
            bytes.read(from, &mut buffer).unwrap();
            node.log.append_frames(&mut node.appender, &buffer).unwrap();
        }
    }
    let end = node.log.reserved();
    assert_eq!(
        bytes.read(end, &mut [0; 1 << 20]).unwrap_err().kind(),
        std::io::ErrorKind::NotFound
    );
    node.log.make_durable(end).unwrap();
    drop(node);
    let node = open(&disk);
    assert_eq!(node.report.end, end);
    let payloads = node.sink.payloads();
    assert_eq!(payloads, expected[..payloads.len()]);
    assert!(payloads.len() > 190);
}

#[test]
fn what_does_not_belong_there_is_refused() {
    let disk = SimDisk::new(1);
    let mut node = open(&disk);
    node.log.set_follower(true);
    let whole = encode_frame(FrameKind::Changes, LEADER, 7, Lsn::ZERO, b"one");
    let elsewhere = encode_frame(FrameKind::Changes, LEADER, 7, Lsn(5), b"one");
    let mut changed = whole.clone();
    changed[26] ^= 1;
    let mut unknown = encode_frame(FrameKind::Changes, LEADER, 7, Lsn::ZERO, b"");
    unknown[21] |= 0xf0;
    let mark = encode_frame(FrameKind::SyncMark, LEADER, 7, Lsn::ZERO, b"short");
    for (bytes, found) in [
        (&whole[..9], "9 bytes of a frame's header"),
        (&whole[..26], "26 of a frame's 27 bytes"),
        (&elsewhere[..], "a frame of 27 bytes that ends at LSN 32"),
        (&changed[..], "a frame of 27 bytes with a wrong checksum"),
        (&unknown[..], "a frame of 24 bytes with a wrong checksum"),
        (&mark[..], "a sync mark of 29 bytes"),
    ] {
        // What is right in front of it is not appended either.
        let fault = node.log.append_frames(&mut node.appender, bytes).unwrap_err();
        assert_eq!((fault.at, &fault.found[..]), (Lsn::ZERO, found));
        assert_eq!(node.log.reserved(), Lsn::ZERO);
    }
    let good = [&whole[..], &whole[..]].concat();
    let fault = node.log.append_frames(&mut node.appender, &good).unwrap_err();
    assert_eq!(fault.at, Lsn(27));
    assert_eq!(node.log.reserved(), Lsn::ZERO);
}

#[test]
fn a_followers_own_record_is_a_stray() {
    let mut node = open(&SimDisk::new(1));
    node.log.set_follower(true);
    assert!(!node.log.has_strays());
    let lsn = node.appender.append(b"mine", 7);
    node.appender.publish();
    assert!(node.log.has_strays());
    assert_eq!(node.log.reserved(), Lsn::ZERO);
    assert!(lsn > Lsn(1 << 50), "a position that is reached never: {lsn}");
}

#[test]
#[should_panic = "an entry in a log without entries"]
fn entries_have_segments_that_say_so() {
    let mut node = open(&SimDisk::new(1));
    node.appender.append_entry(b"", 7);
}

fn formats(disk: &SimDisk, log: &Log) -> Vec<u8> {
    let paths = ladon_platform::Disk::list(disk, log.dir()).unwrap();
    let mut segments: Vec<_> =
        paths.into_iter().filter(|path| path.to_string_lossy().ends_with(".log")).collect();
    segments.sort();
    segments.iter().map(|path| disk.contents(path).unwrap()[8]).collect()
}

/// A directory that never had an entry is one of the version before.
#[test]
fn only_segments_with_entries_have_the_newer_format() {
    let disk = SimDisk::new(1);
    let mut node = open(&disk);
    node.put(&[1; 2000]);
    node.put(&[2; 2000]);
    node.log.make_durable(node.log.reserved()).unwrap();
    assert!(formats(&disk, &node.log).iter().all(|&format| format == 1));
    node.log.begin_entries().unwrap();
    node.appender.append_entry(b"entry", 7);
    node.appender.publish();
    node.log.make_durable(node.log.reserved()).unwrap();
    let all = formats(&disk, &node.log);
    assert_eq!((all[0], all.last()), (1, Some(&2)));
    drop(node);
    // It stays so, and at once in a directory whose segment is empty.
    let node = open(&disk);
    assert_eq!(formats(&disk, &node.log).last(), Some(&2));
    let fresh = SimDisk::new(2);
    let node = open(&fresh);
    node.log.begin_entries().unwrap();
    assert_eq!(formats(&fresh, &node.log), [2]);
}

#[test]
fn a_log_is_not_cut_below_its_checkpoint() {
    let disk = SimDisk::new(1);
    let mut node = open(&disk);
    node.put(b"one");
    let newest = node.log.reserved();
    let checkpoint = node.log.begin_checkpoint().unwrap();
    checkpoint.finish(newest, b"").unwrap();
    node.log.set_follower(true);
    let error = node.log.cut_after(Lsn::ZERO).unwrap_err();
    assert!(matches!(error, CutError::Checkpoint { newest: at, .. } if at >= newest), "{error}");
    assert!(node.log.reserved() >= newest);
}
