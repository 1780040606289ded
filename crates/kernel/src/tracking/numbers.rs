//! Numbers of the clients that the table names: small, so that a key's clients fit into a few
//! bytes, and such that the thread of a client follows from the number.
//!
//! A number is used again only after the table was swept of it.

/// Gives out numbers.
#[derive(Debug)]
pub(super) struct Numbers {
    /// How many each thread has used so far.
    used: Box<[u32]>,
    free: Box<[Vec<u32>]>,
    /// Numbers of clients that have left, which the table may still name.
    pub(super) departed: Vec<u32>,
}

/// The thread of a number, and the number's index in the thread.
#[inline]
pub(super) fn place(number: u32, threads: usize) -> (usize, usize) {
    (number as usize % threads, number as usize / threads)
}

impl Numbers {
    pub(super) fn new(threads: usize) -> Numbers {
        let free = vec![Vec::new(); threads].into();
        Numbers { used: vec![0; threads].into(), free, departed: Vec::new() }
    }

    /// A number for a client of this thread.
    pub(super) fn take(&mut self, thread: usize) -> u32 {
        if let Some(number) = self.free[thread].pop() {
            return number;
        }
        let threads = self.used.len();
        let index = self.used[thread];
        self.used[thread] += 1;
        index * threads as u32 + thread as u32
    }

    /// The table does not name these any more.
    pub(super) fn release(&mut self, swept: impl Iterator<Item = u32>) {
        for number in swept {
            self.free[place(number, self.used.len()).0].push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_tells_its_thread_and_is_given_once() {
        let mut numbers = Numbers::new(3);
        let given: Vec<u32> = [2, 0, 2, 1].map(|thread| numbers.take(thread)).into();
        assert_eq!(given, [2, 0, 5, 1]);
        assert_eq!(place(5, 3), (2, 1));
        numbers.departed.push(5);
        assert_eq!(numbers.take(2), 8);
        numbers.release([5, 0].into_iter());
        assert_eq!((numbers.take(2), numbers.take(2), numbers.take(0)), (5, 11, 0));
    }
}
