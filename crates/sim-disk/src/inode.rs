//! One file's bytes: what a process sees, and what a power cut leaves.

use ladon_testkit::Random;

/// A change since the last sync.
#[derive(Debug)]
enum Unsynced {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

#[derive(Debug, Default)]
pub(crate) struct Inode {
    /// What a process reads.
    pub(crate) seen: Vec<u8>,
    /// The bytes that are certainly on the disk.
    synced: Vec<u8>,
    unsynced: Vec<Unsynced>,
}

fn put(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[offset..end].copy_from_slice(bytes);
}

fn apply(file: &mut Vec<u8>, change: &Unsynced) {
    match change {
        Unsynced::Write { offset, bytes } => put(file, *offset, bytes),
        Unsynced::Length(length) => file.resize(*length, 0),
    }
}

impl Inode {
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        put(&mut self.seen, offset, bytes);
        self.unsynced.push(Unsynced::Write { offset, bytes: bytes.to_vec() });
    }

    pub(crate) fn set_len(&mut self, length: usize) {
        self.seen.resize(length, 0);
        self.unsynced.push(Unsynced::Length(length));
    }

    pub(crate) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            apply(&mut self.synced, &change);
        }
    }

    /// The changes reach the disk in part or not at all, and no later sync covers them: a process
    /// continues to see them, and only the next power cut shows what is on the disk.
    pub(crate) fn fail_sync(&mut self, random: &mut Random) {
        self.keep_some(random);
    }

    /// Sets the content to what the disk holds when the machine comes back.
    pub(crate) fn cut_power(&mut self, random: &mut Random) {
        self.keep_some(random);
        self.seen = self.synced.clone();
    }

    fn keep_some(&mut self, random: &mut Random) {
        // One granularity at a time: real sectors, pages, or single bytes to be merciless.
        let sector = [1, 16, 512, 4096][random.below(4) as usize];
        let kept_in_16 = random.below(17);
        for change in self.unsynced.drain(..) {
            match &change {
                Unsynced::Length(_) => {
                    if random.chance(kept_in_16, 16) {
                        apply(&mut self.synced, &change);
                    }
                }
                Unsynced::Write { offset, bytes } => {
                    keep_sectors(&mut self.synced, *offset, bytes, sector, kept_in_16, random);
                }
            }
        }
    }

    /// Bytes that this file takes on the disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.seen.len() as u64
    }
}

/// Keeps each sector that the write touches, or not.
fn keep_sectors(
    file: &mut Vec<u8>,
    offset: usize,
    bytes: &[u8],
    sector: usize,
    kept_in_16: u64,
    random: &mut Random,
) {
    let mut at = offset;
    while at < offset + bytes.len() {
        // Sectors are aligned in the file, as on the disk.
        let end = ((at / sector + 1) * sector).min(offset + bytes.len());
        if random.chance(kept_in_16, 16) {
            put(file, at, &bytes[at - offset..end - offset]);
        }
        at = end;
    }
}
