//! Replays the fuzz corpus that is kept for the target `commands`.

use crate::check;

#[test]
fn kept_corpus_holds() {
    ladon_testkit::corpus::replay("commands", check::check);
}
