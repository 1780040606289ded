//! All data as a file of RDB, written beside requests.
//!
//! The walk goes over the partitions in the order of the keys' hashes. Under a partition's lock it
//! freezes the values of a few keys; they are encoded and written without any lock. So a key is in
//! the dump as it was at some moment between begin and end: once if it was there all the time, and
//! under the name that it had when the walk passed that name.

use super::feed::Feed;
use ladon_engine::types::string;
use ladon_engine::{Key, Keyspace, Locks, PARTITIONS, Scratch, Tx, ValueRef};
use ladon_kernel::long::aside::is_much;
use ladon_kernel::long::large::Large;
use ladon_kernel::long::parcel::Frozen;
use ladon_kernel::shared::Shared;
use ladon_rdb::{Fault, KeyFacts, Version, Writer};
use ladon_record::{DbId, KeyHash, Lsn, Record};
use std::io::ErrorKind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use thiserror::Error;

/// Buckets that are looked at under one lock: some hundred keys, about a twentieth of a millisecond.
const BUCKETS: usize = 32;

/// Until the next look at a partition that a long script holds.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// The longest sleep after a step, as the checkpointer's.
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// What is dumped.
pub(super) struct Dump {
    pub(super) keyspace: Arc<Keyspace>,
    pub(super) shared: Arc<Shared>,
    pub(super) functions_only: bool,
}

/// Why a dump has no end.
#[derive(Debug, Error)]
pub(super) enum DumpError {
    #[error("key '{key}' in database {db}: {fault}")]
    Key { key: String, db: u16, fault: Fault },
    #[error("{0}")]
    Write(#[from] Fault),
}

impl DumpError {
    /// The client has gone.
    pub(super) fn is_of_client(&self) -> bool {
        let (DumpError::Key { fault, .. } | DumpError::Write(fault)) = self;
        matches!(fault, Fault::Io(error) if error.kind() == ErrorKind::BrokenPipe)
    }
}

/// A key whose value can be read without locks.
struct FrozenKey {
    name: Vec<u8>,
    expire_at: u64,
    /// `None`: it is frozen when it is its turn. What others change of a frozen value they have to
    /// copy, so a slow client must not keep many large ones.
    value: Option<Frozen>,
}

/// A few keys, and where the walk goes on in their partition.
struct Step {
    keys: Vec<FrozenKey>,
    next: Option<KeyHash>,
}

/// Freezes the next keys of a partition.
fn freeze_some(
    tx: &mut Tx<'_>,
    db: DbId,
    (partition, from): (usize, KeyHash),
    large: Large,
) -> Step {
    let mut keys = Vec::new();
    let mut objects = Vec::new();
    let next = tx.scan(db, partition, from, BUCKETS, |entry| {
        let value = match entry.value() {
            ValueRef::Object(_) if is_much(large, entry) => None,
            ValueRef::Object(_) => {
                objects.push(keys.len());
                None
            }
            value => Some(Frozen::Bytes(string::bytes(value).unwrap_or_default().into_owned())),
        };
        let (name, expire_at) = (entry.key().to_vec(), entry.expire_at());
        keys.push(FrozenKey { name, expire_at, value });
    });
    for at in objects {
        let key = tx.key(&keys[at].name);
        if let Some(object) = tx.freeze_object(db, key) {
            keys[at].value = Some(Frozen::Object(object));
        }
    }
    Step { keys, next }
}

fn write_key(writer: &mut Writer<Feed>, key: &FrozenKey, value: ValueRef<'_>) -> Result<(), Fault> {
    let expires_at_ms = i64::try_from(key.expire_at).ok().filter(|&at| at != 0);
    let facts = KeyFacts { expires_at_ms, ..KeyFacts::default() };
    let head = ladon_transfer::head_of(value)?;
    ladon_transfer::write(value, writer.begin_key(&key.name, &facts, head)?)
}

/// What is written next depends on this.
fn note(writer: &mut Writer<Feed>, depends: Lsn) {
    let feed = writer.get_mut();
    feed.depends = feed.depends.max(depends);
}

impl Dump {
    /// Writes everything.
    pub(super) fn write(&self, feed: Feed) -> Result<(), DumpError> {
        let mut writer = Writer::new(feed, self.version())?;
        writer.aux(b"ladon-ver", env!("CARGO_PKG_VERSION").as_bytes())?;
        writer.aux(b"redis-bits", b"64")?;
        let mut scratch = Scratch::default();
        (scratch.read_only, scratch.no_touch) = (true, true);
        let (libraries, depends) =
            self.locked(Locks::Partition(0), &mut scratch, |tx| tx.libraries());
        note(&mut writer, depends);
        for library in libraries {
            writer.function(&library.body.code)?;
        }
        // As they are numbered now, whatever SWAPDB does.
        let databases = 0..if self.functions_only { 0 } else { self.keyspace.databases() };
        let databases: Vec<_> =
            databases.map(|number| (number, self.keyspace.select(number))).collect();
        for (number, db) in databases {
            self.database(&mut writer, &mut scratch, (number, db))?;
        }
        Ok(writer.finish()?.finish().map_err(Fault::from)?)
    }

    /// The oldest version that servers since Redis 7.0 read and that has what is there.
    fn version(&self) -> Version {
        if self.keyspace.has_element_times() { Version::Redis12 } else { Version::Redis10 }
    }

    fn database(
        &self,
        writer: &mut Writer<Feed>,
        scratch: &mut Scratch,
        (number, db): (u16, DbId),
    ) -> Result<(), DumpError> {
        let (mut has_begun, large) = (false, self.shared.slicing.large_aside());
        for partition in 0..PARTITIONS {
            let mut next = Some(KeyHash((partition as u64) << (64 - PARTITIONS.ilog2())));
            while let Some(from) = next {
                let began_ns = self.shared.clock.monotonic_ns();
                let walk = |tx: &mut Tx<'_>| freeze_some(tx, db, (partition, from), large);
                let (step, depends) = self.locked(Locks::Partition(partition), scratch, walk);
                next = step.next;
                if step.keys.is_empty() {
                    continue;
                }
                note(writer, depends);
                if !has_begun {
                    writer.select_db(number.into())?;
                    has_begun = true;
                }
                for key in step.keys {
                    let named = |fault| {
                        let name = String::from_utf8_lossy(&key.name).into_owned();
                        DumpError::Key { key: name, db: number, fault }
                    };
                    self.key(writer, scratch, db, &key).map_err(named)?;
                }
                let took_ns = self.shared.clock.monotonic_ns().saturating_sub(began_ns);
                thread::sleep(Duration::from_nanos(took_ns).min(PAUSE_MAX));
            }
        }
        Ok(())
    }

    fn key(
        &self,
        writer: &mut Writer<Feed>,
        scratch: &mut Scratch,
        db: DbId,
        key: &FrozenKey,
    ) -> Result<(), Fault> {
        match &key.value {
            Some(value) => write_key(writer, key, value.as_ref()),
            None => {
                let hash = self.keyspace.hash(&key.name);
                let freeze = |tx: &mut Tx<'_>| {
                    let name = Key { bytes: &key.name, hash };
                    let expire_at = tx.read(db, name)?.expire_at();
                    Some((expire_at, tx.freeze_object(db, name)))
                };
                let (found, depends) = self.locked(Locks::One(hash), scratch, freeze);
                note(writer, depends);
                // It may be gone, or be a short string by now.
                let Some((expire_at, object)) = found else { return Ok(()) };
                let Some(object) = object else { return Ok(()) };
                let value = Some(Frozen::Object(object));
                self.key(
                    writer,
                    scratch,
                    db,
                    &FrozenKey { name: key.name.clone(), expire_at, value },
                )
            }
        }
    }

    /// Runs `f` under locks; waits while a long script holds them. Also returns what its result
    /// depends on.
    fn locked<R>(
        &self,
        locks: Locks<'_>,
        scratch: &mut Scratch,
        f: impl FnOnce(&mut Tx<'_>) -> R,
    ) -> (R, Lsn) {
        loop {
            let is_busy = |partition| self.shared.scripts.running.is_held(partition);
            let now_ms = self.shared.clock.unix_ms();
            if let Some(mut tx) = self.keyspace.begin_or_busy(locks, scratch, now_ms, is_busy) {
                let result = f(&mut tx);
                let nothing_changes = |_: Record<'_>| unreachable!("the transaction reads only");
                return (result, tx.commit(nothing_changes).0);
            }
            thread::sleep(BUSY_PAUSE);
        }
    }
}
