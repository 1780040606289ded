//! Replays the fuzz corpora that are kept for the targets of this crate.

use crate::{check, check_values};

#[test]
fn kept_corpus_holds() {
    ladon_testkit::corpus::replay("commands", check::check);
}

#[test]
fn kept_corpus_of_values_holds() {
    ladon_testkit::corpus::replay("hyperloglog", check_values::hyperloglog);
    ladon_testkit::corpus::replay("geo_options", check_values::geo_options);
    ladon_testkit::corpus::replay("stream_options", check_values::stream_options);
    ladon_testkit::corpus::replay("function_payload", check_values::function_payload);
    ladon_testkit::corpus::replay("restore_payload", check_values::restore_payload);
    ladon_testkit::corpus::replay("shebang", check_values::shebang);
}
