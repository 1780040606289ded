//! Whose format a file or a payload has.

use crate::error::Fault;

/// The newest version of Redis' RDB that is read: of Redis 7.4 and 8.0.
pub const REDIS_VERSION_MAX: u32 = 12;

/// The version of Valkey's RDB that is read: of Valkey 9. Valkey 8 writes Redis' version 11.
pub const VALKEY_VERSION: u32 = 80;

/// Whose format it is: the bytes of encodings from 22 on mean different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Redis, and Valkey before 9.
    Redis,
    /// Valkey since 9.
    Valkey,
}

impl Dialect {
    /// The dialect of a version that is read.
    ///
    /// # Errors
    /// Another version.
    pub(crate) fn of_version(version: u32) -> Result<Dialect, Fault> {
        match version {
            1..=REDIS_VERSION_MAX => Ok(Dialect::Redis),
            VALKEY_VERSION => Ok(Dialect::Valkey),
            _ => Err(Fault::Unsupported(format!(
                "RDB version {version} is not read: only Redis' 1 to {REDIS_VERSION_MAX} and \
                 Valkey's {VALKEY_VERSION}"
            ))),
        }
    }
}
