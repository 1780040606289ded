//! Testing only: bugs that the tests must notice.

/// A bug of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planted {
    /// None.
    #[default]
    Nothing,
    /// An entry counts as stored before it is on the disk.
    AckBeforeSync,
    /// A vote is forgotten with a restart.
    VoteNotSaved,
    /// A witness that leads sends its checkpoint, which is empty, to a member that is far behind.
    WitnessSendsNothing,
}
