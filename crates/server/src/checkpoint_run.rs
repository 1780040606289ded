//! A checkpoint in progress: segment by segment, at the pace of its caller.

use ladon_engine::{Keyspace, SaveCursor, SavedBytes};
use ladon_log::{BlockHeader, CheckpointInfo, CheckpointWriter, Log, LogError};
use ladon_record::Lsn;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// Up to where the data has the log, at a node that follows others.
pub trait Applied: Send + Sync {
    /// Runs `save` while no record of another node is applied. It gets what tells the position that the
    /// data is at: the end of a record, also where the node writes itself. What the node only marks in
    /// its log, another leader may put an entry in the place of, and a start would look in vain for a
    /// frame that begins there.
    fn while_still(&self, save: &mut dyn FnMut(&dyn Fn() -> Lsn));

    /// Where a checkpoint begins that is made now: in front of the last entry that the data has. A start
    /// reads what is behind, and has to find an entry there that covers the checkpoint, even if nothing
    /// comes after.
    fn begin(&self) -> Lsn;

    /// Up to where the data was recovered when the node started.
    fn recovered(&self) -> Lsn;
}

/// How long a checkpoint waits until its cluster has committed what is in it.
const COMMIT_WAIT_MAX: Duration = Duration::from_secs(30);

/// A checkpoint in progress.
pub struct CheckpointRun {
    keyspace: Arc<Keyspace>,
    log: Arc<Log>,
    writer: CheckpointWriter,
    cursor: SaveCursor,
    buffer: SavedBytes,
    keys: u64,
    applied: Option<Arc<dyn Applied>>,
    /// What is about all of the data, and as of which position, once all segments are saved.
    meta: Option<(Lsn, Vec<u8>)>,
    /// Testing only: a bug that the simulator must notice. What is saved need not be committed.
    pub ahead_canary: bool,
}

impl CheckpointRun {
    /// Begins a checkpoint at the log's present end.
    ///
    /// # Errors
    /// The log's errors.
    pub fn begin(keyspace: &Arc<Keyspace>, log: &Arc<Log>) -> Result<CheckpointRun, LogError> {
        CheckpointRun::begin_at(keyspace, log, None)
    }

    /// As `begin`, at the position of the data of a node that may follow others.
    ///
    /// # Errors
    /// The log's errors.
    pub fn begin_at(
        keyspace: &Arc<Keyspace>,
        log: &Arc<Log>,
        applied: Option<Arc<dyn Applied>>,
    ) -> Result<CheckpointRun, LogError> {
        let begin = applied.as_ref().map_or_else(|| log.reserved(), |applied| applied.begin());
        let is_before_start = applied.as_ref().is_some_and(|applied| begin < applied.recovered());
        let cursor = SaveCursor::default();
        let cursor = if is_before_start { cursor.with_empty_partitions() } else { cursor };
        Ok(CheckpointRun {
            applied,
            meta: None,
            ahead_canary: false,
            keyspace: Arc::clone(keyspace),
            log: Arc::clone(log),
            writer: log.begin_checkpoint_at(begin)?,
            cursor,
            buffer: SavedBytes::default(),
            keys: 0,
        })
    }

    /// Saves one segment. Returns whether there may be more.
    ///
    /// # Errors
    /// The log's errors; the checkpoint is then lost.
    pub fn step(&mut self) -> Result<bool, LogError> {
        let CheckpointRun { keyspace, log, writer, cursor, buffer, keys, applied, .. } = self;
        let begin = writer.begin_lsn();
        let header = at_position(applied.as_deref(), log, |position| {
            encode(keyspace, position, (cursor, begin), buffer, keys)
        })?;
        header.map_or(Ok(false), |header| write(writer, &header, buffer).map(|()| true))
    }

    /// Saves all segments, with a thread of its own for the disk: for data that nobody uses
    /// meanwhile. Calls `tell` with the progress now and then.
    ///
    /// # Errors
    /// The log's errors; the checkpoint is then lost.
    pub fn run_with_thread(mut self, tell: &mut dyn FnMut(f64)) -> Result<CheckpointRun, LogError> {
        /// Segments between two reports.
        const TELL_EVERY: usize = 256;
        let CheckpointRun { keyspace, log, writer, cursor, keys, .. } = &mut self;
        let position = || log.reserved();
        let begin = writer.begin_lsn();
        let to_disk = SegmentQueue { bytes: Mutex::new(Some(0)), changed: Condvar::new() };
        let (sender, segments) = channel::<(BlockHeader, SavedBytes)>();
        thread::scope(|threads| {
            let to_disk = &to_disk;
            let writing = threads.spawn(move || -> Result<(), LogError> {
                for (header, segment) in segments {
                    let written = write(writer, &header, &segment);
                    to_disk.written(segment.in_memory(), written.is_err());
                    written?;
                }
                Ok(())
            });
            let mut encoded = Ok(());
            for number in 0.. {
                let mut segment = SavedBytes::default();
                match encode(keyspace, &position, (&mut *cursor, begin), &mut segment, keys) {
                    Ok(Some(header)) => {
                        to_disk.add(segment.in_memory());
                        if sender.send((header, segment)).is_err() || !to_disk.await_room() {
                            break;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        encoded = Err(error);
                        break;
                    }
                }
                if number % TELL_EVERY == 0 {
                    tell(cursor.progress(keyspace.databases()));
                }
            }
            drop(sender);
            let written = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            written.and(encoded)
        })?;
        Ok(self)
    }

    /// Whether a checkpoint whose segments are all saved may be finished: that of a cluster's node
    /// holds nothing that another leader might take back. If not, the cluster is asked to commit it.
    pub fn is_committed(&mut self) -> bool {
        let lsn = self.meta().0;
        let (log, newest) = (&self.log, self.writer.newest().max(lsn));
        if !log.is_of_group() || log.committed() >= newest || self.ahead_canary {
            return true;
        }
        log.want_committed(newest);
        false
    }

    fn meta(&mut self) -> &(Lsn, Vec<u8>) {
        let (keyspace, log, applied) = (&self.keyspace, &self.log, &self.applied);
        self.meta.get_or_insert_with(|| {
            at_position(applied.as_deref(), log, |position| keyspace.encode_select_map(position))
        })
    }

    /// Completes the checkpoint, once it may be, and deletes the files that it makes obsolete, except
    /// `log_keep_bytes` of log before it.
    ///
    /// # Errors
    /// The log's errors; the checkpoint is then lost.
    pub fn finish(mut self, log_keep_bytes: u64) -> Result<CheckpointInfo, LogError> {
        const LOOK_EVERY: Duration = Duration::from_millis(5);
        let began = Instant::now();
        while !self.is_committed() {
            if began.elapsed() >= COMMIT_WAIT_MAX {
                return Err(LogError::GivenUp("the cluster has not committed what is in it"));
            }
            thread::sleep(LOOK_EVERY);
        }
        let (lsn, meta) = self.meta().clone();
        let info = self.writer.finish(lsn, &meta)?;
        let _kept = self.log.pin(Lsn(info.begin.0.saturating_sub(log_keep_bytes)));
        if let Err(error) = self.log.delete_obsolete() {
            tracing::warn!("cannot delete obsolete log files: {error}");
        }
        Ok(info)
    }

    /// Keys saved so far.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Progress, from 0 to 1.
    pub fn progress(&self) -> f64 {
        self.cursor.progress(self.keyspace.databases())
    }
}

/// Runs `save` with the position of the data, as of the moment at which it asks.
fn at_position<R>(
    applied: Option<&dyn Applied>,
    log: &Log,
    save: impl FnOnce(&dyn Fn() -> Lsn) -> R,
) -> R {
    let Some(applied) = applied else { return save(&|| log.reserved()) };
    let (mut save, mut saved) = (Some(save), None);
    applied.while_still(&mut |position| {
        if let Some(save) = save.take() {
            saved = Some(save(position));
        }
    });
    match saved {
        Some(saved) => saved,
        None => unreachable!("it is run once"),
    }
}

/// Bytes of encoded segments that wait for the disk. A large one is written before the next is
/// encoded, so that it is in memory once.
struct SegmentQueue {
    /// `None` once a write has failed.
    bytes: Mutex<Option<usize>>,
    changed: Condvar,
}

impl SegmentQueue {
    const BYTES_MAX: usize = 8 << 20;

    fn add(&self, bytes: usize) {
        if let Some(waiting) = &mut *self.bytes.lock() {
            *waiting += bytes;
        }
    }

    fn written(&self, bytes: usize, has_failed: bool) {
        let mut waiting = self.bytes.lock();
        *waiting = waiting.filter(|_| !has_failed).map(|waiting| waiting - bytes);
        self.changed.notify_all();
    }

    /// Returns whether another segment is wanted.
    fn await_room(&self) -> bool {
        let mut waiting = self.bytes.lock();
        while waiting.is_some_and(|waiting| waiting > SegmentQueue::BYTES_MAX) {
            self.changed.wait(&mut waiting);
        }
        waiting.is_some()
    }
}

fn write(
    writer: &mut CheckpointWriter,
    header: &BlockHeader,
    segment: &SavedBytes,
) -> Result<(), LogError> {
    match segment.in_memory() as u64 == segment.len() {
        true => writer.block(header, segment.changes()),
        false => writer.block_in_pieces(header, segment.len(), |take| segment.for_each_piece(take)),
    }
}

/// Encodes the next segment into a buffer, if there is one, and counts its keys.
fn encode(
    keyspace: &Keyspace,
    position: &dyn Fn() -> Lsn,
    (cursor, begin): (&mut SaveCursor, Lsn),
    buffer: &mut SavedBytes,
    keys: &mut u64,
) -> Result<Option<BlockHeader>, LogError> {
    const KEPT_BYTES_MAX: usize = 4 << 20;
    buffer.clear(KEPT_BYTES_MAX);
    let Some(block) = keyspace.save_next(cursor, begin, position, buffer) else {
        if cursor.has_given_up() {
            return Err(LogError::GivenUp("definitions of spaces changed all the time"));
        }
        return Ok(None);
    };
    *keys += u64::from(block.keys);
    Ok(Some(BlockHeader {
        db: block.db,
        hash_first: block.hash_first,
        hash_last: block.hash_last,
        lsn: block.lsn,
        keys: u64::from(block.keys),
    }))
}
