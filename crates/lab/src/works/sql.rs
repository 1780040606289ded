//! Statements of SQL: single rows, ranges, joins and sums.

use super::figures::{axis, higher, lower};
use crate::load::sql::points::Point;
use crate::load::sql::queries::Query;
use crate::results::schema::Figure;
use crate::topology::Topology;
use crate::work::{Custom, Own, Part, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "sql",
    title: "SQL",
    repeats: "no published test: sysbench's point selects and ranges, with a join, a sum and groups",
    what: "A row by its primary key, prepared and by text, a range of 100 rows in order, an INSERT and an UPDATE \
           of a row, by 50 users who send 1 or 16 statements at once where the protocol takes several; a join of \
           1,000 rows with 1,000 by a key and without an index, a SUM over all rows, and over each of 100 groups, \
           by one user. Every row of every answer is compared with what was inserted.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 7, seconds: 0.5 },
    plan,
};

const USERS: usize = 50;
const DEPTHS: [usize; 2] = [1, 16];
/// Rows that are inserted in a second, roughly, where that is slowest.
const FILLED_PER_SECOND: f64 = 150_000.0;

/// Users of what is about single rows.
pub(crate) fn users(scale: &Scale) -> usize {
    scale.clients_or(&[USERS]).first().copied().unwrap_or(USERS)
}

/// How many statements a user sends at once.
pub(crate) fn depths(scale: &Scale) -> Vec<usize> {
    scale.pipeline_or(&DEPTHS)
}

/// Rows of the large table.
pub(crate) fn rows(scale: &Scale) -> u32 {
    scale.keys_or(1_000_000)
}

/// A statement about single rows: its name, the statement, and what it is.
pub(crate) const POINTS: [(&[&str; 1], Point, &str); 5] = [
    (&["prepared"], Point::Prepared, "SELECT a row by its key, prepared"),
    (&["text"], Point::Text, "SELECT a row by its key, by text"),
    (&["range"], Point::Range, "SELECT 100 rows in order, prepared"),
    (&["insert"], Point::Insert, "INSERT a row, prepared"),
    (&["update"], Point::Update, "UPDATE a row by its key, prepared"),
];

/// The same of queries over many rows.
pub(crate) const QUERIES: [(&[&str; 1], Query, &str); 4] = [
    (&["join-key"], Query::JoinByKey, "join of 1,000 and 1,000 rows by a key"),
    (&["join"], Query::Join, "join of 1,000 and 1,000 rows without an index"),
    (&["sum"], Query::Sum, "SUM over all rows"),
    (&["group-by"], Query::GroupBy, "COUNT and SUM of 100 groups of all rows"),
];

/// CPU first: that is what statements are compared by.
fn figures() -> Vec<Figure> {
    vec![
        lower("cpu_us", "server CPU per statement", "us"),
        higher("per_second", "throughput", "1/s"),
        lower("p50_us", "median latency", "us"),
        lower("p99_us", "latency, 99 %", "us"),
    ]
}

fn plan(scale: &Scale) -> Plan {
    let load = Custom {
        beside_seconds: f64::from(rows(scale)) / FILLED_PER_SECOND,
        ..Custom::in_sql(Own::LoadSql, &[])
    };
    let users = users(scale);
    let (mut parts, mut steps) = (Vec::new(), vec![Step::Load(load)]);
    for (name, _, title) in &POINTS {
        parts.push(Part {
            name: name[0].to_owned(),
            title: format!("{title}; {users} users"),
            axis: axis("statements at once", "statements"),
            figures: figures(),
        });
        let measurements = depths(scale).len();
        steps.push(Step::Custom(Custom {
            measurements,
            beside_seconds: 0.2,
            ..Custom::in_sql(Own::Sql, *name)
        }));
    }
    for (name, _, title) in &QUERIES {
        parts.push(Part::new(name[0], *title, figures()));
        steps.push(Step::Custom(Custom {
            measurements: 1,
            beside_seconds: 0.2,
            ..Custom::in_sql(Own::Sql, *name)
        }));
    }
    Plan { parts, steps }
}
