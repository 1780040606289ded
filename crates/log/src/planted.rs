//! Testing only: bugs that the tests must notice.

/// A bug in what the log leaves for the next start ([`crate::LogOptions::planted`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planted {
    /// None.
    #[default]
    Nothing,
    /// `log-end` notes a sync before it is made.
    EarlyNote,
    /// `log-end` notes everything that was written, although a failed write may have stopped within
    /// a frame.
    NoteWithinAFrame,
    /// A partially written note switches slots.
    TornNotes,
    /// A start assumes that the note it reads is on the disk.
    TrustedNote,
    /// Recovery notes a segment whose name may not be on the disk.
    NoteOfAnUnsyncedName,
    /// Nobody looks whether the files are still in the directory.
    UnseenRemoval,
    /// The name of a directory that a start has made may not be on the disk.
    UnsyncedDirectory,
    /// A follower keeps its leader's sync marks.
    ForeignMarkTrusted,
    /// The note is not lowered before a follower's log is cut.
    NoteNotLowered,
    /// Nothing is noted: neither syncs, nor that a start has discarded the end of the log.
    NoNote,
}
