//! Streams with one consumer group each: entries go through them as through a job queue.

use crate::load::data::write_bytes;
use crate::load::question::{Question, ask};
use crate::load::words::Word::{Is, Open};
use crate::load::words::{
    INTEGER_BYTES_MAX, NAME_BYTES, Pattern, array, bulk, bulks, integer, name, ok,
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

    fn count(&self) -> u32 {
        self.added.len() as u32
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

    /// The answer to the last request about a stream.
    fn step_answer(&self, stream: u32, to: &mut Vec<u8>) {
        match self.step[stream as usize] {
            Step::Added => self.id_answer(stream, to),
            Step::Acknowledged => integer(1, to),
            Step::Delivered => {
                array(1, to);
                array(2, to);
                bulk(&self.name(stream), to);
                array(1, to);
                array(2, to);
                self.id_answer(stream, to);
                array(2, to);
                bulk(FIELD.as_bytes(), to);
                let mut element = vec![0; self.element_bytes];
                self.write_element(stream, &mut element);
                bulk(&element, to);
            }
        }
    }
}

fn request(element_bytes: usize) -> Pattern {
    Pattern::new(&[
        Is("XADD"),
        Open(NAME_BYTES),
        Is("MAXLEN"),
        Is("~"),
        Is(MAXLEN),
        Open(ID_BYTES),
        Is(FIELD),
        Open(element_bytes),
    ])
}

/// `XGROUP CREATE` of each stream.
pub fn fill(streams: &Streams) -> impl Question {
    let write = |streams: &mut &Streams, about, to: &mut Vec<u8>| {
        let name = streams.name(about);
        bulks(&[b"XGROUP", b"CREATE", &name, GROUP.as_bytes(), b"$", b"MKSTREAM"], to);
    };
    ask(streams, streams.count(), write, |_, _, to| ok(to))
}

/// `XADD` with `MAXLEN ~`, to streams that nobody reads.
pub fn xadd(streams: &mut Streams) -> impl Question {
    let request = request(streams.element_bytes);
    let count = streams.count();
    let write = move |streams: &mut &mut Streams, about, to: &mut Vec<u8>| {
        streams.add(about, &request, to);
    };
    ask(streams, count, write, |streams, about, to| streams.id_answer(about, to)).ordered()
}

/// `XADD`, `XREADGROUP` of the new entry, `XACK` of it, in turn.
pub fn work(streams: &mut Streams) -> impl Question {
    let add = request(streams.element_bytes);
    let group = [Is("XREADGROUP"), Is("GROUP"), Is(GROUP), Is(CONSUMER), Is("COUNT"), Is("10")];
    let of_stream = [Is("STREAMS"), Open(NAME_BYTES), Is(">")];
    let read = Pattern::new(&[&group[..], &of_stream].concat());
    let acknowledge = Pattern::new(&[Is("XACK"), Open(NAME_BYTES), Is(GROUP), Open(ID_BYTES)]);
    let count = streams.count();
    let answer_bytes = 8 * INTEGER_BYTES_MAX + NAME_BYTES + ID_BYTES + streams.element_bytes;
    let write = move |streams: &mut &mut Streams, about: u32, to: &mut Vec<u8>| {
        let step = streams.step[about as usize];
        streams.step[about as usize] = match step {
            Step::Acknowledged => {
                streams.add(about, &add, to);
                Step::Added
            }
            Step::Added => {
                read.append(to).word(0).copy_from_slice(&streams.name(about));
                Step::Delivered
            }
            Step::Delivered => {
                let mut request = acknowledge.append(to);
                request.word(0).copy_from_slice(&streams.name(about));
                streams.write_id(about, request.word(1));
                Step::Acknowledged
            }
        };
    };
    ask(streams, count, write, |streams, about, to| streams.step_answer(about, to))
        .ordered()
        .answer_bytes_max(answer_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_added_read_and_acknowledged() {
        let mut streams = Streams::new(b'x', 3, 4);
        let mut question = work(&mut streams);
        let mut ask = || {
            let (mut request, mut answer) = (Vec::new(), Vec::new());
            question.write(2, &mut request);
            question.answer(2, &mut answer);
            assert!(answer.len() <= question.answer_bytes_max());
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
