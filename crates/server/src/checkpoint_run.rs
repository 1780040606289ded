//! A checkpoint in progress: segment by segment, at the pace of its caller.

use ladon_engine::{Keyspace, SaveCursor, SavedBytes};
use ladon_log::{BlockHeader, CheckpointInfo, CheckpointWriter, Log, LogError};
use ladon_record::Lsn;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

/// A checkpoint in progress.
pub struct CheckpointRun {
    keyspace: Arc<Keyspace>,
    log: Arc<Log>,
    writer: CheckpointWriter,
    cursor: SaveCursor,
    buffer: SavedBytes,
    keys: u64,
}

impl CheckpointRun {
    /// Begins a checkpoint at the log's present end.
    ///
    /// # Errors
    /// The log's errors.
    pub fn begin(keyspace: &Arc<Keyspace>, log: &Arc<Log>) -> Result<CheckpointRun, LogError> {
        Ok(CheckpointRun {
            keyspace: Arc::clone(keyspace),
            log: Arc::clone(log),
            writer: log.begin_checkpoint()?,
            cursor: SaveCursor::default(),
            buffer: SavedBytes::default(),
            keys: 0,
        })
    }

    /// Saves one segment. Returns whether there may be more.
    ///
    /// # Errors
    /// The log's errors; the checkpoint is then lost.
    pub fn step(&mut self) -> Result<bool, LogError> {
        let CheckpointRun { keyspace, log, writer, cursor, buffer, keys } = self;
        let begin = writer.begin_lsn();
        let header = encode(keyspace, log, (cursor, begin), buffer, keys)?;
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
                match encode(keyspace, log, (&mut *cursor, begin), &mut segment, keys) {
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

    /// Completes the checkpoint and deletes the files that it makes obsolete, except
    /// `log_keep_bytes` of log before it.
    ///
    /// # Errors
    /// The log's errors; the checkpoint is then lost.
    pub fn finish(self, log_keep_bytes: u64) -> Result<CheckpointInfo, LogError> {
        let log = &self.log;
        let (lsn, meta) = self.keyspace.encode_select_map(|| log.reserved());
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
    log: &Log,
    (cursor, begin): (&mut SaveCursor, Lsn),
    buffer: &mut SavedBytes,
    keys: &mut u64,
) -> Result<Option<BlockHeader>, LogError> {
    const KEPT_BYTES_MAX: usize = 4 << 20;
    buffer.clear(KEPT_BYTES_MAX);
    let Some(block) = keyspace.save_next(cursor, begin, || log.reserved(), buffer) else {
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
