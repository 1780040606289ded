//! Replays the fuzz corpora that are kept for the targets `log_reader` and `checkpoint_reader`.

use crate::check;
use std::path::Path;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let path = entry.expect("readable folder").path();
        let data = std::fs::read(&path).expect("readable file");
        println!("{}", path.display());
        check(&data);
        count += 1;
    }
    assert!(count >= 20, "only {count} files in {}", folder.display());
}

#[test]
fn kept_log_corpus_holds() {
    replay("log_reader", check::log::check);
}

#[test]
fn kept_checkpoint_corpus_holds() {
    replay("checkpoint_reader", check::checkpoint::check);
}
