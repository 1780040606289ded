//! Whole queries: compounds, their order, and WITH.

use super::from::seen;
use super::{Binder, With, WithBody};
use crate::ast::{self, Compound, Expr, Source as Written};
use crate::error::{self, Error};
use crate::tree::{Ex, Output, Query, Recursion, Sorting, Source, Sub};
use crate::value::Value;
use std::sync::Arc;

/// An operator's name in errors.
fn compound_name(compound: Compound) -> &'static str {
    match compound {
        Compound::Union => "UNION",
        Compound::UnionAll => "UNION ALL",
        Compound::Intersect => "INTERSECT",
        Compound::Except => "EXCEPT",
    }
}

impl Binder<'_> {
    /// Binds a query.
    pub(crate) fn query(&mut self, select: &ast::Select) -> Result<Query, Error> {
        self.deeper(|binder| {
            binder.with_ctes(&select.with, |binder| binder.query_of(&select.cores, select))
        })
    }

    fn query_of(
        &mut self,
        cores: &[(Option<Compound>, ast::Core)],
        select: &ast::Select,
    ) -> Result<Query, Error> {
        let order = if cores.len() == 1 { &select.order_by[..] } else { &[] };
        let mut query = Query {
            cores: Vec::new(),
            outputs: Vec::new(),
            order: Vec::new(),
            limit: None,
            offset: None,
            looks_up: 0,
        };
        for (compound, core) in cores {
            let bound = self.core(core, order)?;
            query.looks_up = query.looks_up.max(bound.looks_up);
            match compound {
                None => (query.outputs, query.order) = (bound.outputs, bound.order),
                Some(compound) => {
                    if bound.outputs.len() != query.outputs.len() {
                        let message = format!(
                            "SELECTs to the left and right of {} do not have the same number of \
                             result columns",
                            compound_name(*compound)
                        );
                        return Err(error::generic(message));
                    }
                    for (output, other) in query.outputs.iter_mut().zip(&bound.outputs) {
                        // The first query says of what type the result is.
                        if other.of.is_explicit && !output.of.is_explicit {
                            output.of.collation = other.of.collation;
                        }
                        output.column = None;
                    }
                }
            }
            query.cores.push((*compound, bound.core));
        }
        if cores.len() > 1 {
            query.order = self.compound_order(&select.order_by, (cores, &query.outputs))?;
        }
        query.limit = self.limit(select.limit.as_ref())?;
        query.offset = self.limit(select.offset.as_ref())?;
        Ok(query)
    }

    fn limit(&mut self, expr: Option<&Expr>) -> Result<Option<Ex>, Error> {
        // It names no columns, not even those around.
        let scopes = std::mem::take(&mut self.scopes);
        let bound = expr.map(|expr| self.with_nothing(|binder| binder.expr(expr))).transpose();
        self.scopes = scopes;
        Ok(bound?.map(|(ex, _)| ex))
    }

    fn compound_order(
        &mut self,
        order: &[ast::Order],
        (cores, outputs): (&[(Option<Compound>, ast::Core)], &[Output]),
    ) -> Result<Vec<Sorting>, Error> {
        let mut found = Vec::new();
        for (at, term) in order.iter().enumerate() {
            let (expr, mut collation) = match &term.expr {
                Expr::Collate(inner, name) => (&**inner, Some(self.collation(name)?)),
                other => (other, None),
            };
            let column = match expr {
                Expr::Literal(Value::Int(place)) => {
                    Some(place_of(*place, outputs.len(), "ORDER", at)?)
                }
                Expr::Column(None, name) => outputs.iter().position(|it| it.name == *name),
                _ => None,
            };
            let column = column.or_else(|| same_column(cores, expr));
            let Some(column) = column else {
                let message = format!(
                    "Error at ORDER BY in place {}: term does not match any column in the result set",
                    at + 1
                );
                return Err(error::generic(message));
            };
            let collation = *collation.get_or_insert(outputs[column].of.collation);
            let is_descending = term.is_descending;
            found.push(Sorting { column: Some(column), is_descending, collation });
        }
        Ok(found)
    }

    /// A query of WITH, as a source.
    pub(super) fn cte(
        &mut self,
        at: usize,
        name: &str,
        columns: &[String],
        select: &ast::Select,
    ) -> Result<(Source, Vec<Output>), Error> {
        let end = self.with[at].end;
        let later = self.with.split_off(end);
        self.with[at].is_open = true;
        let scopes = std::mem::take(&mut self.scopes);
        let bound = match first_recursive(name, select) {
            None => self.sub(select).map(|sub| {
                let outputs = sub.query.outputs.clone();
                (Source::Query(Box::new(sub)), outputs)
            }),
            Some(first) => self.recursion(name, columns, select, first),
        };
        self.scopes = scopes;
        self.with.truncate(end);
        self.with[at].is_open = false;
        self.with.extend(later);
        bound
    }

    fn recursion(
        &mut self,
        name: &str,
        columns: &[String],
        select: &ast::Select,
        first: usize,
    ) -> Result<(Source, Vec<Output>), Error> {
        if first == 0 {
            return Err(error::generic(format!("circular reference: {name}")));
        }
        let is_twice = |(_, core): &(Option<Compound>, ast::Core)| count(name, &core.from) > 1;
        if select.cores.iter().any(is_twice) {
            let message = format!("multiple references to recursive table: {name}");
            return Err(error::generic(message));
        }
        let compounds = select.cores[first..].iter().map(|(compound, _)| *compound);
        let is_distinct = match compounds.clone().next().flatten() {
            Some(Compound::UnionAll) => false,
            Some(Compound::Union) => true,
            _ => return Err(error::generic(format!("circular reference: {name}"))),
        };
        if compounds.clone().any(|it| (it == Some(Compound::Union)) != is_distinct) {
            return Err(error::unsupported("UNION and UNION ALL in one recursive query"));
        }
        if !select.order_by.is_empty() || select.offset.is_some() {
            return Err(error::unsupported("ORDER BY and OFFSET in a recursive query"));
        }
        let plain = ast::Select::default();
        let start = self.query_of(&select.cores[..first], &plain)?;
        let place = self.new_place();
        let round = seen(&start.outputs, columns);
        self.with.push(With {
            name: name.to_owned(),
            columns: Vec::new(),
            body: WithBody::LastRound(place, round),
            end: self.with.len(),
            is_open: false,
        });
        let mut next = Vec::new();
        for (_, core) in &select.cores[first..] {
            let query = self.query_of(&[(None, core.clone())], &plain)?;
            if query.outputs.len() != start.outputs.len() {
                let message = "SELECTs to the left and right of UNION do not have the same number of \
                               result columns";
                return Err(error::generic(message));
            }
            next.push(query);
        }
        self.with.pop();
        let outputs = start.outputs.clone();
        let collations = outputs.iter().map(|output| output.of.collation).collect();
        let limit = self.limit(select.limit.as_ref())?;
        let recursion = Recursion { place, first: start, next, is_distinct, collations, limit };
        Ok((Source::Recursive(Arc::new(recursion)), outputs))
    }

    /// A bound query on its own, for statements that change rows.
    pub(crate) fn rows(&mut self, select: &ast::Select) -> Result<Sub, Error> {
        let query = self.query(select)?;
        Ok(Sub { query, kept: None })
    }
}

/// The result's column that is this expression, in the first query of a compound that has one.
fn same_column(cores: &[(Option<Compound>, ast::Core)], expr: &Expr) -> Option<usize> {
    let has_all = |core: &ast::Core| {
        let is_expr = |it: &ast::ResultColumn| matches!(it, ast::ResultColumn::Expr(..));
        core.columns.iter().all(is_expr)
    };
    cores.iter().filter(|(_, core)| has_all(core)).find_map(|(_, core)| {
        core.columns.iter().position(|column| match column {
            ast::ResultColumn::Expr(other, ..) => is_same(expr, other),
            _ => false,
        })
    })
}

/// Whether two expressions are the same; a column with a table's name and one without may be.
pub(super) fn is_same(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Column(of_a, a), Expr::Column(of_b, b)) => {
            a == b && (of_a.is_none() || of_b.is_none() || of_a == of_b)
        }
        // An expression has no equality: floats have none. Its text says all that it is.
        _ => format!("{a:?}") == format!("{b:?}"),
    }
}

/// The first core that names the query itself.
fn first_recursive(name: &str, select: &ast::Select) -> Option<usize> {
    select.cores.iter().position(|(_, core)| count(name, &core.from) > 0)
}

fn count(name: &str, from: &[ast::From]) -> usize {
    let of = |one: &ast::From| match &one.source {
        Written::Table(table) => usize::from(table == name),
        Written::Joined(inner) => count(name, inner),
        Written::Select(_) => 0,
    };
    from.iter().map(of).sum()
}

/// The place that a number in ORDER BY or GROUP BY means.
pub(super) fn place_of(number: i128, count: usize, of: &str, at: usize) -> Result<usize, Error> {
    match usize::try_from(number) {
        Ok(place) if (1..=count).contains(&place) => Ok(place - 1),
        _ => {
            let message = format!(
                "Error at {of} BY in place {}: term out of range - should be between 1 and {count}",
                at + 1
            );
            Err(error::generic(message))
        }
    }
}
