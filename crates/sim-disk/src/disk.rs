//! The disk itself: names, handles, locks, power.

use crate::faults::{self, Fault, Faults};
use crate::inode::Inode;
use ladon_platform::{Disk, DiskFile, DiskLock};
use ladon_testkit::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A disk in memory; clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

struct State {
    random: Random,
    faults: Faults,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    dirs: BTreeSet<PathBuf>,
    /// Those whose own names may be lost.
    unsynced_dirs: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, u64>,
    synced_names: BTreeMap<PathBuf, u64>,
    /// Name changes since the last sync of their directory, in order.
    renames: Vec<NameChange>,
    locks: BTreeSet<PathBuf>,
    /// Handles of an earlier life are dead.
    life: u64,
    capacity_bytes: Option<u64>,
    operations: u64,
    power_fails_at: Option<u64>,
    power_is_off: bool,
}

#[derive(Clone)]
enum NameChange {
    Set(PathBuf, u64),
    Rename { from: PathBuf, to: PathBuf, inode: u64 },
    Remove(PathBuf),
}

impl NameChange {
    fn dir(&self) -> Option<&Path> {
        match self {
            NameChange::Set(path, _) | NameChange::Remove(path) => path.parent(),
            NameChange::Rename { to, .. } => to.parent(),
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        match self {
            NameChange::Set(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            NameChange::Rename { from, to, inode } => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
            NameChange::Remove(path) => {
                names.remove(path);
            }
        }
    }
}

impl SimDisk {
    /// An empty disk; everything random about it comes from `seed`.
    pub fn new(seed: u64) -> SimDisk {
        SimDisk {
            state: Arc::new(Mutex::new(State {
                random: Random::new(seed),
                faults: Faults::default(),
                inodes: BTreeMap::new(),
                next_inode: 1,
                dirs: BTreeSet::new(),
                unsynced_dirs: BTreeSet::new(),
                names: BTreeMap::new(),
                synced_names: BTreeMap::new(),
                renames: Vec::new(),
                locks: BTreeSet::new(),
                life: 0,
                capacity_bytes: None,
                operations: 0,
                power_fails_at: None,
                power_is_off: false,
            })),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The machine fails: unsynced data is lost, torn or kept, and every handle is dead. The disk
    /// can be used again at once.
    pub fn power_cut(&self) {
        let mut state = self.state();
        let State { random, renames, synced_names, .. } = &mut *state;
        let kept_in_16 = random.below(17);
        for change in renames.drain(..) {
            if random.chance(kept_in_16, 16) {
                change.apply(synced_names);
            }
        }
        // All that was in a directory whose name is lost is lost with it.
        for dir in std::mem::take(&mut state.unsynced_dirs) {
            if state.random.chance(1, 2) {
                state.synced_names.retain(|path, _| !path.starts_with(&dir));
                state.dirs.remove(&dir);
            }
        }
        state.names = state.synced_names.clone();
        let State { random, inodes, names, .. } = &mut *state;
        let named: BTreeSet<u64> = names.values().copied().collect();
        inodes.retain(|inode, _| named.contains(inode));
        for inode in inodes.values_mut() {
            inode.cut_power(random);
        }
        state.end_life();
    }

    /// The process ends: handles are dead, locks are free, everything written is still to be seen.
    pub fn kill(&self) {
        self.state().end_life();
    }

    /// The power fails during the `operations`-th changing operation from now: it happens in part,
    /// and everything after it fails until [`SimDisk::power_cut`].
    pub fn cut_power_after(&self, operations: u64) {
        let mut state = self.state();
        state.power_fails_at = Some(state.operations + operations);
    }

    /// Whether the power has failed and waits for [`SimDisk::power_cut`].
    pub fn power_is_off(&self) -> bool {
        self.state().power_is_off
    }

    /// Changing operations so far: writes, syncs, names.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// The next `times` operations of a kind fail; `u64::MAX` is for good.
    pub fn fail_next(&self, fault: Fault, times: u64) {
        self.state().faults.fail_next(fault, times);
    }

    /// One in `operations` of a kind fails, at random; zero ends that.
    pub fn fail_one_in(&self, fault: Fault, operations: u64) {
        self.state().faults.fail_one_in(fault, operations);
    }

    /// No more faults, and space without end.
    pub fn heal(&self) {
        let mut state = self.state();
        state.faults.clear();
        state.capacity_bytes = None;
    }

    /// Writes fail with ENOSPC once all files together have that many bytes.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity_bytes = bytes;
    }

    /// Bytes of all files together.
    pub fn used_bytes(&self) -> u64 {
        self.state().used_bytes()
    }

    /// Another program removes a file, for good; whoever has it open does not notice.
    pub fn take_away(&self, path: &Path) {
        let mut state = self.state();
        state.names.remove(path);
        state.synced_names.remove(path);
        state.renames.retain(|change| match change {
            NameChange::Set(to, _) | NameChange::Rename { to, .. } => to != path,
            NameChange::Remove(_) => true,
        });
    }

    /// A file's bytes as a process sees them; for tests.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        let inode = state.names.get(path)?;
        state.inodes.get(inode).map(|inode| inode.seen.clone())
    }

    /// Puts a file in place, synced; for tests.
    pub fn set_contents(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        let mut inode = Inode::default();
        inode.write(0, bytes);
        inode.sync();
        let number = state.add_inode(inode);
        state.names.insert(path.to_owned(), number);
        state.synced_names.insert(path.to_owned(), number);
        if let Some(dir) = path.parent() {
            state.dirs.insert(dir.to_owned());
        }
    }
}

impl State {
    fn end_life(&mut self) {
        self.life += 1;
        self.locks.clear();
        self.power_fails_at = None;
        self.power_is_off = false;
    }

    fn used_bytes(&self) -> u64 {
        self.inodes.values().map(Inode::bytes).sum()
    }

    fn add_inode(&mut self, inode: Inode) -> u64 {
        let number = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(number, inode);
        number
    }

    fn check_power(&self) -> io::Result<()> {
        if self.power_is_off { Err(faults::power_is_off()) } else { Ok(()) }
    }

    /// Counts a changing operation; true when the power fails in the middle of it.
    fn begin(&mut self) -> io::Result<bool> {
        self.check_power()?;
        self.operations += 1;
        self.power_is_off = self.power_fails_at.is_some_and(|at| self.operations >= at);
        Ok(self.power_is_off)
    }

    /// A changing operation that happens or not, with a fault that may strike.
    fn begin_atomic(&mut self, fault: Option<Fault>) -> io::Result<()> {
        let power_fails = self.begin()?;
        if power_fails && self.random.chance(1, 2) {
            return Err(faults::power_is_off());
        }
        match fault {
            Some(fault) if self.faults.strikes(fault, &mut self.random) => {
                Err(faults::error(fault))
            }
            _ => Ok(()),
        }
    }

    /// After the operation took effect: the caller never hears of it if the power is off now.
    fn end(&self) -> io::Result<()> {
        self.check_power()
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.renames.push(change);
    }

    fn remove_unnamed(&mut self) {
        let names = self.names.values().chain(self.synced_names.values());
        let pending = self.renames.iter().filter_map(|change| match change {
            NameChange::Set(_, inode) | NameChange::Rename { inode, .. } => Some(inode),
            NameChange::Remove(_) => None,
        });
        let named: BTreeSet<u64> = names.chain(pending).copied().collect();
        self.inodes.retain(|inode, _| named.contains(inode));
    }

    fn lookup(&self, path: &Path) -> io::Result<u64> {
        self.check_power()?;
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Disk for SimDisk {
    fn create_dir_all(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let mut state = self.state();
        state.check_power()?;
        if !state.dirs.insert(path.to_owned()) {
            return Ok(Vec::new());
        }
        state.unsynced_dirs.insert(path.to_owned());
        Ok(vec![path.to_owned()])
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.begin_atomic(Some(Fault::Create))?;
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = state.add_inode(Inode::default());
        state.change_name(NameChange::Set(path.to_owned(), inode));
        state.end()?;
        Ok(self.handle(&state, inode, true))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let state = self.state();
        let inode = state.lookup(path)?;
        Ok(self.handle(&state, inode, true))
    }

    fn open_read_only(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let state = self.state();
        let inode = state.lookup(path)?;
        Ok(self.handle(&state, inode, false))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.state();
        state.check_power()?;
        if !state.dirs.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(state.names.keys().filter(|name| name.parent() == Some(path)).cloned().collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let inode = state.lookup(from)?;
        state.begin_atomic(None)?;
        let (from, to) = (from.to_owned(), to.to_owned());
        state.change_name(NameChange::Rename { from, to, inode });
        state.end()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.lookup(path)?;
        state.begin_atomic(Some(Fault::Remove))?;
        state.change_name(NameChange::Remove(path.to_owned()));
        state.remove_unnamed();
        state.end()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.begin_atomic(Some(Fault::SyncDir))?;
        state.unsynced_dirs.retain(|dir| dir.parent() != Some(path));
        let State { renames, synced_names, .. } = &mut *state;
        renames.retain(|change| {
            let here = change.dir() == Some(path);
            if here {
                change.apply(synced_names);
            }
            !here
        });
        state.remove_unnamed();
        state.end()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        let mut state = self.state();
        state.check_power()?;
        if !state.locks.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let (disk, path, life) = (self.clone(), path.to_owned(), state.life);
        Ok(Box::new(SimLock { disk, path, life }))
    }

    fn free_bytes(&self, _: &Path) -> io::Result<Option<u64>> {
        let state = self.state();
        state.check_power()?;
        let used = state.used_bytes();
        Ok(state.capacity_bytes.map(|all| all.saturating_sub(used)))
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        let state = self.state();
        state.check_power()?;
        Ok(state.locks.contains(path))
    }
}

impl SimDisk {
    fn handle(&self, state: &State, inode: u64, writable: bool) -> Box<dyn DiskFile> {
        Box::new(SimFile { disk: self.clone(), inode, life: state.life, writable })
    }
}

struct SimLock {
    disk: SimDisk,
    path: PathBuf,
    life: u64,
}

impl DiskLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.life == self.life {
            state.locks.remove(&self.path);
        }
    }
}

struct SimFile {
    disk: SimDisk,
    inode: u64,
    life: u64,
    writable: bool,
}

impl SimFile {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.state();
        if state.life != self.life {
            return Err(faults::handle_is_dead());
        }
        state.check_power()?;
        Ok(state)
    }

    fn writable_state(&self) -> io::Result<MutexGuard<'_, State>> {
        if !self.writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.state()
    }
}

/// The file, even after its last name was removed (writes to it then have no effect).
fn inode_of(state: &mut State, number: u64) -> &mut Inode {
    state.inodes.entry(number).or_default()
}

impl DiskFile for SimFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.writable_state()?;
        let power_fails = state.begin()?;
        let length = inode_of(&mut state, self.inode).bytes();
        let grows = (offset + bytes.len() as u64).saturating_sub(length);
        let used = state.used_bytes();
        let free = state.capacity_bytes.map_or(u64::MAX, |all| all.saturating_sub(used));
        let State { faults, random, .. } = &mut *state;
        let (arrives, outcome) = if power_fails {
            (random.below(bytes.len() as u64 + 1), Err(faults::power_is_off()))
        } else if faults.strikes(Fault::Write, random) {
            (random.below(bytes.len() as u64 + 1), Err(faults::error(Fault::Write)))
        } else if grows > free {
            ((bytes.len() as u64).saturating_sub(grows - free), Err(faults::no_space()))
        } else {
            (bytes.len() as u64, Ok(()))
        };
        let bytes = &bytes[..arrives as usize];
        if !bytes.is_empty() {
            inode_of(&mut state, self.inode).write(offset as usize, bytes);
        }
        outcome
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.state()?;
        let State { faults, random, .. } = &mut *state;
        if faults.strikes(Fault::Read, random) {
            return Err(faults::error(Fault::Read));
        }
        let file = &inode_of(&mut state, self.inode).seen;
        let from = (offset.min(file.len() as u64)) as usize;
        let bytes = buffer.len().min(file.len() - from);
        buffer[..bytes].copy_from_slice(&file[from..from + bytes]);
        Ok(bytes)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(inode_of(&mut *self.state()?, self.inode).bytes())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.writable_state()?;
        state.begin_atomic(None)?;
        inode_of(&mut state, self.inode).set_len(length as usize);
        state.end()
    }

    fn is_named(&self, path: &Path) -> io::Result<bool> {
        Ok(self.state()?.names.get(path) == Some(&self.inode))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state()?;
        let outcome = state.begin_atomic(Some(Fault::Sync));
        let power_is_off = state.power_is_off;
        match outcome {
            Ok(()) => inode_of(&mut state, self.inode).sync(),
            Err(error) => {
                if !power_is_off {
                    let State { inodes, random, .. } = &mut *state;
                    inodes.entry(self.inode).or_default().fail_sync(random);
                }
                return Err(error);
            }
        }
        state.end()
    }
}
