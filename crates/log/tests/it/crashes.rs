//! Random work, faults and crashes against a plain list of what was appended.
//!
//! Oracle: after any crash the data is a prefix of what was appended, in order, nothing half there;
//! it reaches at least as far as `durable` had (after a power cut) or `written` (after the process
//! was killed); and recovery never takes a crash for damage. Every seed is one life story:
//! `LADON_SEED=n` replays one, `LADON_SEEDS=n` sets how many.
//!
//! The harness works: bugs that are planted in `log-end` are caught.

use crate::common::*;
use ladon_log::{BlockHeader, CheckpointWriter, LogOptions, Planted, RecoverError};
use ladon_record::{LargeRecord, Lsn, Record};
use ladon_sim_disk::{Fault, SimDisk};
use ladon_testkit::Random;
use std::time::Duration;

/// Half of the records by their number's parity: two blocks, saved at different moments.
const PARITIES: [u64; 2] = [0, 1];

struct Story {
    random: Random,
    disk: SimDisk,
    options: LogOptions,
    /// Every record that may still exist: its LSN and its number.
    history: Vec<(Lsn, u64)>,
    next_number: u64,
    /// A crash may take nothing up to here.
    safe: Lsn,
    /// A power cut may take nothing up to here.
    durable: Lsn,
    trace: Vec<String>,
}

fn encode(number: u64, bytes: usize) -> Vec<u8> {
    let mut payload = number.to_le_bytes().to_vec();
    payload.resize(8 + bytes, number as u8);
    payload
}

fn decode(payload: &[u8]) -> u64 {
    let number = u64::from_le_bytes(*payload.first_chunk().expect("eight bytes"));
    assert!(payload[8..].iter().all(|&byte| byte == number as u8), "a mangled record");
    number
}

impl Story {
    fn new(seed: u64, planted: Planted) -> Story {
        let mut random = Random::new(seed);
        let disk = SimDisk::new(random.next_u64());
        Story {
            random,
            disk,
            options: LogOptions { planted, ..small() },
            history: vec![],
            next_number: 1,
            safe: Lsn::ZERO,
            durable: Lsn::ZERO,
            trace: vec![],
        }
    }

    fn note(&mut self, what: impl Into<String>) {
        self.trace.push(what.into());
    }

    /// One life of the node, from recovery to its end.
    fn life(&mut self) {
        let Some(mut node) = self.recover() else { return };
        if self.random.chance(1, 2) {
            node.log.set_sync_every(Some(Duration::from_secs(1)));
        }
        let mut checkpoint: Option<(CheckpointWriter, usize)> = None;
        if self.random.chance(1, 2) {
            self.disk.cut_power_after(1 + self.random.below(120));
        }
        for _ in 0..self.random.below(150) {
            if self.disk.power_is_off() {
                break;
            }
            match self.random.below(20) {
                0..=7 => self.append(&mut node),
                8..=9 => drop(node.log.write_published()),
                10..=12 => drop(node.log.step()),
                13 => node.clock.advance_ns(SECOND_NS * (1 + self.random.below(3)) / 2),
                14..=15 => node.log.want_durable(self.some_lsn()),
                16 => self.fault(),
                17 => drop(node.log.delete_obsolete()),
                _ => self.work_on_checkpoint(&node, &mut checkpoint),
            }
            self.check_positions(&node);
        }
        drop(checkpoint);
        self.end(node);
    }

    /// Recovers, perhaps with the power failing meanwhile.
    fn recover(&mut self) -> Option<Node> {
        let power_fails = self.random.chance(1, 3);
        if power_fails {
            self.disk.cut_power_after(1 + self.random.below(12));
        }
        let workers = 1 + self.random.below(2) as usize;
        match try_open(&self.disk, self.options, workers) {
            Ok(node) => {
                self.check(&node);
                Some(node)
            }
            Err(RecoverError::Io { .. }) if self.disk.power_is_off() => {
                self.note("power cut in recovery");
                self.safe = self.durable;
                self.disk.power_cut();
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn check(&mut self, node: &Node) {
        let mut numbers = Vec::new();
        for (block, payload) in node.sink.blocks.lock().unwrap().iter() {
            numbers.extend(payload.chunks(8).map(decode));
            assert!(block.lsn <= node.report.end);
        }
        for (lsn, payload) in node.sink.records[0].lock().unwrap().iter() {
            let number = decode(payload);
            let blocks = node.sink.blocks.lock().unwrap();
            let saved = blocks.iter().find(|(block, _)| block.hash_first == number % 2);
            if saved.is_none_or(|(block, _)| block.lsn < *lsn) {
                numbers.push(number);
            }
        }
        node.sink.payloads();
        numbers.sort_unstable();
        let known: Vec<u64> = self.history.iter().map(|&(_, number)| number).collect();
        let found = format!("recovered to {} with {:?}", node.report.end, node.report.torn);
        self.note(found);
        assert!(known.starts_with(&numbers), "not a prefix:\n{numbers:?}\n{known:?}");
        self.history.truncate(numbers.len());
        let end = self.history.last().map_or(Lsn::ZERO, |&(lsn, _)| lsn);
        assert!(node.report.end >= self.safe, "{} was safe", self.safe);
        assert!(end <= node.report.end);
        assert_eq!(node.log.durable(), node.report.end);
        assert!(node.report.given_up.is_none() && node.report.log_end_fault.is_none());
        self.safe = node.report.end;
        self.durable = self.safe;
    }

    fn append(&mut self, node: &mut Node) {
        let number = self.next_number;
        self.next_number += 1;
        let bytes = match self.random.below(10) {
            0 => self.random.below(1500),
            _ => self.random.below(60),
        };
        let payload = encode(number, bytes as usize);
        let record = match self.random.below(4) {
            0 => Record::Large(LargeRecord::new(payload)),
            _ => Record::Changes(&payload),
        };
        let lsn = node.appender.append_record(record, 7);
        self.history.push((lsn, number));
        if self.random.chance(3, 4) {
            node.appender.publish();
        }
    }

    fn some_lsn(&mut self) -> Lsn {
        let index = self.random.below(self.history.len() as u64) as usize;
        self.history.get(index).map_or(Lsn::ZERO, |&(lsn, _)| lsn)
    }

    fn fault(&mut self) {
        let fault = [Fault::Write, Fault::Sync, Fault::SyncDir, Fault::Create];
        let fault = fault[self.random.below(4) as usize];
        match self.random.below(6) {
            0..=1 => self.disk.fail_next(fault, 1 + self.random.below(2)),
            2 => {
                let room = self.random.below(600);
                self.disk.set_capacity(Some(self.disk.used_bytes() + room));
            }
            _ => self.disk.heal(),
        }
        self.note(format!("{fault:?}"));
    }

    fn work_on_checkpoint(
        &mut self,
        node: &Node,
        checkpoint: &mut Option<(CheckpointWriter, usize)>,
    ) {
        let Some((mut writer, blocks)) = checkpoint.take() else {
            *checkpoint = node.log.begin_checkpoint().ok().map(|writer| (writer, 0));
            return;
        };
        if let Some(&parity) = PARITIES.get(blocks) {
            let lsn = node.log.reserved();
            let numbers = self.history.iter().map(|&(_, number)| number);
            let kept: Vec<u64> = numbers.filter(|number| number % 2 == parity).collect();
            let payload: Vec<u8> = kept.iter().flat_map(|number| number.to_le_bytes()).collect();
            let keys = kept.len() as u64;
            let block = BlockHeader { db: 0, hash_first: parity, hash_last: parity, lsn, keys };
            *checkpoint = writer.block(&block, &payload).is_ok().then_some((writer, blocks + 1));
        } else if self.random.chance(1, 8) {
            writer.abort();
        } else if node.log.backlog_bytes() == 0
            || node.log.write_published().is_ok_and(|written| written == node.log.reserved())
        {
            // (Otherwise a batch is open, and `finish` would wait for it.)
            let outcome = writer.finish(node.log.reserved(), b"meta");
            self.note(format!("checkpoint {:?}", outcome.map(|info| info.newest)));
        }
    }

    fn check_positions(&mut self, node: &Node) {
        let log = &node.log;
        assert!(log.durable() <= log.written() && log.written() <= log.reserved());
        assert!(self.safe <= log.durable());
        self.safe = log.durable();
        self.durable = self.safe;
    }

    fn end(&mut self, mut node: Node) {
        node.appender.publish();
        match self.random.below(4) {
            0 if node.log.close().is_ok() => {
                assert_eq!(node.log.durable(), node.log.reserved());
                self.check_positions(&node);
                self.note("closed");
            }
            1 if !self.disk.power_is_off() => {
                self.safe = node.log.written();
                self.note("killed");
                self.disk.heal();
                self.disk.kill();
                return;
            }
            _ => {}
        }
        self.check_positions(&node);
        drop(node);
        self.note("power cut");
        self.disk.heal();
        self.disk.power_cut();
    }
}

fn tell(seed: u64, planted: Planted) -> std::thread::Result<()> {
    let mut story = Story::new(seed, planted);
    let lives = 1 + story.random.below(6);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        for _ in 0..lives {
            story.life();
        }
        // After all that, a quiet start must find everything.
        story.disk.kill();
        try_open(&story.disk, story.options, 1).map(|node| story.check(&node)).unwrap();
    }));
    if outcome.is_err() && planted == Planted::Nothing {
        eprintln!("seed {seed}: LADON_SEED={seed} replays it\n{}", story.trace.join("\n"));
    }
    outcome
}

#[test]
fn no_crash_takes_what_was_promised() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seeds = match number("LADON_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LADON_SEEDS").unwrap_or(1500),
    };
    for seed in seeds {
        if let Err(panic) = tell(seed, Planted::Nothing) {
            std::panic::resume_unwind(panic);
        }
    }
}

/// A note that says more than what is on the disk refuses a good start after a crash.
#[test]
fn a_note_that_says_too_much_is_caught() {
    for planted in [Planted::EarlyNote, Planted::NoteWithinAFrame] {
        let caught = (0..300).filter(|&seed| tell(seed, planted).is_err()).count();
        assert!(caught > 3, "only {caught} of 300 stories noticed {planted:?}");
    }
}
