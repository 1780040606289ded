//! Replays the fuzz corpora that are kept for the targets of this crate.

use crate::check_libraries;

#[test]
fn kept_corpus_holds() {
    ladon_testkit::corpus::replay("cjson", check_libraries::cjson);
    ladon_testkit::corpus::replay("cmsgpack", check_libraries::cmsgpack);
    ladon_testkit::corpus::replay("struct_format", check_libraries::struct_format);
}
