//! CREATE TRIGGER, and RAISE in its statements.

use super::{Parser, check_columns, text_of};
use crate::ast::{CreateTrigger, Event, Expr, Raise, Statement, Timing};
use crate::error::{self, Error};
use crate::lexer::{self, Kind};

/// Statements of one trigger.
const STATEMENTS_MAX: usize = 20_000;

impl Parser<'_> {
    /// What follows CREATE TRIGGER.
    pub(super) fn create_trigger(&mut self) -> Result<Statement, Error> {
        let if_not_exists = self.takes_all(&["IF", "NOT", "EXISTS"]);
        let name = self.name()?;
        let timing = match () {
            () if self.takes("BEFORE") => Timing::Before,
            () if self.takes("AFTER") => Timing::After,
            () if self.takes_all(&["INSTEAD", "OF"]) => Timing::InsteadOf,
            () => Timing::Before,
        };
        let mut columns = Vec::new();
        let event = match () {
            () if self.takes("INSERT") => Event::Insert,
            () if self.takes("DELETE") => Event::Delete,
            () if self.takes("UPDATE") => {
                if self.takes("OF") {
                    columns.push(self.name()?);
                    while self.takes_sign(",") {
                        columns.push(self.name()?);
                        check_columns(columns.len())?;
                    }
                }
                Event::Update
            }
            () => return Err(self.unexpected()),
        };
        self.expect("ON")?;
        let table = self.name()?;
        if !self.is_word("FOR") {
            return Err(error::for_each_statement(self.text, self.token().start));
        }
        for word in ["FOR", "EACH", "ROW"] {
            self.expect(word)?;
        }
        let when = if self.takes("WHEN") { Some(self.expr()?) } else { None };
        let body = self.trigger_body()?;
        if !self.parameters.is_empty() {
            return Err(error::generic("bindings are not allowed in DDL"));
        }
        let text = self.text_since(0);
        let trigger =
            CreateTrigger { name, table, if_not_exists, timing, event, columns, when, body, text };
        Ok(Statement::CreateTrigger(Box::new(trigger)))
    }

    fn trigger_body(&mut self) -> Result<Vec<Statement>, Error> {
        self.expect("BEGIN")?;
        self.is_in_trigger = true;
        let mut body = Vec::new();
        loop {
            if body.len() >= STATEMENTS_MAX {
                return Err(error::limit("Statements of a trigger", body.len(), STATEMENTS_MAX));
            }
            let is_one = self.is_select()
                || ["INSERT", "REPLACE", "UPDATE", "DELETE"].iter().any(|word| self.is_word(word));
            if !is_one {
                return Err(self.unexpected());
            }
            body.push(self.statement()?);
            self.expect_sign(";")?;
            if self.takes("END") {
                break;
            }
        }
        self.is_in_trigger = false;
        Ok(body)
    }

    /// RAISE(IGNORE), or RAISE(ABORT, 'message') and its like; the word is behind.
    pub(super) fn raise(&mut self) -> Result<Expr, Error> {
        if !self.is_in_trigger {
            return Err(error::generic("RAISE() may only be used within a trigger-program"));
        }
        self.expect_sign("(")?;
        if self.takes("IGNORE") {
            self.expect_sign(")")?;
            return Ok(Expr::Raise(Raise::Ignore));
        }
        let make: fn(String) -> Raise = match () {
            () if self.takes("ABORT") => Raise::Abort,
            () if self.takes("FAIL") => Raise::Fail,
            () if self.takes("ROLLBACK") => Raise::Rollback,
            () => return Err(self.unexpected()),
        };
        self.expect_sign(",")?;
        let token = self.token();
        let message = match token.kind {
            Kind::Text => text_of(&lexer::unquoted(self.bytes_of(token))),
            _ => return Err(self.unexpected()),
        };
        self.step();
        self.expect_sign(")")?;
        Ok(Expr::Raise(make(message)))
    }

    /// Refuses `NOT INDEXED` and `INDEXED BY` in a trigger's UPDATE or DELETE.
    pub(super) fn check_not_indexed(&self, is_not: bool) -> Result<(), Error> {
        if !self.is_in_trigger {
            return Ok(());
        }
        let not = if is_not { "NOT " } else { "" };
        let (line, position) = error::place(self.text, self.token().start);
        Err(error::generic(format!(
            "Syntax error at line {line} at or near position {position}: the {not}INDEXED BY \
             clause is not allowed on UPDATE or DELETE statements within triggers"
        )))
    }
}
