//! Replays the fuzz corpus that is kept for the target `rdb_reader`.

use crate::check;

#[test]
fn kept_corpus_holds() {
    ladon_testkit::corpus::replay("rdb_reader", check::any_bytes);
}

/// Each byte of each input in turn, as what is most likely to mean something else.
#[test]
fn kept_corpus_holds_whatever_is_changed() {
    ladon_testkit::corpus::replay("rdb_reader", |bytes| {
        for at in 0..bytes.len() {
            let byte = bytes[at];
            let others = [0, 1, 0x7f, 0x80, 0xc3, 0xf0, 0xff, byte ^ 1, byte.wrapping_add(1)];
            for other in others {
                let mut bytes = bytes.to_vec();
                bytes[at] = other;
                check::any_bytes(&bytes);
            }
            check::any_bytes(&bytes[..at]);
        }
    });
}
