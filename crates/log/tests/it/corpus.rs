//! Replays the fuzz corpora that are kept for the targets `log_reader` and `checkpoint_reader`.

use crate::check;
use ladon_testkit::corpus::replay;

#[test]
fn kept_log_corpus_holds() {
    replay("log_reader", check::log::check);
}

#[test]
fn kept_checkpoint_corpus_holds() {
    replay("checkpoint_reader", check::checkpoint::check);
}
