//! Start: recovers a keyspace and a log from a data directory.

use ladon_engine::{Keyspace, KeyspaceOptions, Recovering, SavedBlock};
use ladon_log::reader::Batch;
use ladon_log::{BlockHeader, DataDir, Log, Progress, RecoverError, RecoveryReport, RecoverySink};
use ladon_record::Lsn;
use std::sync::Arc;

/// A recovered node.
pub struct Recovered {
    /// The data.
    pub keyspace: Arc<Keyspace>,
    /// The log, ready for appending.
    pub log: Arc<Log>,
    /// What recovery did.
    pub report: RecoveryReport,
}

/// Loads the newest checkpoint and replays the log after it, on `workers` threads. `prepare`
/// applies the settings to the empty keyspace.
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
) -> Result<Recovered, RecoverError> {
    let options = KeyspaceOptions { hash_seed: dir.hash_seed(), databases };
    let keyspace = Arc::new(Keyspace::new(options));
    prepare(&keyspace);
    let sink = Sink { recovering: Recovering::new(&keyspace, now_ms), workers: workers.max(1) };
    let (log, report) = dir.recover(&sink, workers, progress)?;
    drop(sink);
    Ok(Recovered { keyspace, log, report })
}

struct Sink<'a> {
    recovering: Recovering<'a>,
    workers: usize,
}

impl RecoverySink for Sink<'_> {
    fn block(&self, block: &BlockHeader, changes: &[u8]) -> Result<(), String> {
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
        self.recovering.select_map(lsn, meta).map_err(|error| error.to_string())
    }

    fn end(&self) -> Result<(), String> {
        self.recovering.finish().map_err(|error| error.to_string())
    }

    fn records(&self, worker: usize, batch: &Batch) -> Result<(), (Lsn, String)> {
        let mut replay = self.recovering.replay((worker, self.workers));
        batch.records().try_for_each(|(lsn, changes)| {
            replay.record(lsn, changes).map_err(|error| (lsn, error.to_string()))
        })
    }
}
