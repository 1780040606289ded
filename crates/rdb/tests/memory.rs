//! What a reader holds beside one element does not grow with the file. A test binary of its own:
//! its allocator counts for the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ladon_rdb::{Event, Reader};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(HELD.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: by the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: by the caller's contract.
        unsafe { System.dealloc(piece, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A head, then the same bytes again and again, then a tail.
struct Repeated<'a> {
    head: &'a [u8],
    body: &'a [u8],
    times: usize,
    tail: &'a [u8],
    current: &'a [u8],
}

impl<'a> Repeated<'a> {
    fn new(head: &'a [u8], body: &'a [u8], times: usize, tail: &'a [u8]) -> Repeated<'a> {
        Repeated { head, body, times, tail, current: b"" }
    }

    fn len(&self) -> usize {
        self.head.len() + self.body.len() * self.times + self.tail.len()
    }
}

impl Read for Repeated<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            if !self.head.is_empty() {
                self.current = std::mem::take(&mut self.head);
            } else if self.times > 0 {
                self.times -= 1;
                self.current = self.body;
            } else if !self.tail.is_empty() {
                self.current = std::mem::take(&mut self.tail);
            } else {
                return Ok(0);
            }
        }
        self.current.read(out)
    }
}

/// Reads it all; the events, or the error, and the bytes that were held at most.
fn read(input: Repeated<'_>) -> (Result<u64, String>, usize) {
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    let mut events = 0;
    for event in Reader::new(input) {
        match event {
            Ok(Event::End { .. }) => return (Ok(events), PEAK.load(Relaxed) - before),
            Ok(_) => events += 1,
            Err(error) => return (Err(error.to_string()), PEAK.load(Relaxed) - before),
        }
    }
    unreachable!("a file ends with its end or an error")
}

/// One test: others beside it would count too.
#[test]
fn a_reader_holds_little() {
    const TIMES: usize = 2_000_000;
    const HELD_MAX: usize = 512 << 10;
    let length = |n: usize| [&[0x80][..], &(n as u32).to_be_bytes()].concat();
    let end = [&[0xff][..], &[0; 8]].concat();

    // A set of two million members, packed into one listpack of 16 MB.
    let body = b"\x86member\x07";
    let bytes = 6 + TIMES * body.len() + 1;
    let pack = [&(bytes as u32).to_le_bytes()[..], b"\xff\xff"].concat();
    let head = [b"REDIS0012\x14\x01k", &length(bytes)[..], &pack].concat();
    let tail = [&[0xff][..], &end].concat();
    let input = Repeated::new(&head, body, TIMES, &tail);
    assert!(input.len() > 15 << 20);
    let (events, held) = read(input);
    assert_eq!(events, Ok(TIMES as u64 + 3));
    assert!(held < HELD_MAX, "{held} bytes for a packed set");

    // A string of 264 MB, compressed.
    let (copies, copy) = (1_000_000, b"\xe0\xff\x00");
    let (compressed, whole) = (2 + copies * copy.len(), 1 + copies * 264);
    let head = [b"REDIS0012\x00\x01k\xc3", &length(compressed)[..], &length(whole), b"\x00a"];
    let (events, held) = read(Repeated::new(&head.concat(), copy, copies, &end));
    assert!(events.is_ok_and(|events| events > 1000), "in pieces");
    assert!(held < HELD_MAX, "{held} bytes for a compressed string");

    // A list that announces more than there can be, and ends early.
    let head = b"REDIS0012\x01\x01k\x81\x7f\xff\xff\xff\xff\xff\xff\xff";
    let (events, held) = read(Repeated::new(head, b"\x03abc", 1000, b""));
    assert!(events.unwrap_err().ends_with("the data ends in the middle"));
    assert!(held < HELD_MAX, "{held} bytes for a list that lies");

    // One element of 100 MB that is not there.
    let head = [b"REDIS0012\x01\x01k\x01", &length(100 << 20)[..]].concat();
    let (events, held) = read(Repeated::new(&head, b"x", 1000, b""));
    assert!(events.is_err());
    assert!(held < HELD_MAX, "{held} bytes for an element that lies");
}
