//! Redis' files into a data directory or a running server, and a data directory into them.
//!
//! ```text
//! FILE.rdb, appendonlydir --source--> keys and commands --Target--> a fresh data directory
//!                                                              `--> a running server
//! a data directory --export--> FILE.rdb
//!        ^ |
//!        | `-- a running server: LADON.BACKUP --back_up--> a backup
//!        `---------------------------------------restore------'
//! ```
//!
//! **Architecture invariant:** beside the data that a directory's keyspace holds anyway there are a
//! few megabytes of the file at a time, whatever a value's size. What cannot be taken ends the
//! import with an error that names it; nothing is left out in silence. Absent: the command line.

mod aof;
mod backup;
mod backup_list;
mod events;
mod executor;
mod export;
mod export_scan;
mod export_snapshot;
mod export_target;
mod import;
mod into_directory;
mod into_server;
mod memory_available;
mod parallel;
mod pieces;
mod places;
mod restore;
mod source;

pub use backup::{BackupError, BackupProgress, Copied, back_up};
pub use backup_list::ListError;
pub use export::export_directory;
pub use export_scan::export_scan;
pub use export_snapshot::export_snapshot;
pub use export_target::{ExportError, ExportProgress, Exported};
pub use import::{ImportError, Imported, Progress};
pub use into_directory::import_into_directory;
pub use into_server::import_into_server;
pub use ladon_peers::{Client, ClientError, Reply, ServerOptions};
pub use restore::restore;
