//! A reply as it is written: short values are copied, long ones are sent from their own memory.

use ladon_engine::types::long_string::LongString;
use ladon_kernel::long::large::Large;
use ladon_kernel::long::long_reply::LongReply;
use ladon_kernel::long::slices::{Room, Slices};
use ladon_kernel::request::outcome::{Flow, Outcome};
use ladon_record::Lsn;
use ladon_resp::Reply;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// A value that was read, for the reply.
pub(crate) enum Value {
    /// Copied.
    Copied(Vec<u8>),
    /// Frozen.
    Frozen(LongString),
}

impl Value {
    pub(crate) fn len(&self) -> usize {
        match self {
            Value::Copied(bytes) => bytes.len(),
            Value::Frozen(string) => string.len(),
        }
    }

    /// Whether a string of this length is frozen and not copied.
    pub(crate) fn is_frozen(large: Large, bytes: usize) -> bool {
        large.is_block(bytes, 0)
    }
}

/// The output of one piece.
pub(crate) struct Output<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    rest: Parts,
    /// What goes on after the request, of a reply that is made of the whole data.
    long: Option<LongReply>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Output<'a> {
        Output { start: out.len(), out, rest: Parts::default(), long: None }
    }

    /// Where to write what comes next.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        match self.rest.parts.back_mut() {
            None => self.out,
            Some(Part::Made(_, bytes)) => bytes,
            Some(Part::Of { .. }) => unreachable!("bytes follow each long value"),
        }
    }

    pub(crate) fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        self.buffer().extend_from_slice(bytes.as_ref());
    }

    /// Appends a line.
    pub(crate) fn line(&mut self, line: &str) {
        self.raw(line);
        self.raw("\r\n");
    }

    pub(crate) fn value(&mut self, value: Value) {
        match value {
            Value::Copied(bytes) => self.raw(bytes),
            Value::Frozen(string) => {
                let whole = string.into_shared();
                let range = 0..whole.len();
                self.rest.parts.push_back(Part::Of { whole, range });
                self.rest.parts.push_back(Part::Made(0, Vec::new()));
            }
        }
    }

    /// The reply is completed after the request, by this.
    pub(crate) fn go_on_with(&mut self, long: LongReply) {
        self.long = Some(long);
    }

    /// Forgets what was written.
    pub(crate) fn take_back(&mut self) {
        self.out.truncate(self.start);
        self.rest.parts.clear();
        self.long = None;
    }

    /// The outcome of the request, whose reply is complete.
    pub(crate) fn end(self, depends: Lsn, flow: Flow, now_ms: u64) -> Outcome {
        if let Some(long) = self.long {
            return Outcome::with_long_reply(depends, long);
        }
        if self.rest.parts.is_empty() {
            return Outcome::new(depends, flow);
        }
        let long = LongReply::of_another_protocol(Box::new(self.rest), now_ms);
        Outcome::with_long_reply(depends, long)
    }
}

/// The rest of a reply, from its first long value on.
#[derive(Default)]
struct Parts {
    parts: VecDeque<Part>,
}

enum Part {
    /// Bytes, from this position on.
    Made(usize, Vec<u8>),
    /// A part of a frozen value.
    Of { whole: Arc<Vec<u8>>, range: Range<usize> },
}

impl Slices for Parts {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        while let Some(part) = self.parts.front_mut() {
            if !room.take(reply) {
                return true;
            }
            let is_done = match part {
                Part::Made(at, bytes) => {
                    *at += room.copy(reply, &bytes[*at..]);
                    *at == bytes.len()
                }
                Part::Of { whole, range } => {
                    room.refer(whole, range);
                    range.start >= range.end
                }
            };
            if is_done {
                self.parts.pop_front();
            }
        }
        false
    }

    fn memory(&self) -> usize {
        let bytes = |part: &Part| match part {
            Part::Made(_, bytes) => bytes.capacity(),
            Part::Of { .. } => 0,
        };
        self.parts.iter().map(bytes).sum()
    }
}
