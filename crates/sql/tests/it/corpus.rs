//! Replays the corpus that is kept for the fuzz target `sql_texts`.

use crate::check_texts;

#[test]
fn kept_texts_hold() {
    ladon_testkit::corpus::replay("sql_texts", check_texts::sql_texts);
}
