//! EXPLAIN QUERY PLAN and PRAGMA.

use crate::ast::Statement;
use crate::bind::Binder;
use crate::catalog::{Index, Table, foreign_keys_of};
use crate::error::{self, Error};
use crate::parser::statement::PRAGMAS;
use crate::prepared::{Kind, OutputColumn};
use crate::tree::{Access, Core, IndexAccess, Query, Source};
use crate::value::Value;
use std::sync::Arc;

type Columns = [(&'static str, &'static str)];

/// The columns of EXPLAIN QUERY PLAN.
pub(crate) const PLAN: [(&str, &str); 4] =
    [("selectid", "integer"), ("order", "integer"), ("from", "integer"), ("detail", "text")];

const TABLE_INFO: [(&str, &str); 6] = [
    ("cid", "integer"),
    ("name", "text"),
    ("type", "text"),
    ("notnull", "integer"),
    ("dflt_value", "text"),
    ("pk", "integer"),
];

const INDEX_LIST: [(&str, &str); 3] = [("seq", "integer"), ("name", "text"), ("unique", "integer")];

const INDEX_INFO: [(&str, &str); 6] = [
    ("seqno", "integer"),
    ("cid", "integer"),
    ("name", "text"),
    ("desc", "integer"),
    ("coll", "text"),
    ("type", "text"),
];

const COLLATION_LIST: [(&str, &str); 2] = [("seq", "integer"), ("name", "text")];

const FOREIGN_KEY_LIST: [(&str, &str); 8] = [
    ("id", "integer"),
    ("seq", "integer"),
    ("table", "text"),
    ("from", "text"),
    ("to", "text"),
    ("on_update", "text"),
    ("on_delete", "text"),
    ("match", "text"),
];

/// Columns of these names and types.
pub(crate) fn columns(columns: &Columns) -> Vec<OutputColumn> {
    let one = |(name, kind): &(&'static str, &'static str)| OutputColumn {
        name: (*name).to_owned(),
        kind,
        parameter: None,
        collation: 0,
        column: None,
        span: (*name).to_owned(),
    };
    columns.iter().map(one).collect()
}

fn integer(number: usize) -> Value {
    Value::Int(number as i128)
}

/// The plan of a statement, in Tarantool's words.
pub(crate) fn rows(binder: &mut Binder<'_>, kind: &Kind) -> Result<Vec<Vec<Value>>, Error> {
    let mut rows = Vec::new();
    match kind {
        Kind::Rows(query) => of_query(binder, query, &mut rows),
        Kind::Changes(changing) => {
            if let Some(query) = changing.query() {
                of_query(binder, query, &mut rows);
            }
            if let Some(core) = changing.core() {
                of_core(binder, core, 0, &mut rows);
            }
        }
        Kind::Fixed(_) | Kind::Other(_) => {}
    }
    Ok(rows)
}

fn of_query(binder: &Binder<'_>, query: &Query, rows: &mut Vec<Vec<Value>>) {
    for (at, (_, core)) in query.cores.iter().enumerate() {
        of_core(binder, core, at, rows);
    }
    let is_sorted = query.cores.iter().any(|(_, core)| core.is_in_order);
    if !query.order.is_empty() && !is_sorted {
        let detail = Value::text("USE TEMP B-TREE FOR ORDER BY");
        rows.push(vec![integer(0), integer(0), integer(0), detail]);
    }
}

fn of_core(binder: &Binder<'_>, core: &Core, select: usize, rows: &mut Vec<Vec<Value>>) {
    for (at, step) in core.steps.iter().enumerate() {
        let detail = match &core.sources[step.slot] {
            Source::Table(id) => match binder.tables.iter().find(|table| table.id == *id) {
                Some(table) => of_table(table, &step.access),
                None => format!("SCAN TABLE {id}"),
            },
            Source::Query(_) => "SCAN SUBQUERY (~1 row)".to_owned(),
            Source::Recursive(_) | Source::LastRound(_) => "SCAN RECURSIVE QUERY".to_owned(),
        };
        rows.push(vec![integer(select), integer(at), integer(step.slot), Value::text(&detail)]);
    }
    if core.group.as_ref().is_some_and(|group| !group.keys.is_empty()) {
        let detail = Value::text("USE TEMP B-TREE FOR GROUP BY");
        rows.push(vec![integer(select), integer(0), integer(0), detail]);
    }
    if core.is_distinct {
        let detail = Value::text("USE TEMP B-TREE FOR DISTINCT");
        rows.push(vec![integer(select), integer(0), integer(0), detail]);
    }
}

fn of_table(table: &Arc<Table>, access: &Access) -> String {
    let named = |id: u32| {
        let index = table.indexes.iter().find(|index| index.id == id);
        let name = match index {
            Some(Index { id: 0, .. }) | None => "PRIMARY KEY".to_owned(),
            Some(index) => format!("COVERING INDEX {}", index.name),
        };
        (name, index)
    };
    let name = &table.name;
    match access {
        Access::All => format!("SCAN TABLE {name} (~1048576 rows)"),
        Access::Hash { .. } => format!("SCAN TABLE {name} BY HASH"),
        Access::Keys { index, .. } => {
            let (index, facts) = named(*index);
            let column = facts.and_then(|facts| column_of(table, facts, 0)).unwrap_or_default();
            format!("SEARCH TABLE {name} USING {index} ({column}=?) (~4 rows)")
        }
        Access::Index(access) => {
            let (index, facts) = named(access.index);
            let terms = terms(table, facts, access);
            if terms.is_empty() {
                return format!("SCAN TABLE {name} USING {index} (~1048576 rows)");
            }
            let rows = if access.is_unique { "~1 row" } else { "~10 rows" };
            format!("SEARCH TABLE {name} USING {index} ({terms}) ({rows})")
        }
    }
}

fn column_of(table: &Table, index: &Index, part: usize) -> Option<String> {
    let field = index.parts.get(part)?.field?;
    Some(table.columns.get(field as usize)?.name.clone())
}

fn terms(table: &Table, index: Option<&Index>, access: &IndexAccess) -> String {
    let Some(index) = index else { return String::new() };
    let column = |part: usize| column_of(table, index, part).unwrap_or_default();
    let mut all: Vec<String> =
        (0..access.equal.len()).map(|part| format!("{}=?", column(part))).collect();
    let next = access.equal.len();
    all.extend(access.low.iter().map(|_| format!("{}>?", column(next))));
    all.extend(access.high.iter().map(|_| format!("{}<?", column(next))));
    all.join(" AND ")
}

/// PRAGMA.
pub(crate) fn pragma(
    binder: &mut Binder<'_>,
    name: &str,
    value: Option<&str>,
    index: Option<&str>,
) -> Result<(Kind, Vec<OutputColumn>), Error> {
    let table = match value {
        Some(value) => binder.catalog.table(value)?,
        None => None,
    };
    let (rows, columns_of): (Vec<Vec<Value>>, &Columns) = match name {
        "TABLE_INFO" => (table.map_or_else(Vec::new, |table| table_info(&table)), &TABLE_INFO),
        "INDEX_LIST" => {
            let of = |(at, index): (usize, &Index)| {
                vec![integer(at), Value::text(&index.name), integer(index.is_unique.into())]
            };
            let rows = table.iter().flat_map(|it| it.indexes.iter().enumerate().map(of));
            (rows.collect(), &INDEX_LIST)
        }
        "INDEX_INFO" => {
            let found = table.as_ref().and_then(|table| {
                let index = table.indexes.iter().find(|it| Some(&it.name[..]) == index)?;
                Some(index_info(table, index))
            });
            (found.unwrap_or_default(), &INDEX_INFO)
        }
        "FOREIGN_KEY_LIST" => match table {
            Some(table) => (foreign_key_list(binder, &table)?, &FOREIGN_KEY_LIST),
            None => (Vec::new(), &FOREIGN_KEY_LIST),
        },
        "COLLATION_LIST" => {
            let text = br#"SELECT "id", "name" FROM "_vcollation""#;
            let Statement::Select(select) = crate::parser::parse(text)?.statement else {
                return Err(error::no_pragma(name));
            };
            return Ok((Kind::Rows(binder.query(&select)?), columns(&COLLATION_LIST)));
        }
        other if PRAGMAS.contains(&other) => {
            return Err(error::unsupported(&format!("PRAGMA {other}")));
        }
        other => return Err(error::no_pragma(other)),
    };
    Ok((Kind::Fixed(rows), columns(columns_of)))
}

/// As in 2.6, whose list has the action of a deletion where that of an update is named.
fn foreign_key_list(binder: &mut Binder<'_>, table: &Table) -> Result<Vec<Vec<Value>>, Error> {
    let mut rows = Vec::new();
    for (at, key) in foreign_keys_of(&table.definition).into_iter().enumerate() {
        let parent = match key.space {
            0 => None,
            id => binder.catalog.table_of_space(id)?,
        };
        let parent = parent.as_deref().unwrap_or(table);
        let name = |table: &Table, field: usize| {
            Value::text(table.columns.get(field).map_or("", |column| &column.name[..]))
        };
        for (seq, (local, foreign)) in key.fields.iter().enumerate() {
            rows.push(vec![
                integer(at),
                integer(seq),
                Value::text(&parent.name),
                name(table, *local),
                name(parent, *foreign),
                Value::text(&key.on_delete),
                Value::text(&key.on_update),
                Value::text("NONE"),
            ]);
        }
    }
    Ok(rows)
}

fn table_info(table: &Table) -> Vec<Vec<Value>> {
    let primary = table.indexes.first().map(|index| &index.parts[..]).unwrap_or_default();
    let of = |(at, column): (usize, &crate::catalog::Column)| {
        let place = primary.iter().position(|part| part.field == Some(at as u32));
        let default = column.default.as_deref().map_or(Value::Null, Value::text);
        vec![
            integer(at),
            Value::text(&column.name),
            Value::text(column.kind.name()),
            integer((!column.is_nullable).into()),
            default,
            integer(place.map_or(0, |place| place + 1)),
        ]
    };
    table.columns.iter().enumerate().map(of).collect()
}

fn index_info(table: &Table, index: &Index) -> Vec<Vec<Value>> {
    let of = |(at, part): (usize, &crate::catalog::IndexPart)| {
        let field = part.field.unwrap_or_default() as usize;
        let name = table.columns.get(field).map_or("", |column| &column.name[..]);
        vec![
            integer(at),
            integer(field),
            Value::text(name),
            integer(0),
            Value::text("BINARY"),
            Value::text(part.kind.name()),
        ]
    };
    index.parts.iter().enumerate().map(of).collect()
}
