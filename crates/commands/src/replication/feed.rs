//! The way of a dump from the thread that makes it to the client: a few pieces, one after the other.

use ladon_kernel::long::slices::{Keeping, Room, Slices};
use ladon_record::Lsn;
use ladon_resp::{Proto, Reply};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Length of what ends a dump whose length is not known.
pub(super) const MARK_BYTES: usize = 40;

/// A piece that a slice of the reply refers to.
const PIECE_BYTES: usize = 256 << 10;

/// Pieces that wait for the client. With what is in its output, a client that takes nothing costs a
/// megabyte and a half.
const PIECES_MAX: usize = 4;

/// A client that takes nothing for so long is closed, as Redis does it by `repl-timeout`.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Pieces {
    waiting: VecDeque<Piece>,
    /// Nothing comes any more.
    is_complete: bool,
    /// Nobody takes it any more.
    is_dropped: bool,
}

/// What is sent, and what it depends on.
struct Piece {
    bytes: Arc<Vec<u8>>,
    depends: Lsn,
}

#[derive(Default)]
struct Way {
    pieces: Mutex<Pieces>,
    /// There is room, or nobody takes it any more.
    taken: Condvar,
}

/// Where the dump is written to.
pub(super) struct Feed {
    way: Arc<Way>,
    /// The piece that is being filled.
    piece: Vec<u8>,
    /// What all that was written depends on.
    pub(super) depends: Lsn,
    mark: [u8; MARK_BYTES],
    /// Tells the client's thread that there is something to send.
    wake: Box<dyn Fn() + Send>,
}

impl Feed {
    /// A way without pieces; `mark` ends the dump.
    pub(super) fn new(mark: [u8; MARK_BYTES], wake: impl Fn() + Send + 'static) -> (Feed, Fed) {
        let way = Arc::<Way>::default();
        let wake = Box::new(wake);
        let fed = Fed { way: Arc::clone(&way), head: Some(mark), piece: None, depends: Lsn::ZERO };
        (Feed { way, piece: Vec::new(), depends: Lsn::ZERO, mark, wake }, fed)
    }

    /// Ends the dump.
    ///
    /// # Errors
    /// As of `write`.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let mark = self.mark;
        self.write_all(&mark)?;
        self.pass_on()?;
        self.way.pieces.lock().is_complete = true;
        (self.wake)();
        Ok(())
    }

    /// Waits until there is room for the piece. No lock is held here.
    fn pass_on(&mut self) -> io::Result<()> {
        let mut pieces = self.way.pieces.lock();
        while pieces.waiting.len() >= PIECES_MAX && !pieces.is_dropped {
            if self.way.taken.wait_for(&mut pieces, PATIENCE).timed_out() {
                let waits = pieces.waiting.len() >= PIECES_MAX;
                if waits {
                    let text = format!("the client took nothing for {} s", PATIENCE.as_secs());
                    return Err(io::Error::new(ErrorKind::TimedOut, text));
                }
            }
        }
        if pieces.is_dropped {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let bytes = Arc::new(std::mem::take(&mut self.piece));
        pieces.waiting.push_back(Piece { bytes, depends: self.depends });
        drop(pieces);
        (self.wake)();
        Ok(())
    }
}

impl Write for Feed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.piece.capacity() == 0 {
            self.piece.reserve_exact(PIECE_BYTES);
        }
        let count = bytes.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&bytes[..count]);
        if self.piece.len() == PIECE_BYTES {
            self.pass_on()?;
        }
        Ok(count)
    }

    /// Pieces go when they are full.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The dump as a reply.
pub(super) struct Fed {
    way: Arc<Way>,
    /// Before its head.
    head: Option<[u8; MARK_BYTES]>,
    piece: Option<(Arc<Vec<u8>>, Range<usize>)>,
    depends: Lsn,
}

impl Slices for Fed {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        if let Some(mark) = self.head.take() {
            reply.raw(b"$EOF:");
            reply.raw(&mark);
            reply.raw(b"\r\n");
            return true;
        }
        if self.piece.is_none() {
            let mut pieces = self.way.pieces.lock();
            let Some(Piece { bytes, depends }) = pieces.waiting.pop_front() else {
                return !pieces.is_complete;
            };
            self.way.taken.notify_one();
            let range = 0..bytes.len();
            (self.piece, self.depends) = (Some((bytes, range)), depends);
        }
        if let Some((bytes, range)) = &mut self.piece {
            room.refer(bytes, range);
            if Range::is_empty(range) {
                self.piece = None;
            }
        }
        true
    }

    fn is_ready(&self) -> bool {
        if self.head.is_some() || self.piece.is_some() {
            return true;
        }
        let pieces = self.way.pieces.lock();
        pieces.is_complete || !pieces.waiting.is_empty()
    }

    fn depends(&self) -> Lsn {
        self.depends
    }

    /// It has no value frozen.
    fn keep(&mut self, _: Proto, _: usize) -> Keeping {
        Keeping::Own(None)
    }

    fn memory(&self) -> usize {
        let waiting: usize =
            self.way.pieces.lock().waiting.iter().map(|piece| piece.bytes.len()).sum();
        waiting + self.piece.as_ref().map_or(0, |(bytes, _)| bytes.len())
    }
}

impl Drop for Fed {
    fn drop(&mut self) {
        self.way.pieces.lock().is_dropped = true;
        self.way.taken.notify_one();
    }
}
