//! Backups that clients are fetching: what is held for them, and until when.
//!
//! A backup holds a checkpoint that may have been replaced since, and log that no start needs. That
//! is disk space, so a backup ends by itself: once nothing was read of it for a minute, when the disk is
//! full, and when another one needs its place and the connection that began it is gone.

use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::durability::{BackupBegun, BackupError, Backups};
use ladon_log::{CopyError, Log, LogCopy};
use ladon_platform::Clock;
use ladon_settings::Settings;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use crate::random::random_u64;

/// Each holds two open files.
pub(crate) const BACKUPS_MAX: usize = 4;
/// A client that reads nothing for so long is gone.
const IDLE_NS_MAX: u64 = 60 * 1_000_000_000;
/// A file of users beyond this is none.
const USERS_BYTES_MAX: usize = 16 << 20;
/// The name of the users' file in a backup.
const USERS_NAME: &str = "users.acl";

/// The backups of a data directory.
pub(crate) struct ClientBackups {
    log: Arc<Log>,
    settings: Arc<Settings>,
    clock: Arc<dyn Clock>,
    open: Mutex<HashMap<u64, Arc<Open>>>,
    /// Backups that are here or begin.
    count: AtomicUsize,
}

struct Open {
    /// Its lock is held while the disk is read: one piece of a backup at a time.
    copy: Mutex<LogCopy>,
    /// The file of users as it was; it comes after the copy's files.
    users: Option<Vec<u8>>,
    used_ns: Mutex<u64>,
    /// What is left of the connection that began it.
    client: Weak<ClientInfo>,
}

impl ClientBackups {
    pub(crate) fn new(
        log: Arc<Log>,
        settings: Arc<Settings>,
        clock: Arc<dyn Clock>,
    ) -> ClientBackups {
        ClientBackups {
            log,
            settings,
            clock,
            open: Mutex::default(),
            count: AtomicUsize::default(),
        }
    }

    /// Whether there is any.
    pub(crate) fn is_any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// Ends those whose clients are gone.
    pub(crate) fn end_idle(&self) {
        let now_ns = self.clock.monotonic_ns();
        let is_idle = |open: &Open| now_ns.saturating_sub(*open.used_ns.lock()) > IDLE_NS_MAX;
        if self.is_any() {
            let ended = self.end_those(|open| is_idle(open));
            if ended > 0 {
                tracing::warn!("{ended} backups ended: their clients read nothing for a minute");
            }
        }
    }

    /// Ends all, because the disk is full.
    pub(crate) fn end_all(&self) {
        let ended = self.end_those(|_| true);
        if ended > 0 {
            tracing::warn!("{ended} backups ended: disk space is short, and they hold some");
        }
    }

    fn end_those(&self, is_over: impl Fn(&Open) -> bool) -> usize {
        let mut open = self.open.lock();
        let over: Vec<u64> =
            open.iter().filter(|(_, open)| is_over(open)).map(|(&id, _)| id).collect();
        let ended: Vec<_> = over.iter().filter_map(|id| open.remove(id)).collect();
        self.count.fetch_sub(ended.len(), Relaxed);
        ended.len()
    }

    fn open_one(&self, client: &Arc<ClientInfo>) -> Result<(Open, BackupBegun), BackupError> {
        let failed = |error: CopyError| BackupError::Failed(error.to_string());
        let users = self.users()?;
        let copy = self.log.begin_copy().map_err(failed)?;
        let mut files: Vec<(String, u64)> =
            copy.files().iter().map(|file| (file.name.clone(), file.bytes)).collect();
        files.extend(users.as_ref().map(|users| (USERS_NAME.to_owned(), users.len() as u64)));
        let begun = BackupBegun { id: random_u64(), end: copy.end(), files };
        let used_ns = Mutex::new(self.clock.monotonic_ns());
        let (copy, client) = (Mutex::new(copy), Arc::downgrade(client));
        Ok((Open { copy, users, used_ns, client }, begun))
    }

    fn users(&self) -> Result<Option<Vec<u8>>, BackupError> {
        let path = self.settings.aclfile();
        if path.is_empty() {
            return Ok(None);
        }
        let failed = |why: &str| BackupError::Failed(format!("the file of users '{path}': {why}"));
        let users = self.settings.read_users_file().map_err(|error| failed(&error.to_string()))?;
        match users.len() {
            0..=USERS_BYTES_MAX => Ok(Some(users)),
            _ => Err(failed("it is too long")),
        }
    }
}

impl Backups for ClientBackups {
    fn begin(&self, client: &Arc<ClientInfo>) -> Result<BackupBegun, BackupError> {
        if self.count.load(Relaxed) >= BACKUPS_MAX {
            self.end_those(|open| open.client.upgrade().is_none_or(|client| client.is_gone()));
        }
        let may_begin = |count| (count < BACKUPS_MAX).then_some(count + 1);
        if self.count.fetch_update(Relaxed, Relaxed, may_begin).is_err() {
            return Err(BackupError::TooMany(BACKUPS_MAX));
        }
        match self.open_one(client) {
            Ok((open, begun)) => {
                self.open.lock().insert(begun.id, Arc::new(open));
                tracing::info!("a backup begins, to LSN {}", begun.end);
                Ok(begun)
            }
            Err(error) => {
                self.count.fetch_sub(1, Relaxed);
                tracing::error!("a backup cannot begin: {error}");
                Err(error)
            }
        }
    }

    fn read(&self, id: u64, file: usize, at: u64, count: usize) -> Result<Vec<u8>, BackupError> {
        let open = self.open.lock().get(&id).cloned().ok_or(BackupError::NoSuchBackup)?;
        let mut copy = open.copy.lock();
        let files = copy.files().len();
        let piece = match &open.users {
            Some(users) if file == files => {
                let begin = usize::try_from(at).unwrap_or(usize::MAX).min(users.len());
                Ok(users[begin..users.len().min(begin.saturating_add(count))].to_vec())
            }
            _ => {
                let mut piece = vec![0; count];
                let read = copy.read(file, &mut piece, at);
                read.map(|read| {
                    piece.truncate(read);
                    piece
                })
            }
        };
        *open.used_ns.lock() = self.clock.monotonic_ns();
        piece.map_err(|error: io::Error| {
            let name = copy.files().get(file).map_or("", |file| &file.name);
            BackupError::Failed(format!("cannot read {name} at byte {at}: {error}"))
        })
    }

    fn end(&self, id: u64) -> bool {
        let ended = self.open.lock().remove(&id).is_some();
        self.count.fetch_sub(usize::from(ended), Relaxed);
        ended
    }
}
