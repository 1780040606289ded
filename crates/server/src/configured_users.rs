//! The users that a server starts with: those of its configuration, or those of its file of users.

use ladon_identity::{ConfiguredUsers, read_file};
use ladon_kernel::shared::Shared;
use ladon_settings::Origin;
use std::io;
use thiserror::Error;

/// Why the users cannot be made.
#[derive(Debug, Error)]
pub enum UsersError {
    /// There are two sources.
    #[error(
        "{origin}: users are declared here and 'aclfile' names a file of users: only one of the \
         two can be"
    )]
    Both {
        /// The first line of the configuration that declares one.
        origin: Origin,
    },
    /// A line of the configuration is wrong.
    #[error("{origin}: {reason}")]
    Line {
        /// The line.
        origin: Origin,
        /// What is wrong.
        reason: String,
    },
    /// The users cannot be made out of their lines.
    #[error("{reason}")]
    Rules {
        /// What is wrong, and whose rule it is.
        reason: String,
    },
    /// The file of users cannot be read.
    #[error("the file of users '{path}' (aclfile) cannot be read: {error}")]
    Io {
        /// The file.
        path: String,
        /// The system's answer.
        error: io::Error,
    },
}

/// Makes the users.
///
/// # Errors
/// What is wrong with their lines or their file.
pub(crate) fn load(shared: &Shared) -> Result<(), UsersError> {
    let path = shared.settings.aclfile();
    match (path.is_empty(), shared.settings.user_lines().first()) {
        (false, Some(line)) => Err(UsersError::Both { origin: line.origin.clone() }),
        (false, None) => load_file(shared, path),
        (true, Some(_)) => load_lines(shared),
        (true, None) => Ok(()),
    }
}

fn load_lines(shared: &Shared) -> Result<(), UsersError> {
    let (accounts, settings) = (&shared.accounts, &shared.settings);
    let context = accounts.context(settings);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let mut configured = ConfiguredUsers::default();
    for line in settings.user_lines() {
        let mut words = line.words.iter().map(String::as_bytes);
        let name = words.next().unwrap_or_default();
        configured.add(name, words, context).map_err(|error| UsersError::Line {
            origin: line.origin.clone(),
            reason: text(error.text()),
        })?;
    }
    let off = accounts
        .change(|users| configured.load(users, context))
        .map_err(|error| UsersError::Rules { reason: text(error.text()) })?;
    for name in off {
        tracing::warn!(
            "the user '{}' of the configuration is off: add 'on' to its rules if it is to log in",
            text(name)
        );
    }
    Ok(())
}

fn load_file(shared: &Shared, path: String) -> Result<(), UsersError> {
    let (accounts, settings) = (&shared.accounts, &shared.settings);
    let content = match settings.read_users_file() {
        Ok(content) => content,
        Err(error) => return Err(UsersError::Io { path, error }),
    };
    let context = accounts.context(settings);
    let users = read_file(&content, &path, context).map_err(|errors| UsersError::Rules {
        reason: String::from_utf8_lossy(errors.text()).into_owned(),
    })?;
    accounts.change(|all| all.replace(users, context.table));
    Ok(())
}
