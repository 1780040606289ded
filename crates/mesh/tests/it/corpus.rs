//! Replays the fuzz corpus that is kept for the target `mesh_messages`.

use crate::check;
use ladon_testkit::corpus::replay;

#[test]
fn kept_corpus_holds() {
    replay("mesh_messages", check::check);
}
