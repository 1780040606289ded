//! What the parser makes of a text. Names are as they are looked up: unquoted ones in upper case.

use crate::value::Value;
use ladon_space::FieldType;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Minus,
    Plus,
    Not,
    BitNot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    BitAnd,
    BitOr,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Concat,
}

#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Literal(Value),
    /// A parameter's place in the list of parameters.
    Parameter(usize),
    Column(Option<String>, String),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// The value, and whether it has to be null.
    IsNull(Box<Expr>, bool),
    /// The value, the bounds, and whether it is negated.
    Between(Box<[Expr; 3]>, bool),
    InList(Box<Expr>, Vec<Expr>, bool),
    InSelect(Box<Expr>, Box<Select>, bool),
    /// The value, the pattern, the escape character, and whether it is negated.
    Like(Box<Expr>, Box<Expr>, Option<Box<Expr>>, bool),
    /// The operand, pairs of conditions and results, and what else.
    Case(Option<Box<Expr>>, Vec<(Expr, Expr)>, Option<Box<Expr>>),
    Cast(Box<Expr>, FieldType),
    Collate(Box<Expr>, String),
    Call(Call),
    Exists(Box<Select>),
    Select(Box<Select>),
    Row(Vec<Expr>),
    /// RAISE of a trigger.
    Raise(Raise),
}

/// What a trigger's RAISE does to the statement that fired it.
#[derive(Clone, Debug)]
pub(crate) enum Raise {
    /// The row is left as it is; the statement goes on with the next.
    Ignore,
    Abort(String),
    Fail(String),
    Rollback(String),
}

/// When a trigger runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    Before,
    After,
    InsteadOf,
}

/// What fires a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Insert,
    Update,
    Delete,
}

#[derive(Clone, Debug)]
pub(crate) struct CreateTrigger {
    pub(crate) name: String,
    pub(crate) table: String,
    pub(crate) if_not_exists: bool,
    pub(crate) timing: Timing,
    pub(crate) event: Event,
    /// Of UPDATE OF; empty for all.
    pub(crate) columns: Vec<String>,
    pub(crate) when: Option<Expr>,
    pub(crate) body: Vec<Statement>,
    /// The whole text.
    pub(crate) text: String,
}

impl Expr {
    /// Visits the expression and its parts; not those of queries in it.
    pub(crate) fn each(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        let mut all = |parts: &mut dyn Iterator<Item = &Expr>| {
            parts.for_each(|part| part.each(visit));
        };
        match self {
            Expr::Literal(_)
            | Expr::Parameter(_)
            | Expr::Column(..)
            | Expr::Exists(_)
            | Expr::Select(_)
            | Expr::Raise(_) => {}
            Expr::Unary(_, a)
            | Expr::IsNull(a, _)
            | Expr::Cast(a, _)
            | Expr::Collate(a, _)
            | Expr::InSelect(a, ..) => all(&mut [&**a].into_iter()),
            Expr::Binary(_, a, b) => all(&mut [&**a, &**b].into_iter()),
            Expr::Between(parts, _) => all(&mut parts.iter()),
            Expr::InList(a, list, _) => all(&mut list.iter().chain([&**a])),
            Expr::Like(a, b, c, _) => all(&mut [&**a, &**b].into_iter().chain(c.as_deref())),
            Expr::Case(a, branches, b) => {
                let of_branches = branches.iter().flat_map(|(when, then)| [when, then]);
                all(&mut of_branches.chain(a.as_deref()).chain(b.as_deref()));
            }
            Expr::Call(call) => all(&mut call.arguments.iter()),
            Expr::Row(list) => all(&mut list.iter()),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: Vec<Expr>,
    pub(crate) is_distinct: bool,
    pub(crate) is_star: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum ResultColumn {
    All,
    AllOf(String),
    /// The expression, its name, and its text.
    Expr(Expr, Option<String>, String),
}

#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) expr: Expr,
    pub(crate) is_descending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compound {
    Union,
    UnionAll,
    Intersect,
    Except,
}

#[derive(Clone, Debug)]
pub(crate) struct Cte {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) select: Select,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Select {
    pub(crate) with: Vec<Cte>,
    pub(crate) is_recursive: bool,
    /// The operator before each core; the first one's does not count.
    pub(crate) cores: Vec<(Option<Compound>, Core)>,
    pub(crate) order_by: Vec<Order>,
    pub(crate) limit: Option<Expr>,
    pub(crate) offset: Option<Expr>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Core {
    pub(crate) is_distinct: bool,
    pub(crate) columns: Vec<ResultColumn>,
    pub(crate) from: Vec<From>,
    pub(crate) filter: Option<Expr>,
    pub(crate) group_by: Vec<Expr>,
    pub(crate) having: Option<Expr>,
    /// Rows of VALUES, in place of all the rest.
    pub(crate) values: Vec<Vec<Expr>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Source {
    Table(String),
    Select(Box<Select>),
    /// Tables in parentheses.
    Joined(Vec<From>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Join {
    pub(crate) is_left: bool,
    pub(crate) is_natural: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct From {
    pub(crate) source: Source,
    pub(crate) alias: Option<String>,
    pub(crate) index: Option<String>,
    pub(crate) not_indexed: bool,
    pub(crate) join: Join,
    pub(crate) on: Option<Expr>,
    pub(crate) using: Vec<String>,
}

/// What happens where a new row meets another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OnConflict {
    #[default]
    Abort,
    Fail,
    Rollback,
    Ignore,
    Replace,
}

#[derive(Clone, Debug)]
pub(crate) struct ColumnDef {
    pub(crate) name: String,
    pub(crate) kind: FieldType,
    pub(crate) is_nullable: Option<bool>,
    pub(crate) collation: Option<String>,
    pub(crate) default: Option<(Expr, String)>,
}

#[derive(Clone, Debug)]
pub(crate) struct KeyDef {
    pub(crate) name: Option<String>,
    pub(crate) columns: Vec<(String, Option<String>)>,
}

#[derive(Clone, Debug)]
pub(crate) struct ForeignDef {
    pub(crate) name: Option<String>,
    pub(crate) columns: Vec<String>,
    pub(crate) parent: String,
    pub(crate) parent_columns: Vec<String>,
    pub(crate) on_delete: ForeignAction,
    pub(crate) on_update: ForeignAction,
}

/// What happens to rows that name one which leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForeignAction {
    None,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

impl ForeignAction {
    /// Its name in the option of a space.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ForeignAction::None => "no_action",
            ForeignAction::Restrict => "restrict",
            ForeignAction::Cascade => "cascade",
            ForeignAction::SetNull => "set_null",
            ForeignAction::SetDefault => "set_default",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CreateTable {
    pub(crate) name: String,
    pub(crate) if_not_exists: bool,
    pub(crate) columns: Vec<ColumnDef>,
    pub(crate) primary: Option<KeyDef>,
    /// How many of the others the text has before it.
    pub(crate) keys_before_primary: usize,
    /// The keys in the order of the text.
    pub(crate) unique: Vec<KeyDef>,
    /// The column that numbers itself.
    pub(crate) autoincrement: Option<String>,
    pub(crate) foreign: Vec<ForeignDef>,
    /// Names of checks and their texts.
    pub(crate) checks: Vec<(Option<String>, String)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Insert {
    pub(crate) table: String,
    pub(crate) columns: Vec<String>,
    /// `None`: DEFAULT VALUES.
    pub(crate) rows: Option<Box<Select>>,
    pub(crate) on_conflict: OnConflict,
}

#[derive(Clone, Debug)]
pub(crate) struct Update {
    pub(crate) with: Vec<Cte>,
    pub(crate) is_recursive: bool,
    pub(crate) table: String,
    pub(crate) index: Option<String>,
    pub(crate) assignments: Vec<(Vec<String>, Expr)>,
    pub(crate) filter: Option<Expr>,
    pub(crate) on_conflict: OnConflict,
}

#[derive(Clone, Debug)]
pub(crate) struct Delete {
    pub(crate) with: Vec<Cte>,
    pub(crate) is_recursive: bool,
    pub(crate) table: String,
    pub(crate) index: Option<String>,
    pub(crate) filter: Option<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) enum Statement {
    Select(Select),
    Insert(Insert),
    Update(Update),
    Delete(Delete),
    Truncate(String),
    CreateTable(CreateTable),
    CreateIndex {
        name: String,
        table: String,
        columns: KeyDef,
        is_unique: bool,
        if_not_exists: bool,
    },
    /// The columns' names, the query, and the whole text.
    CreateView {
        name: String,
        columns: Vec<String>,
        select: Box<Select>,
        if_not_exists: bool,
        text: String,
    },
    DropTable {
        name: String,
        if_exists: bool,
    },
    DropView {
        name: String,
        if_exists: bool,
    },
    DropIndex {
        name: String,
        table: String,
        if_exists: bool,
    },
    RenameTable {
        from: String,
        to: String,
    },
    AddCheck {
        table: String,
        name: String,
        text: String,
    },
    /// A table of one column, which is added to the one of its name.
    AddColumn(Box<CreateTable>),
    AddForeign {
        table: String,
        foreign: ForeignDef,
    },
    AddUnique {
        table: String,
        key: KeyDef,
        is_primary: bool,
    },
    DropConstraint {
        table: String,
        name: String,
    },
    Begin,
    Commit,
    Rollback,
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    CreateTrigger(Box<CreateTrigger>),
    DropTrigger {
        name: String,
        if_exists: bool,
    },
    Explain(Box<Statement>),
    Pragma {
        name: String,
        value: Option<String>,
        index: Option<String>,
    },
    SetSession {
        name: String,
        value: Value,
    },
}
