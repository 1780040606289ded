//! Statements that are ready to run, as often as their tables stay as they are.

use crate::ast::{self, Statement};
use crate::bind::Binder;
use crate::catalog::Catalog;
use crate::changes::{self, Changes, Changing};
use crate::error::{self, Error};
use crate::explain;
use crate::functions::Around;
use crate::parser;
use crate::run::{self, Budget, Run, Spaces};
use crate::tree::{Access, Output, Query};
use crate::triggers::Program;
use crate::value::Value;
use ladon_space::FieldType;

/// A column of a result, as its metadata shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputColumn {
    /// Its name.
    pub name: String,
    /// The name of its type.
    pub kind: &'static str,
    /// The parameter that it is, whose value says of which type it is.
    pub parameter: Option<usize>,
    /// The number of its collation, 0 for none.
    pub collation: u32,
    /// Of a table's own column: whether it may be null, and whether it numbers itself.
    pub column: Option<(bool, bool)>,
    /// The text of its expression.
    pub span: String,
}

/// What a statement does.
pub(crate) enum Kind {
    Rows(Query),
    Changes(Changing),
    /// Rows that are known already.
    Fixed(Vec<Vec<Value>>),
    Other(Statement),
}

/// What a caller has to do with a statement.
#[derive(Debug)]
pub enum Action<'p> {
    /// [`Prepared::write_rows`].
    Rows,
    /// [`Prepared::changes`], of the rows of this space; a [`crate::Stepping`], if it
    /// [is so](Prepared::is_stepwise).
    Changes(u32),
    /// [`crate::Definitions`] of it.
    Define(Definable<'p>),
    /// START TRANSACTION.
    Begin,
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// SAVEPOINT with this name.
    Savepoint(&'p str),
    /// RELEASE of a savepoint.
    Release(&'p str),
    /// ROLLBACK TO a savepoint.
    RollbackTo(&'p str),
    /// SET SESSION: a setting's name and its value.
    Set(&'p str, &'p Value),
}

/// A statement that changes definitions.
#[derive(Debug)]
pub struct Definable<'p>(pub(crate) &'p Statement);

/// What functions ask of the session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Session {
    /// Rows that its last statement has changed.
    pub row_count: u64,
    /// A random number.
    pub random: u64,
    /// Another one.
    pub random_too: u64,
    /// Milliseconds since 1970.
    pub now_ms: u64,
    /// A trigger that runs is not fired again.
    pub runs_triggers_once: bool,
}

impl Around {
    pub(crate) fn of(session: Session) -> Around {
        let Session { row_count, random, random_too, now_ms, .. } = session;
        Around { collation: 0, row_count, random, random_too, now_ms }
    }
}

/// A statement with its plan.
pub struct Prepared {
    pub(crate) kind: Kind,
    parameters: Vec<Option<String>>,
    columns: Vec<OutputColumn>,
    spaces: Vec<u32>,
    pub(crate) programs: Vec<Program>,
    pub(crate) places: usize,
}

fn output(output: &Output, parameter: Option<usize>) -> OutputColumn {
    OutputColumn {
        name: output.name.clone(),
        // A parameter whose value is not known yet.
        kind: if output.of.kind == FieldType::Any && parameter.is_some() {
            "boolean"
        } else {
            output.of.kind.name()
        },
        parameter,
        collation: output.of.collation,
        column: output.column,
        span: output.span.clone(),
    }
}

fn outputs(query: &Query) -> Vec<OutputColumn> {
    let results = query.cores.first().map(|(_, core)| &core.results[..]).unwrap_or_default();
    let parameter = |at: usize| match results.get(at) {
        Some(crate::tree::Ex::Parameter(at)) => Some(*at),
        _ => None,
    };
    query.outputs.iter().enumerate().map(|(at, one)| output(one, parameter(at))).collect()
}

/// Parses a text, looks its names up and plans it.
///
/// # Errors
/// Those of the syntax and the names, in Tarantool 2.6's words; and what there is not yet, by name.
pub fn prepare(text: &[u8], catalog: &mut dyn Catalog) -> Result<Prepared, Error> {
    let parsed = parser::parse(text)?;
    let mut binder = Binder::new(catalog);
    let (kind, columns) = bind(&mut binder, parsed.statement)?;
    let programs = binder.bind_programs()?;
    let (places, spaces) = (binder.places, std::mem::take(&mut binder.spaces));
    Ok(Prepared { kind, parameters: parsed.parameters, columns, spaces, programs, places })
}

fn bind(binder: &mut Binder<'_>, statement: Statement) -> Result<(Kind, Vec<OutputColumn>), Error> {
    Ok(match statement {
        Statement::Select(select) => {
            let query = binder.query(&select)?;
            let columns = outputs(&query);
            (Kind::Rows(query), columns)
        }
        Statement::Insert(insert) => {
            (Kind::Changes(changes::bind_insert(binder, &insert)?), Vec::new())
        }
        Statement::Update(update) => {
            (Kind::Changes(changes::bind_update(binder, &update)?), Vec::new())
        }
        Statement::Delete(delete) => {
            (Kind::Changes(changes::bind_delete(binder, &delete)?), Vec::new())
        }
        Statement::Explain(inner) => {
            let (kind, _) = bind(binder, *inner)?;
            let rows = explain::rows(binder, &kind)?;
            (Kind::Fixed(rows), explain::columns(&explain::PLAN))
        }
        Statement::Pragma { name, value, index } => {
            explain::pragma(binder, &name, value.as_deref(), index.as_deref())?
        }
        Statement::CreateView { name, columns, select, if_not_exists, text } => {
            // It is bound, so that its names are checked, and its columns known.
            let query = binder.query(&select)?;
            let found = query.outputs.len();
            if !columns.is_empty() && columns.len() != found {
                let message =
                    format!("expected {} columns for '{name}' but got {found}", columns.len());
                return Err(error::generic(message));
            }
            let names = match columns.is_empty() {
                true => query.outputs.iter().map(|output| output.name.clone()).collect(),
                false => columns,
            };
            let columns = outputs(&query);
            let view = Statement::CreateView { name, columns: names, select, if_not_exists, text };
            return Ok((Kind::Other(view), columns));
        }
        other => (Kind::Other(other), Vec::new()),
    })
}

impl Prepared {
    /// What to do.
    pub fn action(&self) -> Action<'_> {
        match &self.kind {
            Kind::Rows(_) | Kind::Fixed(_) => Action::Rows,
            Kind::Changes(changing) => Action::Changes(changing.space()),
            Kind::Other(Statement::Begin) => Action::Begin,
            Kind::Other(Statement::Commit) => Action::Commit,
            Kind::Other(Statement::Rollback) => Action::Rollback,
            Kind::Other(Statement::Savepoint(name)) => Action::Savepoint(name),
            Kind::Other(Statement::Release(name)) => Action::Release(name),
            Kind::Other(Statement::RollbackTo(name)) => Action::RollbackTo(name),
            Kind::Other(Statement::SetSession { name, value }) => Action::Set(name, value),
            Kind::Other(other) => Action::Define(Definable(other)),
        }
    }

    /// The names of its parameters, `None` of a `?`.
    pub fn parameters(&self) -> &[Option<String>] {
        &self.parameters
    }

    /// The columns of its result; empty if it has none.
    pub fn columns(&self) -> &[OutputColumn] {
        match self.kind {
            Kind::Other(ast::Statement::CreateView { .. }) => &[],
            _ => &self.columns,
        }
    }

    /// The columns of the view that it makes.
    pub(crate) fn view_columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    /// The spaces that it reads.
    pub fn spaces(&self) -> &[u32] {
        &self.spaces
    }

    /// Whether it reads all rows of a table.
    pub fn reads_all(&self) -> bool {
        let Kind::Rows(Query { cores, limit: None, .. }) = &self.kind else { return false };
        let first = cores.first().and_then(|(_, core)| core.steps.first());
        first.is_some_and(|step| matches!(step.access, Access::All))
    }

    fn run<'r>(
        &self,
        (spaces, parameters): (&Spaces<'r>, &'r [Value]),
        session: Session,
        budget: &'r Budget,
    ) -> Run<'r> {
        let around = Around::of(session);
        Run::new(spaces.clone(), parameters, around, budget, self.places)
    }

    /// Appends the rows of its result, each a MessagePack array. Returns their number.
    ///
    /// # Errors
    /// Those of the statement, and of the budget ([`is_interrupted`]).
    pub fn write_rows<'r>(
        &self,
        from: (&Spaces<'r>, &'r [Value]),
        session: Session,
        budget: &'r Budget,
        out: &mut Vec<u8>,
    ) -> Result<u32, Error> {
        let query = match &self.kind {
            Kind::Rows(query) => query,
            Kind::Fixed(rows) => {
                rows.iter().for_each(|row| write_row(row, out));
                return Ok(rows.len() as u32);
            }
            _ => return Ok(0),
        };
        self.run(from, session, budget).write_rows(query, out)
    }

    /// What a statement is to change, by the rows that there are.
    ///
    /// # Errors
    /// As [`Prepared::write_rows`].
    pub fn changes<'r>(
        &self,
        from: (&Spaces<'r>, &'r [Value]),
        session: Session,
        budget: &'r Budget,
    ) -> Result<Changes, Error> {
        let Kind::Changes(changing) = &self.kind else {
            return Err(error::execute("the statement changes no rows"));
        };
        changing.changes(&self.run(from, session, budget))
    }

    /// Whether rows have to be changed one by one, because they fire triggers.
    pub fn is_stepwise(&self) -> bool {
        matches!(&self.kind, Kind::Changes(changing) if changing.is_stepwise())
    }
}

fn write_row(row: &[Value], out: &mut Vec<u8>) {
    ladon_msgpack::write::array(out, row.len() as u32);
    row.iter().for_each(|value| value.pack(out));
}

/// Whether an error says that a statement's steps are used up: it may run again with more.
pub fn is_interrupted(error: &Error) -> bool {
    run::is_interrupted(error)
}
