//! A server's data while it may be a replica's: whether it takes records of its own or another
//! server's, and how far it has those.
//!
//! ```text
//!            REPLICAOF HOST PORT                       REPLICAOF NO ONE
//!   it writes -----------------> it follows: frames ... -------------> it writes, a run begins
//! ```
//! **Invariant:** a record of this server's own is in the log only while it writes; what is applied is
//! in the log before, whole, and in order.

use super::planted::Planted;
use super::replicas::ReadReplicas;
use super::runs::Runs;
use crate::checkpoint_run::Applied;
use crate::followed::{FollowedRecords, frame_header};
use ladon_engine::Scratch;
use ladon_kernel::message::Message;
use ladon_kernel::role::Role;
use ladon_kernel::shared::Shared;
use ladon_log::frame::{FRAME_HEADER_BYTES, FrameKind};
use ladon_log::{Appender, Log};
use ladon_platform::Disk;
use ladon_record::Lsn;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// The longest pause between two looks whether the threads have ended what they ran.
const LOOK_PAUSE_MAX: Duration = Duration::from_millis(1);
/// What is received waits for the disk in memory, up to so many bytes.
const BACKLOG_BYTES_MAX: u64 = 16 << 20;

/// Lets the other threads of the server go on for so long.
pub(crate) type Rest = Box<dyn Fn(Duration) + Send + Sync>;

/// A server's data and its log.
pub(crate) struct FollowedData {
    records: FollowedRecords,
    log: Arc<Log>,
    disk: Arc<dyn Disk>,
    rest: Rest,
    planted: Planted,
    replicas: Arc<ReadReplicas>,
    runs: Mutex<Runs>,
    /// Up to where the data has the log, while it follows. Locked while a record is applied.
    has: Mutex<Lsn>,
    follows: AtomicBool,
    /// The data is not what the log says any more.
    is_broken: AtomicBool,
    /// What came is not the continuation of this log, though it should have been.
    is_astray: AtomicBool,
}

/// Applies what comes; one thread's.
pub(super) struct Receiver {
    appender: Appender,
    scratch: Scratch,
    /// What has come and was not taken.
    pub(super) bytes: Vec<u8>,
}

impl FollowedData {
    /// Recovered data, which follows from the begin or writes.
    pub(crate) fn new(
        records: FollowedRecords,
        (log, disk, rest): (Arc<Log>, Arc<dyn Disk>, Rest),
        (replicas, runs): (Arc<ReadReplicas>, Runs),
        follows: bool,
        planted: Planted,
    ) -> Arc<FollowedData> {
        let has = Mutex::new(log.reserved());
        Arc::new(FollowedData {
            records,
            log,
            disk,
            rest,
            planted,
            replicas,
            runs: Mutex::new(runs),
            has,
            follows: AtomicBool::new(follows),
            is_broken: AtomicBool::new(false),
            is_astray: AtomicBool::new(false),
        })
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.records.shared
    }

    pub(super) fn replicas(&self) -> &Arc<ReadReplicas> {
        &self.replicas
    }

    /// Whether a log of this run up to there is a part of this one.
    pub(super) fn has(&self, run: &str, end: Lsn) -> bool {
        self.runs.lock().has(run, end, self.log.reserved())
    }

    pub(super) fn log(&self) -> &Arc<Log> {
        &self.log
    }

    pub(super) fn disk(&self) -> Arc<dyn Disk> {
        Arc::clone(&self.disk)
    }

    pub(super) fn follows(&self) -> bool {
        self.follows.load(SeqCst)
    }

    /// What the data has of the log.
    pub(super) fn applied(&self) -> Lsn {
        if self.follows() { *self.has.lock() } else { self.log.reserved() }
    }

    /// The run and the end of the log, if another server may know it.
    pub(super) fn position(&self) -> Option<(String, Lsn)> {
        let end = self.log.reserved();
        let is_wrong = self.is_broken.load(SeqCst) || self.is_astray.load(SeqCst);
        let is_sound = !is_wrong && !self.log.has_strays();
        let runs = self.runs.lock();
        runs.at_end(end).filter(|_| is_sound).map(|run| (run.to_owned(), end))
    }

    /// What this log is, in the words of the server that it is followed from.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) fn adopt(&self, mut runs: Runs) -> io::Result<()> {
        runs.is_replica = true;
        let mut own = self.runs.lock();
        if *own != runs {
            runs.save(&*self.disk(), self.log.dir())?;
            self.replicas.set_runs(&self.records.shared, runs.clone());
            *own = runs;
        }
        Ok(())
    }

    /// What clients may do from now on.
    pub(super) fn take_role(&self, role: Role) {
        let shared = &self.records.shared;
        if shared.role.set(role) != role {
            shared.threads.iter().for_each(|thread| thread.send(Message::RoleChanged));
        }
    }

    /// Takes no records of its own any more.
    ///
    /// # Errors
    /// What the disk says; the server then writes on.
    pub(super) fn follow(&self) -> io::Result<()> {
        let mut runs = self.runs.lock().clone();
        runs.is_replica = true;
        runs.save(&*self.disk(), self.log.dir())?;
        *self.runs.lock() = runs;
        self.take_role(Role::Follows);
        self.records.keyspace.set_follower(true);
        self.await_threads();
        self.log.set_follower(true);
        *self.has.lock() = self.log.reserved();
        self.follows.store(true, SeqCst);
        Ok(())
    }

    /// Takes records of its own again, behind all that has come.
    ///
    /// # Errors
    /// The data lacks something, or what the disk says; the server then follows on.
    pub(super) fn write(&self) -> io::Result<()> {
        if self.is_broken.load(SeqCst) {
            return Err(io::Error::other("the data is not what the log says: it has to be synced"));
        }
        let mut runs = self.runs.lock().clone();
        runs.begin(self.log.reserved());
        runs.save(&*self.disk(), self.log.dir())?;
        self.replicas.set_runs(&self.records.shared, runs.clone());
        *self.runs.lock() = runs;
        {
            let _still = self.has.lock();
            self.follows.store(false, SeqCst);
        }
        self.log.set_follower(false);
        self.records.keyspace.set_follower(false);
        self.take_role(Role::Alone);
        Ok(())
    }

    /// No thread runs anything any more that was admitted before.
    fn await_threads(&self) {
        let shared = &self.records.shared;
        let barrier = shared.begin_barrier();
        let mut pause = Duration::from_micros(20);
        while !shared.is_pause_seen(barrier, usize::MAX) {
            (self.rest)(pause);
            pause = (pause * 2).min(LOOK_PAUSE_MAX);
        }
    }

    pub(super) fn receiver(&self) -> Receiver {
        let (scratch, bytes) = (Scratch::default(), Vec::new());
        Receiver { appender: self.log.appender(), scratch, bytes }
    }

    /// Whether so much waits for the disk that nothing more is to come.
    ///
    /// # Errors
    /// The log has failed.
    pub(super) fn is_full(&self) -> io::Result<bool> {
        match self.log.state().error() {
            Some(error) if !self.log.is_out_of_space() => Err(io::Error::other(error.to_string())),
            _ => Ok(self.log.backlog_bytes() > BACKLOG_BYTES_MAX),
        }
    }

    /// Takes what has come of the other server's log: whole frames are appended to this one, and
    /// their records applied. A part of a frame is left.
    ///
    /// # Errors
    /// They do not belong there. The data has to be synced anew.
    pub(super) fn take(&self, receiver: &mut Receiver) -> io::Result<()> {
        let whole = whole_frames(&receiver.bytes)?;
        if whole == 0 {
            return Ok(());
        }
        let frames = receiver.bytes.get(..whole).unwrap_or_default();
        let appended = self.log.append_frames(&mut receiver.appender, frames);
        let appended = appended.inspect_err(|_| self.is_astray.store(true, SeqCst));
        appended.map_err(io::Error::other)?;
        // Readers of what is applied wait for it to be written, and the log's own thread may be in a
        // sync. A failure is in the log's state.
        let _ = self.log.write_published();
        let mut run = self.records.run(frames);
        let mut rest = frames;
        while let Some(header) = frame_header(rest) {
            let (frame, behind) = rest.split_at(header.frame_bytes() as usize);
            rest = behind;
            let mut has = self.has.lock();
            if FrameKind::from_u8(header.kind) == Some(FrameKind::Changes) {
                let now_ms = run.advance();
                let record = &frame[FRAME_HEADER_BYTES..];
                let scratch = &mut receiver.scratch;
                let applied = match self.planted.halves_records() {
                    true => {
                        let between = || (self.rest)(Duration::ZERO);
                        self.records.apply_in_parts((header.lsn, now_ms), record, scratch, &between)
                    }
                    false => self.records.apply((header.lsn, now_ms), record, scratch),
                };
                applied.inspect_err(|_| self.is_broken.store(true, SeqCst))?;
            }
            *has = header.lsn;
        }
        receiver.bytes.drain(..whole);
        if receiver.bytes.is_empty() && receiver.bytes.capacity() > (4 << 20) {
            receiver.bytes = Vec::new();
        }
        Ok(())
    }
}

/// Bytes of the whole frames at the begin.
fn whole_frames(bytes: &[u8]) -> io::Result<usize> {
    let mut rest = bytes;
    while let Some(header) = frame_header(rest) {
        let kind = FrameKind::from_u8(header.kind);
        if kind.is_none() || kind == Some(FrameKind::Entry) {
            let text = format!("a frame of kind {} is not a plain server's", header.kind);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let Some((_, behind)) = rest.split_at_checked(header.frame_bytes() as usize) else { break };
        rest = behind;
    }
    Ok(bytes.len() - rest.len())
}

impl Applied for FollowedData {
    fn while_still(&self, save: &mut dyn FnMut(&dyn Fn() -> Lsn)) {
        let has = self.has.lock();
        match self.follows() {
            true => save(&|| *has),
            false => save(&|| self.log.reserved()),
        }
    }

    fn begin(&self) -> Lsn {
        self.applied()
    }

    /// It never begins before that.
    fn recovered(&self) -> Lsn {
        Lsn::ZERO
    }
}
