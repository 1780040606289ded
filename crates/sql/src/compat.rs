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
        "joins: `,`, `[INNER | CROSS] JOIN`, `LEFT JOIN`, `NATURAL`, `ON`, `USING`",
        "`LEFT JOIN` of tables in parentheses",
    ),
    ("subqueries: in `FROM`, as a value, `EXISTS`, `IN`, correlated ones", ""),
    ("`UNION [ALL]`, `INTERSECT`, `EXCEPT`", "expressions in their `ORDER BY`"),
    ("`WITH`, `WITH RECURSIVE`", "`ORDER BY` and `OFFSET` in a recursive query"),
    (
        "`INSERT`, `REPLACE`, `INSERT OR IGNORE`, `OR REPLACE`, `OR ABORT`, `DEFAULT VALUES`",
        "`OR FAIL`, `OR ROLLBACK`; system spaces",
    ),
    ("`UPDATE`, `DELETE`", "`OR REPLACE` with more than one unique index; system spaces"),
    ("`TRUNCATE TABLE`", ""),
    (
        "`CREATE TABLE`: `PRIMARY KEY`, `UNIQUE`, `NOT NULL`, `DEFAULT`, `COLLATE`, `AUTOINCREMENT`, `FOREIGN KEY`",
        "`CHECK`; actions of foreign keys; the engine vinyl",
    ),
    ("`CREATE [UNIQUE] INDEX`, `CREATE VIEW`, `DROP TABLE`, `DROP INDEX`, `DROP VIEW`", ""),
    (
        "`ALTER TABLE`: `RENAME TO`, `ADD CONSTRAINT .. UNIQUE`, `DROP CONSTRAINT`",
        "`ADD CONSTRAINT` with `CHECK`, `FOREIGN KEY`, `PRIMARY KEY`",
    ),
    ("`START TRANSACTION`, `COMMIT`, `ROLLBACK` in a stream", "outside of streams; savepoints"),
    ("`EXPLAIN QUERY PLAN`", "`EXPLAIN`"),
    ("`PRAGMA table_info`, `index_list`, `index_info`", "other pragmas"),
    (
        "`SET SESSION`: the settings of `_session_settings`",
        "what is set but `sql_full_metadata` changes nothing",
    ),
    ("`CREATE TRIGGER`, `DROP TRIGGER`", "all of it"),
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
`VARBINARY`, `SCALAR`. Columns of other types (decimal, uuid, datetime, array, map) are shown, compared for equality and
stored as they are; they have no literals, casts or arithmetic.

## How it differs

- **Rights** are those of the spaces: a query needs the right to read, a change the right to write, of every space that it
  touches, those under a view as well.
- **Definitions** are tuples of `_space`, `_index`, `_sequence` and `_space_sequence`, one change after the other: if one is
  refused, those before it are taken back. A crash between them leaves a table without its indexes.
- **Foreign keys** are those of 2.11: options of the space, not tuples of `_fk_constraint`.
- **Defaults** hold for `INSERT` of SQL, and not for other requests; a field's own `default` holds for all.
- **Plans** are made by rules: an index by equal parts, a range or a list, else a hash join. Without `ORDER BY`, a
  join's rows may come in another order than Tarantool's.
- **A view's or a subquery's columns** have their plain names; Tarantool puts the table's name before some of them.
- **`EXISTS`** of a query with more than one row is true; Tarantool 2.6.0 refuses some of them.
- **A parameter's type** in the metadata is that of its value wherever it stands; in Tarantool only where it stands first.
- **Limits**: 64 MiB of rows, groups and hashes of a statement, 2,000 columns, 64 tables, 30 compounds, 65,000
  parameters, a depth of 200 of an expression and of 100 of what is in parentheses.
- **Long statements** run on a thread of their own, over copies that share memory with the spaces, eight at a time; others
  are served meanwhile. A change that takes long is a transaction of its own: after a conflict it runs again, 20 times.
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
