//! Triggers: when they run, what they see, and what they do to the statement.

use crate::memory::Memory;

/// Checks what statements answer: in one turn, in a turn for each read and write, with every read
/// done ahead.
fn check(steps: &[(&str, &str)]) {
    for turn in [None, Some(70), Some(1)] {
        check_in_turns(turn, steps);
    }
}

fn check_in_turns(turn: Option<u64>, steps: &[(&str, &str)]) {
    let mut memory = Memory::default();
    memory.turn = turn;
    for text in [
        "CREATE TABLE t (id INT PRIMARY KEY, n INT, u INT UNIQUE)",
        "CREATE TABLE log (id INT PRIMARY KEY, what STRING, n INT)",
        "CREATE VIEW v AS SELECT id, n FROM t",
    ] {
        assert_eq!(memory.run(text), "defined", "{text}");
    }
    for (text, expected) in steps {
        assert_eq!(&memory.run(text), expected, "{text} (turns of {turn:?})");
    }
}

/// A trigger that writes a line about the row.
const NOTES: &str = "BEGIN INSERT INTO log SELECT count(*), 'x', new.n FROM log; END";

#[test]
fn rows_fire_before_and_after() {
    check(&[
        (
            "CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW BEGIN \
             INSERT INTO log SELECT new.id * 10, 'after', count(*) FROM t; END",
            "defined",
        ),
        (
            "CREATE TRIGGER b BEFORE INSERT ON t FOR EACH ROW BEGIN \
             INSERT INTO log SELECT new.id * 10 + 1, 'before', count(*) FROM t; END",
            "defined",
        ),
        ("INSERT INTO t VALUES (1, 5, 1), (2, 6, 2)", "changed 2"),
        // Each row is there when what comes after it runs.
        (
            "SELECT * FROM log",
            "10 \"after\" 1 | 11 \"before\" 0 | 20 \"after\" 2 | 21 \"before\" 1",
        ),
        ("DROP TRIGGER a", "defined"),
        ("DROP TRIGGER a", "34 Trigger 'A' doesn't exist"),
        ("DROP TRIGGER IF EXISTS a", "defined"),
    ]);
}

#[test]
fn updates_see_both_rows_and_only_their_columns() {
    let on_n =
        format!("CREATE TRIGGER a AFTER UPDATE OF n ON t FOR EACH ROW WHEN old.n <> new.n {NOTES}");
    check(&[
        (&on_n, "defined"),
        ("INSERT INTO t VALUES (1, 5, 1), (2, 6, 2)", "changed 2"),
        ("UPDATE t SET u = u + 10", "changed 2"),
        ("UPDATE t SET n = 6", "changed 2"),
        ("SELECT * FROM log", "0 \"x\" 6"),
        (
            "CREATE TRIGGER d BEFORE DELETE ON t FOR EACH ROW BEGIN DELETE FROM log WHERE n = old.n; END",
            "defined",
        ),
        ("DELETE FROM t WHERE id = 1", "changed 1"),
        ("SELECT count(*) FROM log", "0"),
        // OLD is not there, nor is NEW of a DELETE.
        ("CREATE TRIGGER e AFTER INSERT ON t FOR EACH ROW BEGIN SELECT old.n; END", "defined"),
        ("INSERT INTO t VALUES (3, 1, 1)", "153 Field 'N' was not found in space 'OLD' format"),
    ]);
}

#[test]
fn raise_ends_a_row_or_the_statement() {
    check(&[
        (
            "CREATE TRIGGER a BEFORE INSERT ON t FOR EACH ROW BEGIN \
             SELECT CASE new.n WHEN 1 THEN RAISE(IGNORE) WHEN 2 THEN RAISE(ABORT, 'no 2') END; END",
            "defined",
        ),
        ("INSERT INTO t VALUES (1, 1, 1), (3, 3, 3)", "changed 1"),
        ("SELECT id FROM t", "3"),
        ("INSERT INTO t VALUES (2, 2, 2)", "159 Failed to execute SQL statement: no 2"),
        ("SELECT RAISE(IGNORE)", "186 RAISE() may only be used within a trigger-program"),
    ]);
}

#[test]
fn triggers_fire_each_other_up_to_a_depth() {
    check(&[
        (
            "CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW WHEN new.id < 5 \
             BEGIN INSERT INTO t (id, n) VALUES (new.id + 1, 0); END",
            "defined",
        ),
        ("INSERT INTO t VALUES (1, 1, 1)", "changed 1"),
        ("SELECT count(*) FROM t", "5"),
        (
            "CREATE TRIGGER b AFTER UPDATE ON t FOR EACH ROW BEGIN UPDATE t SET n = n + 1; END",
            "defined",
        ),
        (
            "UPDATE t SET n = 1",
            "159 Failed to execute SQL statement: too many levels of trigger recursion",
        ),
    ]);
}

#[test]
fn views_are_changed_by_triggers() {
    check(&[
        ("INSERT INTO v VALUES (1, 2)", "12 Can't modify space 'V': space is a view"),
        (
            "CREATE TRIGGER a BEFORE INSERT ON v FOR EACH ROW BEGIN SELECT 1; END",
            "159 Failed to execute SQL statement: cannot create BEFORE trigger on view: V",
        ),
        (
            "CREATE TRIGGER a INSTEAD OF INSERT ON v FOR EACH ROW \
             BEGIN INSERT INTO t (id, n) VALUES (new.id, new.n * 2); END",
            "defined",
        ),
        (
            "CREATE TRIGGER b INSTEAD OF UPDATE ON v FOR EACH ROW \
             BEGIN UPDATE t SET n = new.n WHERE id = old.id; END",
            "defined",
        ),
        ("INSERT INTO v VALUES (1, 2)", "changed 0"),
        ("SELECT n FROM t", "4"),
        ("UPDATE v SET n = n + 1 WHERE id = 1", "changed 0"),
        ("SELECT n FROM t", "5"),
        ("DELETE FROM v", "12 Can't modify space 'V': space is a view"),
    ]);
}

#[test]
fn replaced_rows_fire_delete_triggers() {
    check(&[
        (
            "CREATE TRIGGER a AFTER DELETE ON t FOR EACH ROW \
             BEGIN INSERT INTO log VALUES (old.id, 'gone', old.n); END",
            "defined",
        ),
        ("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)", "changed 2"),
        ("INSERT OR REPLACE INTO t VALUES (3, 3, 2)", "changed 2"),
        ("SELECT id FROM log", "2"),
        ("SELECT id FROM t", "1 | 3"),
    ]);
}

#[test]
fn ignore_in_a_trigger_of_a_replaced_row_keeps_that_row() {
    let ignore = "FOR EACH ROW WHEN old.n = 5 BEGIN SELECT RAISE(IGNORE); END";
    check(&[
        ("INSERT INTO t VALUES (1, 5, 1), (2, 6, 2)", "changed 2"),
        (&format!("CREATE TRIGGER a BEFORE DELETE ON t {ignore}"), "defined"),
        (
            "REPLACE INTO t VALUES (1, 7, 1)",
            "3 Duplicate key exists in unique index 'pk_unnamed_T_1' in space 'T'",
        ),
        ("REPLACE INTO t VALUES (2, 7, 2)", "changed 2"),
        ("DROP TRIGGER a", "defined"),
        (&format!("CREATE TRIGGER a AFTER DELETE ON t {ignore}"), "defined"),
        // It has left already.
        ("REPLACE INTO t VALUES (1, 8, 1)", "changed 2"),
        ("SELECT * FROM t", "1 8 1 | 2 7 2"),
    ]);
}
