//! Loads the data while the IO threads serve clients without it.
//!
//! ```text
//! IO threads: admission refuses what needs data --------- exchange --> the same connections go on
//!                                                            ^
//! data directory --> recovery: keyspace and log -------------'
//! ```
//!
//! As in Redis, commands that the table marks `LOADING` are answered (`INFO` reports the progress),
//! and other commands get `-LOADING`; over IPROTO, what needs data gets Tarantool's `ER_LOADING`. A
//! load that is soon over refuses nobody: who connects meanwhile waits in the listener's queue, as
//! with Redis.

use crate::listening::Listening;
use crate::random::random_u64;
use crate::recovery::{Recovered, recover};
use crate::run_error::{RunError, starting};
use crate::shutdown::StopSignal;
use crate::timed_disk::TimedDisk;
use ladon_engine::{Keyspace, KeyspaceOptions};
use ladon_kernel::dataset::Dataset;
use ladon_kernel::durability::{Backups, CheckpointError, Durability, PersistenceStatus, Shutdown};
use ladon_kernel::limits;
use ladon_kernel::loading::Loading;
use ladon_kernel::shared::Shared;
use ladon_log::{DataDir, LOCK_NAME, Log, LogOptions, Progress};
use ladon_platform::{Disk, SystemDisk};
use ladon_raft::GroupState;
use ladon_record::{Gate, Lsn};
use ladon_settings::Settings;
use parking_lot::Mutex;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A load that takes no longer than this is not noticed: clients wait that long before they are
/// told. Programs that start a server of their own send commands as soon as it can be connected to.
const SOON_OVER: Duration = Duration::from_millis(500);

/// Room for the checkpoint of a small data set and for the log before it.
const RESERVE_BYTES: u64 = 16 << 20;

/// What is in the place of the data while that is being loaded.
pub(crate) fn nothing_yet(
    shared: &Shared,
    progress: Arc<Loading>,
    stop: Arc<StopSignal>,
) -> Dataset {
    let options = KeyspaceOptions { hash_seed: 0, databases: databases(&shared.settings) };
    Dataset {
        keyspace: Arc::new(Keyspace::new(options)),
        log: Log::nowhere(Arc::clone(&shared.clock)),
        durability: Arc::new(NothingYet { stop }),
        loading: Some(progress),
    }
}

/// Databases that the settings ask for.
pub fn databases(settings: &Settings) -> u16 {
    u16::try_from(settings.databases()).unwrap_or(u16::MAX)
}

/// Recovers the data. Lets clients in once that takes long. Returns early, with nothing, if the
/// server stops first; the process then ends, which is as safe for the files as a crash.
pub(crate) fn load(
    shared: &Arc<Shared>,
    noted: Arc<Loading>,
    listening: &Listening,
    stop: &StopSignal,
) -> Result<Option<Recovered>, RunError> {
    let (sender, outcome) = channel();
    stop.add_waker({
        let sender = sender.clone();
        // An error means that loading is already done.
        move || drop(sender.send(None))
    });
    let shared = Arc::clone(shared);
    let recover = move || {
        // An error means that no thread waits any more.
        drop(sender.send(Some(open(&shared, &noted))));
    };
    let named = thread::Builder::new().name("ladon-recovery".into());
    named.spawn(recover).map_err(starting("the recovery"))?;
    let soon = outcome.recv_timeout(SOON_OVER);
    let outcome = match soon {
        Err(RecvTimeoutError::Timeout) => {
            listening.open();
            outcome.recv().ok()
        }
        outcome => outcome.ok(),
    };
    outcome.flatten().transpose()
}

fn open(shared: &Shared, noted: &Loading) -> Result<Recovered, RunError> {
    let settings = &shared.settings;
    let options = LogOptions {
        segment_bytes: settings.log_segment_bytes(),
        reserve_bytes: RESERVE_BYTES,
        accept_loss_after: u64::try_from(settings.accept_log_loss_after()).ok().map(Lsn),
        ..LogOptions::default()
    };
    let clock = &shared.clock;
    let (events, syncs) = (Arc::clone(&shared.latency_events), Arc::clone(&shared.sync_times));
    let disk = TimedDisk::new(SystemDisk, Arc::clone(clock), events, syncs);
    let (data, seed) = (settings.data(), random_u64());
    let incoming = ladon_raft::has_incoming(&SystemDisk, Path::new(&data));
    if settings.cluster_enabled() || incoming.map_err(starting("the data directory"))? {
        let finished = finish_incoming(&(Arc::new(SystemDisk) as _), Path::new(&data));
        finished.map_err(starting("another node's data, which has come"))?;
    }
    let dir = DataDir::open(Arc::new(disk), Arc::clone(clock), Path::new(&data), options, seed)?;
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let shown = Mutex::new(Instant::now());
    let progress = |progress: Progress| {
        noted.bytes_total.store(progress.bytes_total, Relaxed);
        noted.bytes_done.store(progress.bytes_done, Relaxed);
        let mut shown = shown.lock();
        if shown.elapsed() >= Duration::from_secs(1) {
            *shown = Instant::now();
            tracing::info!(
                "recovering, {:?}: {} of {} MB, {} items",
                progress.phase,
                progress.bytes_done >> 20,
                progress.bytes_total >> 20,
                progress.items
            );
        }
    };
    let prepare = |keyspace: &Keyspace| limits::apply(keyspace, settings);
    let group = group_state(settings, &dir).map_err(starting("the node's part of its cluster"))?;
    Ok(recover(dir, databases(settings), clock.unix_ms(), workers, prepare, &progress, group)?)
}

/// Puts another node's data in its place, if that has come as a whole and is not there yet. Call it
/// before the directory of a node of a cluster or of a replica is opened. Returns whether there was any.
///
/// # Errors
/// What the system says.
pub fn finish_incoming(disk: &Arc<dyn Disk>, dir: &Path) -> io::Result<bool> {
    disk.create_dir_all(dir)?;
    let _lock = disk.lock(&dir.join(LOCK_NAME))?;
    let is_new = ladon_raft::finish_incoming(disk, dir)?;
    if is_new {
        tracing::info!("this directory has another node's data from now on");
    }
    Ok(is_new)
}

/// What a node of a cluster must not forget. The directory of one is not for another server, which
/// would take changes for good that the cluster may not have.
fn group_state(settings: &Settings, dir: &DataDir) -> io::Result<Option<GroupState>> {
    let (disk, path, dir_id) = (Arc::new(SystemDisk), dir.path(), dir.meta().dir_id);
    if settings.cluster_enabled() {
        return GroupState::open(disk, path, dir_id).map(Some);
    }
    match GroupState::member_of(&*disk, path, dir_id)? {
        (0, _) => Ok(None),
        (member, _) => Err(io::Error::other(format!(
            "{} is the directory of member {member} of a cluster; start with cluster-enabled yes",
            path.display()
        ))),
    }
}

/// In place of the log and the checkpoints on a node without data.
struct NothingYet {
    stop: Arc<StopSignal>,
}

impl Durability for NothingYet {
    fn reserved(&self) -> Lsn {
        Lsn::ZERO
    }

    fn written(&self) -> Lsn {
        Lsn::ZERO
    }

    fn durable(&self) -> Lsn {
        Lsn::ZERO
    }

    fn want_durable(&self, _: Lsn) {}

    fn accepts_writes(&self) -> bool {
        true
    }

    fn failure(&self) -> Option<String> {
        None
    }

    fn status(&self) -> PersistenceStatus {
        PersistenceStatus { last_checkpoint_ok: true, log_ok: true, ..Default::default() }
    }

    fn start_checkpoint(&self) -> Result<(), CheckpointError> {
        Err(CheckpointError::Failed("the data is being loaded".to_owned()))
    }

    fn checkpoint(&self) -> Result<(), CheckpointError> {
        self.start_checkpoint()
    }

    fn backups(&self) -> Option<Arc<dyn Backups>> {
        None
    }

    /// The log gets the setting with the data.
    fn gate_changed(&self, _: Gate) {}

    fn request_shutdown(&self, shutdown: Shutdown) {
        self.stop.request(shutdown);
    }
}
