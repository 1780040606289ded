//! Replays the fuzz corpus that is kept for the target `resp_parser`.

use crate::check;

#[test]
fn kept_corpus_holds() {
    ladon_testkit::corpus::replay("resp_parser", check::check);
}
