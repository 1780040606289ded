//! What statements come to. That it is what Tarantool says is compared in `crates/conformance`.

use crate::memory::Memory;
use ladon_sql::Value;

/// Runs texts one after the other, and compares what each comes to.
fn check(script: &[(&str, &str)]) {
    let mut memory = Memory::default();
    for (text, expected) in script {
        assert_eq!(memory.run(text), *expected, "{text}");
    }
}

const TABLES: [(&str, &str); 4] = [
    ("CREATE TABLE t (id INTEGER PRIMARY KEY, name STRING, d DOUBLE, UNIQUE (name))", "defined"),
    ("INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', NULL), (3, NULL, 0.5)", "changed 3"),
    ("CREATE TABLE c (id INT PRIMARY KEY, t INT, n INT)", "defined"),
    ("INSERT INTO c VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30), (4, 9, 40)", "changed 4"),
];

fn check_on_tables(script: &[(&str, &str)]) {
    check(&[&TABLES, script].concat());
}

#[test]
fn expressions_have_values() {
    check(&[
        ("SELECT 7 / 2, -7 / 2, 7 % 3, 1 << 3, ~5", "3 -3 1 8 -6"),
        ("SELECT NULL AND false, NULL OR true, NOT NULL", "false true null"),
        ("SELECT CASE WHEN 1 > 2 THEN 1 ELSE 2 END", "2"),
        ("SELECT 9223372036854775807 + 1", "9223372036854775808"),
        (
            "SELECT 18446744073709551615 + 1",
            "159 Failed to execute SQL statement: integer is overflowed",
        ),
        ("SELECT 1 = true", "171 Type mismatch: can not convert unsigned to boolean"),
        ("SELECT 1 + 'a'", "171 Type mismatch: can not convert a to numeric"),
        ("SELECT 3 IN (1, NULL), 1 IN ('1'), 'a' IN (1)", "null true false"),
        ("SELECT substr('hello', -3, 2), length('абв'), upper('a')", "\"ll\" 3 \"A\""),
    ]);
}

#[test]
fn tables_are_read_by_conditions() {
    check_on_tables(&[
        ("SELECT name FROM t WHERE id = 2", "\"b\""),
        ("SELECT id FROM t WHERE id > 1 AND id <= 3", "2 | 3"),
        ("SELECT id FROM t WHERE id > 1.5", "2 | 3"),
        ("SELECT id FROM t WHERE id IN (3, 1, 3, 'x')", "1 | 3"),
        ("SELECT id FROM t WHERE name = 'a' OR d < 1", "1 | 3"),
        ("SELECT id FROM t WHERE name IS NULL", "3"),
        ("SELECT id FROM t ORDER BY id DESC LIMIT 2 OFFSET 1", "2 | 1"),
        ("SELECT id FROM t ORDER BY d, name", "2 | 3 | 1"),
        ("SELECT id FROM t WHERE id = NULL", ""),
        ("SELECT nosuch FROM t", "176 Can’t resolve field 'NOSUCH'"),
    ]);
}

#[test]
fn a_table_may_be_read_without_an_index() {
    check_on_tables(&[
        ("SELECT id FROM SEQSCAN t WHERE d < 1", "3"),
        ("SELECT a.id FROM seqscan t AS a, seqscan t b WHERE a.id = b.id + 2", "3"),
        ("CREATE TABLE seqscan (id INTEGER PRIMARY KEY)", "defined"),
        ("SELECT COUNT(*) FROM seqscan", "0"),
        ("SELECT COUNT(*) FROM seqscan WHERE id = 1", "0"),
    ]);
}

#[test]
fn tables_are_joined_and_grouped() {
    check_on_tables(&[
        ("SELECT t.id, c.n FROM t JOIN c ON c.t = t.id", "1 10 | 1 20 | 2 30"),
        (
            "SELECT c.id, t.name FROM c LEFT JOIN t ON c.t = t.id",
            "1 \"a\" | 2 \"a\" | 3 \"b\" | 4 null",
        ),
        ("SELECT count(*) FROM t, c", "12"),
        ("SELECT t, count(*), sum(n) FROM c GROUP BY t HAVING count(*) > 1", "1 2 30"),
        ("SELECT count(*), sum(n), max(n) FROM c WHERE n > 100", "0 null null"),
        ("SELECT name FROM t WHERE EXISTS (SELECT 1 FROM c WHERE c.t = t.id)", "\"a\" | \"b\""),
        ("SELECT id, (SELECT sum(n) FROM c WHERE c.t = t.id) FROM t", "1 30 | 2 30 | 3 null"),
        ("SELECT id FROM t WHERE id NOT IN (SELECT t FROM c)", "3"),
        ("SELECT DISTINCT t FROM c ORDER BY t DESC", "9 | 2 | 1"),
        ("SELECT id FROM t UNION SELECT t FROM c", "1 | 2 | 3 | 9"),
        ("SELECT t FROM c EXCEPT SELECT id FROM t", "9"),
        ("SELECT t FROM c INTERSECT SELECT id FROM t", "1 | 2"),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT i FROM n",
            "1 | 2 | 3 | 4",
        ),
        ("CREATE VIEW v AS SELECT id AS i, name FROM t", "defined"),
        ("SELECT i FROM v WHERE name = 'b'", "2"),
    ]);
}

#[test]
fn rows_are_changed() {
    check_on_tables(&[
        (
            "INSERT INTO t VALUES (1, 'z', 0)",
            "3 Duplicate key exists in unique index 'pk_unnamed_T_1' in space 'T'",
        ),
        ("INSERT OR IGNORE INTO t VALUES (1, 'z', 0)", "changed 0"),
        ("INSERT OR REPLACE INTO t VALUES (7, 'a', 9)", "changed 2"),
        ("SELECT id, name FROM t", "2 \"b\" | 3 null | 7 \"a\""),
        ("UPDATE t SET d = d + 1, name = 'n' WHERE id = 7", "changed 1"),
        ("SELECT d, name FROM t WHERE id = 7", "10 \"n\""),
        ("UPDATE t SET name = 5", "171 Type mismatch: can not convert 5 to string"),
        ("INSERT INTO t (id) SELECT id + 100 FROM t", "changed 3"),
        ("DELETE FROM t WHERE id > 100", "changed 3"),
        (
            "INSERT INTO t (id) VALUES (NULL)",
            "159 Failed to execute SQL statement: NOT NULL constraint failed: T.ID",
        ),
        ("DROP TABLE t", "defined"),
        ("SELECT * FROM t", "36 Space 'T' does not exist"),
    ]);
}

#[test]
fn parameters_have_places_and_names() {
    let mut memory = Memory::default();
    let values = [Value::Int(1), Value::text("x")];
    assert_eq!(memory.run_with(b"SELECT $2, $1, ?", &values), "\"x\" 1 null");
    assert_eq!(memory.run_with(b"SELECT :a, @b, :a", &values), "1 \"x\" 1");
}

#[test]
fn statements_are_bounded() {
    let mut memory = Memory::default();
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    assert!(memory.run(endless).contains("interrupted") || memory.run(endless).contains("MiB"));
    let deep = format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    assert!(memory.run(&deep).starts_with("191 "), "{}", memory.run(&deep));
    let long = format!("SELECT 1{}", " + 1".repeat(5_000));
    assert!(memory.run(&long).starts_with("191 "), "{}", memory.run(&long));
    let compounds = format!("SELECT 1{}", " UNION SELECT 1".repeat(40));
    assert!(memory.run(&compounds).starts_with("191 "));
    let parameters = format!("SELECT 1 IN ({}?)", "?,".repeat(70_000));
    assert!(memory.run(&parameters).starts_with("158 "), "{}", memory.run(&parameters));
}

#[test]
fn a_constant_result_is_seen_by_its_name_in_subqueries() {
    let mut memory = Memory::default();
    for (text, expected) in [
        ("SELECT 123 AS x ORDER BY (SELECT x ORDER BY 1)", "123"),
        ("SELECT 2 AS x WHERE (SELECT x AS y WHERE 3 > y) <> 0", "2"),
        ("SELECT 2 AS x WHERE (SELECT x FROM (SELECT 0 AS x)) <> 0", ""),
        ("SELECT 0x0000000000000000000000ff", "255"),
    ] {
        assert_eq!(memory.run(text), expected, "{text}");
    }
}

/// As Tarantool 2.6.0 answers.
#[test]
fn a_new_primary_key_that_equals_the_old_one_is_no_other_key() {
    check(&[
        ("CREATE TABLE d (a INT, b DOUBLE, PRIMARY KEY (a, b))", "defined"),
        ("INSERT INTO d VALUES (1, 0.0), (2, 1.5)", "changed 2"),
        ("UPDATE d SET b = -b WHERE a = 1", "changed 1"),
        (
            "UPDATE d SET b = -b",
            "94 Attempt to modify a tuple field which is part of index 'pk_unnamed_D_1' in space 'D'",
        ),
        ("CREATE TABLE e (a STRING COLLATE \"unicode_ci\" PRIMARY KEY, n INT)", "defined"),
        ("INSERT INTO e VALUES ('a', 0), ('b', 1)", "changed 2"),
        ("UPDATE e SET a = 'A', n = 5 WHERE a = 'a'", "changed 1"),
        ("UPDATE OR REPLACE e SET a = 'B' WHERE n = 1", "changed 1"),
        ("SELECT * FROM e", "\"A\" 5 | \"B\" 1"),
    ]);
}

/// As Tarantool 2.6.0 answers.
#[test]
fn the_last_extreme_of_a_group_says_which_row_is_shown() {
    check(&[
        ("CREATE TABLE w (a INT PRIMARY KEY, c INT)", "defined"),
        ("INSERT INTO w VALUES (1, 3), (2, 1), (3, NULL), (4, 5), (5, 7), (6, 1)", "changed 6"),
        ("SELECT a, MAX(a), MIN(c) FROM w", "2 6 1"),
        ("SELECT a, MIN(c), MAX(a), COUNT(*) FROM w", "6 1 6 6"),
        ("SELECT a, MIN(c), SUM(c) FROM w", "2 1 17"),
        ("SELECT a, COUNT(*) FROM w", "6 6"),
    ]);
}

/// As Tarantool 2.6.0 answers.
#[test]
fn texts_of_no_type_are_not_among_several_numbers() {
    check(&[
        ("CREATE TABLE s (a STRING PRIMARY KEY, b SCALAR)", "defined"),
        ("INSERT INTO s VALUES ('1.5', '1.5'), ('2', 2)", "changed 2"),
        ("SELECT a FROM s WHERE a IN (1.5, 2)", "\"1.5\" | \"2\""),
        ("SELECT a FROM s WHERE COALESCE(a, 1) IN (1.5, 2)", ""),
        ("SELECT a FROM s WHERE COALESCE(a, 'x') IN (1.5)", "\"1.5\""),
        ("SELECT a FROM s WHERE b IN (1.5, 2)", "\"2\""),
    ]);
}

#[test]
fn foreign_keys_say_when_they_are_checked() {
    check(&[
        ("CREATE TABLE p (a INT PRIMARY KEY)", "defined"),
        ("CREATE TABLE c1 (a INT PRIMARY KEY, b INT REFERENCES p DEFERRABLE)", "defined"),
        (
            "CREATE TABLE c2 (a INT PRIMARY KEY, b INT REFERENCES p NOT DEFERRABLE NOT NULL)",
            "defined",
        ),
        (
            "CREATE TABLE c3 (a INT PRIMARY KEY, b INT, \
             FOREIGN KEY (b) REFERENCES p (a) ON DELETE CASCADE DEFERRABLE INITIALLY IMMEDIATE, UNIQUE (b))",
            "defined",
        ),
        (
            "CREATE TABLE c4 (a INT PRIMARY KEY, b INT REFERENCES p DEFERRABLE INITIALLY DEFERRED)",
            "5 SQL of Ladon does not support foreign keys that are INITIALLY DEFERRED",
        ),
        (
            "CREATE TABLE c5 (a INT PRIMARY KEY, b INT REFERENCES p DEFERRABLE INITIALLY)",
            "184 Syntax error at line 1 near ')'",
        ),
    ]);
}

/// What goes over long texts takes steps for them, and what it makes is limited: nothing of it takes
/// long without asking whether it may go on.
#[test]
fn functions_of_long_texts_are_bounded() {
    let long = |bytes: usize| format!("REPLACE(HEX(ZEROBLOB({})), '0', 'a')", bytes / 2);
    let (text, part) = (long(400_000), long(200_000));
    let interrupted = "4294967295 interrupted";
    for (statement, expected) in [
        (format!("SELECT LENGTH(REPLACE({text}, {part} || 'b', 'x'))"), "400000"),
        (format!("SELECT POSITION({part} || 'b', {text})"), "0"),
        (format!("SELECT LENGTH(TRIM({part} || 'b' FROM {text}))"), "0"),
        (format!("SELECT {text} LIKE '%' || SUBSTR({part}, 1, 40000) || 'b'"), interrupted),
        (format!("SELECT POSITION({part} || 'b', {text} COLLATE \"unicode_ci\")"), interrupted),
        (format!("SELECT LENGTH(PRINTF(REPLACE({part}, 'a', '%9999d')))"), interrupted),
        ("SELECT LENGTH(RANDOMBLOB(16000000))".to_owned(), interrupted),
        ("SELECT LENGTH(HEX(ZEROBLOB(16000000)))".to_owned(), interrupted),
    ] {
        check(&[(&statement, expected)]);
    }
}

/// A view that reads another one twice costs two of it, and so on: how many queries that are is
/// limited, not only how deep they are.
#[test]
fn views_that_double_are_bounded() {
    let mut memory = Memory::default();
    memory.run("CREATE TABLE t (id INT PRIMARY KEY)");
    memory.run("CREATE VIEW w0 AS SELECT id FROM t");
    let made: Vec<String> = (1..16)
        .map(|at| {
            let below = at - 1;
            memory
                .run(&format!("CREATE VIEW w{at} AS SELECT a.id FROM w{below} AS a, w{below} AS b"))
        })
        .collect();
    assert_eq!(made[..8], ["defined"; 8]);
    let refused = "191 Number of queries, those of views included, 5001 exceeds the limit (5000)";
    assert!(made.iter().any(|it| it == refused), "{made:?}");
}
