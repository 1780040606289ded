//! What can be told of a piece without reading it: guesses, which cost nothing if they are wrong.

use ladon_memcache::binary::{self, opcode};

/// A piece with a longer value takes a while.
const QUICK_BYTES_MAX: usize = 16 << 10;

/// The key that a piece is probably about.
#[inline]
pub fn first_key(piece: &[u8]) -> Option<&[u8]> {
    if piece.first() == Some(&binary::REQUEST) {
        let (extras, key) = (usize::from(*piece.get(4)?), usize::from(*piece.get(3)?));
        let at = binary::HEADER_BYTES + extras;
        return piece.get(at..at + key).filter(|key| !key.is_empty());
    }
    let mut words = piece.splitn(3, |&byte| byte == b' ');
    let key = words.nth(1)?;
    let end = key.iter().position(|&byte| byte == b'\r' || byte == b'\n').unwrap_or(key.len());
    (end != 0).then_some(&key[..end])
}

/// Whether a piece surely takes no longer than a short command.
#[inline]
pub fn is_quick(piece: &[u8]) -> bool {
    let is_long = piece.len() > QUICK_BYTES_MAX;
    let is_about_all = match piece {
        [binary::REQUEST, code, ..] => {
            matches!(*code, opcode::FLUSH | opcode::STAT) || *code == opcode::FLUSH + 0x10
        }
        _ => [&b"flush_all"[..], b"stats", b"lru"].iter().any(|name| piece.starts_with(name)),
    };
    !is_long && !is_about_all
}

/// Whether a piece may change data.
#[inline]
pub fn may_write(piece: &[u8]) -> bool {
    match piece {
        [binary::REQUEST, code, ..] => !matches!(
            *code,
            opcode::GET | opcode::GETQ | opcode::GETK | opcode::GETKQ | opcode::NOOP
        ),
        _ => !piece.starts_with(b"get"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_where_there_is_one() {
        assert_eq!(first_key(b"get abc\r\n"), Some(&b"abc"[..]));
        assert_eq!(first_key(b"set k 0 0 1\r\nx\r\n"), Some(&b"k"[..]));
        assert_eq!(first_key(b"version\r\n"), None);
        let mut packet = [0; 30];
        (packet[0], packet[3], packet[4]) = (binary::REQUEST, 2, 4);
        packet[28..].copy_from_slice(b"kk");
        assert_eq!(first_key(&packet), Some(&b"kk"[..]));
        assert_eq!(first_key(&packet[..29]), None);
    }
}
