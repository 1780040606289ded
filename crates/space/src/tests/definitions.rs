//! Definitions that take long to read if they are read carelessly.

use super::{field, space_def};
use std::time::{Duration, Instant};

/// A client with the right to make spaces holds up nobody by a long format. Where each name is
/// compared with all others, this takes half a minute.
#[test]
fn a_format_of_100_000_fields_is_read_soon() {
    let names: Vec<String> = (0..100_000).map(|number| format!("f{number}")).collect();
    let mut fields: Vec<_> = names.iter().map(|name| field(name, "any", true)).collect();
    let begin = Instant::now();
    assert_eq!(space_def(fields.clone()).expect("a definition").format.fields.len(), names.len());
    fields.push(field("f99999", "any", true));
    let error = space_def(fields).expect_err("the last is there already");
    assert_eq!(error.message, "Space field 'f99999' is duplicate");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}
