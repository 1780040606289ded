//! The log sequence number.

use std::fmt;

/// A position in the log: the count of bytes of all frames up to **and including** a record.
///
/// A record's LSN is the end of its frame, so "the gate has passed this record" is the plain
/// comparison `gate >= lsn`, and zero means "depends on nothing".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Before the first record.
    pub const ZERO: Lsn = Lsn(0);
    /// What a reply depends on that tells of data, if it tells of no change: every gate has passed
    /// it, but for `quorum` while the group may have another leader.
    pub const DATA: Lsn = Lsn(1);
    /// After every record there can be.
    pub const MAX: Lsn = Lsn(u64::MAX);
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
