//! Bytes that are not what they say: an error that names the place, never a panic.

use ladon_rdb::{Dialect, Reader, payload};

use crate::check;
use crate::common::contents;
use crate::packs::{file, join, key, listpack, string, ziplist};
use crate::recorded::COMPRESSED;

fn error_of(bytes: &[u8]) -> String {
    match contents(bytes) {
        Ok(contents) => panic!("read as {contents:?}"),
        Err(error) => error.to_string(),
    }
}

fn in_file(part: &[u8]) -> String {
    error_of(&file("REDIS0012", &[part]))
}

#[test]
fn every_cut_is_an_error() {
    // Each place once is enough of what is there 600 times.
    for end in (0..COMPRESSED.len()).filter(|end| *end < 2000 || end % 13 == 0) {
        let error = error_of(&COMPRESSED[..end]);
        assert!(error.ends_with("the data ends in the middle"), "{end}: {error}");
    }
}

#[test]
fn every_flipped_bit_is_an_error() {
    for at in (0..COMPRESSED.len()).filter(|at| *at < 500 || at % 29 == 0) {
        let mut bytes = COMPRESSED.to_vec();
        bytes[at] ^= 1 << (at % 8);
        error_of(&bytes);
    }
}

/// The same in each value alone, where no checksum protects it.
#[test]
fn every_changed_byte_of_a_value_is_read_or_refused() {
    let (list, zset) =
        (ziplist(&[b"\x01a", b"\xc0\x10\x20", b"\x01b"]), ziplist(&[b"\x01a", b"\xf3"]));
    let set = listpack(&[b"\x81a", b"\xc0\x10", b"\xf1\x10\x20", b"\x81b"]);
    let bodies: [&[u8]; 7] = [
        &join(&[b"\x0a", &string(&list)]),
        &join(&[b"\x0c", &string(&zset)]),
        &join(&[b"\x14", &string(&set)]),
        &join(&[b"\x09", &string(b"\x01\x01f\x01\x00v\xff")]),
        &join(&[b"\x0b", &string(b"\x02\0\0\0\x02\0\0\0\x01\x00\x02\x00")]),
        &join(&[b"\x12\x02\x01\x01a\x02", &string(&set)]),
        b"\x00\xc3\x05\x0b\x00a\xe0\x01\x00",
    ];
    for body in bodies {
        payload::read_value(body, Dialect::Redis).unwrap();
        for at in 0..body.len() {
            for byte in 0..=255 {
                let mut body = body.to_vec();
                body[at] = byte;
                check::any_bytes(&body);
            }
        }
    }
}

#[test]
fn errors_name_place_key_and_type() {
    let short = listpack(&[b"\x81a", b"\x81b", b"\x81c"]);
    let hash = in_file(&key(16, "x\0", &string(&short)));
    let expected = "in key 'x\\x00' of type hash (listpack), at byte 38: a packed collection lacks \
                    elements";
    assert_eq!(hash, expected);
    let long = "k".repeat(1000);
    assert!(in_file(&key(16, &long, &string(&short))).len() < 300);
}

#[test]
fn lies_are_refused() {
    let damaged = |at: usize, byte: u8| {
        let mut pack = listpack(&[b"\x81a", b"\x81b"]);
        pack[at] = byte;
        in_file(&key(20, "k", &string(&pack)))
    };
    let mut tail = ziplist(&[b"\x01a", b"\x01b"]);
    tail[4] -= 1;
    let mut before = ziplist(&[b"\x01a", b"\x01b"]);
    before[13] = 2;
    for (error, part) in [
        (damaged(0, 14), "a listpack's head has another length"),
        (damaged(4, 3), "a listpack's head has another count"),
        (damaged(8, 3), "a listpack's element has another length at its end"),
        (damaged(6, 0xbf), "an element is longer than what holds it"),
        (damaged(6, 0xf5), "a listpack's element has an unknown form"),
        (damaged(9, 0xff), "a listpack's head has another count"),
        (in_file(&key(10, "k", &string(&tail))), "a ziplist's head has another last element"),
        (in_file(&key(10, "k", &string(&before))), "a ziplist's element has another length before"),
        (in_file(&key(11, "k", &string(b"\x03\0\0\0\0\0\0\0"))), "neither 2, 4 nor 8"),
        (in_file(&key(11, "k", &string(b"\x02\0\0\0\x09\0\0\0"))), "an intset's head"),
        (
            in_file(&key(11, "k", &string(b"\x02\0\0\0\x02\0\0\0\x01\0\x01\0"))),
            "an intset is not in order",
        ),
        (in_file(&key(9, "k", &string(b"\x00\x01f\xff"))), "a zipmap ends behind a field"),
        (in_file(&key(3, "k", b"\x01\x01m\xfd")), "a score is not a number"),
        (in_file(&key(3, "k", b"\x01\x01m\x02no")), "a score is no decimal number"),
        (in_file(&key(18, "k", b"\x01\x03\x00")), "a quicklist's node is of an unknown kind"),
        (in_file(&key(0, "k", b"\xc4")), "a string has an unknown form"),
        (in_file(&key(1, "k", b"\xc0\x01")), "a string's form stands where a length should"),
        (in_file(&key(15, "k", b"\x00\x01\x00\x00\x00")), "a stream's length is not the number"),
    ] {
        assert!(error.contains(part) && error.contains("in key 'k' of type"), "{error}: {part}");
    }
}

#[test]
fn what_is_not_read_is_named() {
    // "ReJSON-RL", version 3: six bits a letter.
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let place = |c: &u8| alphabet.iter().position(|a| a == c).unwrap() as u64;
    let id = b"ReJSON-RL".iter().fold(0, |id, c| id << 6 | place(c)) << 10 | 3;
    let id = join(&[b"\x81", &id.to_be_bytes()]);
    for (error, expected) in [
        (
            in_file(&key(7, "doc", &id)),
            "the key 'doc' has a value of the module type 'ReJSON-RL', which only that module \
             reads",
        ),
        (in_file(&join(&[b"\xf7", &id])), "data of the module type 'ReJSON-RL'"),
        (in_file(b"\xf6\x01a"), "functions of Redis 7.0's release candidates"),
        (in_file(b"\x1a\x01a"), "the byte 26 begins neither a key nor a part"),
        (error_of(b"REDIS0013\xff"), "RDB version 13 is not read"),
        (error_of(b"REDIS0080\xff"), "the version is not of those who wrote the file"),
        (error_of(b"VALKEY011\xff"), "the version is not of those who wrote the file"),
        (error_of(b"REDISx\xff\xff\xff"), "no version follows the file's first word"),
        (error_of(b"SQLite format 3"), "it begins neither with REDIS nor with VALKEY"),
    ] {
        assert!(error.contains(expected), "{error}: {expected}");
    }
    let valkey = error_of(&file("VALKEY080", &[b"\xf3"]));
    assert!(valkey.contains("migrations of slots"), "{valkey}");
}

#[test]
fn a_wrong_checksum_says_both() {
    let mut bytes = COMPRESSED.to_vec();
    *bytes.last_mut().unwrap() ^= 0x80;
    let error = error_of(&bytes);
    let checksum = u64::from_le_bytes(*COMPRESSED.last_chunk().unwrap());
    let wrong = checksum ^ 1 << 63;
    let expected = format!("the checksum is {wrong:016x}, that of the data is {checksum:016x}");
    assert!(error.ends_with(&expected), "{error}");
}

/// An announced length is believed when its bytes are there: these would need exabytes.
#[test]
fn announced_sizes_allocate_nothing() {
    let huge = b"\x81\x7f\xff\xff\xff\xff\xff\xff\xff";
    let huge_lzf = join(&[b"\xc3", huge, b"\x81\0\0\0\0\xff\xff\xff\xff\x00a"]);
    for encoding in [0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 24, 25] {
        for value in [&huge[..], &huge_lzf] {
            let bytes = [b"REDIS0012", &key(encoding, "k", value)[..]].concat();
            error_of(&bytes);
            error_of(&[&bytes[..], &[1; 100]].concat());
        }
    }
    error_of(&[b"REDIS0012\xf5", &huge[..]].concat());
    error_of(&[b"REDIS0012\xfa", &huge[..]].concat());
}

#[test]
fn after_an_error_there_is_nothing_and_after_the_end_the_rest() {
    let mut reader = Reader::new(&b"REDIS0012\x1a"[..]);
    assert!(reader.next().unwrap().is_ok());
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());

    let bytes = [&file("REDIS0009", &[])[..], b"*1\r\n$4\r\nPING\r\n"].concat();
    let mut reader = Reader::new(&bytes[..]);
    assert_eq!(reader.by_ref().map(Result::unwrap).count(), 2);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut reader.into_rest(), &mut rest).unwrap();
    assert_eq!(rest, "*1\r\n$4\r\nPING\r\n", "commands follow a file in an AOF");
}
