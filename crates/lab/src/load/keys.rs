//! Plain keys to be there before something happens to them.

use super::question::Question;
use super::words::{array, bulk, bulk_number, name};

/// Sets `prefix:00000000` and so on, each to a value of the same length.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// First letter of the names.
    pub prefix: u8,
    /// How many.
    pub count: u32,
    /// Bytes of each value.
    pub value_bytes: usize,
    /// When the first expires, in Unix milliseconds, and how many do in each second from then on.
    pub expiry: Option<(u64, u32)>,
}

impl Question for Keys {
    fn count(&self) -> u32 {
        self.count
    }

    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        array(if self.expiry.is_some() { 5 } else { 3 }, to);
        bulk(b"SET", to);
        bulk(&name(self.prefix, about), to);
        bulk(&vec![b'x'; self.value_bytes], to);
        if let Some((first, each_second)) = self.expiry {
            bulk(b"PXAT", to);
            bulk_number(first + u64::from(about) * 1000 / u64::from(each_second.max(1)), to);
        }
    }

    fn answer(&self, _: u32, to: &mut Vec<u8>) {
        to.extend_from_slice(b"+OK\r\n");
    }

    fn answer_bytes_max(&self) -> usize {
        8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_expire_evenly() {
        let mut keys = Keys { prefix: b'e', count: 10, value_bytes: 1, expiry: Some((5000, 2)) };
        let mut last = Vec::new();
        keys.write(9, &mut last);
        let right =
            b"*5\r\n$3\r\nSET\r\n$10\r\ne:00000009\r\n$1\r\nx\r\n$4\r\nPXAT\r\n$4\r\n9500\r\n";
        assert_eq!(last, right, "{}", last.escape_ascii());
    }
}
