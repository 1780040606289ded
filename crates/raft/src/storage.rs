//! What openraft asks of a log, answered from extents of Ladon's.

use crate::entry::{Entry, Extent, Payload};
use crate::types::{EntryId, Group, Vote};
use ladon_record::Lsn;
use openraft::async_runtime::{Oneshot as _, OneshotSender as _};
use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::{AsyncRuntime, OptionalSend, RaftLogReader};
use std::fmt::Debug;
use std::io::{self, ErrorKind};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::time::Duration;

/// How long to wait before looking again whether an entry is in the file.
const WRITTEN_PAUSE_MIN: Duration = Duration::from_micros(50);
const WRITTEN_PAUSE_MAX: Duration = Duration::from_millis(10);
/// The pause between two tries at a full disk.
const FULL_PAUSE: Duration = Duration::from_millis(50);

/// An entry that is in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEntry {
    /// Term and index.
    pub id: EntryId,
    /// What its frame says.
    pub payload: Payload,
    /// Where it is.
    pub extent: Extent,
}

/// Called once what it waits for is on the disk, or will never be.
pub type OnDurable = Box<dyn FnOnce(io::Result<()>) + Send>;

/// The log as a group needs it. All methods are called on the group's thread.
pub trait ExtentLog: Send + Sync + 'static {
    /// The first entry that has been purged up to, and the last one that is there.
    fn bounds(&self) -> (Option<EntryId>, Option<EntryId>);
    /// Appends a leader's entry: everything appended so far, and not in an earlier entry, is in it.
    fn append_entry(&self, id: EntryId, payload: &Payload) -> io::Result<Extent>;
    /// Appends a follower's entry: foreign bytes, which continue the log exactly at its end. Call
    /// [`ExtentLog::end_with_entries`] right before.
    fn append_frames(&self, entry: Entry) -> io::Result<Extent>;
    /// Makes the end of the last entry the end of the log: what is behind it was never an entry.
    /// May be repeated.
    fn end_with_entries(&self) -> io::Result<()>;
    /// Whether the disk refuses writes now, as a full one does, and the log repeats them.
    fn is_repeating(&self) -> bool;
    /// Whether the log's file has everything up to `lsn`.
    fn is_written(&self, lsn: Lsn) -> bool;
    /// Calls `then` when everything up to `lsn` is on the disk.
    fn when_durable(&self, lsn: Lsn, then: OnDurable);
    /// Removes all entries behind `last`.
    fn truncate_after(&self, last: Option<EntryId>) -> io::Result<()>;
    /// Entries up to here are not needed by the group any more.
    fn purge(&self, upto: EntryId) -> io::Result<()>;
    /// All entries whose index is in the range and that are there, in order.
    fn entries(&self, from: u64, until: u64) -> io::Result<Vec<StoredEntry>>;
    /// What has to be on the disk before a vote is: all entries.
    fn end_before_vote(&self) -> Lsn;
    /// The vote is on the disk when this returns.
    fn save_vote(&self, vote: &Vote) -> io::Result<()>;
    /// The last saved vote.
    fn vote(&self) -> io::Result<Option<Vote>>;
    /// Notes how far the log is committed.
    fn save_committed(&self, committed: Option<EntryId>) -> io::Result<()>;
    /// What was noted.
    fn committed(&self) -> io::Result<Option<EntryId>>;
}

/// openraft's storage, over a log.
pub struct Storage<L>(Arc<L>);

impl<L> Storage<L> {
    /// A storage; the log may be used by others too.
    pub fn new(log: Arc<L>) -> Storage<L> {
        Storage(log)
    }
}

/// Waits until an entry can be read from the log's file. Batches of other threads that were open
/// when it was appended end within a fraction of a millisecond; a full disk takes as long as it
/// takes, and the group elects another leader meanwhile.
pub(crate) async fn wait_until_written<RT: AsyncRuntime>(log: &impl ExtentLog, end: Lsn) {
    let mut pause = WRITTEN_PAUSE_MIN;
    while !log.is_written(end) {
        RT::sleep(pause).await;
        pause = (pause * 2).min(WRITTEN_PAUSE_MAX);
    }
}

/// Does what a full disk may refuse, again and again as long as it is full: an error would end the
/// member's part for good. Meanwhile it answers nobody, as one that is dead.
pub(crate) async fn repeat<RT: AsyncRuntime>(
    log: &impl ExtentLog,
    what: impl Fn() -> io::Result<()>,
) -> io::Result<()> {
    loop {
        match what() {
            Err(error) if log.is_repeating() || error.kind() == ErrorKind::StorageFull => {
                RT::sleep(FULL_PAUSE).await;
            }
            done => return done,
        }
    }
}

/// Waits until everything up to `end` is on the disk.
async fn wait_until_durable<RT: AsyncRuntime>(log: &impl ExtentLog, end: Lsn) -> io::Result<()> {
    let (sender, receiver) = RT::Oneshot::channel();
    log.when_durable(
        end,
        Box::new(move |result| {
            // Nobody waits for it any more.
            let _ = sender.send(result);
        }),
    );
    receiver.await.map_err(|error| io::Error::other(error.to_string()))?
}

impl<L> Clone for Storage<L> {
    fn clone(&self) -> Self {
        Storage(self.0.clone())
    }
}

impl<RT: AsyncRuntime, L: ExtentLog> RaftLogReader<Group<RT>> for Storage<L> {
    async fn try_get_log_entries<R>(&mut self, range: R) -> Result<Vec<Entry>, io::Error>
    where
        R: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let from = match range.start_bound() {
            Bound::Included(&index) => index,
            Bound::Excluded(&index) => index + 1,
            Bound::Unbounded => 0,
        };
        let until = match range.end_bound() {
            Bound::Included(&index) => index + 1,
            Bound::Excluded(&index) => index,
            Bound::Unbounded => u64::MAX,
        };
        let entries = self.0.entries(from, until)?;
        let entry = |stored: StoredEntry| Entry {
            id: stored.id,
            payload: stored.payload,
            extent: Some(stored.extent),
            frames: bytes::Bytes::new(),
        };
        Ok(entries.into_iter().map(entry).collect())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        self.0.vote()
    }
}

impl<RT: AsyncRuntime, L: ExtentLog> RaftLogStorage<Group<RT>> for Storage<L> {
    type LogReader = Storage<L>;

    async fn get_log_state(&mut self) -> Result<LogState<Group<RT>>, io::Error> {
        let (last_purged_log_id, last_log_id) = self.0.bounds();
        Ok(LogState { last_purged_log_id, last_log_id })
    }

    async fn get_log_reader(&mut self) -> Storage<L> {
        self.clone()
    }

    /// openraft takes a vote that is on the disk for a sign that all of the log in front of it is,
    /// and answers a leader so (its `io_ordering.md`, `log_io_progress.md`).
    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        wait_until_durable::<RT>(&*self.0, self.0.end_before_vote()).await?;
        repeat::<RT>(&*self.0, || self.0.save_vote(vote)).await
    }

    async fn save_committed(&mut self, committed: Option<EntryId>) -> Result<(), io::Error> {
        match self.0.save_committed(committed) {
            // What was noted before is true as well.
            Err(error) if error.kind() == ErrorKind::StorageFull => Ok(()),
            done => done,
        }
    }

    async fn read_committed(&mut self) -> Result<Option<EntryId>, io::Error> {
        self.0.committed()
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Group<RT>>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut end = None;
        let mut is_own = false;
        for entry in entries {
            is_own = entry.extent.is_none();
            let extent = match entry.extent {
                None => self.0.append_entry(entry.id, &entry.payload)?,
                Some(_) => {
                    repeat::<RT>(&*self.0, || self.0.end_with_entries()).await?;
                    self.0.append_frames(entry)?
                }
            };
            end = Some(extent.to);
        }
        if let Some(end) = end.filter(|_| is_own) {
            // It is read from there when it is sent.
            wait_until_written::<RT>(&*self.0, end).await;
        }
        match end {
            Some(end) => {
                self.0.when_durable(end, Box::new(move |result| callback.io_completed(result)));
            }
            None => callback.io_completed(Ok(())),
        }
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<EntryId>) -> Result<(), io::Error> {
        repeat::<RT>(&*self.0, || self.0.truncate_after(last)).await
    }

    async fn purge(&mut self, upto: EntryId) -> Result<(), io::Error> {
        self.0.purge(upto)
    }
}
