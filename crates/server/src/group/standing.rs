//! Where a member stands: whether it writes, and how far its data has what the group committed.
//!
//! ```text
//!            foreign entries                 its own first entry is applied
//!  Follows ------------------ Follows  <-->  Leads       (and CutOff, while its lease is over)
//! ```
//! A leader's data runs ahead of what is committed. When another one leads, what is not in its log
//! is cut from this one's, and data that has more is not the group's: the node must read it anew.
//!
//! **Invariant:** records of this node come into the log only between the moment at which everything
//! that the group committed before its reign is applied here, and the moment at which another leader's
//! entry comes.

use super::planted::Planted;
use crate::checkpoint_run::Applied;
use crate::dropper::Dropper;
use ladon_engine::{ApplyError, Followed, Keyspace, Scratch};
use ladon_kernel::message::Message;
use ladon_kernel::role::Role;
use ladon_kernel::shared::Shared;
use ladon_log::frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use ladon_log::{Log, LogBytes};
use ladon_raft::{Applier, EntryId, Extent, StoredEntry, Writers};
use ladon_record::{Changes, Lsn};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

/// Bytes of an entry that are read at once, unless a record is longer.
const WINDOW_BYTES: u64 = 1 << 20;

/// The longest pause between two looks whether the threads have ended what they ran.
const LOOK_PAUSE_MAX: Duration = Duration::from_millis(1);

/// In place of a position: the node writes, and has whatever is committed.
const WRITES: u64 = u64::MAX;

/// Lets the other threads of the node go on for so long.
pub type Rest = Box<dyn Fn(Duration) + Send + Sync>;

/// A member's data and role.
pub struct Standing {
    shared: Arc<Shared>,
    keyspace: Arc<Keyspace>,
    log: Arc<Log>,
    /// Frees large values: this thread has to be heard of. `None`: they are freed at once.
    dropper: Option<Dropper>,
    rest: Rest,
    planted: Planted,
    inner: Mutex<Inner>,
    /// Up to where the data was recovered.
    recovered: Lsn,
    /// LSN up to which the data has everything, or [`WRITES`].
    applied: AtomicU64,
}

struct Inner {
    bytes: LogBytes,
    scratch: Scratch,
    window: Vec<u8>,
    /// The data has everything up to here. While the node leads, it has everything.
    has: Lsn,
    /// Where the last entry begins that was applied.
    last_from: Option<Lsn>,
    /// The first entry of its own reign, which is not applied yet.
    first: Option<EntryId>,
    /// The node leads, and writes.
    writes: bool,
    /// The data has more than the group's log: from where on, and up to where.
    diverged: Option<(Lsn, Lsn)>,
}

impl Standing {
    /// That of a node whose data has everything up to `has`. It follows.
    pub(super) fn new(
        shared: Arc<Shared>,
        (keyspace, log): (Arc<Keyspace>, Arc<Log>),
        has: Lsn,
        (dropper, rest): (Option<Dropper>, Rest),
        planted: Planted,
    ) -> Arc<Standing> {
        let inner = Inner {
            bytes: LogBytes::new(Arc::clone(&log)),
            scratch: Scratch::default(),
            window: Vec::new(),
            has,
            last_from: None,
            first: None,
            writes: false,
            diverged: None,
        };
        let (inner, applied) = (Mutex::new(inner), AtomicU64::new(has.0));
        let recovered = has;
        Arc::new(Standing {
            shared,
            keyspace,
            log,
            dropper,
            rest,
            planted,
            inner,
            recovered,
            applied,
        })
    }

    /// Whether the node leads and has everything that the group committed before.
    pub fn writes(&self) -> bool {
        self.inner.lock().writes
    }

    /// From where to where the data has what the group has not.
    pub fn diverged(&self) -> Option<(Lsn, Lsn)> {
        let inner = self.inner.lock();
        let end = || self.log.reserved();
        inner.diverged.or_else(|| self.log.has_strays().then(|| (end(), end())))
    }

    /// The data has everything up to here, all of which is committed. Threads that serve clients ask,
    /// perhaps in a transaction: whoever applies waits for those, so this waits for nobody.
    pub fn applied(&self) -> Lsn {
        match self.applied.load(Acquire) {
            WRITES => self.log.committed(),
            has => Lsn(has),
        }
    }

    /// For [`Standing::applied`].
    fn tell_applied(&self, inner: &Inner) {
        self.applied.store(if inner.writes { WRITES } else { inner.has.0 }, Release);
    }

    /// No thread runs anything any more that was admitted while the node led.
    fn await_threads(&self) {
        let barrier = self.shared.begin_barrier();
        let mut pause = Duration::from_micros(20);
        while !self.shared.is_pause_seen(barrier, usize::MAX) {
            (self.rest)(pause);
            pause = (pause * 2).min(LOOK_PAUSE_MAX);
        }
    }

    /// Applies what recovery has left out because nothing told that it is committed, up to `end`,
    /// which is the end of an entry.
    ///
    /// # Errors
    /// As [`Applier::apply`].
    pub(crate) fn catch_up(&self, end: Lsn) -> io::Result<()> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        if inner.has < end {
            self.follow(inner, Extent { from: inner.has, to: end })?;
            inner.has = end;
            self.tell_applied(inner);
        }
        Ok(())
    }

    fn follow(&self, inner: &mut Inner, extent: Extent) -> io::Result<()> {
        let mut at = extent.from;
        while at < extent.to {
            let left = extent.to.0 - at.0;
            inner.window.resize(left.min(WINDOW_BYTES) as usize, 0);
            inner.bytes.read(at, &mut inner.window)?;
            if let Some(long) = frame_bytes(&inner.window).filter(|&bytes| bytes > WINDOW_BYTES) {
                inner.window.resize(long as usize, 0);
                inner.bytes.read(at, &mut inner.window)?;
            }
            at = self.follow_window(inner, at)?;
        }
        if inner.window.capacity() as u64 > WINDOW_BYTES {
            inner.window = Vec::new();
        }
        Ok(())
    }

    /// Applies the whole frames of the window; returns where the next one begins.
    fn follow_window(&self, inner: &mut Inner, from: Lsn) -> io::Result<Lsn> {
        let (mut at, mut rest) = (from, &inner.window[..]);
        while let Some(bytes) = frame_bytes(rest).filter(|&bytes| bytes <= rest.len() as u64) {
            let (frame, behind) = rest.split_at(bytes as usize);
            let header = FrameHeader::decode(&frame_head(frame));
            at = header.lsn;
            rest = behind;
            if FrameKind::from_u8(header.kind) != Some(FrameKind::Changes) || at <= inner.has {
                continue;
            }
            let (record, now_ms) = (&frame[FRAME_HEADER_BYTES..], self.shared.clock.unix_ms());
            let followed = match self.planted {
                Planted::HalfRecord => self.follow_in_parts(at, record, &mut inner.scratch, now_ms),
                _ => self.keyspace.follow(at, record, &mut inner.scratch, now_ms),
            };
            let failed = |error| io::Error::other(format!("the record at LSN {at}: {error}"));
            if followed.map_err(failed)?.defines {
                ladon_tarantool::schema_changed(&self.shared, &self.keyspace, at);
            }
            self.hand_over(&mut inner.scratch);
        }
        if at == from {
            return Err(io::Error::other(format!("no frame of the log is at LSN {from}")));
        }
        Ok(at)
    }

    /// See [`Planted::HalfRecord`].
    fn follow_in_parts(
        &self,
        at: Lsn,
        record: &[u8],
        scratch: &mut Scratch,
        now_ms: u64,
    ) -> Result<Followed, ApplyError> {
        let mut followed = Followed { defines: false };
        let (mut changes, mut rest) = (Changes::new(record), record);
        while changes.next().is_some() {
            let part = &rest[..rest.len() - changes.rest().len()];
            rest = changes.rest();
            followed.defines |= self.keyspace.follow(at, part, scratch, now_ms)?.defines;
            (self.rest)(Duration::ZERO);
        }
        Ok(followed)
    }

    /// What a record left to do.
    fn hand_over(&self, scratch: &mut Scratch) {
        let counters = std::mem::take(&mut scratch.counters);
        self.keyspace.add_used_bytes(counters.bytes_delta);
        if !scratch.garbage.is_empty() {
            let garbage = std::mem::take(&mut scratch.garbage);
            if let Some(dropper) = &self.dropper {
                dropper.drop_later(garbage);
            }
        }
        if !scratch.ready.is_empty() {
            let ready = std::mem::take(&mut scratch.ready);
            if let Some(thread) = self.shared.threads.first() {
                thread.send(Message::Ready(ready));
            }
        }
    }
}

fn frame_head(frame: &[u8]) -> [u8; FRAME_HEADER_BYTES] {
    std::array::from_fn(|at| frame[at])
}

/// Bytes of the frame at the begin, if its header is there.
fn frame_bytes(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|head| FrameHeader::decode(head).frame_bytes())
}

impl Applied for Standing {
    fn while_still(&self, save: &mut dyn FnMut(&dyn Fn() -> Lsn)) {
        let inner = self.inner.lock();
        match inner.writes {
            true => save(&|| inner.has.max(self.log.records_end())),
            false => save(&|| inner.has),
        }
    }

    fn begin(&self) -> Lsn {
        let last = self.inner.lock().last_from;
        // Else that of the checkpoint before, which covers all that the data has.
        let before = || self.log.last_checkpoint().map_or(Lsn::ZERO, |info| info.begin);
        last.unwrap_or_else(before)
    }

    fn recovered(&self) -> Lsn {
        self.recovered
    }
}

impl Writers for Standing {
    fn stop(&self) {
        if self.shared.role.get() != Role::Outside {
            self.shared.role.set(Role::Follows);
        }
        self.keyspace.set_follower(true);
        self.await_threads();
        let mut inner = self.inner.lock();
        if std::mem::take(&mut inner.writes) {
            // Marks behind its last record are nobody's data.
            inner.has = inner.has.max(self.log.records_end());
        }
        inner.first = None;
        self.tell_applied(&inner);
    }

    fn may_begin(&self, first: EntryId) {
        self.inner.lock().first = Some(first);
    }

    fn was_cut(&self, to: Lsn) {
        let mut inner = self.inner.lock();
        if self.planted == Planted::RewindSkipped {
            inner.has = inner.has.min(to);
        }
        if inner.has > to {
            inner.diverged = Some((to, inner.has));
        }
        self.tell_applied(&inner);
    }
}

impl Applier for Standing {
    fn apply(&self, entry: &StoredEntry) -> io::Result<()> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        if inner.diverged.is_some() || self.log.has_strays() {
            return Err(io::Error::other("the data has what the group's log has not"));
        }
        if entry.extent.to > inner.has {
            if !inner.writes {
                self.follow(inner, entry.extent)?;
            }
            inner.has = entry.extent.to;
        }
        inner.last_from = Some(entry.extent.from);
        self.log.advance_committed(entry.extent.to);
        if inner.first == Some(entry.id) {
            inner.first = None;
            self.keyspace.set_follower(false);
            inner.writes = true;
        }
        self.tell_applied(inner);
        Ok(())
    }
}
