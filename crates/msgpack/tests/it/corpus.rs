//! Replays the fuzz corpus that is kept for the target `msgpack_values`.

use crate::check;

#[test]
fn kept_corpus_holds() {
    ladon_testkit::corpus::replay("msgpack_values", check::values);
}
