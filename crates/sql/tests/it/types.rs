//! Decimals, UUIDs, dates, lists and maps: types that 2.6 has not. What is expected is what
//! Tarantool 2.11's tests expect (test/sql-tap: decimal, uuid, datetime, array, map), in 2.6's words.

use crate::memory::Memory;

/// Runs texts one after the other, and compares what each comes to.
fn check(script: &[(&str, &str)]) {
    let mut memory = Memory::default();
    for (text, expected) in script {
        assert_eq!(memory.run(text), *expected, "{text}");
    }
}

const DECIMALS: [(&str, &str); 2] = [
    ("CREATE TABLE t (d DECIMAL PRIMARY KEY, n NUMBER, s SCALAR)", "defined"),
    (
        "INSERT INTO t VALUES (111, 1, 1), (55555, CAST('0.1' AS DECIMAL), 2), (1.5, 0.5, NULL)",
        "changed 3",
    ),
];

#[test]
fn decimals_are_columns_keys_and_results() {
    check(&[
        DECIMALS[0],
        DECIMALS[1],
        ("SELECT d FROM t", "1.5 | 111 | 55555"),
        ("SELECT d FROM t ORDER BY d DESC", "55555 | 111 | 1.5"),
        ("SELECT d FROM t WHERE d = 111", "111"),
        ("SELECT d FROM t WHERE d = 1.5", "1.5"),
        ("SELECT d FROM t WHERE d = '111'", "111"),
        ("SELECT d FROM t WHERE d = CAST(111 AS DECIMAL)", "111"),
        ("SELECT d FROM t WHERE d > 1 AND d < 111.5", "1.5 | 111"),
        ("SELECT d FROM t WHERE d IN (111, 1.5, 7)", "1.5 | 111"),
        ("SELECT d FROM t WHERE d BETWEEN 2 AND CAST('111.00' AS DECIMAL)", "111"),
        ("SELECT d = 0.1, d > true FROM t", "171 Type mismatch: can not convert TRUE to number"),
        ("SELECT d > x'31' FROM t", "171 Type mismatch: can not convert varbinary to number"),
        ("SELECT n FROM t WHERE n < 0.6 ORDER BY n", "0.1 | 0.5"),
        (
            "INSERT INTO t VALUES (111.0, 1, 1)",
            "3 Duplicate key exists in unique index 'pk_unnamed_T_1' in space 'T'",
        ),
        ("INSERT INTO t VALUES ('7', 1, 1)", "171 Type mismatch: can not convert 7 to decimal"),
        ("INSERT INTO t VALUES (true, 1, 1)", "171 Type mismatch: can not convert TRUE to decimal"),
        ("UPDATE t SET n = n + d WHERE d = 111", "changed 1"),
        (
            "SELECT n, typeof(n), typeof(d), typeof(d + 1) FROM t WHERE d = 111",
            "112 \"number\" \"decimal\" \"decimal\"",
        ),
        ("DELETE FROM t WHERE d = 111", "changed 1"),
        ("SELECT COUNT(*) FROM t", "2"),
    ]);
}

#[test]
fn decimals_are_computed_with() {
    let cast = |text: &str| format!("CAST('{text}' AS DECIMAL)");
    let a = cast("0.1");
    for (text, expected) in [
        (format!("SELECT {a} + {a} + {a}"), "0.3"),
        (format!("SELECT {a} * 3, 1 - {a}, 7 % {}", cast("2.5")), "0.3 0.9 2.0"),
        (format!("SELECT 1 / {}", cast("3")), "0.33333333333333333333333333333333333333"),
        (format!("SELECT {a} + 0.5, typeof({a} + 0.5)"), "0.6 \"double\""),
        (
            format!("SELECT -{a}, ABS(-{a}), ROUND({}, 2), ROUND({})", cast("2.345"), cast("2.5")),
            "-0.1 0.1 2.35 3",
        ),
        (format!("SELECT {a} / 0"), "159 Failed to execute SQL statement: division by zero"),
        (
            format!("SELECT {} + 1", cast(&"9".repeat(38))),
            "159 Failed to execute SQL statement: decimal is overflowed",
        ),
        (
            format!("SELECT {} | 1, {a} | 1", cast("2")),
            "171 Type mismatch: can not convert 0.1 to integer",
        ),
        (format!("SELECT GREATEST({a}, 1, 0.5), LEAST({a}, 1, 0.5)"), "1 0.1"),
        (
            format!(
                "SELECT CAST({} AS INTEGER), CAST({a} AS STRING), CAST({a} AS DOUBLE), CAST({a} AS NUMBER), CAST({a} AS SCALAR)",
                cast("-7.9")
            ),
            "-7 \"0.1\" 0.1 0.1 0.1",
        ),
        (
            format!("SELECT CAST({a} AS BOOLEAN)"),
            "171 Type mismatch: can not convert 0.1 to boolean",
        ),
        (
            format!("SELECT CAST({a} AS VARBINARY)"),
            "171 Type mismatch: can not convert 0.1 to varbinary",
        ),
        (format!("SELECT CAST({a} AS UUID)"), "171 Type mismatch: can not convert 0.1 to uuid"),
        (
            "SELECT CAST(true AS DECIMAL)".to_owned(),
            "171 Type mismatch: can not convert TRUE to decimal",
        ),
        (
            "SELECT CAST('1x' AS DECIMAL)".to_owned(),
            "171 Type mismatch: can not convert 1x to decimal",
        ),
        (
            "SELECT CAST(1e40 AS DECIMAL)".to_owned(),
            "171 Type mismatch: can not convert 1.0e+40 to decimal",
        ),
        (
            format!("SELECT {a} = 0.1, {a} = {}, {} = 1, {a} || 'x'", cast("0.10"), cast("1.0")),
            "178 Inconsistent types: expected text or varbinary got decimal",
        ),
        (
            format!("SELECT {a} < 0.1, {a} = {}, {} = 1", cast("0.10"), cast("1.0")),
            "true true true",
        ),
    ] {
        check(&[(&text, expected)]);
    }
}

#[test]
fn decimals_are_grouped_summed_and_joined() {
    check(&[
        ("CREATE TABLE g (id INT PRIMARY KEY, d DECIMAL, n NUMBER)", "defined"),
        (
            "INSERT INTO g VALUES (1, 0.1, 2), (2, 0.2, 2.5), (3, 0.1, CAST('2.50' AS DECIMAL))",
            "changed 3",
        ),
        (
            "SELECT SUM(d), AVG(d), MIN(d), MAX(d), TOTAL(d) FROM g",
            "0.4 0.13333333333333333333333333333333333333 0.1 0.2 0.4",
        ),
        ("SELECT d, COUNT(*) FROM g GROUP BY d", "0.1 2 | 0.2 1"),
        ("SELECT COUNT(DISTINCT n), SUM(n) FROM g", "2 7"),
        ("SELECT AVG(n) FROM g WHERE id <> 2", "2.25"),
        ("CREATE TABLE h (i INT PRIMARY KEY, d DOUBLE)", "defined"),
        ("INSERT INTO h VALUES (2, 2.5), (7, 0.5)", "changed 2"),
        ("SELECT g.id, h.i FROM g, h WHERE g.n = h.d ORDER BY g.id", "2 2 | 3 2"),
        ("SELECT g.id FROM g JOIN h ON g.n = h.i", "1"),
        ("SELECT id FROM g WHERE n IN (SELECT d FROM h) ORDER BY id", "2 | 3"),
    ]);
}

#[test]
fn uuids_are_columns_keys_and_results() {
    const ONE: &str = "11111111-1111-1111-1111-111111111111";
    const TWO: &str = "22222222-1111-1111-1111-111111111111";
    let one = format!("CAST('{ONE}' AS UUID)");
    let two = format!("CAST('{TWO}' AS UUID)");
    check(&[
        ("CREATE TABLE u (u UUID PRIMARY KEY, i INT)", "defined"),
        (&format!("INSERT INTO u VALUES ({two}, 2), ({one}, 1)"), "changed 2"),
        ("SELECT u, i FROM u", &format!("{ONE} 1 | {TWO} 2")),
        ("SELECT i FROM u ORDER BY u DESC", "2 | 1"),
        (&format!("SELECT i FROM u WHERE u = {two}"), "2"),
        (&format!("SELECT i FROM u WHERE u > {one}"), "2"),
        (
            &format!("SELECT u = '{ONE}' FROM u"),
            &format!("171 Type mismatch: can not convert {ONE} to uuid"),
        ),
        ("SELECT u > 1 FROM u", "171 Type mismatch: can not convert 1 to uuid"),
        (
            &format!("INSERT INTO u VALUES ('{ONE}', 1)"),
            &format!("171 Type mismatch: can not convert {ONE} to uuid"),
        ),
        (
            &format!(
                "SELECT CAST({one} AS STRING), HEX(CAST({one} AS VARBINARY)), CAST(x'{}' AS UUID), typeof({one})",
                "11".repeat(16)
            ),
            &format!("\"{ONE}\" \"{}\" {ONE} \"uuid\"", "11".repeat(16)),
        ),
        ("SELECT CAST('x' AS UUID)", "171 Type mismatch: can not convert x to uuid"),
        ("SELECT CAST(x'11' AS UUID)", "171 Type mismatch: can not convert varbinary to uuid"),
        (
            &format!("SELECT {one} + 1"),
            &format!("171 Type mismatch: can not convert {ONE} to numeric"),
        ),
        ("SELECT MAX(u) FROM u", TWO),
        (
            "SELECT typeof(UUID()), LENGTH(CAST(UUID() AS STRING)), UUID() = UUID(4)",
            "\"uuid\" 36 false",
        ),
        ("SELECT UUID(3)", "5 Function UUID does not support versions other than 4: 3"),
        ("SELECT SUBSTR(CAST(UUID() AS STRING), 15, 1)", "\"4\""),
        (
            "CREATE TABLE c (i INT PRIMARY KEY, u UUID, CHECK (u <> UUID()))",
            "195 Failed to create check constraint 'ck_unnamed_C_1': SQL of Ladon does not support UUID() in CHECK",
        ),
    ]);
}

#[test]
fn dates_are_columns_keys_and_results() {
    check(&[
        ("CREATE TABLE d (d DATETIME PRIMARY KEY, i INT)", "defined"),
        (
            "INSERT INTO d VALUES (CAST('2001-01-01T01:00:00Z' AS DATETIME), 1), (CAST('2000-02-29' AS DATETIME), 2)",
            "changed 2",
        ),
        ("SELECT d, i FROM d", "2000-02-29T00:00:00Z 2 | 2001-01-01T01:00:00Z 1"),
        ("SELECT i FROM d WHERE d > CAST('2000-03-01' AS DATETIME)", "1"),
        ("SELECT i FROM d WHERE d = CAST('2001-01-01T04:00:00+0300' AS DATETIME)", "1"),
        (
            "SELECT CAST(d AS STRING), typeof(d), DATE_PART('year', d) FROM d WHERE i = 2",
            "\"2000-02-29T00:00:00Z\" \"datetime\" 2000",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT CAST('2001-01-01T04:00:00+03' AS DATETIME) AS x UNION SELECT CAST('2001-01-01T01:00:00Z' AS DATETIME))",
            "1",
        ),
        (
            "SELECT CAST('2001-02-29' AS DATETIME)",
            "171 Type mismatch: can not convert 2001-02-29 to datetime",
        ),
        (
            "SELECT d > '2001-01-01' FROM d",
            "171 Type mismatch: can not convert 2001-01-01 to datetime",
        ),
        ("SELECT NOW() > CAST('1969-01-01' AS DATETIME)", "true"),
        ("SELECT MIN(d) FROM d", "2000-02-29T00:00:00Z"),
    ]);
}

#[test]
fn lists_and_maps_are_values() {
    check(&[
        ("CREATE TABLE a (i INT PRIMARY KEY, a ARRAY, m MAP, x ANY)", "defined"),
        (
            "INSERT INTO a VALUES (1, [1, 'two', [3]], {'k': 1, 2: [true]}, 5), (2, [], {}, [1])",
            "changed 2",
        ),
        ("SELECT a, m, x FROM a", "[1, \"two\", [3]] {\"k\": 1, 2: [true]} 5 | [] {} [1]"),
        (
            "SELECT a[1], a[3][1], a[4], m['k'], m[2][1], m[3] FROM a WHERE i = 1",
            "1 3 null 1 true null",
        ),
        (
            "SELECT typeof(a), typeof(m), typeof([1]) FROM a WHERE i = 1",
            "\"array\" \"map\" \"array\"",
        ),
        (
            "SELECT CAST(a AS STRING), CAST(m AS STRING) FROM a WHERE i = 1",
            "\"[1, \\\"two\\\", [3]]\" \"{\\\"k\\\": 1, 2: [true]}\"",
        ),
        ("SELECT {'a': 1, 'a': 2}", "{\"a\": 2}"),
        ("SELECT [1] = [1]", "171 Type mismatch: can not convert [1] to comparable type"),
        (
            "SELECT a > 1 FROM a",
            "171 Type mismatch: can not convert [1, \"two\", [3]] to comparable type",
        ),
        ("SELECT {1.5: 1}", "171 Type mismatch: can not convert 1.5 to integer, string or uuid"),
        (
            "SELECT 1[1]",
            "159 Failed to execute SQL statement: Selecting is only possible from map and array values",
        ),
        ("INSERT INTO a VALUES (3, 1, {}, 1)", "171 Type mismatch: can not convert 1 to array"),
        ("INSERT INTO a VALUES (3, [], [], 1)", "171 Type mismatch: can not convert [] to map"),
        ("SELECT CAST([1] AS SCALAR)", "171 Type mismatch: can not convert [1] to scalar"),
        ("SELECT CAST(1 AS ARRAY)", "171 Type mismatch: can not convert 1 to array"),
        ("SELECT CAST([1] AS ANY), [1, 2, ]", "[1] [1, 2]"),
        ("SELECT [1", "184 Syntax error at line 1 near '1'"),
        ("SELECT LENGTH([1])", "178 Inconsistent types: expected text or varbinary got array"),
        ("CREATE TABLE s (i INT PRIMARY KEY, s SCALAR)", "defined"),
        ("INSERT INTO s VALUES (1, [1])", "171 Type mismatch: can not convert [1] to scalar"),
    ]);
}
