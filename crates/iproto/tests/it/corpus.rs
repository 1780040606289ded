//! Replays the fuzz corpus that is kept for the target `iproto_packets`.

use crate::check;

#[test]
fn kept_corpus_holds() {
    ladon_testkit::corpus::replay("iproto_packets", check::check);
}
