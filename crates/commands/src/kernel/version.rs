//! Versions that clients are told.

/// Ladon's own.
pub const LADON_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of Redis whose commands and replies these are; clients decide by it what they use.
pub const REDIS_VERSION: &str = "7.2.4";
