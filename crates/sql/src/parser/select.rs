//! SELECT, VALUES and WITH.

use super::{COMPOUNDS_MAX, Parser, TABLES_MAX, check_columns};
use crate::ast::{Compound, Core, Cte, From, Join, Order, ResultColumn, Select, Source};
use crate::error::{self, Error};

impl Parser<'_> {
    pub(super) fn is_select(&self) -> bool {
        ["SELECT", "VALUES", "WITH"].iter().any(|word| self.is_word(word))
    }

    /// A query with all that belongs to it.
    pub(super) fn select(&mut self) -> Result<Select, Error> {
        self.deeper(Self::whole_select)
    }

    fn whole_select(&mut self) -> Result<Select, Error> {
        let mut select = Select::default();
        (select.is_recursive, select.with) = self.with()?;
        select.cores.push((None, self.core()?));
        while let Some(compound) = self.compound() {
            select.cores.push((Some(compound), self.core()?));
        }
        // Those of the text, whose length is limited.
        let found = select.cores.len();
        if found > COMPOUNDS_MAX {
            let what = "The number of UNION or EXCEPT or INTERSECT operations";
            return Err(error::limit(what, found, COMPOUNDS_MAX));
        }
        if self.takes_all(&["ORDER", "BY"]) {
            select.order_by = self.ordering()?;
        }
        if self.takes("LIMIT") {
            let first = self.expr()?;
            if self.takes_sign(",") {
                select.offset = Some(first);
                select.limit = Some(self.expr()?);
            } else {
                select.limit = Some(first);
                if self.takes("OFFSET") {
                    select.offset = Some(self.expr()?);
                }
            }
        }
        // What orders a compound comes after it.
        let behind = ["UNION", "INTERSECT", "EXCEPT"].iter().find(|word| self.is_word(word));
        if let Some(word) = behind {
            let word = if self.is_word_ahead(1, "ALL") { "UNION ALL" } else { word };
            let clause = if select.order_by.is_empty() { "LIMIT" } else { "ORDER BY" };
            let message = format!("{clause} clause should come after {word} not before");
            return Err(error::generic(message));
        }
        Ok(select)
    }

    pub(super) fn with(&mut self) -> Result<(bool, Vec<Cte>), Error> {
        let mut all = Vec::new();
        if !self.takes("WITH") {
            return Ok((false, all));
        }
        let is_recursive = self.takes("RECURSIVE");
        loop {
            let name = self.name()?;
            let columns = if self.is_sign("(") { self.names()? } else { Vec::new() };
            self.expect("AS")?;
            self.expect_sign("(")?;
            let select = self.select()?;
            self.expect_sign(")")?;
            if all.iter().any(|other: &Cte| other.name == name) {
                return Err(error::generic(format!("Ambiguous table name in WITH query: {name}")));
            }
            all.push(Cte { name, columns, select });
            if all.len() > TABLES_MAX {
                return Err(error::limit("The number of WITH's queries", all.len(), TABLES_MAX));
            }
            if !self.takes_sign(",") {
                return Ok((is_recursive, all));
            }
        }
    }

    fn compound(&mut self) -> Option<Compound> {
        if self.takes("UNION") {
            return Some(if self.takes("ALL") { Compound::UnionAll } else { Compound::Union });
        }
        if self.takes("INTERSECT") {
            return Some(Compound::Intersect);
        }
        self.takes("EXCEPT").then_some(Compound::Except)
    }

    fn core(&mut self) -> Result<Core, Error> {
        let mut core = Core::default();
        if self.takes("VALUES") {
            loop {
                self.expect_sign("(")?;
                core.values.push(self.exprs()?);
                self.expect_sign(")")?;
                if !self.takes_sign(",") {
                    return Ok(core);
                }
            }
        }
        self.expect("SELECT")?;
        core.is_distinct = self.takes("DISTINCT");
        if !core.is_distinct {
            self.takes("ALL");
        }
        loop {
            core.columns.push(self.result_column()?);
            check_columns(core.columns.len())?;
            if !self.takes_sign(",") {
                break;
            }
        }
        if self.takes("FROM") {
            core.from = self.from()?;
        }
        if self.takes("WHERE") {
            core.filter = Some(self.expr()?);
        }
        if self.takes_all(&["GROUP", "BY"]) {
            core.group_by = self.exprs()?;
        }
        if self.takes("HAVING") {
            core.having = Some(self.expr()?);
        }
        Ok(core)
    }

    pub(super) fn exprs(&mut self) -> Result<Vec<crate::ast::Expr>, Error> {
        let mut all = vec![self.expr()?];
        while self.takes_sign(",") {
            all.push(self.expr()?);
            check_columns(all.len())?;
        }
        Ok(all)
    }

    fn result_column(&mut self) -> Result<ResultColumn, Error> {
        if self.takes_sign("*") {
            return Ok(ResultColumn::All);
        }
        if self.is_name() && self.is_sign_ahead(1, ".") && self.is_sign_ahead(2, "*") {
            let table = self.name()?;
            self.step();
            self.step();
            return Ok(ResultColumn::AllOf(table));
        }
        let first = self.at;
        let expr = self.expr()?;
        let text = self.text_since(first);
        let name = match self.takes("AS") {
            true => Some(self.name()?),
            false if self.is_alias() => Some(self.name()?),
            false => None,
        };
        Ok(ResultColumn::Expr(expr, name, text))
    }

    /// Whether an alias without AS is here: a name that begins nothing else.
    fn is_alias(&self) -> bool {
        const OTHERS: [&str; 4] = ["LIMIT", "OFFSET", "INDEXED", "SEQSCAN"];
        self.is_name() && !OTHERS.iter().any(|word| self.is_word(word))
    }

    fn from(&mut self) -> Result<Vec<From>, Error> {
        let mut all = vec![self.item(Join::default(), false)?];
        loop {
            let join = if self.takes_sign(",") {
                Join::default()
            } else if let Some(join) = self.join()? {
                join
            } else {
                return Ok(all);
            };
            all.push(self.item(join, true)?);
            if all.len() > TABLES_MAX {
                return Err(error::limit("The number of tables in a join", all.len(), TABLES_MAX));
            }
        }
    }

    fn join(&mut self) -> Result<Option<Join>, Error> {
        let mut join = Join::default();
        let first = self.at;
        let (mut is_inner, mut is_outer) = (false, false);
        loop {
            match () {
                () if self.takes("NATURAL") => join.is_natural = true,
                () if self.takes("LEFT") => join.is_left = true,
                () if self.takes("OUTER") => is_outer = true,
                () if self.takes("INNER") || self.takes("CROSS") => is_inner = true,
                () if self.is_word("RIGHT") || self.is_word("FULL") => {
                    let message = "Tarantool does not support RIGHT and FULL OUTER JOINs";
                    return Err(error::make(error::UNSUPPORTED, message));
                }
                () => break,
            }
        }
        let is_alone = is_outer && !join.is_left;
        let is_mixed = is_inner && (is_outer || join.is_left);
        if is_alone || is_mixed {
            let words = self.text_since(first);
            return Err(error::generic(format!("unknown or unsupported join type: {words}")));
        }
        if self.takes("JOIN") {
            return Ok(Some(join));
        }
        if self.at > first { Err(self.unexpected()) } else { Ok(None) }
    }

    /// A table; the first one of FROM is joined to none.
    fn item(&mut self, join: Join, is_joined: bool) -> Result<From, Error> {
        let (index, not_indexed, on) = (None, false, None);
        let source = match self.takes_sign("(") {
            true => {
                let source = match self.is_select() {
                    true => Source::Select(Box::new(self.select()?)),
                    false => Source::Joined(self.deeper(Self::from)?),
                };
                self.expect_sign(")")?;
                source
            }
            false => {
                // What later versions ask for where no index helps means nothing here.
                if self.is_word("SEQSCAN") && self.is_name_token(self.ahead(1)) {
                    self.step();
                }
                Source::Table(self.name()?)
            }
        };
        let mut item =
            From { source, alias: None, index, not_indexed, join, on, using: Vec::new() };
        if self.takes("AS") || self.is_alias() {
            item.alias = Some(self.name()?);
        }
        if self.takes_all(&["NOT", "INDEXED"]) {
            item.not_indexed = true;
        }
        if self.takes("INDEXED") {
            self.expect("BY")?;
            item.index = Some(self.name()?);
        }
        if self.takes("ON") {
            item.on = Some(self.expr()?);
            if self.is_word("USING") && is_joined {
                return Err(error::generic(
                    "cannot have both ON and USING clauses in the same join",
                ));
            }
        } else if self.takes("USING") {
            item.using = self.names()?;
        }
        if !is_joined && (item.on.is_some() || !item.using.is_empty()) {
            if self.takes("USING") {
                self.names()?;
            }
            let (line, position) = error::place(self.text, self.token().start);
            return Err(error::generic(format!(
                "Syntax error at line {line} at or near position {position}: a JOIN clause is \
                 required before ON and USING"
            )));
        }
        if join.is_natural && (item.on.is_some() || !item.using.is_empty()) {
            return Err(error::generic("a NATURAL join may not have an ON or USING clause"));
        }
        Ok(item)
    }

    pub(super) fn ordering(&mut self) -> Result<Vec<Order>, Error> {
        let mut all = Vec::new();
        loop {
            let expr = self.expr()?;
            let is_descending = self.takes("DESC");
            if !is_descending {
                self.takes("ASC");
            }
            all.push(Order { expr, is_descending });
            check_columns(all.len())?;
            if !self.takes_sign(",") {
                return Ok(all);
            }
        }
    }

    /// `x IN table`.
    pub(super) fn table_as_select(&mut self) -> Result<Select, Error> {
        let from = From {
            source: Source::Table(self.name()?),
            alias: None,
            index: None,
            not_indexed: false,
            join: Join::default(),
            on: None,
            using: Vec::new(),
        };
        let core = Core { columns: vec![ResultColumn::All], from: vec![from], ..Core::default() };
        Ok(Select { cores: vec![(None, core)], ..Select::default() })
    }
}
