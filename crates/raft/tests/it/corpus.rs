//! Replays the fuzz corpus that is kept for the target `group_files`.

use crate::check;
use ladon_testkit::corpus::replay;

#[test]
fn kept_corpus_holds() {
    replay("group_files", check::check);
}
