//! FROM: what tables a query has, and how they are joined.

use super::{Binder, Named, Seen, WithBody};
use crate::ast::{self, Binary, Expr, Source as Written, Statement};
use crate::catalog::Table;
use crate::error::{self, Error};
use crate::parser::{self, TABLES_MAX};
use crate::tree::{Ex, Output, Source, Static, Sub};
use std::sync::Arc;

/// A table of FROM, before names are looked up.
pub(super) struct Item {
    pub(super) source: Source,
    pub(super) named: Named,
    pub(super) join: ast::Join,
    pub(super) on: Option<Expr>,
    pub(super) using: Vec<String>,
    pub(super) index: Option<u32>,
}

/// A table under a name.
pub(super) fn named_table(table: &Arc<Table>, name: &str) -> Named {
    let columns = table.columns.iter().enumerate().map(|(at, column)| Seen {
        name: column.name.clone(),
        of: Static { kind: column.kind, collation: column.collation, is_explicit: false },
        is_nullable: column.is_nullable,
        is_autoincrement: table.autoincrement == Some(at as u32),
    });
    let columns = columns.collect();
    Named { name: name.to_owned(), columns, merged: Vec::new(), table: Some(Arc::clone(table)) }
}

/// The columns of a query's result, with other names if some are given.
pub(super) fn seen(outputs: &[Output], names: &[String]) -> Vec<Seen> {
    let seen = outputs.iter().enumerate().map(|(at, output)| Seen {
        name: names.get(at).unwrap_or(&output.name).clone(),
        of: Static { is_explicit: false, ..output.of },
        is_nullable: true,
        is_autoincrement: false,
    });
    seen.collect()
}

/// Tables in parentheses as one: their names are not seen outside.
fn as_one(one: &ast::From, inner: &[ast::From]) -> ast::From {
    let mut as_one = one.clone();
    if let [only] = inner
        && matches!(only.source, Written::Table(_))
    {
        as_one.source = only.source.clone();
        as_one.alias = one.alias.clone().or_else(|| only.alias.clone());
        return as_one;
    }
    let columns = vec![ast::ResultColumn::All];
    let core = ast::Core { columns, from: inner.to_vec(), ..ast::Core::default() };
    let select = ast::Select { cores: vec![(None, core)], ..ast::Select::default() };
    as_one.source = Written::Select(Box::new(select));
    as_one
}

impl Binder<'_> {
    /// The tables of FROM, those in parentheses as well.
    pub(super) fn items(&mut self, from: &[ast::From]) -> Result<Vec<Item>, Error> {
        let mut items = Vec::new();
        for one in from {
            if let Written::Joined(inner) = &one.source
                && (one.join.is_left || one.alias.is_some())
            {
                items.push(self.item(&as_one(one, inner))?);
            } else if let Written::Joined(inner) = &one.source {
                let mut inner = self.items(inner)?;
                if let Some(first) = inner.first_mut() {
                    first.join = one.join;
                }
                if let Some(last) = inner.last_mut()
                    && (one.on.is_some() || !one.using.is_empty())
                {
                    if last.on.is_some() || !last.using.is_empty() || last.join.is_left {
                        return Err(error::unsupported("ON behind joined tables in parentheses"));
                    }
                    (last.on, last.using) = (one.on.clone(), one.using.clone());
                }
                items.append(&mut inner);
            } else {
                items.push(self.item(one)?);
            }
            if items.len() > TABLES_MAX {
                return Err(error::limit(
                    "The number of tables in a join",
                    items.len(),
                    TABLES_MAX,
                ));
            }
        }
        Ok(items)
    }

    fn item(&mut self, one: &ast::From) -> Result<Item, Error> {
        let (source, named) = match &one.source {
            Written::Table(name) => self.named_source(name, one.alias.as_deref())?,
            Written::Select(select) => {
                let sub = self.sub(select)?;
                let name = one.alias.clone().unwrap_or_default();
                let columns = seen(&sub.query.outputs, &[]);
                let named = Named { name, columns, merged: Vec::new(), table: None };
                (Source::Query(Box::new(sub)), named)
            }
            Written::Joined(_) => return Err(error::unsupported("tables in parentheses here")),
        };
        let index = match (&one.index, &named.table) {
            (Some(name), Some(table)) => {
                let found = table.indexes.iter().find(|index| index.name == *name);
                Some(found.ok_or_else(|| error::no_index(name, &table.name))?.id)
            }
            _ => None,
        };
        let (join, on, using) = (one.join, one.on.clone(), one.using.clone());
        Ok(Item { source, named, join, on, using, index })
    }

    /// A table, a view, or a query of WITH.
    fn named_source(&mut self, name: &str, alias: Option<&str>) -> Result<(Source, Named), Error> {
        let shown = alias.unwrap_or(name).to_owned();
        if let Some(at) = self.with.iter().rposition(|with| with.name == name) {
            return self.with_source(at, shown);
        }
        let table = self.table(name)?;
        let Some(text) = &table.view else {
            self.reads(&table);
            return Ok((Source::Table(table.id), named_table(&table, &shown)));
        };
        let sub = self.deeper(|binder| binder.view(text))?;
        let names: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
        let columns = seen(&sub.query.outputs, &names);
        let named = Named { name: shown, columns, merged: Vec::new(), table: None };
        Ok((Source::Query(Box::new(sub)), named))
    }

    /// A view's query: it sees nothing of what is around.
    fn view(&mut self, text: &str) -> Result<Sub, Error> {
        let parsed = parser::parse(text.as_bytes())?;
        let Statement::CreateView { select, .. } = parsed.statement else {
            return Err(error::generic("the text of a view is no CREATE VIEW"));
        };
        let (scopes, with) = (std::mem::take(&mut self.scopes), std::mem::take(&mut self.with));
        let sub = self.sub(&select);
        (self.scopes, self.with) = (scopes, with);
        sub
    }

    fn with_source(&mut self, at: usize, shown: String) -> Result<(Source, Named), Error> {
        let with = self.with[at].clone();
        if with.is_open {
            return Err(error::generic(format!("circular reference: {}", with.name)));
        }
        let (source, columns) = match with.body {
            WithBody::LastRound(place, columns) => {
                // Each round has other rows: nothing around it is kept.
                for (level, scope) in self.scopes.iter_mut().enumerate() {
                    scope.looks_up = scope.looks_up.max(level + 1);
                }
                (Source::LastRound(place), columns)
            }
            WithBody::Select(select) => {
                let (source, outputs) =
                    self.deeper(|binder| binder.cte(at, &with.name, &with.columns, &select))?;
                if !with.columns.is_empty() && with.columns.len() != outputs.len() {
                    let message = format!(
                        "table {} has {} values for {} columns",
                        with.name,
                        outputs.len(),
                        with.columns.len()
                    );
                    return Err(error::generic(message));
                }
                (source, seen(&outputs, &with.columns))
            }
        };
        Ok((source, Named { name: shown, columns, merged: Vec::new(), table: None }))
    }

    /// The condition that a join's USING or NATURAL, or its ON, is.
    pub(super) fn join_condition(&mut self, at: usize, item: &Item) -> Result<Vec<Ex>, Error> {
        let mut shared = item.using.clone();
        if item.join.is_natural {
            let own = self.scope().sources[at].columns.clone();
            let before = &self.scope().sources[..at];
            let is_before = |name: &str| {
                before.iter().any(|other| other.columns.iter().any(|column| column.name == name))
            };
            shared =
                own.iter().filter(|it| is_before(&it.name)).map(|it| it.name.clone()).collect();
        }
        let mut found = Vec::new();
        for name in shared {
            let has = |named: &Named| named.columns.iter().any(|column| column.name == name);
            let sources = &self.scope().sources;
            let first = sources[..at].iter().position(has);
            let (Some(first), true) = (first, has(&sources[at])) else {
                let message =
                    format!("cannot join using column {name} - column not present in both tables");
                return Err(error::generic(message));
            };
            let [a, b] = [first, at].map(|slot| self.place_of(slot, &name));
            let how = crate::tree::Comparison {
                is_numeric: [a.1, b.1].iter().any(|of| parser::statement::is_numeric(of.kind)),
                collation: if a.1.collation != 0 { a.1.collation } else { b.1.collation },
            };
            found.push(Ex::Compare(Binary::Equal, Box::new(a.0), Box::new(b.0), how));
            self.scope().sources[at].merged.push(name);
        }
        if let Some(on) = &item.on {
            found.push(self.expr(on)?.0);
        }
        Ok(found)
    }

    fn place_of(&mut self, slot: usize, name: &str) -> (Ex, Static) {
        let columns = &self.scope().sources[slot].columns;
        let field = columns.iter().position(|column| column.name == name).unwrap_or_default();
        let of = columns[field].of;
        (Ex::Column(crate::tree::Place { up: 0, slot, field: field as u32 }), of)
    }
}
