//! One SELECT of a query, without what is common to a compound.

use super::from::Item;
use super::query::{is_same, place_of};
use super::{Aggregates, Binder, Scope, Typed};
use crate::ast::{self, Expr, ResultColumn};
use crate::error::{self, Error};
use crate::plan::{self, Joined};
use crate::tree::{Core, Ex, Group, Output, Place, Sorting, Source, Static};
use crate::value::Value;

/// What a core comes to.
pub(super) struct Bound {
    pub(super) core: Core,
    pub(super) outputs: Vec<Output>,
    pub(super) order: Vec<Sorting>,
    pub(super) looks_up: usize,
}

/// The terms that a condition is an AND of.
pub(crate) fn conjuncts(ex: Ex, into: &mut Vec<Ex>) {
    match ex {
        Ex::And(a, b) => {
            conjuncts(*a, into);
            conjuncts(*b, into);
        }
        other => into.push(other),
    }
}

impl Binder<'_> {
    pub(super) fn core(&mut self, core: &ast::Core, order: &[ast::Order]) -> Result<Bound, Error> {
        self.scopes.push(Scope::default());
        let bound = match core.values.is_empty() {
            true => self.core_in_scope(core, order),
            false => self.values(&core.values),
        };
        let scope = self.scopes.pop();
        let looks_up = scope.map_or(0, |scope| scope.looks_up);
        // What looks further out than this query's own rows looks out of those around it.
        bound.map(|bound| Bound { looks_up, ..bound })
    }

    fn values(&mut self, rows: &[Vec<Expr>]) -> Result<Bound, Error> {
        let mut bound = Bound {
            core: Core { sources: vec![], ..Core::default() },
            outputs: Vec::new(),
            order: Vec::new(),
            looks_up: 0,
        };
        for (at, row) in rows.iter().enumerate() {
            if row.len() != rows[0].len() {
                return Err(error::generic("all VALUES must have the same number of terms"));
            }
            let typed: Result<Vec<Typed>, Error> = row.iter().map(|it| self.expr(it)).collect();
            let typed = typed?;
            // Names count through all rows; the last one's are shown.
            let first = at * row.len() + 1;
            let output = |(place, (_, of)): (usize, &Typed)| Output {
                name: format!("COLUMN_{}", first + place),
                of: *of,
                span: String::new(),
                column: None,
            };
            let kinds: Vec<Output> = typed.iter().enumerate().map(output).collect();
            let mut outputs = kinds;
            for (output, before) in outputs.iter_mut().zip(&bound.outputs) {
                output.of = before.of;
            }
            bound.outputs = outputs;
            bound.core.values.push(typed.into_iter().map(|(ex, _)| ex).collect());
        }
        bound.core.collations = bound.outputs.iter().map(|output| output.of.collation).collect();
        Ok(bound)
    }

    fn core_in_scope(&mut self, core: &ast::Core, order: &[ast::Order]) -> Result<Bound, Error> {
        let items = self.items(&core.from)?;
        let named = items.iter().map(|item| item.named.clone()).collect();
        self.scope().sources = named;
        let (filter, conditions) = self.conditions(core, &items)?;
        let columns = self.expanded(&core.columns)?;
        self.scope().aliases = aliases(&columns);
        let mut filter_terms = filter;
        if let Some(expr) = &core.filter {
            self.scope().is_grouped_filter = !core.group_by.is_empty();
            conjuncts(self.expr(expr)?.0, &mut filter_terms);
            self.scope().is_grouped_filter = false;
        }
        let keys = self.group_keys(core, &columns)?;
        self.scope().mode = Aggregates::Taken;
        let (results, outputs) = self.results(&columns)?;
        let having = core.having.as_ref().map(|expr| self.expr(expr)).transpose()?;
        let (sort_keys, sorting) = self.order(order, &columns, &results)?;
        self.scope().mode = Aggregates::Refused;
        let aggregates = std::mem::take(&mut self.scope().aggregates);
        let is_grouped = !keys.is_empty() || !aggregates.is_empty();
        if having.is_some() && !is_grouped {
            return Err(having_alone());
        }
        let having = having.map(|(ex, _)| ex);
        let mut bound = Core {
            collations: outputs.iter().map(|output| output.of.collation).collect(),
            results: results.into_iter().map(|(ex, _)| ex).collect(),
            is_distinct: core.is_distinct,
            sort_keys,
            ..Core::default()
        };
        let shown = bound.results.iter().chain(&bound.sort_keys).chain(&having);
        let shows_row = plan::names_columns(shown);
        if having.is_some() && keys.is_empty() && shows_row {
            return Err(having_alone());
        }
        bound.group = is_grouped.then_some(Group { keys, aggregates, having, shows_row });
        self.plan(&mut bound, items, (filter_terms, conditions), &sorting);
        Ok(Bound { core: bound, outputs, order: sorting, looks_up: 0 })
    }

    /// The conditions of joins: those that hold like WHERE, and those of left joins by table.
    fn conditions(
        &mut self,
        core: &ast::Core,
        items: &[Item],
    ) -> Result<(Vec<Ex>, Vec<Vec<Ex>>), Error> {
        let _ = core;
        let mut filter = Vec::new();
        let mut of_left = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let mut own = Vec::new();
            for condition in self.join_condition(at, item)? {
                conjuncts(condition, &mut own);
            }
            if item.join.is_left && at > 0 {
                of_left.push(own);
            } else {
                filter.append(&mut own);
                of_left.push(Vec::new());
            }
        }
        Ok((filter, of_left))
    }

    fn plan(
        &mut self,
        core: &mut Core,
        items: Vec<Item>,
        (filter, of_left): (Vec<Ex>, Vec<Vec<Ex>>),
        sorting: &[Sorting],
    ) {
        let tables: Vec<Joined> = items
            .iter()
            .zip(of_left)
            .map(|(item, on)| Joined {
                table: item.named.table.clone().filter(|_| matches!(item.source, Source::Table(_))),
                is_left: item.join.is_left,
                on,
                forced: item.index,
            })
            .collect();
        let mut place = || {
            self.places += 1;
            self.places - 1
        };
        (core.steps, core.filter) = plan::join(&tables, filter, &mut place);
        let is_plain = core.group.is_none() && !core.is_distinct;
        if is_plain && let [Joined { table: Some(table), .. }] = &tables[..] {
            core.is_in_order = plan::order_by_index(core, table, sorting);
        }
        core.sources = items.into_iter().map(|item| item.source).collect();
    }

    /// The result's columns with `*` written out.
    fn expanded(
        &mut self,
        columns: &[ResultColumn],
    ) -> Result<Vec<(Expr, Option<String>, String)>, Error> {
        let mut all = Vec::new();
        for column in columns {
            let wanted = match column {
                ResultColumn::Expr(expr, name, text) => {
                    all.push((expr.clone(), name.clone(), text.clone()));
                    continue;
                }
                ResultColumn::All => None,
                ResultColumn::AllOf(table) => Some(table),
            };
            let sources = &self.scope().sources;
            if sources.is_empty() {
                let message = "Failed to expand '*' in SELECT statement without FROM clause";
                return Err(error::make(error::SQL_SELECT_WILDCARD, message));
            }
            let mut is_found = false;
            for (slot, source) in sources.iter().enumerate() {
                if wanted.is_some_and(|wanted| *wanted != source.name) {
                    continue;
                }
                is_found = true;
                for column in &source.columns {
                    let is_merged = source.merged.contains(&column.name) && wanted.is_none();
                    if !is_merged {
                        // The place itself is found by the number of its table.
                        let expr = Expr::Column(Some(format!("\0{slot}")), column.name.clone());
                        all.push((expr, Some(column.name.clone()), column.name.clone()));
                    }
                }
            }
            if let (Some(wanted), false) = (wanted, is_found) {
                return Err(error::no_space(wanted));
            }
        }
        crate::parser::check_columns(all.len())?;
        Ok(all)
    }

    /// A column of the result; those of `*` name their table by its number.
    fn result(&mut self, expr: &Expr) -> Result<Typed, Error> {
        if let Expr::Column(Some(table), name) = expr
            && let Some(slot) = table.strip_prefix('\0').and_then(|slot| slot.parse::<usize>().ok())
        {
            let columns = &self.scope().sources[slot].columns;
            let field = columns.iter().position(|it| it.name == *name).unwrap_or_default();
            let of = columns[field].of;
            return Ok((Ex::Column(Place { up: 0, slot, field: field as u32 }), of));
        }
        self.expr(expr)
    }

    fn results(
        &mut self,
        columns: &[(Expr, Option<String>, String)],
    ) -> Result<(Vec<Typed>, Vec<Output>), Error> {
        let (mut results, mut outputs) = (Vec::new(), Vec::new());
        let mut unnamed = 0;
        // A column does not see the names of the others.
        let aliases = std::mem::take(&mut self.scope().aliases);
        for (expr, name, text) in columns {
            let (ex, of) = self.result(expr)?;
            let name = match (name, plain_column(expr)) {
                (Some(name), _) | (None, Some(name)) => name.clone(),
                (None, None) => {
                    unnamed += 1;
                    format!("COLUMN_{unnamed}")
                }
            };
            let column = match &ex {
                Ex::Column(Place { up: 0, slot, field }) if matches!(expr, Expr::Column(..)) => {
                    let source = &self.scope().sources[*slot];
                    let seen = &source.columns[*field as usize];
                    source.table.is_some().then_some((seen.is_nullable, seen.is_autoincrement))
                }
                _ => None,
            };
            outputs.push(Output { name, of, span: text.clone(), column });
            results.push((ex, of));
        }
        self.scope().aliases = aliases;
        Ok((results, outputs))
    }

    fn group_keys(
        &mut self,
        core: &ast::Core,
        columns: &[(Expr, Option<String>, String)],
    ) -> Result<Vec<(Ex, u32)>, Error> {
        let mut keys = Vec::new();
        for (at, term) in core.group_by.iter().enumerate() {
            let (ex, of) = match term {
                Expr::Literal(Value::Int(place)) => {
                    let place = place_of(*place, columns.len(), "GROUP", at)?;
                    self.result(&columns[place].0)?
                }
                other => self.expr(other)?,
            };
            keys.push((ex, of.collation));
        }
        Ok(keys)
    }

    /// What rows are sorted by: columns of the result, or keys of their own.
    fn order(
        &mut self,
        order: &[ast::Order],
        columns: &[(Expr, Option<String>, String)],
        results: &[Typed],
    ) -> Result<(Vec<Ex>, Vec<Sorting>), Error> {
        let (mut keys, mut sorting) = (Vec::new(), Vec::new());
        for (at, term) in order.iter().enumerate() {
            let (inner, collate) = match &term.expr {
                Expr::Collate(inner, name) => (&**inner, Some(self.collation(name)?)),
                other => (other, None),
            };
            let named = |name: &str| columns.iter().position(|it| it.1.as_deref() == Some(name));
            let column = match inner {
                Expr::Literal(Value::Int(place)) => {
                    Some(place_of(*place, columns.len(), "ORDER", at)?)
                }
                Expr::Column(None, name) => named(name),
                Expr::Call(_) => columns.iter().position(|it| is_same(inner, &it.0)),
                _ => None,
            };
            let of: Static = match column {
                Some(column) => results[column].1,
                None => {
                    let (ex, of) = self.expr(inner)?;
                    keys.push(ex);
                    of
                }
            };
            let collation = collate.unwrap_or(of.collation);
            let is_descending = term.is_descending;
            sorting.push(Sorting { column, is_descending, collation });
        }
        Ok((keys, sorting))
    }
}

fn having_alone() -> Error {
    error::execute(
        "HAVING argument must appear in the GROUP BY clause or be used in an aggregate function",
    )
}

/// The names of the result's columns, for WHERE, GROUP BY, HAVING and ORDER BY.
fn aliases(columns: &[(Expr, Option<String>, String)]) -> Vec<(String, Expr)> {
    let is_own =
        |expr: &Expr| !matches!(expr, Expr::Column(Some(table), _) if table.starts_with('\0'));
    let named = columns.iter().filter(|(expr, ..)| is_own(expr));
    named.filter_map(|(expr, name, _)| Some((name.clone()?, expr.clone()))).collect()
}

fn plain_column(expr: &Expr) -> Option<&String> {
    match expr {
        Expr::Column(_, name) => Some(name),
        _ => None,
    }
}
