//! Replays the fuzz corpora that are kept for the targets of this crate.

use crate::{check_libraries, check_patterns};

#[test]
fn kept_corpus_holds() {
    ladon_testkit::corpus::replay("cjson", check_libraries::cjson);
    ladon_testkit::corpus::replay("cmsgpack", check_libraries::cmsgpack);
    ladon_testkit::corpus::replay("struct_format", check_libraries::struct_format);
    ladon_testkit::corpus::replay("lua_patterns", check_patterns::pattern);
}
