//! Replays the fuzz corpora that are kept for the targets `update_operations` and `json_paths`.

use crate::{check, check_paths};

#[test]
fn kept_update_operations_hold() {
    ladon_testkit::corpus::replay("update_operations", check::update_operations);
}

#[test]
fn kept_json_paths_hold() {
    ladon_testkit::corpus::replay("json_paths", check_paths::json_paths);
}
