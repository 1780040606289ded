//! Which operations the disk refuses, and when.

use ladon_testkit::Random;
use std::io;

/// One kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Writes fail with EIO; a part of the bytes may have arrived.
    Write,
    /// Syncs of files fail with EIO; the data that they should have covered is visible and lost.
    Sync,
    /// Syncs of directories fail with EIO.
    SyncDir,
    /// Creating files fails with EMFILE.
    Create,
    /// Removing files fails with EIO.
    Remove,
    /// Reads fail with EIO.
    Read,
}

#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// How many operations of a kind fail from now on.
    counted: Vec<(Fault, u64)>,
    /// For each kind of fault, the average number of operations per failure.
    chances: Vec<(Fault, u64)>,
}

impl Faults {
    pub(crate) fn fail_next(&mut self, fault: Fault, times: u64) {
        self.counted.retain(|(kind, _)| *kind != fault);
        self.counted.push((fault, times));
    }

    pub(crate) fn fail_one_in(&mut self, fault: Fault, operations: u64) {
        self.chances.retain(|(kind, _)| *kind != fault);
        if operations > 0 {
            self.chances.push((fault, operations));
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Faults::default();
    }

    /// Whether this operation fails.
    pub(crate) fn strikes(&mut self, fault: Fault, random: &mut Random) -> bool {
        if let Some((_, left)) = self.counted.iter_mut().find(|(kind, _)| *kind == fault)
            && *left > 0
        {
            *left -= 1;
            return true;
        }
        let chance = self.chances.iter().find(|(kind, _)| *kind == fault);
        chance.is_some_and(|&(_, operations)| random.chance(1, operations))
    }
}

pub(crate) fn error(fault: Fault) -> io::Error {
    // EIO and EMFILE have these numbers on every Unix.
    io::Error::from_raw_os_error(if fault == Fault::Create { 24 } else { 5 })
}

pub(crate) fn no_space() -> io::Error {
    // ENOSPC.
    io::Error::from_raw_os_error(28)
}

pub(crate) fn power_is_off() -> io::Error {
    io::Error::other("the simulated power is off")
}

pub(crate) fn handle_is_dead() -> io::Error {
    io::Error::other("this handle belongs to a process that ended")
}
