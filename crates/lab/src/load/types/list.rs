//! Lists: short ones that elements go through, and longer ones that are read.

use crate::load::data::write_bytes;
use crate::load::question::Question;
use crate::load::words::{
    INTEGER_BYTES_MAX, NAME_BYTES, Pattern, Word, array, bulk, integer, name,
};

/// Lists that hold [`QUEUE_LENGTH`] elements or one more: the last of those that were ever pushed.
#[derive(Debug)]
pub struct Queues {
    element_bytes: usize,
    /// By list.
    pushed: Vec<u32>,
    popped: Vec<u32>,
}

/// Short, as a queue is whose workers keep up, and never empty, which would remove its key.
pub const QUEUE_LENGTH: u32 = 10;

impl Queues {
    /// `count` queues with elements of `element_bytes`.
    #[must_use]
    pub fn new(count: u32, element_bytes: usize) -> Self {
        let pushed = vec![QUEUE_LENGTH; count as usize];
        Self { element_bytes, pushed, popped: vec![0; count as usize] }
    }

    /// Element `index` of all that were ever pushed to queue `queue`.
    fn write_element(queue: u32, index: u32, to: &mut [u8]) {
        write_bytes(queue ^ index.rotate_left(16), 1, to);
    }
}

/// `LPUSH` of all elements that a queue begins with.
#[derive(Debug)]
pub struct FillQueues<'a>(pub &'a Queues);

impl Question for FillQueues<'_> {
    fn count(&self) -> u32 {
        self.0.pushed.len() as u32
    }

    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        array(2 + QUEUE_LENGTH as usize, to);
        bulk(b"LPUSH", to);
        bulk(&name(b'q', about), to);
        let mut element = vec![0; self.0.element_bytes];
        for index in 0..QUEUE_LENGTH {
            Queues::write_element(about, index, &mut element);
            bulk(&element, to);
        }
    }

    fn answer(&self, _: u32, to: &mut Vec<u8>) {
        integer(QUEUE_LENGTH.into(), to);
    }
}

/// `LPUSH`, or `RPOP` where the last request about the list was an `LPUSH`.
#[derive(Debug)]
pub struct LpushRpop<'a> {
    queues: &'a mut Queues,
    push: Pattern,
    pop: Pattern,
}

impl<'a> LpushRpop<'a> {
    /// About any queue.
    #[must_use]
    pub fn new(queues: &'a mut Queues) -> Self {
        let element = Word::Open(queues.element_bytes);
        let push = Pattern::new(&[Word::Is("LPUSH"), Word::Open(NAME_BYTES), element]);
        Self { queues, push, pop: Pattern::new(&[Word::Is("RPOP"), Word::Open(NAME_BYTES)]) }
    }
}

impl Question for LpushRpop<'_> {
    const ORDERED: bool = true;

    fn count(&self) -> u32 {
        self.queues.pushed.len() as u32
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        let queue = about as usize;
        if self.queues.pushed[queue] - self.queues.popped[queue] == QUEUE_LENGTH {
            let mut request = self.push.append(to);
            request.word(0).copy_from_slice(&name(b'q', about));
            Queues::write_element(about, self.queues.pushed[queue], request.word(1));
            self.queues.pushed[queue] += 1;
        } else {
            self.pop.append(to).word(0).copy_from_slice(&name(b'q', about));
            self.queues.popped[queue] += 1;
        }
    }

    #[inline]
    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        let (pushed, popped) =
            (self.queues.pushed[about as usize], self.queues.popped[about as usize]);
        if pushed - popped > QUEUE_LENGTH {
            integer(u64::from(QUEUE_LENGTH) + 1, to);
        } else {
            let mut element = [0; ELEMENT_BYTES_MAX];
            let element = &mut element[..self.queues.element_bytes];
            Queues::write_element(about, popped.wrapping_sub(1), element);
            bulk(element, to);
        }
    }

    fn answer_bytes_max(&self) -> usize {
        INTEGER_BYTES_MAX + self.queues.element_bytes
    }
}

/// Short elements are the question here.
pub const ELEMENT_BYTES_MAX: usize = 64;

/// Lists that stay as they are.
#[derive(Debug)]
pub struct Lists {
    count: u32,
    length: usize,
    /// All elements of all lists, as bulk strings, in order.
    bulks: Vec<u8>,
    list_bytes: usize,
}

impl Lists {
    /// `count` lists of `length` elements of `element_bytes` each.
    #[must_use]
    pub fn new(count: u32, length: usize, element_bytes: usize) -> Self {
        let mut bulks = Vec::new();
        let mut element = vec![0; element_bytes];
        for number in 0..count * length as u32 {
            write_bytes(number, 0, &mut element);
            bulk(&element, &mut bulks);
        }
        let list_bytes = bulks.len() / count as usize;
        Self { count, length, bulks, list_bytes }
    }

    fn elements(&self, list: u32) -> &[u8] {
        &self.bulks[list as usize * self.list_bytes..][..self.list_bytes]
    }
}

/// `RPUSH` of a whole list.
#[derive(Debug)]
pub struct FillLists<'a>(pub &'a Lists);

impl Question for FillLists<'_> {
    fn count(&self) -> u32 {
        self.0.count
    }

    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        array(2 + self.0.length, to);
        bulk(b"RPUSH", to);
        bulk(&name(b'l', about), to);
        to.extend_from_slice(self.0.elements(about));
    }

    fn answer(&self, _: u32, to: &mut Vec<u8>) {
        integer(self.0.length as u64, to);
    }
}

/// `LRANGE 0 -1`.
#[derive(Debug)]
pub struct Lrange<'a> {
    lists: &'a Lists,
    request: Pattern,
}

impl<'a> Lrange<'a> {
    /// Of any list.
    #[must_use]
    pub fn new(lists: &'a Lists) -> Self {
        let words = [Word::Is("LRANGE"), Word::Open(NAME_BYTES), Word::Is("0"), Word::Is("-1")];
        Self { lists, request: Pattern::new(&words) }
    }
}

impl Question for Lrange<'_> {
    fn count(&self) -> u32 {
        self.lists.count
    }

    #[inline]
    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        self.request.append(to).word(0).copy_from_slice(&name(b'l', about));
    }

    #[inline]
    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        array(self.lists.length, to);
        to.extend_from_slice(self.lists.elements(about));
    }

    fn answer_bytes_max(&self) -> usize {
        INTEGER_BYTES_MAX + self.lists.list_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_in_order() {
        let mut queues = Queues::new(2, 10);
        let mut fill = Vec::new();
        FillQueues(&queues).write(1, &mut fill);
        let mut model = std::collections::VecDeque::new();
        for index in 0..QUEUE_LENGTH {
            let mut element = [0; 10];
            Queues::write_element(1, index, &mut element);
            assert!(fill.windows(10).any(|window| window == element));
            model.push_back(element.to_vec());
        }
        let mut question = LpushRpop::new(&mut queues);
        for turn in 0..100 {
            let (mut request, mut answer) = (Vec::new(), Vec::new());
            question.write(1, &mut request);
            question.answer(1, &mut answer);
            assert!(answer.len() <= question.answer_bytes_max());
            if turn % 2 == 0 {
                assert!(request.starts_with(b"*3\r\n$5\r\nLPUSH\r\n$10\r\nq:00000001\r\n"));
                assert_eq!(answer, b":11\r\n");
                model.push_back(request[request.len() - 12..request.len() - 2].to_vec());
            } else {
                assert_eq!(request, b"*2\r\n$4\r\nRPOP\r\n$10\r\nq:00000001\r\n");
                let element = model.pop_front().unwrap();
                assert_eq!(answer, [b"$10\r\n", &element[..], b"\r\n"].concat());
            }
        }
    }

    #[test]
    fn lists_differ() {
        let lists = Lists::new(3, 4, 10);
        assert_ne!(lists.elements(0), lists.elements(1));
        let mut answer = Vec::new();
        Lrange::new(&lists).answer(2, &mut answer);
        assert_eq!(answer.len(), 4 + 4 * 17);
        assert!(answer.ends_with(lists.elements(2)));
    }
}
