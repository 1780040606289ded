//! Why a run ended without all its figures.

use std::path::PathBuf;

use crate::report::command::CommandError;

/// Why a run ended without all its figures.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An argument makes no sense, or names what does not exist.
    #[error("{0}")]
    Argument(String),
    /// A system answered wrongly: no figure of this run is to be trusted before that is explained.
    #[error("{system} ({work}): {what}; what was measured before is in {results}", results = .results.display())]
    Wrong {
        /// The system's label.
        system: String,
        /// What was being done.
        work: String,
        /// What it answered.
        what: String,
        /// What there is.
        results: PathBuf,
    },
    /// The user ended it.
    #[error("ended by a signal; what was measured is in {}", .0.display())]
    Interrupted(PathBuf),
    /// Every cell is empty: a script that waits for figures must not take that for a success.
    #[error("nothing was measured; the reasons are above and in {}", .0.display())]
    Nothing(PathBuf),
    /// The figures are there, but their report is not.
    #[error("the results are written, but not their report: {0}")]
    Report(#[from] CommandError),
    /// The operating system refused something.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl From<nix::Error> for RunError {
    fn from(error: nix::Error) -> Self {
        Self::Io(error.into())
    }
}
