//! Testing only: bugs that the tests must notice.

/// A bug in what the log leaves behind for the next start ([`crate::LogOptions::planted`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planted {
    /// None.
    #[default]
    Nothing,
    /// `log-end` is told of a sync before it was made.
    EarlyNote,
    /// `log-end` is told of all that was written, though a failed write may have stopped within a frame.
    NoteWithinAFrame,
    /// A note that was written in part makes the file change slots.
    TornNotes,
    /// A start believes that a note which it reads is on the disk.
    TrustedNote,
    /// Recovery notes a segment whose name need not be on the disk.
    NoteOfAnUnsyncedName,
    /// Nothing is noted, neither what was synced nor that a start has given up the end of the log.
    NoNote,
}
