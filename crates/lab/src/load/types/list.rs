//! Lists: short ones that elements go through, and longer ones that are read.

use crate::load::data::write_bytes;
use crate::load::question::{Question, ask};
use crate::load::words::Word::{Is, Open};
use crate::load::words::{INTEGER_BYTES_MAX, NAME_BYTES, Pattern, array, bulk, integer, name};

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
pub fn fill_queues(queues: &Queues) -> impl Question {
    let write = |queues: &mut &Queues, about, to: &mut Vec<u8>| {
        array(2 + QUEUE_LENGTH as usize, to);
        bulk(b"LPUSH", to);
        bulk(&name(b'q', about), to);
        let mut element = vec![0; queues.element_bytes];
        for index in 0..QUEUE_LENGTH {
            Queues::write_element(about, index, &mut element);
            bulk(&element, to);
        }
    };
    ask(queues, queues.pushed.len() as u32, write, |_, _, to| integer(QUEUE_LENGTH.into(), to))
}

/// `LPUSH`, or `RPOP` where the last request about the list was an `LPUSH`.
pub fn lpush_rpop(queues: &mut Queues) -> impl Question {
    let bytes = queues.element_bytes;
    let count = queues.pushed.len() as u32;
    let push = Pattern::new(&[Is("LPUSH"), Open(NAME_BYTES), Open(bytes)]);
    let pop = Pattern::new(&[Is("RPOP"), Open(NAME_BYTES)]);
    let write = move |queues: &mut &mut Queues, about, to: &mut Vec<u8>| {
        let queue = about as usize;
        if queues.pushed[queue] - queues.popped[queue] == QUEUE_LENGTH {
            let mut request = push.append(to);
            request.word(0).copy_from_slice(&name(b'q', about));
            Queues::write_element(about, queues.pushed[queue], request.word(1));
            queues.pushed[queue] += 1;
        } else {
            pop.append(to).word(0).copy_from_slice(&name(b'q', about));
            queues.popped[queue] += 1;
        }
    };
    let answer = move |queues: &&mut Queues, about, to: &mut Vec<u8>| {
        let (pushed, popped) = (queues.pushed[about as usize], queues.popped[about as usize]);
        if pushed - popped > QUEUE_LENGTH {
            integer(u64::from(QUEUE_LENGTH) + 1, to);
        } else {
            let mut element = [0; ELEMENT_BYTES_MAX];
            Queues::write_element(about, popped.wrapping_sub(1), &mut element[..bytes]);
            bulk(&element[..bytes], to);
        }
    };
    ask(queues, count, write, answer).ordered().answer_bytes_max(INTEGER_BYTES_MAX + bytes)
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
pub fn fill_lists(lists: &Lists) -> impl Question {
    let write = |lists: &mut &Lists, about, to: &mut Vec<u8>| {
        array(2 + lists.length, to);
        bulk(b"RPUSH", to);
        bulk(&name(b'l', about), to);
        to.extend_from_slice(lists.elements(about));
    };
    ask(lists, lists.count, write, |lists, _, to| integer(lists.length as u64, to))
}

/// `LRANGE 0 -1`.
pub fn lrange(lists: &Lists) -> impl Question {
    let request = Pattern::new(&[Is("LRANGE"), Open(NAME_BYTES), Is("0"), Is("-1")]);
    let answer = |lists: &&Lists, about, to: &mut Vec<u8>| {
        array(lists.length, to);
        to.extend_from_slice(lists.elements(about));
    };
    ask(lists, lists.count, request.about(b'l'), answer)
        .answer_bytes_max(INTEGER_BYTES_MAX + lists.list_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_in_order() {
        let mut queues = Queues::new(2, 10);
        let mut fill = Vec::new();
        fill_queues(&queues).write(1, &mut fill);
        let mut model = std::collections::VecDeque::new();
        for index in 0..QUEUE_LENGTH {
            let mut element = [0; 10];
            Queues::write_element(1, index, &mut element);
            assert!(fill.windows(10).any(|window| window == element));
            model.push_back(element.to_vec());
        }
        let mut question = lpush_rpop(&mut queues);
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
        lrange(&lists).answer(2, &mut answer);
        assert_eq!(answer.len(), 4 + 4 * 17);
        assert!(answer.ends_with(lists.elements(2)));
    }
}
