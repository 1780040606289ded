//! Bound queries: names are places, types are known, and it is chosen how tables are read.

use crate::aggregate::Aggregate;
use crate::ast::{Binary, Compound, Raise, Unary};
use crate::functions::Function;
use crate::value::Value;
use ladon_space::FieldType;
use std::sync::Arc;

/// A type and a collation that are known before the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Static {
    pub(crate) kind: FieldType,
    /// The number of the collation; 0 for none.
    pub(crate) collation: u32,
    /// COLLATE was written, which goes before a column's own.
    pub(crate) is_explicit: bool,
}

impl Static {
    pub(crate) fn of(kind: FieldType) -> Static {
        Static { kind, collation: 0, is_explicit: false }
    }
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// One side is a number: texts become numbers.
    pub(crate) is_numeric: bool,
    pub(crate) collation: u32,
}

/// A place: the level of queries outwards, the table of that query, the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) up: usize,
    pub(crate) slot: usize,
    pub(crate) field: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum Ex {
    Value(Value),
    Parameter(usize),
    Column(Place),
    Unary(Unary, Box<Ex>),
    And(Box<Ex>, Box<Ex>),
    Or(Box<Ex>, Box<Ex>),
    Arithmetic(Binary, Box<Ex>, Box<Ex>),
    Concat(Box<Ex>, Box<Ex>),
    Compare(Binary, Box<Ex>, Box<Ex>, Comparison),
    /// Rows of equal length.
    CompareRows(Binary, Vec<(Ex, Ex, Comparison)>),
    IsNull(Box<Ex>, bool),
    InList(Box<Ex>, Vec<(Ex, Comparison)>, bool),
    InQuery(Vec<(Ex, Comparison)>, Box<Sub>, bool),
    /// The value, the pattern, the escape character, whether it is negated, and the collation.
    Like(Box<Ex>, Box<Ex>, Option<Box<Ex>>, bool, u32),
    Case(Option<Box<Ex>>, Vec<(Ex, Ex, Comparison)>, Option<Box<Ex>>),
    Cast(Box<Ex>, FieldType),
    Function(Function, Vec<Ex>, Comparison),
    /// What an aggregate of the group has come to.
    Aggregate(usize),
    Exists(Box<Sub>),
    Scalar(Box<Sub>),
    Raise(Raise),
}

/// A query inside of another one.
#[derive(Clone, Debug)]
pub(crate) struct Sub {
    pub(crate) query: Query,
    /// Where its result is kept, if it does not depend on the rows around it.
    pub(crate) kept: Option<usize>,
}

/// A column of a result.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) of: Static,
    /// The text that it was made of.
    pub(crate) span: String,
    /// The column of a table that it is: whether it may be null, and whether it numbers itself.
    pub(crate) column: Option<(bool, bool)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) cores: Vec<(Option<Compound>, Core)>,
    pub(crate) outputs: Vec<Output>,
    /// Sorts by these columns of the result (of a compound), or by `Core::sort_keys`.
    pub(crate) order: Vec<Sorting>,
    pub(crate) limit: Option<Ex>,
    pub(crate) offset: Option<Ex>,
    /// How many levels outwards it looks; 0 for none.
    pub(crate) looks_up: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sorting {
    /// The column of the result; none if it is a key of its own.
    pub(crate) column: Option<usize>,
    pub(crate) is_descending: bool,
    pub(crate) collation: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Core {
    pub(crate) sources: Vec<Source>,
    pub(crate) steps: Vec<Step>,
    /// What does not depend on any table.
    pub(crate) filter: Vec<Ex>,
    pub(crate) group: Option<Group>,
    pub(crate) results: Vec<Ex>,
    pub(crate) is_distinct: bool,
    pub(crate) values: Vec<Vec<Ex>>,
    /// What rows are sorted by, beside the result's columns; only without a compound.
    pub(crate) sort_keys: Vec<Ex>,
    /// Collations of the result's columns.
    pub(crate) collations: Vec<u32>,
    /// Rows come in the order that was asked for.
    pub(crate) is_in_order: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) keys: Vec<(Ex, u32)>,
    pub(crate) aggregates: Vec<AggregateCall>,
    pub(crate) having: Option<Ex>,
    /// A column outside of aggregates is shown, or compared.
    pub(crate) shows_row: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct AggregateCall {
    pub(crate) of: Aggregate,
    pub(crate) arguments: Vec<Ex>,
    pub(crate) is_distinct: bool,
    pub(crate) collation: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A space, by its number.
    Table(u32),
    /// A query, whose rows are made once if it looks at nothing outside.
    Query(Box<Sub>),
    /// A recursive query: where its rows are kept, how it begins, and how it goes on.
    Recursive(Arc<Recursion>),
    /// The rows that the last round of a recursive query has made.
    LastRound(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Recursion {
    pub(crate) place: usize,
    pub(crate) first: Query,
    pub(crate) next: Vec<Query>,
    pub(crate) is_distinct: bool,
    /// Of the first and the next.
    pub(crate) collations: Vec<u32>,
    pub(crate) limit: Option<Ex>,
}

/// How one table takes part in a join.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) slot: usize,
    pub(crate) access: Access,
    /// What has to hold of the rows so far; of a left join, for a row to match.
    pub(crate) filter: Vec<Ex>,
    /// What holds as well of the rows that the access finds, unless it does not help.
    pub(crate) seen_to: Vec<Ex>,
    /// What has to hold after a left join, of its rows of nulls as well.
    pub(crate) after: Vec<Ex>,
    pub(crate) is_left: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Access {
    All,
    /// Tuples of an index: values of its first parts, then bounds of the next one.
    Index(IndexAccess),
    /// The values of a list, each as a key of the index.
    Keys {
        index: u32,
        kind: FieldType,
        list: Vec<Ex>,
    },
    /// Rows by a hash of values that are equal: of the row, and of what is known before.
    Hash {
        own: Vec<Ex>,
        known: Vec<Ex>,
        place: usize,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct IndexAccess {
    pub(crate) index: u32,
    pub(crate) equal: Vec<(Ex, FieldType)>,
    /// Whether the bound itself is included.
    pub(crate) low: Option<(Ex, bool, FieldType)>,
    pub(crate) high: Option<(Ex, bool, FieldType)>,
    pub(crate) is_reverse: bool,
    /// At most one tuple has the key.
    pub(crate) is_unique: bool,
    /// The conditions that equal parts see to, by their places among those of the step.
    pub(crate) sees_to: Vec<usize>,
}
