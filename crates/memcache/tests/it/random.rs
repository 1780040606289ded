//! Random streams: of words that the protocol knows, and of bytes.

use crate::check::check;
use ladon_testkit::Random;

const WORDS: [&[u8]; 26] = [
    b"get ",
    b"gets ",
    b"gat ",
    b"set ",
    b"cas ",
    b"mg ",
    b"ms ",
    b"ma ",
    b"md ",
    b"key ",
    b"0 ",
    b"5 ",
    b"\r\n",
    b"\n",
    b"noreply",
    b"hello",
    b"v ",
    b"T30 ",
    b"b ",
    b"incr ",
    b"70000 ",
    b"\x80\x01\0\x03\x08\0\0\0\0\0\0\x10",
    b"\x80",
    b"Zm9v ",
    b"stats ",
    b"O123 ",
];

#[test]
fn random_streams_are_read() {
    let mut random = Random::new(7);
    for _ in 0..20_000 {
        let mut stream = Vec::new();
        for _ in 0..random.below(40) {
            match random.below(20) {
                0 => stream.push(random.below(256) as u8),
                _ => stream.extend_from_slice(WORDS[random.below(WORDS.len() as u64) as usize]),
            }
        }
        check(&stream);
    }
    // More keys than come in one piece.
    check(&[b"gets ", &b"key ".repeat(1000)[..], b"\r\nget a\r\n"].concat());
}
