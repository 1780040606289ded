//! Streams with one consumer group each: entries go through them as through a job queue.

use crate::load::data::write_bytes;
use crate::load::question::Question;
use crate::load::words::{
    INTEGER_BYTES_MAX, NAME_BYTES, Pattern, Word, array, bulk, integer, name,
};

/// Streams that keep about [`KEPT`] entries.
#[derive(Debug)]
pub struct Streams {
    /// What their names begin with.
    prefix: u8,
    element_bytes: usize,
    /// Entries that were ever added, by stream.
    added: Vec<u32>,
    /// What the last request about a stream was.
    step: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Added,
    Delivered,
    Acknowledged,
}

/// Entries of a stream that are kept, roughly: `MAXLEN ~`.
pub const KEPT: u32 = 1000;
const MAXLEN: &str = "1000";
const GROUP: &str = "workers";
const CONSUMER: &str = "w";
const FIELD: &str = "job";
/// Length of an id: the entry's number in ten digits, and `-1`.
const ID_BYTES: usize = 12;
/// As many digits as an id has before its dash; no id begins with a zero.
const FIRST_ID: u64 = 1_000_000_000;

impl Streams {
    /// `count` streams whose names begin with `prefix`, with entries of one field of
    /// `element_bytes`.
    #[must_use]
    pub fn new(prefix: u8, count: u32, element_bytes: usize) -> Self {
        let step = vec![Step::Acknowledged; count as usize];
        Self { prefix, element_bytes, added: vec![0; count as usize], step }
    }

    fn name(&self, stream: u32) -> [u8; NAME_BYTES] {
        name(self.prefix, stream)
    }

    /// The id of the last entry that was added.
    fn write_id(&self, stream: u32, to: &mut [u8]) {
        let number = FIRST_ID + u64::from(self.added[stream as usize]);
        to.copy_from_slice(format!("{number}-1").as_bytes());
    }

    fn write_element(&self, stream: u32, to: &mut [u8]) {
        write_bytes(stream ^ self.added[stream as usize].rotate_left(16), 1, to);
    }

    fn add(&mut self, stream: u32, request: &Pattern, to: &mut Vec<u8>) {
        self.added[stream as usize] += 1;
        let mut request = request.append(to);
        request.word(0).copy_from_slice(&self.name(stream));
        self.write_id(stream, request.word(1));
        self.write_element(stream, request.word(2));
    }

    fn id_answer(&self, stream: u32, to: &mut Vec<u8>) {
        let mut id = [0; ID_BYTES];
        self.write_id(stream, &mut id);
        bulk(&id, to);
    }
}

fn xadd(element_bytes: usize) -> Pattern {
    Pattern::new(&[
        Word::Is("XADD"),
        Word::Open(NAME_BYTES),
        Word::Is("MAXLEN"),
        Word::Is("~"),
        Word::Is(MAXLEN),
        Word::Open(ID_BYTES),
        Word::Is(FIELD),
        Word::Open(element_bytes),
    ])
}

/// `XGROUP CREATE` of each stream.
#[derive(Debug)]
pub struct Fill<'a>(pub &'a Streams);

impl Question for Fill<'_> {
    fn count(&self) -> u32 {
        self.0.added.len() as u32
    }

    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        array(6, to);
        bulk(b"XGROUP", to);
        bulk(b"CREATE", to);
        bulk(&self.0.name(about), to);
        bulk(GROUP.as_bytes(), to);
        bulk(b"$", to);
        bulk(b"MKSTREAM", to);
    }

    fn answer(&self, _: u32, to: &mut Vec<u8>) {
        to.extend_from_slice(b"+OK\r\n");
    }
}

/// `XADD` with `MAXLEN ~`, to streams that nobody reads.
#[derive(Debug)]
pub struct Xadd<'a> {
    streams: &'a mut Streams,
    request: Pattern,
}

impl<'a> Xadd<'a> {
    /// To any stream.
    #[must_use]
    pub fn new(streams: &'a mut Streams) -> Self {
        let request = xadd(streams.element_bytes);
        Self { streams, request }
    }
}

impl Question for Xadd<'_> {
    const ORDERED: bool = true;

    fn count(&self) -> u32 {
        self.streams.added.len() as u32
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        self.streams.add(about, &self.request, to);
    }

    #[inline]
    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        self.streams.id_answer(about, to);
    }
}

/// `XADD`, `XREADGROUP` of the new entry, `XACK` of it, in turn.
#[derive(Debug)]
pub struct Work<'a> {
    streams: &'a mut Streams,
    add: Pattern,
    read: Pattern,
    acknowledge: Pattern,
}

impl<'a> Work<'a> {
    /// About any stream.
    #[must_use]
    pub fn new(streams: &'a mut Streams) -> Self {
        let add = xadd(streams.element_bytes);
        let read = Pattern::new(&[
            Word::Is("XREADGROUP"),
            Word::Is("GROUP"),
            Word::Is(GROUP),
            Word::Is(CONSUMER),
            Word::Is("COUNT"),
            Word::Is("10"),
            Word::Is("STREAMS"),
            Word::Open(NAME_BYTES),
            Word::Is(">"),
        ]);
        let words =
            [Word::Is("XACK"), Word::Open(NAME_BYTES), Word::Is(GROUP), Word::Open(ID_BYTES)];
        Self { streams, add, read, acknowledge: Pattern::new(&words) }
    }
}

impl Question for Work<'_> {
    const ORDERED: bool = true;

    fn count(&self) -> u32 {
        self.streams.added.len() as u32
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        let step = self.streams.step[about as usize];
        self.streams.step[about as usize] = match step {
            Step::Acknowledged => {
                self.streams.add(about, &self.add, to);
                Step::Added
            }
            Step::Added => {
                self.read.append(to).word(0).copy_from_slice(&self.streams.name(about));
                Step::Delivered
            }
            Step::Delivered => {
                let mut request = self.acknowledge.append(to);
                request.word(0).copy_from_slice(&self.streams.name(about));
                self.streams.write_id(about, request.word(1));
                Step::Acknowledged
            }
        };
    }

    #[inline]
    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        match self.streams.step[about as usize] {
            Step::Added => self.streams.id_answer(about, to),
            Step::Acknowledged => integer(1, to),
            Step::Delivered => {
                array(1, to);
                array(2, to);
                bulk(&self.streams.name(about), to);
                array(1, to);
                array(2, to);
                self.streams.id_answer(about, to);
                array(2, to);
                bulk(FIELD.as_bytes(), to);
                let mut element = vec![0; self.streams.element_bytes];
                self.streams.write_element(about, &mut element);
                bulk(&element, to);
            }
        }
    }

    fn answer_bytes_max(&self) -> usize {
        8 * INTEGER_BYTES_MAX + NAME_BYTES + ID_BYTES + self.streams.element_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_added_read_and_acknowledged() {
        let mut streams = Streams::new(b'x', 3, 4);
        let mut work = Work::new(&mut streams);
        let mut ask = || {
            let (mut request, mut answer) = (Vec::new(), Vec::new());
            work.write(2, &mut request);
            work.answer(2, &mut answer);
            assert!(answer.len() <= work.answer_bytes_max());
            (String::from_utf8_lossy(&request).into_owned(), answer)
        };
        let id = b"$12\r\n1000000001-1\r\n";
        let (added, answer) = ask();
        assert!(added.starts_with("*8\r\n$4\r\nXADD\r\n$10\r\nx:00000002\r\n"), "{added}");
        assert_eq!(answer, id);
        let (read, answer) = ask();
        assert!(read.starts_with("*9\r\n$10\r\nXREADGROUP\r\n"), "{read}");
        let head = b"*1\r\n*2\r\n$10\r\nx:00000002\r\n*1\r\n*2\r\n".as_slice();
        assert!(answer.starts_with(&[head, id].concat()));
        let (acknowledged, answer) = ask();
        assert!(acknowledged.ends_with("$7\r\nworkers\r\n$12\r\n1000000001-1\r\n"));
        assert_eq!(answer, b":1\r\n");
        assert_eq!(ask().1, b"$12\r\n1000000002-1\r\n");
    }
}
