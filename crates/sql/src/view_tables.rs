//! Which tables a view is made of.

use crate::ast::{Expr, From, ResultColumn, Select, Source, Statement};
use crate::parser;

/// Whether the text of a view names a table. One that cannot be read names none.
pub(crate) fn names(view: &str, table: &str) -> bool {
    match parser::parse(view.as_bytes()).map(|parsed| parsed.statement) {
        Ok(Statement::CreateView { select, .. }) => in_select(&select, table),
        _ => false,
    }
}

fn in_select(select: &Select, table: &str) -> bool {
    let in_with = select.with.iter().any(|cte| in_select(&cte.select, table));
    in_with
        || select.cores.iter().any(|(_, core)| {
            let of_columns = core.columns.iter().filter_map(|column| match column {
                ResultColumn::Expr(expr, ..) => Some(expr),
                _ => None,
            });
            let mut all = of_columns.chain(&core.filter).chain(&core.having);
            in_from(&core.from, table) || all.any(|expr| in_expr(expr, table))
        })
}

fn in_from(from: &[From], table: &str) -> bool {
    from.iter().any(|one| match &one.source {
        Source::Table(name) => name == table,
        Source::Select(select) => in_select(select, table),
        Source::Joined(inner) => in_from(inner, table),
    })
}

fn in_expr(expr: &Expr, table: &str) -> bool {
    let mut is_named = false;
    expr.each(&mut |part| {
        is_named |= match part {
            Expr::Select(select) | Expr::Exists(select) | Expr::InSelect(_, select, _) => {
                in_select(select, table)
            }
            _ => false,
        };
    });
    is_named
}
