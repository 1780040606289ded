//! Ladon's log: records in one order, checkpoints, recovery, and their verification.
//!
//! | to | use |
//! |---|---|
//! | open a directory | [`DataDir::open`], then [`DataDir::recover`] with a [`RecoverySink`] |
//! | have no directory yet | [`Log::nowhere`] |
//! | append | [`Log::appender`], [`Appender::append`], [`Appender::publish`] |
//! | pass the gate | [`Log::write_published`], [`Log::write_soon`], [`Log::want_durable`], [`PositionWaiter`] |
//! | run the background | [`Log::spawn_writer`], or [`Log::step`] in the simulator |
//! | save | [`Log::begin_checkpoint`], [`CheckpointWriter`], [`Log::delete_obsolete`] |
//! | copy the files of an open log | [`Log::begin_copy`], [`LogCopy`] |
//! | follow another node's log | [`Log::begin_entries`], [`Log::set_follower`], [`Log::append_frames`], [`Log::cut_after`] |
//! | send the log to others | [`LogBytes`] |
//! | look at files | [`verify`], [`reader`], [`checkpoint::reader`] |
//!
//! **Architecture invariant:** this crate carries changes without looking into them; it knows no
//! key, no table, no command and no socket. All files go through [`ladon_platform::Disk`], all time
//! through [`ladon_platform::Clock`].

mod agreement;
mod alternative;
mod appender;
mod buffer;
mod bytes;
pub mod checkpoint;
mod chunk;
mod copy;
mod crc;
mod cut;
mod damage;
mod data_dir;
mod durable;
mod follow;
pub mod frame;
mod load;
mod log;
mod log_end;
mod nowhere;
mod obsolete;
mod options;
mod planted;
mod position_waiter;
mod presence;
pub mod reader;
mod recover;
mod replay;
mod reserve;
mod scan;
mod seal;
pub mod segment;
mod sink;
mod state;
mod sync_primitives;
mod tail;
mod unfinished;
pub mod verify;
mod worker;
mod write;

pub use appender::Appender;
pub use buffer::APPENDERS_MAX;
pub use bytes::LogBytes;
pub use checkpoint::{BlockHeader, CheckpointInfo, CheckpointWriter};
pub use copy::{CopiedFile, CopyError, LogCopy, note_copied_end};
pub use crc::{crc32c, crc32c_of_both};
pub use cut::CutError;
pub use damage::Damage;
pub use data_dir::{BACKUP_NAME, DIR_FORMAT, DataDir, LOCK_NAME, Meta, OpenError};
pub use follow::ForeignFault;
pub use log::Log;
pub use log_end::{LOG_END_FORMAT, LogEnd, log_end_path};
pub use obsolete::{Deleted, PinGuard};
pub use options::LogOptions;
pub use planted::Planted;
pub use position_waiter::PositionWaiter;
pub use recover::RecoverError;
pub use sink::{Phase, Progress, RecoveryReport, RecoverySink, TornTail};
pub use state::{LogError, LogState};
pub use unfinished::{begin_unfinished, end_unfinished, unfinished};
pub use worker::{Step, WriterThread};
