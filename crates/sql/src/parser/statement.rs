//! Statements that are no queries.

use super::expression::kind_named;
use super::{COLUMNS_MAX, Parser, check_columns, text_of};
use crate::ast::{
    ColumnDef, Core, CreateTable, Delete, Expr, ForeignAction, ForeignDef, Insert, KeyDef,
    OnConflict, Select, Statement, Update,
};
use crate::error::{self, Error};
use crate::lexer::{self, Kind};
use crate::value::Value;
use ladon_space::FieldType;

/// The pragmas of Tarantool; which of them work is the matter of `explain.rs`.
pub(crate) const PRAGMAS: [&str; 6] =
    ["COLLATION_LIST", "FOREIGN_KEY_LIST", "INDEX_INFO", "INDEX_LIST", "STATS", "TABLE_INFO"];

impl Parser<'_> {
    pub(super) fn statement(&mut self) -> Result<Statement, Error> {
        if self.takes("EXPLAIN") {
            if !self.takes_all(&["QUERY", "PLAN"]) {
                return Err(error::unsupported("EXPLAIN of bytecode; EXPLAIN QUERY PLAN works"));
            }
            return self.statement().map(|it| Statement::Explain(Box::new(it)));
        }
        if self.is_word("WITH") {
            return self.with_statement();
        }
        match () {
            () if self.is_select() => self.select().map(Statement::Select),
            () if self.is_word("INSERT") || self.is_word("REPLACE") => self.insert(),
            () if self.takes("UPDATE") => self.update(),
            () if self.takes("DELETE") => self.delete(),
            () if self.takes("TRUNCATE") => {
                self.expect("TABLE")?;
                self.name().map(Statement::Truncate)
            }
            () if self.takes("CREATE") => self.create(),
            () if self.takes("DROP") => self.drop_statement(),
            () if self.takes("ALTER") => self.alter(),
            () if self.takes("PRAGMA") => self.pragma(),
            () if self.takes_all(&["SET", "SESSION"]) => self.set_session(),
            () => self.transaction(),
        }
    }

    fn transaction(&mut self) -> Result<Statement, Error> {
        match () {
            () if self.takes_all(&["START", "TRANSACTION"]) => Ok(Statement::Begin),
            () if self.takes("COMMIT") => Ok(Statement::Commit),
            () if self.takes("SAVEPOINT") => self.name().map(Statement::Savepoint),
            () if self.takes("RELEASE") => {
                self.takes("SAVEPOINT");
                self.name().map(Statement::Release)
            }
            () if self.takes("ROLLBACK") => {
                if !self.takes("TO") {
                    return Ok(Statement::Rollback);
                }
                self.takes("SAVEPOINT");
                self.name().map(Statement::RollbackTo)
            }
            () => Err(self.unexpected()),
        }
    }

    /// What begins with WITH: a query, or a change.
    fn with_statement(&mut self) -> Result<Statement, Error> {
        let first = self.at;
        let (is_recursive, with) = self.with()?;
        if self.takes("UPDATE") {
            let Statement::Update(mut update) = self.update()? else {
                return Err(self.unexpected());
            };
            (update.with, update.is_recursive) = (with, is_recursive);
            return Ok(Statement::Update(update));
        }
        if self.takes("DELETE") {
            let Statement::Delete(mut delete) = self.delete()? else {
                return Err(self.unexpected());
            };
            (delete.with, delete.is_recursive) = (with, is_recursive);
            return Ok(Statement::Delete(delete));
        }
        if self.is_word("INSERT") || self.is_word("REPLACE") {
            let Statement::Insert(mut insert) = self.insert()? else {
                return Err(self.unexpected());
            };
            if let Some(rows) = &mut insert.rows {
                (rows.with, rows.is_recursive) = (with, is_recursive);
            }
            return Ok(Statement::Insert(insert));
        }
        self.at = first;
        self.parameters.clear();
        self.select().map(Statement::Select)
    }

    fn on_conflict(&mut self) -> Result<OnConflict, Error> {
        if !self.takes("OR") {
            return Ok(OnConflict::Abort);
        }
        Ok(match () {
            () if self.takes("ABORT") => OnConflict::Abort,
            () if self.takes("FAIL") => OnConflict::Fail,
            () if self.takes("ROLLBACK") => OnConflict::Rollback,
            () if self.takes("IGNORE") => OnConflict::Ignore,
            () if self.takes("REPLACE") => OnConflict::Replace,
            () => return Err(self.unexpected()),
        })
    }

    fn insert(&mut self) -> Result<Statement, Error> {
        let on_conflict = match self.takes("REPLACE") {
            true => OnConflict::Replace,
            false => {
                self.expect("INSERT")?;
                self.on_conflict()?
            }
        };
        self.expect("INTO")?;
        let table = self.name()?;
        let columns = if self.is_sign("(") { self.names()? } else { Vec::new() };
        let rows = match self.takes_all(&["DEFAULT", "VALUES"]) {
            true => None,
            false if self.is_select() => Some(Box::new(self.select()?)),
            false => return Err(self.unexpected()),
        };
        Ok(Statement::Insert(Insert { table, columns, rows, on_conflict }))
    }

    fn indexed_by(&mut self) -> Result<Option<String>, Error> {
        if self.takes_all(&["NOT", "INDEXED"]) {
            self.check_not_indexed(true)?;
            return Ok(None);
        }
        if !self.takes("INDEXED") {
            return Ok(None);
        }
        self.expect("BY")?;
        let name = self.name()?;
        self.check_not_indexed(false)?;
        Ok(Some(name))
    }

    fn filter(&mut self) -> Result<Option<Expr>, Error> {
        if self.takes("WHERE") { self.expr().map(Some) } else { Ok(None) }
    }

    fn update(&mut self) -> Result<Statement, Error> {
        let on_conflict = self.on_conflict()?;
        let table = self.name()?;
        let index = self.indexed_by()?;
        self.expect("SET")?;
        let mut assignments = Vec::new();
        loop {
            let names = match self.is_sign("(") {
                true => self.names()?,
                false => vec![self.name()?],
            };
            self.expect_sign("=")?;
            assignments.push((names, self.expr()?));
            check_columns(assignments.len())?;
            if !self.takes_sign(",") {
                break;
            }
        }
        let filter = self.filter()?;
        let (with, is_recursive) = (Vec::new(), false);
        Ok(Statement::Update(Update {
            with,
            is_recursive,
            table,
            index,
            assignments,
            filter,
            on_conflict,
        }))
    }

    fn delete(&mut self) -> Result<Statement, Error> {
        self.expect("FROM")?;
        let table = self.name()?;
        let index = self.indexed_by()?;
        let filter = self.filter()?;
        let (with, is_recursive) = (Vec::new(), false);
        Ok(Statement::Delete(Delete { with, is_recursive, table, index, filter }))
    }

    fn if_not_exists(&mut self) -> bool {
        self.takes_all(&["IF", "NOT", "EXISTS"])
    }

    fn create(&mut self) -> Result<Statement, Error> {
        match () {
            () if self.takes("TABLE") => self.create_table(),
            () if self.takes("VIEW") => self.create_view(),
            () if self.takes("TRIGGER") => self.create_trigger(),
            () => {
                let is_unique = self.takes("UNIQUE");
                self.expect("INDEX")?;
                let if_not_exists = self.if_not_exists();
                let name = self.name()?;
                self.expect("ON")?;
                let table = self.name()?;
                let columns = self.key_columns()?;
                let columns = KeyDef { name: None, columns };
                Ok(Statement::CreateIndex { name, table, columns, is_unique, if_not_exists })
            }
        }
    }

    fn create_view(&mut self) -> Result<Statement, Error> {
        let if_not_exists = self.if_not_exists();
        let name = self.name()?;
        let columns = if self.is_sign("(") { self.names()? } else { Vec::new() };
        self.expect("AS")?;
        let select = Box::new(self.select()?);
        if !self.parameters.is_empty() {
            return Err(error::generic("parameters are not allowed in views"));
        }
        let text = self.text_since(0);
        Ok(Statement::CreateView { name, columns, select, if_not_exists, text })
    }

    /// The columns of a key, with their collations.
    fn key_columns(&mut self) -> Result<Vec<(String, Option<String>)>, Error> {
        self.expect_sign("(")?;
        let mut columns = Vec::new();
        loop {
            if self.is_sign_ahead(1, "(") {
                return Err(error::unsupported("expressions in the definition of an index"));
            }
            let name = self.name()?;
            let collation = match self.takes("COLLATE") {
                true => Some(self.name()?),
                false => None,
            };
            // An index is read in both directions, so it need not be kept in this order.
            if !self.takes("DESC") {
                self.takes("ASC");
            }
            columns.push((name, collation));
            check_columns(columns.len())?;
            if !self.takes_sign(",") {
                break;
            }
        }
        self.expect_sign(")")?;
        Ok(columns)
    }

    fn create_table(&mut self) -> Result<Statement, Error> {
        let mut table =
            CreateTable { if_not_exists: self.if_not_exists(), ..CreateTable::default() };
        table.name = self.name()?;
        self.expect_sign("(")?;
        loop {
            if !self.table_constraint(&mut table)? {
                self.column(&mut table)?;
            }
            let count = table.columns.len();
            if count > COLUMNS_MAX {
                let message = format!(
                    "Failed to create space '{}': space column count {count} exceeds the limit \
                     ({COLUMNS_MAX})",
                    table.name
                );
                return Err(error::make(error::CREATE_SPACE, message));
            }
            if !self.takes_sign(",") {
                break;
            }
        }
        self.expect_sign(")")?;
        if self.takes("WITH") {
            self.expect("ENGINE")?;
            self.expect_sign("=")?;
            let token = self.token();
            let engine = self.bytes_of(token);
            let is_text = token.kind == Kind::Text;
            if !is_text {
                return Err(self.unexpected());
            }
            let engine = text_of(&lexer::unquoted(engine));
            if engine != "memtx" {
                return Err(error::unsupported(&format!("the engine '{engine}'")));
            }
            self.step();
        }
        Ok(Statement::CreateTable(table))
    }

    fn constraint_name(&mut self) -> Result<Option<String>, Error> {
        if self.takes("CONSTRAINT") { self.name().map(Some) } else { Ok(None) }
    }

    fn check_text(&mut self) -> Result<String, Error> {
        self.expect_sign("(")?;
        let first = self.at;
        self.expr()?;
        let text = on_one_line(&self.text_since(first));
        self.expect_sign(")")?;
        Ok(text)
    }

    fn one_primary(table: &mut CreateTable, key: KeyDef) -> Result<(), Error> {
        table.keys_before_primary = table.unique.len();
        if table.primary.is_some() {
            let message = format!(
                "Failed to create space '{}': primary key has been already declared",
                table.name
            );
            return Err(error::make(error::CREATE_SPACE, message));
        }
        table.primary = Some(key);
        Ok(())
    }

    /// A constraint of the table, if one is here.
    fn table_constraint(&mut self, table: &mut CreateTable) -> Result<bool, Error> {
        let name = self.constraint_name()?;
        match () {
            () if self.takes_all(&["PRIMARY", "KEY"]) => {
                self.expect_sign("(")?;
                self.at -= 1;
                let columns = self.primary_columns(table)?;
                Self::one_primary(table, KeyDef { name, columns })?;
            }
            () if self.takes("UNIQUE") => {
                let columns = self.key_columns()?;
                table.unique.push(KeyDef { name, columns });
            }
            () if self.takes("CHECK") => {
                let text = self.check_text()?;
                table.checks.push((name, text));
            }
            () if self.takes_all(&["FOREIGN", "KEY"]) => {
                let columns = self.names()?;
                self.expect("REFERENCES")?;
                let foreign = self.references(name, columns)?;
                table.foreign.push(foreign);
            }
            () if name.is_some() => return Err(self.unexpected()),
            () => return Ok(false),
        }
        Ok(true)
    }

    fn primary_columns(
        &mut self,
        table: &mut CreateTable,
    ) -> Result<Vec<(String, Option<String>)>, Error> {
        // AUTOINCREMENT may follow a column.
        self.expect_sign("(")?;
        let mut columns = Vec::new();
        loop {
            let name = self.name()?;
            let mut collation = None;
            if self.takes("COLLATE") {
                collation = Some(self.name()?);
            }
            if self.takes("AUTOINCREMENT") {
                self.numbers_itself(table, name.clone())?;
            }
            if !self.takes("DESC") {
                self.takes("ASC");
            }
            columns.push((name, collation));
            check_columns(columns.len())?;
            if !self.takes_sign(",") {
                break;
            }
        }
        self.expect_sign(")")?;
        Ok(columns)
    }

    /// Notes the column that numbers itself; AUTOINCREMENT is behind.
    fn numbers_itself(&self, table: &mut CreateTable, column: String) -> Result<(), Error> {
        if table.autoincrement.replace(column).is_some() {
            let (line, position) = error::place(self.text, self.token().start);
            return Err(error::generic(format!(
                "Syntax error at line {line} at or near position {position}: table must feature at \
                 most one AUTOINCREMENT field"
            )));
        }
        Ok(())
    }

    /// `ALTER TABLE .. ADD [COLUMN]`.
    fn added_column(&mut self, table: String) -> Result<Statement, Error> {
        let _ = self.takes("COLUMN");
        let mut made = CreateTable { name: table, ..CreateTable::default() };
        self.column(&mut made)?;
        let refused = match () {
            () if made.primary.is_some() => "PRIMARY KEY",
            () if !made.unique.is_empty() => "UNIQUE",
            () if !made.foreign.is_empty() => "REFERENCES",
            () if !made.checks.is_empty() => "CHECK",
            () if made.autoincrement.is_some() => "AUTOINCREMENT",
            () => return Ok(Statement::AddColumn(Box::new(made))),
        };
        Err(error::unsupported(&format!("ALTER TABLE ADD COLUMN with {refused}")))
    }

    fn references(
        &mut self,
        name: Option<String>,
        columns: Vec<String>,
    ) -> Result<ForeignDef, Error> {
        let parent = self.name()?;
        let parent_columns = if self.is_sign("(") { self.names()? } else { Vec::new() };
        let (mut on_delete, mut on_update) = (ForeignAction::None, ForeignAction::None);
        loop {
            if self.takes("MATCH") {
                let is_known = ["SIMPLE", "PARTIAL", "FULL"].iter().any(|it| self.takes(it));
                if !is_known {
                    return Err(self.unexpected());
                }
            } else if self.takes("ON") {
                let is_delete = self.takes("DELETE");
                if !is_delete && !self.takes("UPDATE") {
                    return Err(self.unexpected());
                }
                let action = self.foreign_action()?;
                if is_delete { on_delete = action } else { on_update = action }
            } else {
                break;
            }
        }
        self.deferral()?;
        Ok(ForeignDef { name, columns, parent, parent_columns, on_delete, on_update })
    }

    /// When a key is checked: at the end of the statement, and no later.
    fn deferral(&mut self) -> Result<(), Error> {
        let is_never = self.takes_all(&["NOT", "DEFERRABLE"]);
        if !is_never && !self.takes("DEFERRABLE") || !self.takes("INITIALLY") {
            return Ok(());
        }
        if self.takes("IMMEDIATE") {
            return Ok(());
        }
        if !self.takes("DEFERRED") {
            return Err(self.unexpected());
        }
        match is_never {
            true => Ok(()),
            false => Err(error::unsupported("foreign keys that are INITIALLY DEFERRED")),
        }
    }

    fn foreign_action(&mut self) -> Result<ForeignAction, Error> {
        Ok(match () {
            () if self.takes_all(&["NO", "ACTION"]) => ForeignAction::None,
            () if self.takes("RESTRICT") => ForeignAction::Restrict,
            () if self.takes("CASCADE") => ForeignAction::Cascade,
            () if self.takes_all(&["SET", "NULL"]) => ForeignAction::SetNull,
            () if self.takes_all(&["SET", "DEFAULT"]) => ForeignAction::SetDefault,
            () => return Err(self.unexpected()),
        })
    }

    fn column(&mut self, table: &mut CreateTable) -> Result<(), Error> {
        let name = self.name()?;
        let token = self.token();
        let word = text_of(self.bytes_of(token)).to_ascii_uppercase();
        if token.kind != Kind::Word || kind_named(&word).is_none() {
            return Err(self.unexpected());
        }
        let kind = self.kind()?;
        let column = ColumnDef { name, kind, is_nullable: None, collation: None, default: None };
        table.columns.push(column);
        self.column_constraints(table)
    }

    fn column_constraints(&mut self, table: &mut CreateTable) -> Result<(), Error> {
        let at = table.columns.len() - 1;
        let own = |table: &CreateTable| vec![(table.columns[at].name.clone(), None)];
        loop {
            let name = self.constraint_name()?;
            match () {
                () if self.takes_all(&["NOT", "NULL"]) => {
                    table.columns[at].is_nullable = Some(false);
                }
                () if self.takes("NULL") => {
                    table.columns[at].is_nullable = Some(true);
                }
                () if self.takes_all(&["PRIMARY", "KEY"]) => {
                    self.takes("ASC");
                    if self.takes("AUTOINCREMENT") {
                        let column = table.columns[at].name.clone();
                        self.numbers_itself(table, column)?;
                    }
                    let columns = own(table);
                    Self::one_primary(table, KeyDef { name, columns })?;
                }
                () if self.takes("AUTOINCREMENT") => {
                    let column = table.columns[at].name.clone();
                    self.numbers_itself(table, column)?;
                }
                () if self.takes("UNIQUE") => {
                    let columns = own(table);
                    table.unique.push(KeyDef { name, columns });
                }
                () if self.takes("DEFAULT") => {
                    let first = self.at;
                    let default = self.column_default()?;
                    table.columns[at].default = Some((default, self.text_since(first)));
                }
                () if self.takes("COLLATE") => {
                    table.columns[at].collation = Some(self.name()?);
                }
                () if self.takes("CHECK") => {
                    let text = self.check_text()?;
                    table.checks.push((name, text));
                }
                () if self.takes("REFERENCES") => {
                    let columns = vec![table.columns[at].name.clone()];
                    let foreign = self.references(name, columns)?;
                    table.foreign.push(foreign);
                }
                () if name.is_some() => return Err(self.unexpected()),
                () => return Ok(()),
            }
        }
    }

    /// A literal, a signed number, or an expression in parentheses.
    fn column_default(&mut self) -> Result<Expr, Error> {
        let is_open = self.is_sign("(") || self.is_sign("-") || self.is_sign("+");
        let is_literal = matches!(
            self.token().kind,
            Kind::Integer | Kind::Float | Kind::Text | Kind::Blob | Kind::Word
        );
        if !is_open && !is_literal {
            return Err(self.unexpected());
        }
        self.collated().map(|(expr, _)| expr)
    }

    fn drop_statement(&mut self) -> Result<Statement, Error> {
        let if_exists = |parser: &mut Self| parser.takes_all(&["IF", "EXISTS"]);
        match () {
            () if self.takes("TABLE") => {
                let if_exists = if_exists(self);
                Ok(Statement::DropTable { name: self.name()?, if_exists })
            }
            () if self.takes("VIEW") => {
                let if_exists = if_exists(self);
                Ok(Statement::DropView { name: self.name()?, if_exists })
            }
            () if self.takes("INDEX") => {
                let if_exists = if_exists(self);
                let name = self.name()?;
                self.expect("ON")?;
                Ok(Statement::DropIndex { name, table: self.name()?, if_exists })
            }
            () if self.takes("TRIGGER") => {
                let if_exists = if_exists(self);
                Ok(Statement::DropTrigger { name: self.name()?, if_exists })
            }
            () => Err(self.unexpected()),
        }
    }

    fn alter(&mut self) -> Result<Statement, Error> {
        self.expect("TABLE")?;
        let table = self.name()?;
        match () {
            () if self.takes_all(&["RENAME", "TO"]) => {
                Ok(Statement::RenameTable { from: table, to: self.name()? })
            }
            () if self.takes_all(&["DROP", "CONSTRAINT"]) => {
                Ok(Statement::DropConstraint { table, name: self.name()? })
            }
            () if self.takes("ADD") => {
                let name = self.constraint_name()?;
                if name.is_none() {
                    return self.added_column(table);
                }
                let is_primary = self.takes_all(&["PRIMARY", "KEY"]);
                if self.takes("CHECK") {
                    let text = self.check_text()?;
                    let name = name.unwrap_or_default();
                    return Ok(Statement::AddCheck { table, name, text });
                }
                if self.takes_all(&["FOREIGN", "KEY"]) {
                    let columns = self.names()?;
                    self.expect("REFERENCES")?;
                    let foreign = self.references(name, columns)?;
                    return Ok(Statement::AddForeign { table, foreign });
                }
                if !is_primary && !self.takes("UNIQUE") {
                    return Err(self.unexpected());
                }
                let columns = self.key_columns()?;
                Ok(Statement::AddUnique { table, key: KeyDef { name, columns }, is_primary })
            }
            () => Err(self.unexpected()),
        }
    }

    fn pragma(&mut self) -> Result<Statement, Error> {
        let name = self.name()?;
        let (mut value, mut index) = (None, None);
        if self.takes_sign("(") {
            value = Some(self.name()?);
            if self.takes_sign(".") || self.takes_sign(",") {
                index = Some(self.name()?);
            }
            self.expect_sign(")")?;
        } else if self.is_sign("=") && PRAGMAS.contains(&&name[..]) {
            return Err(self.unexpected());
        } else if self.is_sign("=") {
            return Err(error::no_pragma(&name));
        }
        Ok(Statement::Pragma { name, value, index })
    }

    fn set_session(&mut self) -> Result<Statement, Error> {
        let name = self.name()?;
        self.expect_sign("=")?;
        match self.expr()? {
            Expr::Literal(value @ (Value::Bool(_) | Value::Str(_) | Value::Int(_))) => {
                Ok(Statement::SetSession { name, value })
            }
            _ => Err(self.unexpected()),
        }
    }
}

/// A text whose blanks outside of quotes are single ones.
fn on_one_line(text: &str) -> String {
    let mut out = String::new();
    let mut quote = None;
    for char in text.chars() {
        match quote {
            Some(open) if open == char => quote = None,
            None if matches!(char, '\'' | '"') => quote = Some(char),
            None if char.is_ascii_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
                continue;
            }
            _ => {}
        }
        out.push(char);
    }
    out
}

/// The text of a check as a query over nothing, and of a default: for whoever reads them again.
pub(crate) fn expression(text: &str) -> Result<Expr, Error> {
    let parsed = super::parse(format!("SELECT {text}").as_bytes())?;
    let Statement::Select(Select { cores, .. }) = parsed.statement else {
        return Err(error::generic("no expression"));
    };
    let core = cores.into_iter().next().map(|(_, core)| core).unwrap_or_else(Core::default);
    match core.columns.into_iter().next() {
        Some(crate::ast::ResultColumn::Expr(expr, ..)) => Ok(expr),
        _ => Err(error::generic("no expression")),
    }
}

/// Whether values of the type are numbers.
pub(crate) fn is_numeric(kind: FieldType) -> bool {
    matches!(
        kind,
        FieldType::Unsigned
            | FieldType::Integer
            | FieldType::Number
            | FieldType::Double
            | FieldType::Decimal
    )
}
