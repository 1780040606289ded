//! Replays the fuzz corpus that is kept for the target `rdb_reader`.

use crate::check;

#[test]
fn kept_corpus_holds() {
    ladon_testkit::corpus::replay("rdb_reader", check::any_bytes);
}
