//! A file of RDB into a keyspace, by several threads.
//!
//! ```text
//! this thread: lengths and the checksum -> fragments of whole keys --> a thread for each core:
//!                                          (where, how long)           reads, unpacks, builds, puts
//! ```
//!
//! A fragment is a place in the file: each thread reads its bytes there, so that a long value is in
//! memory once, and what waits is a few numbers.

use crate::import::{ImportError, Imported, Taken, TargetError, shown};
use crate::places::{NotPut, Placer, Places};
use ladon_rdb::{Event, FilePart, FileParts, Fragment, Reader};
use parking_lot::Mutex;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Bytes of a fragment, about.
const FRAGMENT_BYTES: u64 = 512 << 10;
/// So many fragments may wait for each thread.
const WAITING: usize = 4;

/// What the threads have done.
#[derive(Default)]
struct Done {
    keys: AtomicU64,
    expired: AtomicU64,
    has_failed: AtomicBool,
    /// Why, and where in the file.
    failure: Mutex<Option<(u64, ImportError)>>,
}

impl Done {
    fn fail(&self, at: u64, error: ImportError) {
        let mut failure = self.failure.lock();
        if failure.as_ref().is_none_or(|(before, _)| at < *before) {
            *failure = Some((at, error));
        }
        self.has_failed.store(true, Relaxed);
    }
}

/// Puts all keys of a file. Calls `function` with each library of functions, and `tell` with the bytes
/// read and what was put so far. Returns where the file of RDB ends, and what was put.
pub(crate) fn place_file(
    path: &Path,
    places: Places<'_>,
    function: &mut dyn FnMut(&[u8]) -> Result<(), ImportError>,
    tell: &mut dyn FnMut(u64, Imported),
) -> Result<(u64, Imported), ImportError> {
    let io = |error| ImportError::Io { doing: "read", path: path.to_owned(), error };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let file = File::open(path).map_err(io)?;
    let parts = FileParts::new(file.try_clone().map_err(io)?, FRAGMENT_BYTES);
    let done = Done::default();
    let (sender, receiver) = sync_channel(WAITING * workers);
    let receiver = Mutex::new(receiver);
    let cut = thread::scope(|threads| {
        for number in 0..workers {
            let name = format!("ladon-import-{number}");
            let work = || work(path, &file, places, &receiver, &done);
            thread::Builder::new().name(name).spawn_scoped(threads, work).map_err(io)?;
        }
        // With it, the threads end.
        cut(path, parts, sender, &done, function, tell)
    });
    let failure = done.failure.lock().take();
    match failure {
        Some((_, error)) => Err(error),
        None => cut.map(|(end, functions)| (end, imported(&done, functions))),
    }
}

fn imported(done: &Done, functions: u64) -> Imported {
    let (keys, expired) = (done.keys.load(Relaxed), done.expired.load(Relaxed));
    Imported { keys, expired, functions, ..Imported::default() }
}

/// Hands the fragments out. Returns where the file ends, and how many libraries it has.
fn cut(
    path: &Path,
    mut parts: FileParts<File>,
    sender: SyncSender<Fragment>,
    done: &Done,
    function: &mut dyn FnMut(&[u8]) -> Result<(), ImportError>,
    tell: &mut dyn FnMut(u64, Imported),
) -> Result<(u64, u64), ImportError> {
    let mut functions = 0;
    while let Some(part) = parts.next() {
        let part = part.map_err(|error| ImportError::Rdb { path: path.to_owned(), error })?;
        if done.has_failed.load(Relaxed) {
            break;
        }
        match part {
            FilePart::Keys(keys) if sender.send(keys).is_ok() => {}
            FilePart::Keys(_) => break,
            FilePart::Function(code) => {
                function(&code)?;
                functions += 1;
            }
            FilePart::End => {}
        }
        tell(parts.offset(), imported(done, functions));
    }
    Ok((parts.offset(), functions))
}

/// Puts the keys of fragments until there are no more.
fn work(
    path: &Path,
    file: &File,
    places: Places<'_>,
    receiver: &Mutex<Receiver<Fragment>>,
    done: &Done,
) {
    let mut placer = places.placer();
    loop {
        let fragment = receiver.lock().recv();
        let Ok(fragment) = fragment else { return };
        // The others are taken and left, so that nobody waits for room.
        if done.has_failed.load(Relaxed) {
            continue;
        }
        if let Err(error) = place(path, file, &fragment, &mut placer, done) {
            done.fail(fragment.at, error);
        }
    }
}

fn place(
    path: &Path,
    file: &File,
    fragment: &Fragment,
    placer: &mut Placer<'_>,
    done: &Done,
) -> Result<(), ImportError> {
    let region = Region { file, at: fragment.at, left: fragment.bytes };
    let mut events = Reader::of_fragment(region, fragment);
    let wrong = |error| ImportError::Rdb { path: path.to_owned(), error };
    let refused = |NotPut { name, encoding, error }: NotPut| match error {
        TargetError::Source(error) => wrong(error),
        TargetError::This(why) => {
            let (path, key, of_type) = (path.to_owned(), shown(&name), encoding.to_string());
            ImportError::Key { path, key, of_type, db: fragment.db, why }
        }
    };
    let (mut keys, mut expired) = (0, 0);
    while let Some(event) = events.next() {
        let Event::Key(key) = event.map_err(wrong)? else { continue };
        let mut elements = std::iter::from_fn(|| match events.next()? {
            Ok(Event::Element(element)) => Some(Ok(element)),
            Ok(_) => None,
            Err(error) => Some(Err(TargetError::Source(error))),
        })
        .fuse();
        match placer.key(fragment.db, &key, &mut elements).map_err(refused)? {
            Taken::Here => keys += 1,
            Taken::NoKey => {
                expired += 1;
                // Its elements are no part of the next key.
                for element in elements {
                    if let Err(TargetError::Source(error)) = element {
                        return Err(wrong(error));
                    }
                }
            }
        }
    }
    placer.put_all().map_err(refused)?;
    done.keys.fetch_add(keys, Relaxed);
    done.expired.fetch_add(expired, Relaxed);
    Ok(())
}

/// A place in a file.
struct Region<'f> {
    file: &'f File,
    at: u64,
    left: u64,
}

impl Read for Region<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read_at(&mut buffer[..wanted], self.at)?;
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}
