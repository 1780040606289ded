//! Several consecutive replies of which some are long: the reply of `EXEC`.

use crate::long::slices::{Block, Keeping, Room, Slices};
use ladon_resp::{Proto, Reply};
use std::collections::VecDeque;
use std::ops::Range;

/// The rest of several replies, from the first long one on.
#[derive(Default)]
pub struct Several {
    parts: VecDeque<Part>,
    /// Where in the buffer the replies after the last long one begin.
    from: usize,
    /// Number of parts at the front that hold nothing frozen except strings.
    kept: usize,
    /// Bytes that only these parts hold.
    memory: usize,
}

enum Part {
    /// A part of a reply, and how much of it was sent.
    Made(Vec<u8>, usize),
    Block(Block),
    /// And how much of their memory is counted.
    Slices(Box<dyn Slices>, usize),
}

impl Several {
    /// The reply that was just written continues with `slices`.
    pub fn add(&mut self, reply: &mut Reply<'_>, slices: Box<dyn Slices>) {
        self.gather(reply);
        self.parts.push_back(Part::Slices(slices, 0));
    }

    /// What remains after the buffer's content; `None` if nothing does.
    pub fn end(mut self, reply: &mut Reply<'_>) -> Option<Several> {
        self.gather(reply);
        (!self.parts.is_empty()).then_some(self)
    }

    fn gather(&mut self, reply: &mut Reply<'_>) {
        if !self.parts.is_empty() && reply.position() > self.from {
            let made = reply.take_from(self.from);
            self.memory += made.len();
            self.parts.push_back(Part::Made(made, 0));
        }
        self.from = reply.position();
    }

    /// The first part is written.
    fn pop(&mut self) {
        match self.parts.pop_front() {
            Some(Part::Made(made, _)) => self.memory -= made.len(),
            Some(Part::Slices(_, counted)) => self.memory -= counted,
            Some(Part::Block(_)) | None => {}
        }
        self.kept = self.kept.saturating_sub(1);
    }

    /// Makes a slice in advance, of a part that is not the first one.
    fn make(&mut self, index: usize, proto: Proto, elements: usize) {
        let Some(Part::Slices(slices, _)) = self.parts.get_mut(index) else { return };
        let (mut made, mut room) = (Vec::new(), Room::aside(elements));
        let more = slices.write(&mut Reply::new(&mut made, proto), &mut room);
        if !more {
            self.parts.remove(index);
        }
        self.memory += made.len();
        let block = room.take_block().map(Part::Block);
        for part in [Some(Part::Made(made, 0)), block].into_iter().flatten() {
            self.parts.insert(self.kept, part);
            self.kept += 1;
        }
    }
}

impl Slices for Several {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        while let Some(part) = self.parts.front_mut() {
            let goes_on = match part {
                Part::Made(made, at) => {
                    *at += room.copy(reply, &made[*at..]);
                    *at < made.len()
                }
                Part::Slices(slices, _) => slices.write(reply, room),
                Part::Block(Block { whole, range }) => {
                    room.refer(whole, range);
                    !Range::is_empty(range)
                }
            };
            if !goes_on {
                self.pop();
            }
            if goes_on || room.is_ended() {
                return !self.parts.is_empty();
            }
        }
        false
    }

    /// Stores the rest of the first part, if it is finite. Otherwise the other parts must not wait
    /// for it while they hold frozen values.
    fn keep(&mut self, proto: Proto, elements: usize) -> Keeping {
        let index = self.kept;
        let Some(part) = self.parts.get_mut(index) else { return Keeping::Own(None) };
        let Part::Slices(slices, counted) = part else {
            self.kept += 1;
            return Keeping::More(None);
        };
        match slices.keep(proto, elements) {
            Keeping::More(unused) => Keeping::More(unused),
            Keeping::Own(unused) => {
                *counted = slices.memory();
                self.memory += *counted;
                self.kept += 1;
                Keeping::More(unused)
            }
            Keeping::Output if index == 0 => Keeping::Output,
            Keeping::Output => {
                self.make(index, proto, elements);
                Keeping::More(None)
            }
        }
    }

    fn memory(&self) -> usize {
        self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers, for which a slow client may be waited for.
    struct Numbers {
        left: Range<i64>,
        is_endless: bool,
    }

    impl Slices for Numbers {
        fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
            while room.take(reply) {
                let Some(number) = self.left.next() else { return false };
                reply.integer(number);
            }
            true
        }

        fn keep(&mut self, _: Proto, _: usize) -> Keeping {
            if self.is_endless { Keeping::Own(None) } else { Keeping::Output }
        }

        fn memory(&self) -> usize {
            8
        }
    }

    /// Writes in slices of this many elements to a client that turns out to be slow after
    /// `slow_after` of them.
    fn written(elements: usize, slow_after: usize, endless: [bool; 2]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, Proto::Resp2);
        let mut several = Several::default();
        reply.array(5);
        for (numbers, is_endless) in [0..5, 10..17].into_iter().zip(endless) {
            reply.ok();
            several.add(&mut reply, Box::new(Numbers { left: numbers, is_endless }));
        }
        reply.bulk("end");
        let mut rest = several.end(&mut reply).expect("something is left");
        for slice in 0.. {
            assert!(slice < 1000, "it ends");
            let mut is_kept = slice < slow_after;
            while !is_kept {
                is_kept =
                    matches!(rest.keep(Proto::Resp2, elements), Keeping::Output | Keeping::Own(_));
            }
            let mut room = Room::aside(elements);
            let mut slice = Vec::new();
            let more = rest.write(&mut Reply::new(&mut slice, Proto::Resp2), &mut room);
            out.extend(slice);
            if !more {
                break;
            }
        }
        assert_eq!(rest.memory(), 0, "nothing is held any more");
        out
    }

    #[test]
    fn the_parts_come_in_order_however_slow_the_client_is() {
        let expected = written(1000, usize::MAX, [false; 2]);
        assert!(
            expected.starts_with(b"*5\r\n+OK\r\n:0\r\n")
                && expected.ends_with(b":16\r\n$3\r\nend\r\n")
        );
        for elements in [1, 2, 3, 5, 100] {
            for slow_after in [0, 1, 2, 4, 8, usize::MAX] {
                for endless in [[false, false], [true, false], [false, true], [true, true]] {
                    let out = written(elements, slow_after, endless);
                    assert_eq!(out, expected, "{elements} {slow_after} {endless:?}");
                }
            }
        }
    }
}
