//! Names and plans of changes.

use super::{Changing, How};
use crate::ast::{self, Event, Expr, OnConflict, Timing};
use crate::bind::Binder;
use crate::catalog::Table;
use crate::error::{self, Error};
use crate::parser::statement::expression;
use crate::programs::parsed;
use crate::tree::{Core, Ex};
use crate::value::Value;
use std::sync::Arc;

fn target(binder: &mut Binder<'_>, name: &str, event: Event) -> Result<Arc<Table>, Error> {
    let table = binder.table(name)?;
    let is_instead = |trigger| {
        let created = parsed(trigger);
        created.is_ok_and(|it| it.event == event && it.timing == Timing::InsteadOf)
    };
    if table.view.is_some() && !table.triggers.iter().any(is_instead) {
        let message = format!("Can't modify space '{name}': space is a view");
        return Err(error::make(error::ALTER_SPACE, message));
    }
    Ok(table)
}

/// A change with the triggers that it fires.
fn changing(
    binder: &mut Binder<'_>,
    (table, on_conflict): (Arc<Table>, OnConflict),
    (how, reads): (How, Vec<u32>),
) -> Result<Changing, Error> {
    let (event, set) = match &how {
        How::Insert { .. } => (Event::Insert, Vec::new()),
        How::Update { set, .. } => (Event::Update, set.iter().map(|(at, _)| *at).collect()),
        How::Delete { .. } => (Event::Delete, Vec::new()),
    };
    let triggers = binder.fired(&table, event, &set)?;
    let replaced = match event {
        Event::Delete => Vec::new(),
        _ => binder.fired(&table, Event::Delete, &[])?,
    };
    Ok(Changing { table, on_conflict, how, reads, triggers, replaced })
}

pub(crate) fn bind_insert(
    binder: &mut Binder<'_>,
    insert: &ast::Insert,
) -> Result<Changing, Error> {
    let table = target(binder, &insert.table, Event::Insert)?;
    let how = binder.reading(|binder| insert_how(binder, &table, insert))?;
    changing(binder, (table, insert.on_conflict), how)
}

fn insert_how(
    binder: &mut Binder<'_>,
    table: &Arc<Table>,
    insert: &ast::Insert,
) -> Result<How, Error> {
    let mut places = vec![None; table.columns.len()];
    for (at, name) in insert.columns.iter().enumerate() {
        let column = table.column(name).ok_or_else(|| error::no_field(name, &table.name))?;
        if places[column].replace(at).is_some() {
            return Err(error::generic(format!("table id list: duplicate column name {name}")));
        }
    }
    if insert.columns.is_empty() && insert.rows.is_some() {
        places = (0..table.columns.len()).map(Some).collect();
    }
    let rows = insert.rows.as_ref().map(|select| binder.rows(select)).transpose()?;
    let rows = rows.map(|sub| sub.query);
    if let Some(rows) = &rows {
        let found = rows.outputs.len();
        if insert.columns.is_empty() && found != table.columns.len() {
            let message = format!(
                "table {} has {} columns but {found} values were supplied",
                table.name,
                table.columns.len()
            );
            return Err(error::generic(message));
        }
        if !insert.columns.is_empty() && found != insert.columns.len() {
            let message = format!("{found} values for {} columns", insert.columns.len());
            return Err(error::generic(message));
        }
    }
    let mut columns = Vec::new();
    for (column, place) in table.columns.iter().zip(places) {
        columns.push(match (place, &column.default) {
            (Some(place), _) => Ok(place),
            (None, None) => Err(Ex::Value(Value::Null)),
            (None, Some(text)) => {
                let expr = expression(text)?;
                Err(binder.with_nothing(|binder| binder.expr(&expr))?.0)
            }
        });
    }
    Ok(How::Insert { columns, rows })
}

/// A query of all columns of the table's rows that a condition selects.
fn selected(
    binder: &mut Binder<'_>,
    (table, index): (&Arc<Table>, &Option<String>),
    (with, is_recursive): (&[ast::Cte], bool),
    set: &[&Expr],
    filter: &Option<Expr>,
) -> Result<Core, Error> {
    let from = ast::From {
        source: ast::Source::Table(table.name.clone()),
        alias: None,
        index: index.clone(),
        not_indexed: false,
        join: ast::Join::default(),
        on: None,
        using: Vec::new(),
    };
    let columns =
        set.iter().map(|expr| ast::ResultColumn::Expr((*expr).clone(), None, String::new()));
    let nothing = ast::ResultColumn::Expr(Expr::Literal(Value::Null), None, String::new());
    let core = ast::Core {
        columns: columns.chain([nothing]).collect(),
        from: vec![from],
        filter: filter.clone(),
        ..ast::Core::default()
    };
    let select = ast::Select {
        with: with.to_vec(),
        is_recursive,
        cores: vec![(None, core)],
        ..ast::Select::default()
    };
    let query = binder.query(&select)?;
    let core = query.cores.into_iter().next().map(|(_, core)| core).unwrap_or_default();
    if core.group.is_some() {
        return Err(error::generic("misuse of aggregate functions"));
    }
    Ok(core)
}

pub(crate) fn bind_update(
    binder: &mut Binder<'_>,
    update: &ast::Update,
) -> Result<Changing, Error> {
    let table = target(binder, &update.table, Event::Update)?;
    let how = binder.reading(|binder| update_how(binder, &table, update))?;
    changing(binder, (table, update.on_conflict), how)
}

fn update_how(
    binder: &mut Binder<'_>,
    table: &Arc<Table>,
    update: &ast::Update,
) -> Result<How, Error> {
    let mut fields = Vec::new();
    let mut values = Vec::new();
    for (names, expr) in &update.assignments {
        for name in names {
            let field = table.column(name).ok_or_else(|| error::no_field(name, &table.name))?;
            if fields.contains(&field) {
                return Err(error::generic(format!("set id list: duplicate column name {name}")));
            }
            fields.push(field);
        }
        match expr {
            Expr::Row(row) if row.len() == names.len() => values.extend(row),
            expr if names.len() == 1 => values.push(expr),
            _ => return Err(error::unsupported("SET of several columns by one value")),
        }
    }
    let with = (&update.with[..], update.is_recursive);
    let mut rows = selected(binder, (table, &update.index), with, &values, &update.filter)?;
    rows.results.truncate(fields.len());
    let set = fields.into_iter().zip(std::mem::take(&mut rows.results)).collect();
    Ok(How::Update { rows, set })
}

pub(crate) fn bind_delete(
    binder: &mut Binder<'_>,
    delete: &ast::Delete,
) -> Result<Changing, Error> {
    let table = target(binder, &delete.table, Event::Delete)?;
    let with = (&delete.with[..], delete.is_recursive);
    let how = binder.reading(|binder| {
        let rows = selected(binder, (&table, &delete.index), with, &[], &delete.filter)?;
        Ok(How::Delete { rows })
    })?;
    changing(binder, (table, OnConflict::Abort), how)
}
