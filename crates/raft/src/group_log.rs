//! Ladon's log as the log of a group.

use crate::entry::{Entry, Extent, Payload};
use crate::frame::{decode_entry, encode_entry};
use crate::index::Index;
use crate::planted::Planted;
use crate::state::{GroupState, MembersChange};
use crate::storage::{ExtentLog, OnDurable, StoredEntry};
use crate::types::{EntryId, Vote};
use ladon_log::frame::FrameKind;
use ladon_log::reader::Batch;
use ladon_log::{Appender, Log, LogCopy, LogState, PinGuard, PositionWaiter};
use ladon_platform::Clock;
use ladon_record::Lsn;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Who else appends to the log. Called on the group's thread.
pub trait Writers: Send + Sync + 'static {
    /// The node does not lead any more. When this returns, no other batch is open in the log and
    /// none will be until [`Writers::may_begin`].
    fn stop(&self);
    /// The node leads: its log takes records of its own again. Once the entry `first`, the first of
    /// its reign, is applied, all that the group has committed before is.
    fn may_begin(&self, first: EntryId);
    /// The log ends at `to` now. What was behind that, if anything was, is not the group's.
    fn was_cut(&self, to: Lsn);
}

/// A node's log, its place in the group's, and what a member must not forget.
pub struct GroupLog {
    log: Arc<Log>,
    clock: Arc<dyn Clock>,
    writers: Arc<dyn Writers>,
    inner: Mutex<Inner>,
    /// Changed by whoever has `inner`, and never held while anything else is waited for: threads that
    /// serve clients look into it, and [`Writers::stop`] waits for those.
    index: Mutex<Index>,
    planted: Planted,
}

struct Inner {
    appender: Appender,
    state: GroupState,
    /// What waits for the disk, in the order of positions.
    waiting: VecDeque<(Lsn, OnDurable)>,
    /// Who is told that the disk has more.
    woken: Option<Woken>,
    /// Keeps the files of the entries that are in the index.
    pin: PinGuard,
}

struct Woken {
    waiter: Arc<PositionWaiter>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Drop for GroupLog {
    fn drop(&mut self) {
        if let Some(woken) = &self.inner.lock().woken {
            self.log.remove_waiter(&woken.waiter);
        }
    }
}

/// Collects the group's entries while recovery reads the log.
#[derive(Default)]
pub struct Entries {
    found: Vec<(EntryId, Payload, Lsn)>,
}

impl Entries {
    /// The entries among these frames. One worker's batches are enough: each gets all.
    ///
    /// # Errors
    /// The position and text of one that cannot be read.
    pub fn collect(&mut self, batch: &Batch) -> Result<(), (Lsn, String)> {
        for frame in batch.frames().filter(|frame| frame.kind == FrameKind::Entry) {
            let lsn = frame.header.lsn;
            let (id, payload) =
                decode_entry(frame.payload).map_err(|error| (lsn, error.to_string()))?;
            self.found.push((id, payload, lsn));
        }
        Ok(())
    }

    /// The index of a log whose checkpoint needs it up to `newest`; zero without a checkpoint. What
    /// a checkpoint holds is committed, so the entry that covers `newest` counts as purged. What is in
    /// the log up to `begins` came before the group.
    ///
    /// # Errors
    /// A text, if the entries are not those of one log.
    pub fn into_index(self, newest: Lsn, begins: Lsn) -> Result<Index, String> {
        let mut entries = self.found.into_iter().filter(|&(_, _, end)| end > begins);
        let mut index = Index::after(None, begins);
        if newest > begins {
            let first = entries.by_ref().find(|&(_, _, end)| end >= newest);
            let (id, _, end) = first.ok_or_else(|| {
                format!(
                    "no entry of the group covers what the checkpoint needs, up to LSN {newest}"
                )
            })?;
            index = Index::after(Some(id), end);
        }
        for (id, payload, end) in entries {
            let next = index.last().map_or(0, |last| last.index + 1);
            if id.index != next || index.last() > Some(id) {
                return Err(format!("the entry {id} follows {:?}", index.last()));
            }
            index.push(id, &payload, end);
        }
        Ok(index)
    }
}

impl GroupLog {
    /// The log of a member that has just recovered.
    ///
    /// # Errors
    /// What the disk says.
    pub fn new(
        log: Arc<Log>,
        clock: Arc<dyn Clock>,
        writers: Arc<dyn Writers>,
        (index, state): (Index, GroupState),
        planted: Planted,
    ) -> io::Result<GroupLog> {
        writers.stop();
        log.set_follower(true);
        log.begin_entries().map_err(io::Error::other)?;
        let (appender, pin) = (log.appender(), log.pin(index.begin()));
        let waiting = VecDeque::new();
        let inner = Mutex::new(Inner { appender, state, waiting, woken: None, pin });
        Ok(GroupLog { log, clock, writers, inner, index: Mutex::new(index), planted })
    }

    /// The log itself.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// End of the last entry: what is behind it in the log is in none.
    pub fn end(&self) -> Lsn {
        self.index.lock().end()
    }

    /// Where the first entry that is here begins: what is in front of it is committed.
    pub fn begin(&self) -> Lsn {
        self.index.lock().begin()
    }

    /// See [`Index::lacks_begin`].
    pub fn lacks_begin(&self) -> bool {
        self.index.lock().lacks_begin()
    }

    /// End of an entry that is here.
    pub fn end_of(&self, index: u64) -> Option<Lsn> {
        self.index.lock().end_of(index)
    }

    /// The entry in which a position is, if that is here.
    pub fn covering(&self, lsn: Lsn) -> Option<EntryId> {
        self.index.lock().covering(lsn)
    }

    /// What a checkpoint holds of the group's log: the entry that covers it, which is committed, and
    /// the members as of it. `None` without a checkpoint.
    ///
    /// # Errors
    /// What the disk says.
    pub fn snapshot(&self) -> io::Result<Option<(EntryId, MembersChange)>> {
        let Some(id) = self.covers_checkpoint() else { return Ok(None) };
        Ok(self.members_at(id)?.map(|members| (id, members)))
    }

    /// Begins a copy of the newest checkpoint and the log up to the entry that covers it: what a member
    /// needs that is too far behind. Returns that entry and the members as of it, too.
    ///
    /// # Errors
    /// What the disk says; `NotFound` without a checkpoint, `Unsupported` at a witness, whose checkpoint
    /// holds no data.
    pub fn begin_copy(&self) -> io::Result<(LogCopy, EntryId, MembersChange)> {
        if self.with_state(|state| state.is_witness())
            && self.planted != Planted::WitnessSendsNothing
        {
            let text = "this member is a witness, and has no data for one that is so far behind";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let mut last = None;
        let copy = self.log.begin_copy_until(|newest| {
            let index = self.index.lock();
            last = index.covering(newest).filter(|_| newest > Lsn::ZERO);
            let end = last.and_then(|last| index.end_of(last.index));
            end.unwrap_or(newest)
        });
        let copy = copy.map_err(io::Error::other)?;
        let none = || io::Error::new(io::ErrorKind::NotFound, "there is no checkpoint to copy");
        let last = last.ok_or_else(none)?;
        let members = self.members_at(last)?.ok_or_else(none)?;
        Ok((copy, last, members))
    }

    /// Calls `wake` when there is something for [`GroupLog::serve`] to do.
    pub fn wake_with(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        let waiter = self.log.add_waiter(wake.clone());
        self.inner.lock().woken = Some(Woken { waiter, wake });
    }

    /// Asks to be woken for the first that waits.
    fn await_first(inner: &Inner) {
        if let (Some(woken), Some((lsn, _))) = (&inner.woken, inner.waiting.front())
            && woken.waiter.await_durable(*lsn)
        {
            (woken.wake)();
        }
    }

    /// What the member must not forget.
    pub fn with_state<R>(&self, look: impl FnOnce(&mut GroupState) -> R) -> R {
        look(&mut self.inner.lock().state)
    }

    /// Who belonged to the group as of the entry `applied`, and since which entry. What was noted
    /// when it was applied may be behind what the log was known to be committed to.
    ///
    /// # Errors
    /// What the disk says.
    pub fn members_at(&self, applied: EntryId) -> io::Result<Option<MembersChange>> {
        let mut inner = self.inner.lock();
        let known = self.index.lock().members_upto(applied);
        if let Some(change) = known {
            // Asked for an older entry, as that of a checkpoint, it must not forget the newer changes.
            let newest = inner.state.changes().first();
            if newest.is_none_or(|(id, _)| *id < change.0) {
                inner.state.save_change(change.clone(), self.covers_checkpoint())?;
            }
            return Ok(Some(change));
        }
        Ok(inner.state.changes().iter().find(|(id, _)| *id <= applied).cloned())
    }

    /// Notes a change of the members that was applied.
    ///
    /// # Errors
    /// What the disk says.
    pub fn save_change(&self, change: MembersChange) -> io::Result<()> {
        let mut inner = self.inner.lock();
        inner.state.save_change(change, self.covers_checkpoint())
    }

    /// The entry that covers the newest checkpoint: the members may be asked for as of that.
    fn covers_checkpoint(&self) -> Option<EntryId> {
        let newest = self.log.last_checkpoint()?.newest;
        self.index.lock().covering(newest)
    }

    /// Tells everybody whose position the disk has reached. Call it whenever the log has synced.
    pub fn serve(&self) {
        let failed = match self.log.state() {
            LogState::SyncFailed { error } => Some(error),
            // A full disk: the write is repeated, and the group goes on without this member.
            LogState::WriteFailed { .. } | LogState::Healthy => None,
        };
        let told = |waits: &mut (Lsn, OnDurable)| waits.0 <= self.log.durable() || failed.is_some();
        // Each is told without the lock: it may ask this log for more.
        while let Some((lsn, then)) = self.next_where(told) {
            match &failed {
                Some(error) if lsn > self.log.durable() => {
                    then(Err(io::Error::other(error.clone())))
                }
                _ => then(Ok(())),
            }
        }
        GroupLog::await_first(&self.inner.lock());
    }

    /// Takes the first that waits, if it is to be told.
    fn next_where(
        &self,
        told: impl FnOnce(&mut (Lsn, OnDurable)) -> bool,
    ) -> Option<(Lsn, OnDurable)> {
        self.inner.lock().waiting.pop_front_if(told)
    }

    /// What is behind the last entry was this node's own, and never an entry.
    fn follow(&self) -> io::Result<()> {
        if !self.log.is_follower() {
            self.writers.stop();
            self.log.set_follower(true);
        }
        let end = self.end();
        if self.log.reserved() > end {
            self.log.cut_after(end).map_err(io::Error::other)?;
            self.writers.was_cut(end);
        }
        Ok(())
    }
}

impl ExtentLog for GroupLog {
    fn bounds(&self) -> (Option<EntryId>, Option<EntryId>) {
        let index = self.index.lock();
        (index.purged(), index.last())
    }

    fn append_entry(&self, id: EntryId, payload: &Payload) -> io::Result<Extent> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        self.log.set_follower(false);
        let frame = encode_entry(id, payload);
        let end = inner.appender.append_entry(&frame, self.clock.unix_ms());
        inner.appender.publish();
        // If it cannot be written now, the log's writer tries again.
        let _ = self.log.write_published();
        let extent = self.index.lock().push(id, payload, end);
        if matches!(payload, Payload::Blank) {
            self.writers.may_begin(id);
        }
        Ok(extent)
    }

    fn append_frames(&self, entry: Entry) -> io::Result<Extent> {
        let mut inner = self.inner.lock();
        let appended = self.log.append_frames(&mut inner.appender, &entry.frames);
        let end = appended.map_err(io::Error::other)?;
        // As above.
        let _ = self.log.write_published();
        Ok(self.index.lock().push(entry.id, &entry.payload, end))
    }

    fn end_with_entries(&self) -> io::Result<()> {
        let _inner = self.inner.lock();
        self.follow()
    }

    fn is_repeating(&self) -> bool {
        matches!(self.log.state(), LogState::WriteFailed { .. })
    }

    fn is_written(&self, lsn: Lsn) -> bool {
        self.log.written() >= lsn
    }

    fn when_durable(&self, lsn: Lsn, then: OnDurable) {
        if self.log.durable() >= lsn || self.planted == Planted::AckBeforeSync {
            return then(Ok(()));
        }
        {
            let mut inner = self.inner.lock();
            inner.waiting.push_back((lsn, then));
            GroupLog::await_first(&inner);
        }
        self.log.want_durable(lsn);
    }

    fn truncate_after(&self, last: Option<EntryId>) -> io::Result<()> {
        let mut inner = self.inner.lock();
        self.index.lock().truncate_after(last);
        self.follow()?;
        let end = self.end();
        // Whoever waits for an entry that is gone waits for nothing.
        inner.waiting.retain(|(lsn, _)| *lsn <= end);
        Ok(())
    }

    fn purge(&self, upto: EntryId) -> io::Result<()> {
        let mut inner = self.inner.lock();
        let begin = {
            let mut index = self.index.lock();
            index.purge(upto);
            index.begin()
        };
        inner.pin = self.log.pin(begin);
        Ok(())
    }

    fn entries(&self, from: u64, until: u64) -> io::Result<Vec<StoredEntry>> {
        let index = self.index.lock();
        let last = index.last().map_or(0, |last| last.index + 1);
        let entry = |at| {
            index.entry(at).ok_or_else(|| {
                let text = format!("the entry {at} of the group is not in the log any more");
                io::Error::new(io::ErrorKind::NotFound, text)
            })
        };
        (from..until.min(last)).map(entry).collect()
    }

    fn end_before_vote(&self) -> Lsn {
        self.end()
    }

    fn save_vote(&self, vote: &Vote) -> io::Result<()> {
        match self.planted {
            Planted::VoteNotSaved => Ok(()),
            _ => self.inner.lock().state.save_vote(*vote),
        }
    }

    fn vote(&self) -> io::Result<Option<Vote>> {
        Ok(self.inner.lock().state.vote())
    }

    fn save_committed(&self, committed: Option<EntryId>) -> io::Result<()> {
        let mut inner = self.inner.lock();
        let Some(id) = committed else { return Ok(()) };
        let entry = self.index.lock().entry(id.index);
        match entry {
            Some(entry) if entry.id == id => inner.state.save_committed(id, entry.extent.to),
            // Committed, but not here yet; or purged, and so known to be committed anyway.
            _ => Ok(()),
        }
    }

    fn committed(&self) -> io::Result<Option<EntryId>> {
        let noted = self.inner.lock().state.committed().map(|(id, _)| id);
        let index = self.index.lock();
        // What a power cut took back is not here.
        Ok(noted.filter(|id| index.id(id.index) == Some(*id)).max(index.purged()))
    }
}
