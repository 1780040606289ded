//! Replays the fuzz corpus that is kept for the target `memcache_pieces`.

use crate::check;

#[test]
fn kept_corpus_holds() {
    ladon_testkit::corpus::replay("memcache_pieces", check::check);
}
