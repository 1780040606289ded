//! What `FUNCTION DUMP` writes and `FUNCTION RESTORE` reads: the code of each library, as in a file
//! of Redis. Names and functions are what the code says when it is run.
//!
//! ```text
//! payload := libraries, footer (the crate rdb)
//! library := 245, code as an RDB string
//! ```

use ladon_engine::Library;
use ladon_kernel::command::error::CommandError;
use ladon_kernel::long::slices::{Keeping, Room, Slices};
use ladon_rdb::payload::{self, FOOTER_BYTES, Sealing};
use ladon_rdb::{Version, put_length, take_string};
use ladon_resp::{Proto, Reply};
use std::sync::Arc;

/// Redis' `RDB_OPCODE_FUNCTION2`.
const LIBRARY: u8 = 245;

/// The code of all libraries of a payload, which may have `bytes_max` together.
pub(super) fn read(payload: &[u8], bytes_max: usize) -> Result<Vec<Vec<u8>>, CommandError> {
    const WRONG: CommandError =
        CommandError::text("ERR DUMP payload version or checksum are wrong");
    let (mut input, _) = payload::open(payload).ok_or(WRONG)?;
    let mut libraries: Vec<Vec<u8>> = Vec::new();
    let mut left = bytes_max;
    while let Some((&kind, rest)) = input.split_first() {
        if kind != LIBRARY {
            return Err(CommandError::text("ERR given type is not a function"));
        }
        input = rest;
        let code = take_string(&mut input, left)
            .map_err(|_| CommandError::text("ERR Failed loading library payload"))?;
        left -= code.len();
        libraries.push(code);
    }
    Ok(libraries)
}

/// A payload as a reply, made in slices.
pub(super) struct Dump {
    libraries: Vec<Arc<Library>>,
    /// Its present library, and how much of its code is written; `None` before its head is.
    at: usize,
    written: Option<usize>,
    /// Until the footer is written.
    sealing: Option<Sealing>,
}

impl Dump {
    pub(super) fn new(libraries: Vec<Arc<Library>>) -> Dump {
        Dump { libraries, at: 0, written: None, sealing: Some(Sealing::new()) }
    }

    /// Length of the payload.
    pub(super) fn bytes(&self) -> usize {
        let mut head = Vec::new();
        let code = |library: &Arc<Library>| {
            head.clear();
            put_head(&mut head, library);
            head.len() + library.body.code.len()
        };
        self.libraries.iter().map(code).sum::<usize>() + FOOTER_BYTES
    }
}

fn put_head(out: &mut Vec<u8>, library: &Library) {
    out.push(LIBRARY);
    put_length(out, library.body.code.len() as u64);
}

impl Slices for Dump {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        while let Some(mut sealing) = self.sealing.take() {
            let Some(library) = self.libraries.get(self.at) else {
                // Every server that has functions reads it.
                reply.raw(&sealing.footer(Version::Redis10.number()));
                reply.raw(b"\r\n");
                return false;
            };
            if !room.take(reply) {
                self.sealing = Some(sealing);
                return true;
            }
            let written = self.written.unwrap_or_else(|| {
                let mut head = Vec::new();
                put_head(&mut head, library);
                reply.raw(&head);
                sealing.update(&head);
                0
            });
            let rest = &library.body.code[written..];
            let count = room.copy(reply, rest);
            sealing.update(&rest[..count]);
            self.written = Some(written + count);
            if count == rest.len() {
                (self.at, self.written) = (self.at + 1, None);
            }
            self.sealing = Some(sealing);
        }
        false
    }

    /// The libraries' code is shared, so that it can wait here.
    fn keep(&mut self, _: Proto, _: usize) -> Keeping {
        Keeping::Own(None)
    }

    fn memory(&self) -> usize {
        self.libraries.capacity() * size_of::<Arc<Library>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_record::LibraryBody;

    /// By redis-server 7.0.15: one library whose code is compressed, and one whose code is not.
    const OF_REDIS: &[u8] =
        b"\xf5\xc3@VB\xa3\x18#!lua name=long\n-- abcdef\xe0\xff\x05\xe1\xff\x07\
        \xe19\x07\x19\nredis.register_function(\"By\x01\",\xe0\x00\x0f\x0e) return 1 end)\
        \xf5@E#!lua name=MYLIB\nredis.register_function(\"g\",function() return 1 end)\
        \xf5@E#!lua name=\"x3\"\nredis.register_function(\"g3\",function() return 1 end)\
        \xf5@E#!lua name=mylib\nredis.register_function(\"f\",function() return 1 end)\
        \n\x00\xed\xca:\x9eq\xd9\xe7\xc6";

    fn made(codes: &[Vec<u8>], elements: usize) -> Vec<u8> {
        let library = |code: &Vec<u8>| {
            let body = LibraryBody { code: code.clone(), functions: Vec::new() };
            Arc::new(Library::new(b"name", body))
        };
        let mut dump = Dump::new(codes.iter().map(library).collect());
        let bytes = dump.bytes();
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, Proto::Resp2);
        while {
            let mut room = Room::new(elements, reply.position());
            dump.write(&mut reply, &mut room)
        } {
            assert!(matches!(dump.keep(Proto::Resp2, 1), Keeping::Own(None)));
        }
        assert!(out.ends_with(b"\r\n"));
        out.truncate(out.len() - 2);
        assert_eq!(out.len(), bytes);
        out
    }

    #[test]
    fn a_payload_of_redis_reads() {
        let codes = read(OF_REDIS, 1 << 20).unwrap();
        assert_eq!(codes.len(), 4);
        let long = format!(
            "#!lua name=long\n-- {}\nredis.register_function(\"long\",function() return 1 end)",
            "abcdef".repeat(100)
        );
        assert_eq!(codes[0], long.into_bytes());
        assert!(codes[3].starts_with(b"#!lua name=mylib\n"));
        let uncompressed = made(&codes[1..], 1);
        let body = &OF_REDIS[OF_REDIS.len() - 3 * 72 - FOOTER_BYTES..];
        assert_eq!(uncompressed[..3 * 72], body[..3 * 72], "as Redis writes it");
    }

    #[test]
    fn what_is_written_reads_back() {
        for elements in [1, 1000] {
            let codes = vec![vec![b'x'; 200_000], b"short".to_vec(), vec![b'y'; 100]];
            assert_eq!(read(&made(&codes, elements), 1 << 20), Ok(codes));
            assert_eq!(read(&made(&[], elements), 0), Ok(Vec::new()));
        }
    }

    /// A slice may end anywhere, also between a library's head and its code.
    #[test]
    fn what_is_written_in_slices_reads_back() {
        let codes: Vec<Vec<u8>> = (0..30_000).map(|n| vec![b'x'; 1 + n * 7 % 150]).collect();
        assert_eq!(read(&made(&codes, 10_000), 10 << 20), Ok(codes));
    }

    #[test]
    fn damage_and_excess_are_refused() {
        let payload = made(&[b"one".to_vec(), b"three".to_vec()], 1);
        for at in 0..payload.len() {
            let mut damaged = payload.clone();
            damaged[at] ^= 0x10;
            assert!(read(&damaged, 1000).is_err(), "byte {at}");
            assert!(read(&payload[..at], 1000).is_err(), "cut at {at}");
        }
        assert!(read(&payload, 8).is_ok() && read(&payload, 7).is_err());
        let sealed = |body: &[u8]| {
            let mut sealing = Sealing::new();
            sealing.update(body);
            [body, &sealing.footer(10)].concat()
        };
        let error = |body: &[u8]| read(&sealed(body), 1000).unwrap_err().to_string();
        assert_eq!(error(b"\x00"), "ERR given type is not a function");
        assert_eq!(error(b"\xf6\x01x"), "ERR given type is not a function");
        assert_eq!(error(b"\xf5\x05abc"), "ERR Failed loading library payload");
        assert_eq!(error(b"\xf5"), "ERR Failed loading library payload");
        assert_eq!(error(b"\xf5\x01xy"), "ERR given type is not a function");
        assert_eq!(
            error(b"\xf5\xc3\x02\x81\0\0\0\xff\0\0\0\0ab"),
            "ERR Failed loading library payload"
        );
    }
}
