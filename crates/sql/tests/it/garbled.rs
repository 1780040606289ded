//! Texts made of pieces of statements: whatever comes of them, nothing panics, and it ends.

use crate::memory::Memory;

const PIECES: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "t",
    "c",
    "id",
    "name",
    "d",
    "n",
    "*",
    "(",
    ")",
    ",",
    ".",
    ";",
    "=",
    "<",
    ">=",
    "<>",
    "+",
    "-",
    "/",
    "%",
    "||",
    "&",
    "<<",
    "~",
    "NOT",
    "AND",
    "OR",
    "IN",
    "LIKE",
    "BETWEEN",
    "IS",
    "NULL",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "RAISE",
    "NEW",
    "OLD",
    "TRIGGER",
    "CHECK",
    "CAST",
    "AS",
    "INTEGER",
    "STRING",
    "1",
    "2.5",
    "'a'",
    "x'00'",
    "?",
    ":p",
    "$1",
    "COLLATE",
    "\"unicode_ci\"",
    "GROUP BY",
    "HAVING",
    "ORDER BY",
    "LIMIT",
    "OFFSET",
    "UNION",
    "ALL",
    "EXCEPT",
    "INTERSECT",
    "DISTINCT",
    "count",
    "sum",
    "max(id)",
    "substr",
    "coalesce",
    "JOIN",
    "LEFT JOIN",
    "ON",
    "USING",
    "NATURAL JOIN",
    "EXISTS",
    "VALUES",
    "INSERT INTO",
    "UPDATE",
    "SET",
    "DELETE FROM",
    "REPLACE INTO",
    "WITH",
    "RECURSIVE",
    "DEFAULT",
    "DESC",
    "INDEXED BY",
    "true",
    "18446744073709551615",
    "-9223372036854775808",
    "EXPLAIN QUERY PLAN",
    "PRAGMA",
    "table_info",
    "TRIM",
    "printf",
    "'%d'",
    "round",
    "1e300",
];

/// Whole statements that are mutated.
const SEEDS: &[&str] = &[
    "SELECT t.id, name FROM t LEFT JOIN c ON c.t = t.id WHERE t.id > 1 ORDER BY 1 DESC LIMIT 2",
    "SELECT count(*), sum(n) FROM c GROUP BY t HAVING count(*) > 1 ORDER BY sum(n)",
    "SELECT id FROM t WHERE id IN (SELECT t FROM c WHERE n BETWEEN 1 AND 30) OR name LIKE 'a%'",
    "WITH q(a) AS (SELECT id FROM t) SELECT a, (SELECT max(n) FROM c WHERE c.t = q.a) FROM q",
    "INSERT INTO c (id, t, n) SELECT id + 10, id, CAST(d AS INTEGER) FROM t",
    "UPDATE c SET n = n + 1, t = NULL WHERE id IN (1, 2, 3)",
    "SELECT CASE d WHEN 1 THEN 'x' ELSE substr(name, 1, 2) || 'y' END AS z FROM t UNION ALL SELECT 'w'",
    "CREATE TABLE x (a INT PRIMARY KEY, b STRING DEFAULT 'q' COLLATE \"unicode_ci\" UNIQUE)",
];

/// Numbers by xorshift, from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % count as u64) as usize
    }
}

fn pieces(random: &mut Random) -> String {
    let count = 1 + random.below(24);
    let mut text = String::from(["SELECT ", "SELECT * FROM t WHERE ", ""][random.below(3)]);
    for _ in 0..count {
        text += PIECES[random.below(PIECES.len())];
        text.push(' ');
    }
    text
}

fn mutated(random: &mut Random) -> Vec<u8> {
    let mut text = SEEDS[random.below(SEEDS.len())].as_bytes().to_vec();
    for _ in 0..random.below(4) {
        let at = random.below(text.len());
        match random.below(4) {
            0 => drop(text.remove(at)),
            1 => text.insert(at, random.below(256) as u8),
            2 => {
                let piece = PIECES[random.below(PIECES.len())];
                text.splice(at..at, format!(" {piece} ").bytes());
            }
            _ => {
                let other = random.below(text.len());
                text.swap(at, other);
            }
        }
        if text.is_empty() {
            break;
        }
    }
    text
}

#[test]
fn no_text_makes_it_panic() {
    let mut memory = Memory::default();
    for text in [
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name STRING, d DOUBLE, UNIQUE (name))",
        "INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', NULL), (3, NULL, 0.5)",
        "CREATE TABLE c (id INT PRIMARY KEY, t INT, n INT)",
        "CREATE TABLE log (id INT PRIMARY KEY, n INT CHECK (n < 1000))",
        "CREATE TRIGGER g AFTER UPDATE ON c FOR EACH ROW WHEN new.n > 1 \
         BEGIN INSERT OR REPLACE INTO log VALUES (new.id, old.n); END",
        "INSERT INTO c VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30)",
    ] {
        memory.run(text);
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut ran, mut refused) = (0, 0);
    for round in 0..20_000 {
        let text =
            if round % 2 == 0 { pieces(&mut random).into_bytes() } else { mutated(&mut random) };
        let answer = memory.run_with(&text, &[]);
        let is_refused =
            answer.split(' ').next().is_some_and(|it| it.parse::<u32>().is_ok_and(|it| it > 100));
        if is_refused { refused += 1 } else { ran += 1 }
    }
    assert!(ran > 500 && refused > 500, "{ran} ran, {refused} were refused");
}
