//! Why a server does not start, or does not stop cleanly.

use crate::configured_users::UsersError;
use ladon_log::{LogError, OpenError, RecoverError};
use ladon_net::ListenError;
use ladon_operations::PortError;
use ladon_tls::TlsError;
use std::io;
use thiserror::Error;

/// Why the server did not start, or did not stop cleanly.
#[derive(Debug, Error)]
pub enum RunError {
    /// The server cannot listen on a socket.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A listening address does not resolve.
    #[error("cannot listen on {address}: {reason}")]
    Address {
        /// The address as written in the settings.
        address: String,
        /// Why.
        reason: String,
    },
    /// TLS cannot be used as the settings say.
    #[error("cannot use TLS: {0}")]
    Tls(#[from] TlsError),
    /// The port for operations cannot be opened.
    #[error(transparent)]
    Operations(#[from] PortError),
    /// The data directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The data cannot be recovered.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The log could not be closed cleanly.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The users cannot be made.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// A thread or an IO backend cannot be started.
    #[error("cannot start {what}: {error}")]
    Start {
        /// What.
        what: String,
        /// The system's answer.
        error: io::Error,
    },
    /// An IO thread ended early.
    #[error("an IO thread failed: {0}")]
    Thread(String),
}

pub(crate) fn starting(what: &str) -> impl Fn(io::Error) -> RunError + '_ {
    move |error| RunError::Start { what: what.to_owned(), error }
}
