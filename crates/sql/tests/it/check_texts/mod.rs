//! What must hold for any text. Shared by the corpus' replay and the fuzz target `sql_texts`.

use ladon_sql::{Catalog, Table};
use std::sync::Arc;

/// No tables.
struct Nothing;

impl Catalog for Nothing {
    fn table(&mut self, _: &str) -> Result<Option<Arc<Table>>, ladon_sql::Error> {
        Ok(None)
    }

    fn table_of_space(&mut self, _: u32) -> Result<Option<Arc<Table>>, ladon_sql::Error> {
        Ok(None)
    }

    fn trigger_table(&mut self, _: &str) -> Result<Option<String>, ladon_sql::Error> {
        Ok(None)
    }

    fn collation(&mut self, _: &str) -> Option<u32> {
        None
    }
}

/// A text is a statement or an error that says why not; a statement that is prepared twice is the
/// same.
pub fn sql_texts(text: &[u8]) {
    let first = ladon_sql::prepare(text, &mut Nothing);
    let second = ladon_sql::prepare(text, &mut Nothing);
    match (first, second) {
        (Ok(first), Ok(second)) => {
            assert_eq!(first.columns(), second.columns());
            assert_eq!(first.parameters(), second.parameters());
        }
        (Err(first), Err(second)) => {
            assert_eq!(first, second);
            assert!(!first.message.is_empty(), "an error without a text");
        }
        _ => panic!("prepared once, refused once"),
    }
}
