//! Replays the fuzz corpus that is kept for the target `commands`.

use crate::check;
use std::path::Path;

#[test]
fn kept_corpus_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/commands");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let path = entry.expect("readable folder").path();
        let data = std::fs::read(&path).expect("readable file");
        println!("{}", path.display());
        check::check(&data);
        count += 1;
    }
    assert!(count >= 20, "only {count} files in {}", folder.display());
}
