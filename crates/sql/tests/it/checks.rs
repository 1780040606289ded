//! CHECK: of every writer, and what may be in one.

use crate::memory::Memory;

#[test]
fn rows_obey_checks() {
    let mut memory = Memory::default();
    for (text, expected) in [
        (
            "CREATE TABLE t (id INT PRIMARY KEY, n INT CHECK (n > 1), CONSTRAINT c CHECK (n < id))",
            "defined",
        ),
        ("INSERT INTO t VALUES (5, 1)", "196 Check constraint failed 'ck_unnamed_T_1': n > 1"),
        ("INSERT INTO t VALUES (5, 5)", "196 Check constraint failed 'C': n < id"),
        ("INSERT OR IGNORE INTO t VALUES (5, 5)", "changed 0"),
        ("INSERT INTO t VALUES (5, 4), (6, NULL)", "changed 2"),
        ("UPDATE t SET n = 9", "196 Check constraint failed 'C': n < id"),
        (
            "ALTER TABLE t ADD CONSTRAINT d CHECK (n <> 3)",
            "195 Failed to create check constraint 'D': referencing space must be empty",
        ),
        ("DELETE FROM t", "changed 2"),
        ("ALTER TABLE t ADD CONSTRAINT d CHECK (n <> 3)", "defined"),
        (
            "ALTER TABLE t ADD CONSTRAINT d CHECK (n <> 3)",
            "170 CHECK constraint 'D' already exists in space 'T'",
        ),
        ("INSERT INTO t VALUES (5, 3)", "196 Check constraint failed 'D': n <> 3"),
        ("ALTER TABLE t DROP CONSTRAINT d", "defined"),
        ("INSERT INTO t VALUES (5, 3)", "changed 1"),
        ("ALTER TABLE t DROP CONSTRAINT d", "169 Constraint 'D' does not exist in space 'T'"),
    ] {
        assert_eq!(memory.run(text), expected, "{text}");
    }
}

#[test]
fn checks_are_about_their_tuple() {
    let mut memory = Memory::default();
    for (check, expected) in [
        (
            "id < (SELECT 1)",
            "195 Failed to create check constraint 'ck_unnamed_T_1': Subqueries are prohibited in a ck constraint definition",
        ),
        (
            "z < 1",
            "195 Failed to create check constraint 'ck_unnamed_T_1': Can’t resolve field 'Z'",
        ),
        (
            "count(id) < 1",
            "195 Failed to create check constraint 'ck_unnamed_T_1': misuse of aggregate function COUNT()",
        ),
        (
            "random() < 1",
            "195 Failed to create check constraint 'ck_unnamed_T_1': SQL of Ladon does not support RANDOM() in CHECK",
        ),
    ] {
        let text = format!("CREATE TABLE t (id INT PRIMARY KEY, CHECK ({check}))");
        assert_eq!(memory.run(&text), expected, "{text}");
    }
}
