//! Requests written once and patched in place: a batch of the same command differs only in keys
//! and values, which have fixed lengths and so fixed places.

use std::ops::Range;

/// A pipeline's worth of one command.
#[derive(Clone, Debug)]
pub struct Template {
    bytes: Vec<u8>,
    request_bytes: usize,
    places: Vec<Range<usize>>,
}

impl Template {
    /// `depth` copies of the command `name` with arguments of these lengths in bytes.
    #[must_use]
    pub fn new(name: &str, argument_bytes: &[usize], depth: usize) -> Self {
        let mut request =
            format!("*{}\r\n${}\r\n{name}\r\n", argument_bytes.len() + 1, name.len()).into_bytes();
        let mut places = Vec::new();
        for &length in argument_bytes {
            request.extend_from_slice(format!("${length}\r\n").as_bytes());
            places.push(request.len()..request.len() + length);
            request.resize(request.len() + length, b' ');
            request.extend_from_slice(b"\r\n");
        }
        Self { bytes: request.repeat(depth), request_bytes: request.len(), places }
    }

    /// How many requests fit.
    #[must_use]
    pub const fn depth(&self) -> usize {
        self.bytes.len() / self.request_bytes
    }

    /// Argument `argument` of request `index`, to be written.
    #[inline]
    pub fn argument(&mut self, index: usize, argument: usize) -> &mut [u8] {
        let place = &self.places[argument];
        let start = index * self.request_bytes;
        &mut self.bytes[start + place.start..start + place.end]
    }

    /// The bytes of the first `count` requests.
    #[inline]
    #[must_use]
    pub fn requests(&self, count: usize) -> &[u8] {
        &self.bytes[..count * self.request_bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_patched_in_their_places() {
        let mut template = Template::new("SET", &[2, 3], 2);
        assert_eq!(template.depth(), 2);
        template.argument(0, 0).copy_from_slice(b"k0");
        template.argument(0, 1).copy_from_slice(b"abc");
        template.argument(1, 0).copy_from_slice(b"k1");
        template.argument(1, 1).copy_from_slice(b"xyz");
        let first = b"*3\r\n$3\r\nSET\r\n$2\r\nk0\r\n$3\r\nabc\r\n";
        assert_eq!(template.requests(1), first);
        assert_eq!(
            &template.requests(2)[first.len()..],
            b"*3\r\n$3\r\nSET\r\n$2\r\nk1\r\n$3\r\nxyz\r\n"
        );
    }
}
