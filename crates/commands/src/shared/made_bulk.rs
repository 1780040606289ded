//! Bytes that were made for one reply, as a bulk string in slices that refer to their memory.

use ladon_kernel::long::slices::{Keeping, Room, Slices};
use ladon_resp::{Proto, Reply};
use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;

/// A long bulk string, or the error in its place.
pub(crate) enum MadeBulk {
    /// Before its head.
    Made(Arc<Vec<u8>>),
    /// What is to be sent of it.
    Sending(Arc<Vec<u8>>, Range<usize>),
    /// There is none.
    Failed(String),
    Done,
}

impl MadeBulk {
    pub(crate) fn new(made: Result<Vec<u8>, impl Display>) -> MadeBulk {
        match made {
            Ok(bytes) => MadeBulk::Made(Arc::new(bytes)),
            Err(error) => MadeBulk::Failed(error.to_string()),
        }
    }
}

impl Slices for MadeBulk {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        match self {
            MadeBulk::Made(bytes) => {
                reply.bulk_header(bytes.len());
                let range = 0..bytes.len();
                *self = MadeBulk::Sending(Arc::clone(bytes), range);
                return true;
            }
            MadeBulk::Sending(bytes, range) if !Range::is_empty(range) => {
                room.refer(bytes, range);
                return true;
            }
            MadeBulk::Sending(..) => reply.raw(b"\r\n"),
            MadeBulk::Failed(error) => reply.error(format!("ERR {error}")),
            MadeBulk::Done => {}
        }
        *self = MadeBulk::Done;
        false
    }

    /// It depends on no value any more.
    fn keep(&mut self, _: Proto, _: usize) -> Keeping {
        Keeping::Own(None)
    }

    fn memory(&self) -> usize {
        match self {
            MadeBulk::Made(bytes) | MadeBulk::Sending(bytes, _) => bytes.capacity(),
            MadeBulk::Failed(_) | MadeBulk::Done => 0,
        }
    }
}
