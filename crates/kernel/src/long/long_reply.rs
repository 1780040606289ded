//! Replies about large values, made in slices between which other connections are served.
//!
//! ```text
//! HGETALL h     freezes the value under its lock -> header -> commits, releases the lock
//!               -> the worker asks for a slice whenever the client has taken the last ones
//!               -> the connection's next request runs once the last slice is made
//! ```
//!
//! A long string is not copied into its reply: a slice then refers to a part of its frozen memory,
//! a [`Block`], which is sent from there.
//!
//! The reply shows the value when the command ran, whatever happens to the value afterwards, and
//! depends on the LSN that the command found. Inside `EXEC`, and where the reply is not wanted,
//! replies are made at once.

use crate::command::command_id::CommandId;
use crate::long::aside_job::Computed;
use crate::long::slices::{Block, Keeping, Room, Slices};
use ladon_engine::Garbage;
use ladon_platform::Clock;
use ladon_record::Lsn;
use ladon_resp::{Proto, Reply};

/// The result of asking for a slice.
#[derive(Debug)]
pub struct Slice {
    /// Sent after what was written.
    pub block: Option<Block>,
    /// There may be more slices.
    pub more: bool,
}

/// A reply that continues after its command: its elements, or all of it.
pub struct LongReply {
    /// None while they are being computed.
    slices: Option<Box<dyn Slices>>,
    /// The error that it consists of, if any.
    pub(crate) error: Option<Vec<u8>>,
    proto: Proto,
    /// None if it is of another protocol.
    pub(crate) command: Option<CommandId>,
    /// For the slow log.
    pub(crate) args: Vec<Vec<u8>>,
    /// Time spent on it, as the statistics will have it.
    pub(crate) nanoseconds: u64,
    /// Bytes so far.
    pub(crate) bytes: usize,
    /// When its command ran, Unix milliseconds.
    began_ms: u64,
    /// It has copied what it needs, and may take as long as its client does.
    is_kept: bool,
}

/// How long a client may take before its reply is completed regardless.
const PATIENCE_MS: u64 = 1000;

impl std::fmt::Debug for LongReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LongReply({:?})", self.command)
    }
}

impl LongReply {
    pub(crate) fn new(
        slices: Option<Box<dyn Slices>>,
        proto: Proto,
        command: CommandId,
        args: &[&[u8]],
        nanoseconds: u64,
        began_ms: u64,
    ) -> LongReply {
        let args = args.iter().map(|arg| arg.to_vec()).collect();
        LongReply {
            slices,
            error: None,
            proto,
            command: Some(command),
            args,
            nanoseconds,
            bytes: 0,
            began_ms,
            is_kept: false,
        }
    }

    /// A reply of another protocol, which `slices` make without regard to Redis' forms.
    pub fn of_another_protocol(slices: Box<dyn Slices>, began_ms: u64) -> LongReply {
        LongReply {
            slices: Some(slices),
            error: None,
            proto: Proto::Resp2,
            command: None,
            args: Vec::new(),
            nanoseconds: 0,
            bytes: 0,
            began_ms,
            is_kept: false,
        }
    }

    /// Whether it can continue because what comes next is there.
    pub fn is_ready(&self) -> bool {
        self.slices.as_ref().is_some_and(|slices| slices.is_ready())
    }

    /// Whether it goes on for as long as its client is there.
    pub fn is_endless(&self) -> bool {
        self.slices.as_ref().is_some_and(|slices| slices.is_endless())
    }

    /// The LSN that what was written depends on, beside that of its command.
    pub fn depends(&self) -> Lsn {
        self.slices.as_ref().map_or(Lsn::ZERO, |slices| slices.depends())
    }

    /// Takes its job's result, at time `now_ms`. Returns it unchanged if it is not a reply.
    pub fn take_in(&mut self, computed: Computed, now_ms: u64) -> Result<(), Computed> {
        let (slices, nanoseconds) = computed.into_reply()?;
        self.slices = Some(slices);
        self.nanoseconds += nanoseconds;
        self.began_ms = now_ms;
        Ok(())
    }

    /// Whether its client has used up the time it may take.
    pub fn is_overdue(&self, now_ms: u64) -> bool {
        !self.is_kept && now_ms.saturating_sub(self.began_ms) >= PATIENCE_MS
    }

    /// Takes a step towards releasing frozen values, for an overdue reply. Returns whether to write
    /// the rest instead, and what is no longer needed. A step has this many elements at most.
    pub fn keep(&mut self, clock: &dyn Clock, elements: usize) -> (bool, Option<Garbage>) {
        let Some(slices) = &mut self.slices else { return (false, None) };
        let began_ns = clock.monotonic_ns();
        let keeping = slices.keep(self.proto, elements);
        self.nanoseconds += clock.monotonic_ns().saturating_sub(began_ns);
        match keeping {
            Keeping::Output => (true, None),
            Keeping::More(unused) => (false, unused),
            Keeping::Own(unused) => {
                self.is_kept = true;
                (false, unused)
            }
        }
    }

    /// Bytes that only this reply holds.
    pub fn memory(&self) -> usize {
        self.slices.as_ref().map_or(0, |slices| slices.memory())
    }

    /// Appends the next slice, of this many elements at most, to `out`, up to its block.
    pub fn write(&mut self, clock: &dyn Clock, elements: usize, out: &mut Vec<u8>) -> Slice {
        let Some(slices) = &mut self.slices else { return Slice { block: None, more: true } };
        let start = out.len();
        let began_ns = clock.monotonic_ns();
        let mut room = Room::new(elements, out.len());
        let more = slices.write(&mut Reply::new(out, self.proto), &mut room);
        if self.command.is_some() && out.get(start) == Some(&b'-') && !more {
            self.error = Some(out[start..].to_vec());
        }
        self.nanoseconds += clock.monotonic_ns().saturating_sub(began_ns);
        let block = room.take_block();
        self.bytes += out.len() - start + block.as_ref().map_or(0, |block| block.range.len());
        Slice { block, more }
    }
}
