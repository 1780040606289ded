//! Replays the fuzz corpus that is kept for the target `changes`.

use crate::check;

#[test]
fn kept_corpus_holds() {
    ladon_testkit::corpus::replay("changes", check::check);
}
