//! A polite client: one connection, one small request at a time.

use super::question::Question;
use super::words::{bulk, bulks, name};

/// `PING`, `GET` and `SET` in turn of a number's keys; the writes repeat what the keys hold.
#[derive(Clone, Copy, Debug)]
pub struct Polite {
    /// How many keys.
    pub keys: u32,
    /// Whether only the writes are made, as the keys are not there yet.
    pub fills: bool,
}

/// Bytes of each value.
const VALUE_BYTES: usize = 40;
const REQUESTS: u32 = 3;

/// A request of the client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Request {
    Ping,
    Get,
    Set,
}

impl Polite {
    fn request(self, about: u32) -> (Request, u32) {
        if self.fills {
            return (Request::Set, about);
        }
        let request = match about % REQUESTS {
            0 => Request::Ping,
            1 => Request::Get,
            _ => Request::Set,
        };
        (request, about / REQUESTS)
    }
}

fn value(key: u32) -> [u8; VALUE_BYTES] {
    let mut value = [b'.'; VALUE_BYTES];
    value[..10].copy_from_slice(&name(b'v', key));
    value
}

impl Question for Polite {
    fn count(&self) -> u32 {
        if self.fills { self.keys } else { self.keys * REQUESTS }
    }

    fn write(&mut self, about: u32, to: &mut Vec<u8>) {
        let (request, key) = self.request(about);
        match request {
            Request::Ping => bulks(&[b"PING"], to),
            Request::Get => bulks(&[b"GET", &name(b'p', key)], to),
            Request::Set => bulks(&[b"SET", &name(b'p', key), &value(key)], to),
        }
    }

    fn answer(&self, about: u32, to: &mut Vec<u8>) {
        match self.request(about) {
            (Request::Ping, _) => to.extend_from_slice(b"+PONG\r\n"),
            (Request::Get, key) => bulk(&value(key), to),
            (Request::Set, _) => to.extend_from_slice(b"+OK\r\n"),
        }
    }

    fn answer_bytes_max(&self) -> usize {
        VALUE_BYTES + 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_is_written() {
        let mut polite = Polite { keys: 10, fills: false };
        let (mut set, mut get) = (Vec::new(), Vec::new());
        polite.write(3 * 7 + 2, &mut set);
        polite.answer(3 * 7 + 1, &mut get);
        assert!(set.ends_with(&get), "{} {}", set.escape_ascii(), get.escape_ascii());
        let mut fill = Vec::new();
        Polite { keys: 10, fills: true }.write(7, &mut fill);
        assert_eq!(fill, set);
        assert_eq!(polite.count(), 30);
    }
}
