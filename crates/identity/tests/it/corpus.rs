//! Replays the fuzz corpus that is kept for the target `acl_rules`.

use crate::check;

#[test]
fn kept_corpus_holds() {
    ladon_testkit::corpus::replay("acl_rules", check::check);
}
