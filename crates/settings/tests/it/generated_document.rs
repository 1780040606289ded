//! `docs/settings.md` says what the tables say. `LADON_UPDATE_DOCS=1` makes it so.

use std::path::Path;

#[test]
fn generated_document_settings_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let expected = ladon_settings::markdown::document();
    if std::env::var_os("LADON_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("docs/settings.md can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/settings.md is not current: run ./fix");
}
