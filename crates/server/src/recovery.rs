//! Start: recovers a keyspace and a log from a data directory.

use ladon_engine::{Keyspace, KeyspaceOptions, Recovering, SavedBlock};
use ladon_log::reader::Batch;
use ladon_log::{BlockHeader, DataDir, Log, Progress, RecoverError, RecoveryReport, RecoverySink};
use ladon_platform::SystemDisk;
use ladon_raft::{Entries, GroupState, Index};
use ladon_record::Lsn;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// A recovered node.
pub struct Recovered {
    /// The data.
    pub keyspace: Arc<Keyspace>,
    /// The log, ready for appending.
    pub log: Arc<Log>,
    /// What recovery did.
    pub report: RecoveryReport,
    /// What a node of a cluster has besides; `None` for others.
    pub group: Option<RecoveredGroup>,
}

/// The part of a recovered directory that is about its group.
pub struct RecoveredGroup {
    /// Where the group's entries are.
    pub index: Index,
    /// The vote, the members, what is committed.
    pub state: GroupState,
    /// The data has everything up to here: what is behind it may not be the group's.
    pub has: Lsn,
}

/// Loads the newest checkpoint and replays the log after it, on `workers` threads. `prepare`
/// applies the settings to the empty keyspace. With the state of a group, the log is replayed as far
/// as it is known to be committed; the data of a witness stays empty.
///
/// # Errors
/// The log's errors: what is damaged, where, and what to do about it.
pub fn recover(
    dir: DataDir,
    databases: u16,
    now_ms: u64,
    workers: usize,
    prepare: impl FnOnce(&Keyspace),
    progress: &(dyn Fn(Progress) + Sync),
    group: Option<GroupState>,
) -> Result<Recovered, RecoverError> {
    let options = KeyspaceOptions { hash_seed: dir.hash_seed(), databases };
    let keyspace = Arc::new(Keyspace::new(options));
    prepare(&keyspace);
    let known = |state: &GroupState| state.committed().map_or(0, |(_, end)| end.0);
    let is_member = group.as_ref().is_some_and(|state| state.member() != 0);
    let sink = Sink {
        recovering: Recovering::new(&keyspace, now_ms),
        workers: workers.max(1),
        until: AtomicU64::new(group.as_ref().filter(|_| is_member).map_or(u64::MAX, known)),
        entries: Mutex::default(),
        is_witness: group.as_ref().is_some_and(GroupState::is_witness),
    };
    let path = dir.path().to_owned();
    let (log, report) = dir.recover(&sink, workers, progress)?;
    let Sink { until, entries, .. } = sink;
    let newest = report.checkpoint.as_ref().map_or(Lsn::ZERO, |info| info.newest);
    let has = Lsn(until.into_inner()).max(newest).min(log.reserved());
    let group = group.map(|state| {
        let index = match is_member {
            true => {
                let found = entries.into_inner().into_index(newest, state.begins());
                let failed = |message| RecoverError::Sink { path, lsn: newest, message };
                found.map_err(failed)?
            }
            false => Index::default(),
        };
        Ok::<_, RecoverError>(RecoveredGroup { index, state, has })
    });
    Ok(Recovered { keyspace, log, report, group: group.transpose()? })
}

/// Whether a directory is that of a cluster's witness: it has the end of the log and no data.
///
/// # Errors
/// What the system says, or what is damaged.
pub fn is_of_witness(dir: &DataDir) -> io::Result<bool> {
    let kept = GroupState::member_of(&SystemDisk, dir.path(), dir.meta().dir_id)?;
    Ok(kept.1)
}

struct Sink<'a> {
    recovering: Recovering<'a>,
    workers: usize,
    /// Records behind this position are not replayed; at least what the checkpoint needs is.
    until: AtomicU64,
    entries: Mutex<Entries>,
    /// The log's data is not this node's.
    is_witness: bool,
}

impl RecoverySink for Sink<'_> {
    fn block(&self, block: &BlockHeader, changes: &[u8]) -> Result<(), String> {
        self.until.fetch_max(block.lsn.0, SeqCst);
        if self.is_witness {
            return Ok(());
        }
        let block = SavedBlock {
            db: block.db,
            hash_first: block.hash_first,
            hash_last: block.hash_last,
            lsn: block.lsn,
            keys: u32::try_from(block.keys).unwrap_or(u32::MAX),
        };
        self.recovering.block(&block, changes).map_err(|error| error.to_string())
    }

    fn meta(&self, lsn: Lsn, meta: &[u8]) -> Result<(), String> {
        self.until.fetch_max(lsn.0, SeqCst);
        if self.is_witness {
            return Ok(());
        }
        self.recovering.select_map(lsn, meta).map_err(|error| error.to_string())
    }

    fn end(&self) -> Result<(), String> {
        self.recovering.finish().map_err(|error| error.to_string())
    }

    fn records(&self, worker: usize, batch: &Batch) -> Result<(), (Lsn, String)> {
        if worker == 0 {
            self.entries.lock().collect(batch)?;
        }
        if self.is_witness {
            return Ok(());
        }
        let until = Lsn(self.until.load(SeqCst));
        let mut replay = self.recovering.replay((worker, self.workers));
        let records = batch.records().filter(|&(lsn, _)| lsn <= until);
        records.into_iter().try_for_each(|(lsn, changes)| {
            replay.record(lsn, changes).map_err(|error| (lsn, error.to_string()))
        })
    }
}
