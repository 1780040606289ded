//! What there is of Tarantool's SQL: `docs/compat/sql.md` is made of this and of the tables of
//! functions.

use crate::aggregate::AGGREGATES;
use crate::functions;
use std::fmt::Write;

/// Statements and their parts, and what of them is missing.
const PARTS: &[(&str, &str)] = &[
    (
        "`SELECT`, `VALUES`: `WHERE`, `GROUP BY`, `HAVING`, `DISTINCT`, `ORDER BY`, `LIMIT`, `OFFSET`",
        "",
    ),
    (
        "joins: `,`, `[INNER | CROSS] JOIN`, `LEFT JOIN`, `NATURAL`, `ON`, `USING`; `SEQSCAN` in front of a table, which 2.6 has not, means nothing",
        "the names of tables in parentheses behind `LEFT JOIN` or `AS` outside of them",
    ),
    ("subqueries: in `FROM`, as a value, `EXISTS`, `IN`, correlated ones", ""),
    ("`UNION [ALL]`, `INTERSECT`, `EXCEPT`", "expressions in their `ORDER BY` that no result is"),
    ("`WITH`, `WITH RECURSIVE`", "`ORDER BY` and `OFFSET` in a recursive query"),
    (
        "`INSERT`, `REPLACE`, `OR IGNORE`, `OR REPLACE`, `OR ABORT`, `OR FAIL`, `OR ROLLBACK`, `DEFAULT VALUES`",
        "system spaces",
    ),
    (
        "`UPDATE`, `DELETE`",
        "a new primary key, but by `OR REPLACE` in a table that no foreign key names; system spaces but `_session_settings`",
    ),
    ("`TRUNCATE TABLE`", ""),
    (
        "`CREATE TABLE`: `PRIMARY KEY`, `UNIQUE`, `NOT NULL`, `DEFAULT`, `COLLATE`, `AUTOINCREMENT`, `FOREIGN KEY`, `CHECK`",
        "`CHECK` in a table with `COLLATE`; foreign keys that are `INITIALLY DEFERRED`, and `SET DEFAULT` of defaults that are computed; the engine vinyl",
    ),
    ("`CREATE [UNIQUE] INDEX`, `CREATE VIEW`, `DROP TABLE`, `DROP INDEX`, `DROP VIEW`", ""),
    (
        "`ALTER TABLE`: `RENAME TO`, `ADD [COLUMN]`, `ADD CONSTRAINT` with `UNIQUE`, `CHECK`, `FOREIGN KEY`; `DROP CONSTRAINT`",
        "`ADD CONSTRAINT` with `PRIMARY KEY`; constraints of an added column but `NOT NULL` and `COLLATE`",
    ),
    (
        "`START TRANSACTION`, `COMMIT`, `ROLLBACK`, `SAVEPOINT`, `RELEASE`, `ROLLBACK TO` in a stream",
        "outside of streams; definitions in a transaction",
    ),
    ("`EXPLAIN QUERY PLAN`", "`EXPLAIN`"),
    (
        "`PRAGMA table_info`, `index_list`, `index_info`, `foreign_key_list`, `collation_list`",
        "`stats`",
    ),
    (
        "`SET SESSION`: the settings of `_session_settings`",
        "what is set but `sql_full_metadata` and `sql_recursive_triggers` changes nothing",
    ),
    (
        "`CREATE TRIGGER`, `DROP TRIGGER`: `BEFORE`, `AFTER`, `INSTEAD OF`, `UPDATE OF`, `WHEN`, `RAISE`",
        "a new name in their texts after `RENAME TO`",
    ),
    ("`PREPARE`, `EXECUTE` by number, its end", ""),
];

const INTRODUCTION: &str = "\
# SQL in Ladon

<!-- Made from the tables of statements and functions; `./fix` brings it up to date. -->

`EXECUTE` and `PREPARE` of IPROTO run Tarantool 2.6's SQL on the same spaces that other requests and mounted keys
see. Names, types, metadata, numbers of rows and errors are Tarantool's; `crates/conformance/sql` has statements that
are sent to both. What is missing is answered with an error that names it.

| part | what is missing |
|---|---|
";

const NOTES: &str = "
## Types

`BOOLEAN`, `INTEGER` (of both signs, -2^63 to 2^64-1), `UNSIGNED`, `DOUBLE`, `NUMBER`, `STRING`, `TEXT`, `VARCHAR(n)`,
`VARBINARY`, `SCALAR`, and of 2.11 `DECIMAL` (`DEC`), `UUID`, `DATETIME`, `INTERVAL`, `ARRAY`, `MAP`, `ANY`.

What 2.6 has not is as in 2.11: `CAST` to and from these types, `[1, 'a']`, `{'a': 1}`, `x[1]`, `UUID()`, `NOW()`,
`DATE_PART`. Arithmetic with a decimal and an integer is exact, in 38 digits; with a double it is a double's. `1.5` is a
`DOUBLE`, as in 2.6 (2.11: a `DECIMAL`); `CAST('1.5' AS DECIMAL)` is the decimal. A text is not converted to a `UUID`,
`DATETIME` or `DECIMAL` but by `CAST`, and by a comparison with a number. Lists, maps and intervals have no order and are
equal to nothing. Not there: arithmetic of dates and intervals, and `CAST` of maps to them. `:name` is a parameter, so what
stands behind the colon of a map's key and is a name or a number needs a blank in front of it.

## How it differs

- **Rights** are those of the spaces: a query needs the right to read, a change the right to write, of every space that it
  touches, those under a view as well.
- **Definitions** are tuples of `_space`, `_index`, `_sequence` and `_space_sequence`. `CREATE TABLE` and `DROP TABLE` write
  all of them in one transaction, one record of the log: after a crash there is the whole table or nothing of it.
- **An added column** is not in the rows that there are: they show null in it, whatever its default. `NOT NULL` is for
  empty tables.
- **Foreign keys** are those of 2.11: options of the space, not tuples of `_fk_constraint`. Who
  names a row that leaves is found by an index over the key's columns; SQL makes one of the key's name if there is none. Their actions (`on_delete`,
  `on_update`: `cascade`, `set_null`, `set_default`) are in the same option, hold for every writer, ask for no rights of their own, and
  may change 10,000 rows in 30 levels because of one row.
- **A row that breaks several constraints** is refused because of one: `CHECK` comes before unique keys, in Tarantool
  after them. What cannot be computed is an error where it is needed; which value comes first may differ.
- **The remainder 0 of a negative number** is 0; in 2.6.0 it is the number. **`OR IGNORE`** counts the rows that were written, also in a
  table with several unique keys; 2.6.0 leaves some of them alone, or counts others.
- **`TYPEOF`** of what was computed is `boolean` for null, `integer` for whole numbers; Tarantool says `unsigned` after `ABS`.
- **Checks** are the option `sql_checks` of the space, not tuples of `_ck_constraint`, and hold for every writer. What is
  not the same each time (`NOW`, `RANDOM`, `ROW_COUNT`, `UUID`) and `COLLATE` are refused in them.
- **Triggers** are the option `sql_triggers` of the space, not tuples of `_trigger`. Changes by SQL fire them, other
  requests do not, as in Tarantool. A statement that fires triggers runs row by row.
- **Negative zero** (`-1 / 6`), whose remainders are wrong in 2.6.0, is 0.
- **Rows that 2.6.0 loses**: some of those that `IS NOT NULL` selects, also in `DELETE` and `UPDATE`, and by an index with a
  collation those that are `LIKE` a text which begins beyond ASCII (`LIKE 'é%'`). Ladon has them.
- **Of texts that are equal by a collation** a group shows one, that of its last row, or of the row that the last `MIN` or `MAX` of the
  query shows, as in Tarantool; where rows come in another order, it may be another one.
- **`OR IGNORE`** leaves the row alone that breaks a check; 2.6.0 leaves some of those behind it alone as well.
- **`DESC` in an index** changes nothing: an index is read in both directions.
- **`EXPLAIN`** shows the plan only; there is no bytecode.
- **Defaults** hold for `INSERT` of SQL, and not for other requests; a field's own `default` holds for all.
- **Plans** are made by rules: an index by equal parts, a range or a list, else a hash join. Without `ORDER BY`, a
  join's rows may come in another order than Tarantool's.
- **A view's or a subquery's columns** have their plain names; Tarantool puts the table's name before some of them.
- **The count of `UPDATE OR REPLACE`** is that of the rows that were updated; Tarantool adds those that had to go.
- **`EXISTS`** of a query with more than one row is true; Tarantool 2.6.0 refuses some of them.
- **A parameter's type** in the metadata is that of its value wherever it stands; in Tarantool only where it stands first.
- **Limits**: 64 MiB of rows, groups and hashes of a statement, 16 MiB of a text or bytes, 2,000 columns, 64 tables,
  5,000 queries with those of views as often as they are read, 30 compounds, 65,000 parameters, a depth of 200 of an expression and of 100 of what is in parentheses.
- **Long statements** run on a thread of their own, over copies that share memory with the spaces, eight at a time; others
  are served meanwhile. A change that takes long is a transaction of its own, written in slices and shown at once: after a
  conflict it runs again, 20 times; after three, others who would write its spaces wait for it.
  If the client leaves, or closes its side of the connection, the statement ends.
";

/// The text of `docs/compat/sql.md`.
pub fn compat_document() -> String {
    let mut text = INTRODUCTION.to_owned();
    for (part, missing) in PARTS {
        let _ = writeln!(text, "| {part} | {missing} |");
    }
    let of_rows: Vec<String> = functions::names().map(|name| format!("`{name}`")).collect();
    let of_groups: Vec<String> = AGGREGATES.iter().map(|it| format!("`{}`", it.0)).collect();
    let _ = write!(
        text,
        "\n## Functions\n\nOf values: {}.\n\nOf groups: {}.\n",
        of_rows.join(", "),
        of_groups.join(", ")
    );
    text + NOTES
}
