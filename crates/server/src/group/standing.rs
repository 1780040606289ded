//! Where a member stands: whether it writes, and how far its data has what the group committed.
//!
//! ```text
//!            foreign entries                 its own first entry is applied
//!  Follows ------------------ Follows  <-->  Leads       (and CutOff, while its lease is over)
//! ```
//! A leader's data runs ahead of what is committed. When another one leads, what is not in its log
//! is cut from this one's, and data that has more is not the group's: the node must read it anew.
//!
//! A witness keeps the log and applies nothing: for it, what is committed counts as applied.
//!
//! **Invariant:** records of this node come into the log only between the moment at which everything
//! that the group committed before its reign is applied here, and the moment at which another leader's
//! entry comes.

use super::planted::Planted;
use crate::checkpoint_run::Applied;
use crate::dropper::Dropper;
use crate::followed::{FollowedRecords, frame_header};
use ladon_engine::{Keyspace, Scratch};
use ladon_kernel::role::Role;
use ladon_kernel::shared::Shared;
use ladon_log::frame::{FRAME_HEADER_BYTES, FrameKind};
use ladon_log::{Log, LogBytes};
use ladon_raft::{Applier, EntryId, Extent, StoredEntry, Writers};
use ladon_record::Lsn;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
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
    records: FollowedRecords,
    rest: Rest,
    planted: Planted,
    /// It keeps the log alone: known once the node is a member.
    is_witness: AtomicBool,
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
    /// It has led, and its data ran ahead of what was committed, up to here.
    ahead: Lsn,
    /// What a round of reads waits for.
    read: Option<Read>,
    /// The data has more than the group's log: from where on, and up to where.
    diverged: Option<(Lsn, Lsn)>,
}

/// Reads that may run once the data has everything up to `position`.
struct Read {
    round: u64,
    epoch: u64,
    position: Lsn,
}

impl Standing {
    /// That of a node whose data has everything up to `has`, or of a witness. It follows.
    pub(super) fn new(
        shared: Arc<Shared>,
        (keyspace, log): (Arc<Keyspace>, Arc<Log>),
        (has, is_witness): (Lsn, bool),
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
            ahead: Lsn::ZERO,
            read: None,
            diverged: None,
        };
        let (inner, applied) = (Mutex::new(inner), AtomicU64::new(has.0));
        let recovered = has;
        let data = (Arc::clone(&shared), Arc::clone(&keyspace));
        let records = FollowedRecords { shared: data.0, keyspace: data.1, dropper };
        Arc::new(Standing {
            shared,
            keyspace,
            log,
            records,
            rest,
            planted,
            is_witness: AtomicBool::new(is_witness),
            inner,
            recovered,
            applied,
        })
    }

    /// What the node is in its group as long as it does not lead it.
    pub(super) fn role_of_follower(&self) -> Role {
        if self.is_witness() { Role::Witness } else { Role::Follows }
    }

    fn is_witness(&self) -> bool {
        self.is_witness.load(Acquire)
    }

    /// The node is a member, perhaps since now, that has data or keeps the log alone.
    pub(super) fn keeps_the_log_alone(&self, alone: bool) {
        self.is_witness.store(alone, Release);
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

    /// Lets this round of reads run once the data has everything up to there, and nothing that is not
    /// committed: in this epoch alone.
    pub(super) fn read_from(&self, round: u64, epoch: u64, position: Lsn) {
        let mut inner = self.inner.lock();
        inner.read = Some(Read { round, epoch, position });
        self.grant_reads(&mut inner);
    }

    fn grant_reads(&self, inner: &mut Inner) {
        let Some(Read { round, epoch, position }) = inner.read else { return };
        let reads = &self.shared.leader_reads;
        if reads.epoch() != epoch || inner.writes || inner.diverged.is_some() {
            inner.read = None;
        } else if inner.has >= position && self.log.committed() >= inner.ahead {
            inner.read = None;
            reads.grant(round);
        }
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
        if self.is_witness() {
            return Ok(());
        }
        let mut at = extent.from;
        while at < extent.to {
            let left = extent.to.0 - at.0;
            inner.window.resize(left.min(WINDOW_BYTES) as usize, 0);
            inner.bytes.read(at, &mut inner.window)?;
            if let Some(long) = frame_header(&inner.window)
                .map(|it| it.frame_bytes())
                .filter(|&bytes| bytes > WINDOW_BYTES)
            {
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
        let mut run = self.records.run(rest);
        while let Some(header) = frame_header(rest)
            && header.frame_bytes() <= rest.len() as u64
        {
            let (frame, behind) = rest.split_at(header.frame_bytes() as usize);
            at = header.lsn;
            rest = behind;
            if FrameKind::from_u8(header.kind) != Some(FrameKind::Changes) {
                continue;
            }
            let now_ms = run.advance();
            if at <= inner.has {
                continue;
            }
            let (record, scratch) = (&frame[FRAME_HEADER_BYTES..], &mut inner.scratch);
            match self.planted {
                Planted::HalfRecord => {
                    let between = || (self.rest)(Duration::ZERO);
                    self.records.apply_in_parts((at, now_ms), record, scratch, &between)?;
                }
                _ => self.records.apply((at, now_ms), record, scratch)?,
            }
        }
        if at == from {
            return Err(io::Error::other(format!("no frame of the log is at LSN {from}")));
        }
        Ok(at)
    }
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
        self.shared.leader_reads.begin_epoch();
        if self.shared.role.get() != Role::Outside {
            self.shared.role.set(self.role_of_follower());
        }
        self.keyspace.set_follower(true);
        self.await_threads();
        let mut inner = self.inner.lock();
        if std::mem::take(&mut inner.writes) {
            // Marks behind its last record are nobody's data.
            inner.has = inner.has.max(self.log.records_end());
            inner.ahead = inner.has;
        }
        inner.first = None;
        self.tell_applied(&inner);
    }

    fn may_begin(&self, first: EntryId) {
        // A witness has nothing to write of its own, however long it leads.
        self.inner.lock().first = Some(first).filter(|_| !self.is_witness());
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
        // Before anybody hears of it: what a follower tells of depends on that.
        self.log.advance_committed(entry.extent.to);
        if entry.extent.to > inner.has {
            if !inner.writes {
                self.follow(inner, entry.extent)?;
            }
            inner.has = entry.extent.to;
        }
        inner.last_from = Some(entry.extent.from);
        if inner.first == Some(entry.id) {
            inner.first = None;
            self.shared.leader_reads.begin_epoch();
            self.keyspace.set_follower(false);
            inner.writes = true;
        }
        self.grant_reads(inner);
        self.tell_applied(inner);
        Ok(())
    }
}
