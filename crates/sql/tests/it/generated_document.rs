//! `docs/compat/sql.md` says what the tables say. `LADON_UPDATE_DOCS=1` makes it so.

use std::path::Path;

#[test]
fn the_generated_document_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compat/sql.md");
    let expected = ladon_sql::compat_document();
    if std::env::var_os("LADON_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("docs/compat/sql.md can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/compat/sql.md is not current: run ./fix");
}
