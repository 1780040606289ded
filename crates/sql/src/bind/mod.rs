//! From names to places: every column is found, every type is known.

mod core;
mod expression;
mod fired;
mod from;
mod query;

use crate::ast;
use crate::catalog::{Catalog, Table};
use crate::error::{self, Error};
use crate::programs::Programs;
use crate::tree::{AggregateCall, Ex, Static};
use std::sync::Arc;

/// How deep views and queries of WITH may name each other.
const NESTED_MAX: usize = 32;
/// Queries of a statement, those of its views and of WITH included, each as often as it is read.
const QUERIES_MAX: usize = 5_000;

/// The row that a trigger's event takes away, and the one that it brings: the tables of the query
/// around the trigger's statements, in this order.
pub(crate) const OLD: &str = "OLD";
pub(crate) const NEW: &str = "NEW";

/// Binds one statement.
pub(crate) struct Binder<'c> {
    pub(crate) catalog: &'c mut dyn Catalog,
    scopes: Vec<Scope>,
    with: Vec<With>,
    nested: usize,
    /// How many queries it has bound.
    queries: usize,
    /// How many results of subqueries, recursions and hashes are kept while it runs.
    pub(crate) places: usize,
    /// The spaces that it reads.
    pub(crate) spaces: Vec<u32>,
    /// The tables of these spaces.
    pub(crate) tables: Vec<Arc<Table>>,
    /// The triggers that it fires.
    pub(crate) programs: Programs,
}

/// A column that a query can name.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) of: Static,
    pub(crate) is_nullable: bool,
    pub(crate) is_autoincrement: bool,
}

/// A table of FROM.
#[derive(Clone, Debug)]
struct Named {
    name: String,
    columns: Vec<Seen>,
    /// Columns that USING or NATURAL took together with earlier ones.
    merged: Vec<String>,
    table: Option<Arc<Table>>,
}

/// What aggregates are at a place of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Aggregates {
    #[default]
    Refused,
    Taken,
}

#[derive(Default)]
struct Scope {
    sources: Vec<Named>,
    aliases: Vec<(String, ast::Expr)>,
    aggregates: Vec<AggregateCall>,
    mode: Aggregates,
    /// Its tables are OLD and NEW, which have to be named.
    is_trigger: bool,
    /// Its WHERE is being bound, and there is a GROUP BY.
    is_grouped_filter: bool,
    /// How many levels outwards something looks.
    looks_up: usize,
}

/// A query of WITH.
#[derive(Clone)]
struct With {
    name: String,
    columns: Vec<String>,
    body: WithBody,
    /// Where those end that it may name: those of its own WITH, and of those around.
    end: usize,
    /// It is being bound: it may not name itself.
    is_open: bool,
}

#[derive(Clone)]
enum WithBody {
    Select(Box<ast::Select>),
    /// A recursive query being bound: its place and its columns.
    LastRound(usize, Vec<Seen>),
}

/// A bound expression.
pub(crate) type Typed = (Ex, Static);

impl<'c> Binder<'c> {
    pub(crate) fn new(catalog: &'c mut dyn Catalog) -> Binder<'c> {
        Binder {
            catalog,
            scopes: Vec::new(),
            with: Vec::new(),
            nested: 0,
            queries: 0,
            places: 0,
            spaces: Vec::new(),
            tables: Vec::new(),
            programs: Programs::default(),
        }
    }

    pub(crate) fn table(&mut self, name: &str) -> Result<Arc<Table>, Error> {
        self.catalog.table(name)?.ok_or_else(|| error::no_space(name))
    }

    fn new_place(&mut self) -> usize {
        self.places += 1;
        self.places - 1
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("a query is being bound")
    }

    fn reads(&mut self, table: &Arc<Table>) {
        if !self.spaces.contains(&table.id) {
            self.spaces.push(table.id);
            self.tables.push(Arc::clone(table));
        }
    }

    fn collation(&mut self, name: &str) -> Result<u32, Error> {
        self.catalog.collation(name).ok_or_else(|| {
            let message = format!("Collation '{name}' does not exist");
            error::make(error::NO_SUCH_COLLATION, message)
        })
    }

    /// Binds with nothing in scope.
    pub(crate) fn with_nothing<T>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.scopes.push(Scope::default());
        let result = bind(self);
        self.scopes.pop();
        result
    }

    /// Binds with the rows of a trigger around, those of them that there are.
    pub(crate) fn with_trigger_rows<T>(
        &mut self,
        table: &Arc<Table>,
        rows: [(&str, bool); 2],
        bind: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let named = |(name, is_there): (&str, bool)| {
            let mut named = from::named_table(table, name);
            if !is_there {
                named.columns.clear();
            }
            named
        };
        let sources = rows.into_iter().map(named).collect();
        self.scopes.push(Scope { sources, is_trigger: true, ..Scope::default() });
        let result = bind(self);
        self.scopes.pop();
        result
    }

    /// Binds with the columns of one table.
    pub(crate) fn with_table<T>(
        &mut self,
        table: &Arc<Table>,
        bind: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let sources = vec![from::named_table(table, &table.name)];
        self.scopes.push(Scope { sources, ..Scope::default() });
        let result = bind(self);
        self.scopes.pop();
        result
    }

    /// Binds something, and finds out which spaces it reads.
    pub(crate) fn reading<T>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<(T, Vec<u32>), Error> {
        let before = std::mem::take(&mut self.spaces);
        let result = bind(self);
        let own = std::mem::replace(&mut self.spaces, before);
        for id in &own {
            if !self.spaces.contains(id) {
                self.spaces.push(*id);
            }
        }
        Ok((result?, own))
    }

    /// Makes the queries of WITH visible while something is bound.
    pub(crate) fn with_ctes<T>(
        &mut self,
        ctes: &[ast::Cte],
        bind: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let before = self.with.len();
        let end = before + ctes.len();
        self.with.extend(ctes.iter().map(|cte| With {
            name: cte.name.clone(),
            columns: cte.columns.clone(),
            body: WithBody::Select(Box::new(cte.select.clone())),
            end,
            is_open: false,
        }));
        let result = bind(self);
        self.with.truncate(before);
        result
    }

    fn deeper<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.nested >= NESTED_MAX {
            return Err(error::limit("Nesting of queries", self.nested + 1, NESTED_MAX));
        }
        // Views of views that read another one twice double with each.
        self.queries += 1;
        if self.queries > QUERIES_MAX {
            return Err(error::limit(
                "Number of queries, those of views included,",
                self.queries,
                QUERIES_MAX,
            ));
        }
        self.nested += 1;
        let result = bind(self);
        self.nested -= 1;
        result
    }
}
