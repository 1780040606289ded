//! Replays the fuzz corpus that is kept for the target `update_operations`.

use crate::check;

#[test]
fn kept_corpus_holds() {
    ladon_testkit::corpus::replay("update_operations", check::update_operations);
}
