//! `docs/compat/resp.md` says what the command table says. `LADON_UPDATE_DOCS=1` makes it so.

use std::path::Path;

#[test]
fn generated_document_compatibility_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compat/resp.md");
    let expected = ladon_commands::compat::document();
    if std::env::var_os("LADON_UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
        std::fs::write(&path, &expected).expect("docs/compat/resp.md can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/compat/resp.md is not current: run ./fix");
}
