//! One file per question that the lab answers; each is a subcommand.

pub mod churn;
pub mod common;
pub mod eviction;
pub mod growth;
pub mod handover;
pub mod kv;
pub mod measured;
pub mod memory;
pub mod saving;
pub mod stall;
pub mod types;

use crate::load::driver::LoadError;
use crate::systems::find::FindError;
use crate::systems::server::ServerError;

/// Why a work ended without figures.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// A system is unknown or missing.
    #[error(transparent)]
    Find(#[from] FindError),
    /// A server did not come up.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A server answered wrongly or not at all.
    #[error("{system}: {source}")]
    Load {
        /// The server's label.
        system: String,
        /// What it did.
        source: LoadError,
    },
    /// A server did something that the work does not expect.
    #[error("{system}: {what}")]
    Unexpected {
        /// The server's label.
        system: String,
        /// What it did.
        what: String,
    },
    /// An argument makes no sense.
    #[error("{0}")]
    Argument(String),
    /// The operating system refused something.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl From<nix::Error> for WorkError {
    fn from(error: nix::Error) -> Self {
        Self::Io(error.into())
    }
}
