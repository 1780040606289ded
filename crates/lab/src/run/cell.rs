//! The content of a cell of the results: a round, or the reason why it stays empty.

use crate::load::driver::LoadError;
use crate::results::schema::Round;
use crate::systems::instance::StartError;

/// Why a cell has no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// The system cannot do that; it goes on with the next step.
    #[error("{0}")]
    Cannot(String),
    /// The system is not usable any more: what comes after stays empty too.
    #[error("{0}")]
    Broken(String),
    /// It answered wrongly: the run ends.
    #[error("{0}")]
    Wrong(String),
    /// The user ended the run.
    #[error("ended by a signal")]
    Interrupted,
}

/// Part, place on its axis, and a round or the reason for none.
pub type CellOutcome = (String, Option<f64>, Result<Box<Round>, String>);

impl From<StartError> for CellError {
    fn from(error: StartError) -> Self {
        Self::Broken(error.to_string())
    }
}

/// An error of a socket or a file: the system cannot be asked any more.
impl From<std::io::Error> for CellError {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<LoadError> for CellError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Wrong { .. } => Self::Wrong(error.to_string()),
            LoadError::Stalled(..) | LoadError::Closed(_) => {
                Self::Broken(format!("broke off: {error}"))
            }
            LoadError::Opening(_) | LoadError::Io(_) => Self::Broken(error.to_string()),
        }
    }
}
