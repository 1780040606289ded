//! Writes a checkpoint.

use super::CheckpointInfo;
use super::format::{
    BlockHeader, CheckpointHeader, PART_HEADER_BYTES, PartHeader, PartKind, checkpoint_path,
    checkpoint_temporary_path,
};
use crate::crc::{crc32c, crc32c_of_both};
use crate::log::Log;
use crate::state::LogError;
use ladon_platform::DiskFile;
use ladon_record::Lsn;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Small blocks are collected into writes of about this size.
const WRITE_BYTES: usize = 1 << 20;

/// Syncs after this many bytes, so that one large sync at the end does not delay the log's own
/// syncs.
const SYNC_EVERY_BYTES: u64 = 16 << 20;

/// A checkpoint being written, from [`Log::begin_checkpoint`]. Dropping it without
/// [`CheckpointWriter::finish`] removes the file.
pub struct CheckpointWriter {
    log: Arc<Log>,
    file: Option<Box<dyn DiskFile>>,
    temporary: PathBuf,
    info: CheckpointInfo,
    payload_bytes: u64,
    buffer: Vec<u8>,
    /// The file's length without the buffer.
    written: u64,
    synced: u64,
    /// Keeps the log from `begin` on while this checkpoint is written.
    _pin: crate::obsolete::PinGuard,
}

impl Log {
    /// Begins a checkpoint at the log's reserved end. Save every block after this call.
    ///
    /// # Errors
    /// [`LogError::Checkpoint`] if the file cannot be created; the log's own error if the log has
    /// failed.
    pub fn begin_checkpoint(self: &Arc<Self>) -> Result<CheckpointWriter, LogError> {
        self.begin_checkpoint_at(self.reserved())
    }

    /// As [`Log::begin_checkpoint`], at `begin`: what the data to be saved has everything up to.
    ///
    /// # Errors
    /// As [`Log::begin_checkpoint`].
    pub fn begin_checkpoint_at(self: &Arc<Self>, begin: Lsn) -> Result<CheckpointWriter, LogError> {
        // On a full disk, a checkpoint is the way to free space.
        if let Some(error) = self.state().error().filter(|error| !error.is_out_of_space()) {
            return Err(error.clone());
        }
        self.look_for_files()?;
        let pin = self.pin(begin);
        let temporary = checkpoint_temporary_path(&self.place.dir, begin);
        let created_ms = self.place.clock.unix_ms();
        let file = self.place.disk.create_empty(&temporary);
        let file = file.map_err(|error| failed(&temporary, error))?;
        let header = CheckpointHeader {
            node: self.place.node,
            dir_id: self.place.dir_id,
            begin,
            created_ms,
        };
        let info = CheckpointInfo {
            path: checkpoint_path(&self.place.dir, begin),
            begin,
            newest: begin,
            keys: 0,
            blocks: 0,
            bytes: 0,
            created_ms,
        };
        Ok(CheckpointWriter {
            log: self.clone(),
            file: Some(file),
            temporary,
            info,
            payload_bytes: 0,
            buffer: header.encode().to_vec(),
            written: 0,
            synced: 0,
            _pin: pin,
        })
    }
}

impl CheckpointWriter {
    /// Where replay will begin.
    pub fn begin_lsn(&self) -> Lsn {
        self.info.begin
    }

    /// The newest position of a block so far.
    pub fn newest(&self) -> Lsn {
        self.info.newest
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Keys so far.
    pub fn keys(&self) -> u64 {
        self.info.keys
    }

    /// Adds one block: `changes` are the encoded `Put`s of the keys in its range, or a piece of one
    /// of them.
    ///
    /// # Errors
    /// [`LogError::Checkpoint`]; only [`CheckpointWriter::abort`] may be called after it.
    pub fn block(&mut self, block: &BlockHeader, changes: &[u8]) -> Result<(), LogError> {
        self.count(block);
        self.part(PartKind::Block, block, changes)
    }

    /// Adds one block whose changes are too many to be in memory together: `changes` gives them
    /// piece by piece to what it gets, `bytes` altogether. The block's header is written last, in
    /// its place.
    ///
    /// # Errors
    /// As [`CheckpointWriter::block`].
    ///
    /// # Panics
    /// If the pieces have more or fewer bytes.
    pub fn block_in_pieces(
        &mut self,
        block: &BlockHeader,
        bytes: u64,
        changes: impl FnOnce(&mut dyn FnMut(&[u8])),
    ) -> Result<(), LogError> {
        self.count(block);
        self.info.newest = self.info.newest.max(block.lsn);
        self.payload_bytes += bytes;
        self.flush(0)?;
        let (header_at, mut crc) = (self.written, crc32c(&[]));
        self.buffer.extend_from_slice(&[0; PART_HEADER_BYTES]);
        let (mut given, mut outcome) = (0, Ok(()));
        changes(&mut |piece| {
            if outcome.is_ok() {
                crc = crc32c_of_both(crc, crc32c(piece), piece.len());
                given += piece.len() as u64;
                outcome = self.append(piece);
            }
        });
        outcome?;
        assert_eq!(given, bytes, "a block has the length that its header says");
        self.flush(0)?;
        let header = PartHeader::encode_of(PartKind::Block, block, bytes, crc);
        if let Some(file) = &self.file {
            let outcome = file.write_all_at(&header, header_at);
            outcome.map_err(|error| failed(&self.temporary, error))?;
        }
        Ok(())
    }

    fn count(&mut self, block: &BlockHeader) {
        let (begin, lsn) = (self.info.begin, block.lsn);
        assert!(lsn >= begin, "a block as of {lsn}, before its checkpoint's begin at {begin}");
        assert!(block.hash_first <= block.hash_last, "a block of no hashes: {block:?}");
        self.info.blocks += 1;
        self.info.keys += block.keys;
    }

    /// Completes the checkpoint: appends the server's metadata as of `meta_lsn`, makes the log
    /// durable up to the newest block, then syncs and renames this file. Only then does the
    /// checkpoint count.
    ///
    /// # Errors
    /// [`LogError::Checkpoint`], or the log's own error. The file is then removed.
    pub fn finish(mut self, meta_lsn: Lsn, meta: &[u8]) -> Result<CheckpointInfo, LogError> {
        let header = BlockHeader { db: 0, hash_first: 0, hash_last: 0, lsn: meta_lsn, keys: 0 };
        self.part(PartKind::Meta, &header, meta)?;
        let end = BlockHeader {
            db: 0,
            hash_first: self.info.blocks,
            hash_last: self.payload_bytes,
            lsn: self.info.newest,
            keys: self.info.keys,
        };
        self.part(PartKind::End, &end, &[])?;
        self.flush(0)?;
        self.sync()?;
        // A block may hold changes that are only in the log's memory. If the machine failed now,
        // the checkpoint would be ahead of the log, so make the log durable first.
        self.log.make_durable(self.info.newest)?;
        let (newest, durable) = (self.info.newest, self.log.durable());
        assert!(
            newest <= durable,
            "a block as of {newest}, but the log is on the disk to {durable}"
        );
        // The log before its begin is about to be obsolete, and the rest is needed beside it.
        self.log.look_for_files()?;
        let place = &self.log.place;
        let named = place
            .disk
            .rename(&self.temporary, &self.info.path)
            .and_then(|()| place.disk.sync_dir(&place.dir));
        named.map_err(|error| failed(&self.info.path, error))?;
        self.file = None;
        self.info.bytes = self.written;
        *self.log.newest_checkpoint.lock() = Some(self.info.clone());
        Ok(self.info.clone())
    }

    /// Gives up and removes the file.
    pub fn abort(self) {}

    fn part(
        &mut self,
        kind: PartKind,
        header: &BlockHeader,
        payload: &[u8],
    ) -> Result<(), LogError> {
        self.info.newest = self.info.newest.max(header.lsn);
        self.payload_bytes += payload.len() as u64;
        self.buffer.extend_from_slice(&PartHeader::encode(kind, header, payload));
        self.append(payload)
    }

    /// Appends to the file, with others if it is little.
    fn append(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        if bytes.len() >= WRITE_BYTES {
            self.flush(0)?;
            self.write(bytes)
        } else {
            self.buffer.extend_from_slice(bytes);
            self.flush(WRITE_BYTES)
        }
    }

    /// Writes the buffer if it holds at least `bytes_min`.
    fn flush(&mut self, bytes_min: usize) -> Result<(), LogError> {
        if self.buffer.len() <= bytes_min {
            return Ok(());
        }
        let buffer = std::mem::take(&mut self.buffer);
        let outcome = self.write(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        outcome
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        if let Some(file) = &self.file {
            let outcome = file.write_all_at(bytes, self.written);
            outcome.map_err(|error| failed(&self.temporary, error))?;
        }
        self.written += bytes.len() as u64;
        debug_assert!(self.synced <= self.written);
        if self.written - self.synced >= SYNC_EVERY_BYTES {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), LogError> {
        if let Some(file) = &self.file {
            file.sync_data().map_err(|error| failed(&self.temporary, error))?;
            // The file is read only at the next start, so it need not stay in the page cache.
            file.drop_cache(self.synced, self.written - self.synced);
        }
        self.synced = self.written;
        Ok(())
    }
}

impl Drop for CheckpointWriter {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // If this fails too, recovery removes the file.
            let _ = self.log.place.disk.remove(&self.temporary);
        }
    }
}

fn failed(path: &Path, error: io::Error) -> LogError {
    LogError::Checkpoint { path: path.to_owned(), error: Arc::new(error) }
}
