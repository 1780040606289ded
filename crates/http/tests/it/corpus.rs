//! Replays the fuzz corpus that is kept for the target `http_connections`.

use crate::check;

#[test]
fn kept_corpus_holds() {
    ladon_testkit::corpus::replay("http_connections", check::check);
}
