//! Ladon's settings: one table, and every way in and out of it.
//!
//! [`table::TABLE`] has for every setting its names (Ladon's and Redis'), its kind, its default,
//! and whether it may change while the server runs. Flags, the TOML file, redis.conf, `CONFIG GET`,
//! `CONFIG SET`, `CONFIG REWRITE` and `docs/settings.md` all come from it. [`Settings`] holds the
//! values: one relaxed load reads a number.
//!
//! **Architecture invariant:** no setting is accepted that does nothing. A Redis setting that Ladon
//! has no use for is either a setting with one single value, which describes what Ladon does
//! ([`kind::Kind::Fixed`]), or it is unknown to `CONFIG`, and a redis.conf that names it gets a
//! warning or an error with the line.

pub mod endpoint;
mod event_classes;
pub mod glob;
pub mod kind;
pub mod load;
pub mod markdown;
pub mod memory_size;
pub mod origin;
pub mod output_limits;
pub mod percentiles;
pub mod primary;
pub mod report;
pub mod rewrite;
pub mod save_points;
pub mod set;
pub mod setting;
pub mod settings;
pub mod table;
mod tls;
pub mod typed;
pub mod users;

mod directives;
mod draft;
mod get;
mod words;

pub use endpoint::Endpoint;
pub use glob::Glob;
pub use load::{LoadError, Loader, Note, lines_for_log};
pub use origin::Origin;
pub use output_limits::{OutputClass, OutputLimit};
pub use primary::Primary;
pub use rewrite::{RewriteError, Source};
pub use save_points::SavePoint;
pub use set::SetError;
pub use setting::{Setting, When};
pub use settings::Settings;
pub use table::{Id, TABLE, lookup};
pub use typed::{
    Access, AuthClients, CertificateUser, ClientMemory, EvictionPolicy, FirstChannels, IoBackend,
    LogFormat, LogLevel,
};
pub use users::UserLine;
