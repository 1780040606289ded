//! Expressions.

use super::{Aggregates, Binder, Typed};
use crate::aggregate::AGGREGATES;
use crate::ast::{Binary, Call, Expr, Unary};
use crate::error::{self, Error};
use crate::functions;
use crate::parser::statement::is_numeric;
use crate::tree::{AggregateCall, Comparison, Ex, Place, Static, Sub};
use crate::value::Value;
use ladon_space::FieldType;

/// The type of what an operator makes of two numbers.
fn numeric_result(a: FieldType, b: FieldType) -> FieldType {
    use FieldType::{Decimal, Double, Integer, Number, Scalar, Unsigned};
    let kinds = [a, b];
    match () {
        () if kinds.contains(&Number) => Number,
        () if kinds.contains(&Double) => Double,
        () if kinds.contains(&Decimal) => Decimal,
        () if kinds.contains(&Integer) => Integer,
        () if kinds.contains(&Unsigned) => Unsigned,
        () => Scalar,
    }
}

/// The collation of a comparison: one that was written goes first, then that of the left side.
fn collation_of(a: Static, b: Static) -> Result<u32, Error> {
    match (a.is_explicit, b.is_explicit) {
        (true, true) if a.collation != b.collation => {
            Err(error::make(ladon_space::ErrorCode(167), "Illegal mix of collations"))
        }
        (true, _) => Ok(a.collation),
        (_, true) => Ok(b.collation),
        _ if a.collation != 0 => Ok(a.collation),
        _ => Ok(b.collation),
    }
}

fn comparison(a: Static, b: Static) -> Result<Comparison, Error> {
    let is_numeric = is_numeric(a.kind) || is_numeric(b.kind);
    Ok(Comparison { is_numeric, collation: collation_of(a, b)? })
}

fn boolean(ex: Ex) -> Typed {
    (ex, Static::of(FieldType::Boolean))
}

/// Functions whose values have no type of their own in 2.6: a text among them is never equal to one
/// of several numbers that are written.
fn is_of_any_type(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(call) if matches!(call.name.as_str(), "COALESCE" | "NULLIF"))
}

/// Whether it is a number as it is written.
fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value) => matches!(value, Value::Int(_) | Value::Double(_)),
        Expr::Unary(_, inner) => matches!(**inner, Expr::Literal(Value::Int(_) | Value::Double(_))),
        _ => false,
    }
}

fn unequal_rows(left: usize, right: usize) -> Error {
    let message = format!(
        "Unequal number of entries in row expression: left side has {left}, but right side - {right}"
    );
    error::make(error::SQL_COLUMN_COUNT, message)
}

fn check_likelihood(arguments: &[Expr]) -> Result<(), Error> {
    let is_share = matches!(
        arguments,
        [_, Expr::Literal(Value::Double(share))] if (0.0..=1.0).contains(share)
    );
    if is_share {
        return Ok(());
    }
    let message = "Illegal parameters, second argument to likelihood() must be a constant between \
                   0.0 and 1.0";
    Err(error::make(ladon_space::ErrorCode(1), message))
}

/// The type of a function of decimals, which 2.6 has not.
fn decimal_result(name: &str, arguments: &[Typed]) -> Option<FieldType> {
    let is_decimal = arguments.first().is_some_and(|(_, of)| of.kind == FieldType::Decimal);
    (is_decimal && matches!(name, "ABS" | "ROUND")).then_some(FieldType::Decimal)
}

fn literal_kind(value: &Value) -> FieldType {
    value.kind().unwrap_or(FieldType::Scalar)
}

impl Binder<'_> {
    /// Binds an expression that is one value.
    pub(crate) fn expr(&mut self, expr: &Expr) -> Result<Typed, Error> {
        match expr {
            Expr::Literal(value) => Ok((Ex::Value(value.clone()), Static::of(literal_kind(value)))),
            Expr::Parameter(at) => Ok((Ex::Parameter(*at), Static::of(FieldType::Any))),
            Expr::Column(table, name) => self.column(table.as_deref(), name),
            Expr::Unary(op, inner) => self.unary(*op, inner),
            Expr::Binary(op, a, b) => self.binary(*op, a, b),
            Expr::IsNull(inner, has_to_be) => {
                let (inner, _) = self.expr(inner)?;
                Ok(boolean(Ex::IsNull(Box::new(inner), *has_to_be)))
            }
            Expr::Between(parts, is_negated) => self.between(parts, *is_negated),
            Expr::InList(left, list, is_negated) => self.in_list(left, list, *is_negated),
            Expr::InSelect(left, select, is_negated) => self.in_select(left, select, *is_negated),
            Expr::Like(left, pattern, escape, is_negated) => {
                let (left, left_of) = self.expr(left)?;
                let (pattern, pattern_of) = self.expr(pattern)?;
                let collation = collation_of(left_of, pattern_of)?;
                let [left, pattern] = [left, pattern].map(Box::new);
                let escape = match escape {
                    Some(escape) => Some(Box::new(self.expr(escape)?.0)),
                    None => None,
                };
                let like = Ex::Like(left, pattern, escape, *is_negated, collation);
                let kind = if *is_negated { FieldType::Boolean } else { FieldType::Integer };
                Ok((like, Static::of(kind)))
            }
            Expr::Case(operand, branches, otherwise) => {
                self.case(operand.as_deref(), branches, otherwise.as_deref())
            }
            Expr::Cast(inner, kind) => {
                let (inner, of) = self.expr(inner)?;
                Ok((Ex::Cast(Box::new(inner), *kind), Static { kind: *kind, ..of }))
            }
            Expr::Collate(inner, name) => {
                let (inner, mut of) = self.expr(inner)?;
                of.collation = self.collation(name)?;
                of.is_explicit = true;
                Ok((inner, of))
            }
            Expr::Call(call) => self.call(call),
            Expr::Exists(select) => {
                let sub = self.sub(select)?;
                Ok(boolean(Ex::Exists(Box::new(sub))))
            }
            Expr::Select(select) => {
                let sub = self.sub(select)?;
                if sub.query.outputs.len() != 1 {
                    return Err(unequal_rows(sub.query.outputs.len(), 1));
                }
                let of = sub.query.outputs[0].of;
                Ok((Ex::Scalar(Box::new(sub)), of))
            }
            Expr::Row(all) => Err(unequal_rows(1, all.len())),
            Expr::Raise(raise) => Ok((Ex::Raise(raise.clone()), Static::of(FieldType::Scalar))),
        }
    }

    /// Binds the parts of a list, each a value.
    fn all(&mut self, list: &[Expr]) -> Result<Vec<Typed>, Error> {
        list.iter().map(|expr| self.expr(expr)).collect()
    }

    pub(super) fn sub(&mut self, select: &crate::ast::Select) -> Result<Sub, Error> {
        let query = self.query(select)?;
        let kept = (query.looks_up == 0).then(|| self.new_place());
        Ok(Sub { query, kept })
    }

    fn column(&mut self, table: Option<&str>, name: &str) -> Result<Typed, Error> {
        for up in 0..self.scopes.len() {
            let level = self.scopes.len() - 1 - up;
            let scope = &self.scopes[level];
            if scope.is_trigger && table.is_none() {
                continue;
            }
            let mut found = None;
            for (slot, source) in scope.sources.iter().enumerate() {
                if table.is_some_and(|table| table != source.name) {
                    continue;
                }
                let is_merged = source.merged.iter().any(|merged| merged == name);
                let Some(field) = source.columns.iter().position(|column| column.name == name)
                else {
                    continue;
                };
                match found {
                    Some(_) if table.is_none() && is_merged => {}
                    Some(_) => {
                        let shown = table.map_or(name.to_owned(), |it| format!("{it}.{name}"));
                        return Err(error::generic(format!("ambiguous column name: {shown}")));
                    }
                    None => found = Some((slot, field, source.columns[field].of)),
                }
            }
            if let Some((slot, field, of)) = found {
                for inner in level + 1..self.scopes.len() {
                    let scope = &mut self.scopes[inner];
                    scope.looks_up = scope.looks_up.max(inner - level);
                }
                return Ok((Ex::Column(Place { up, slot, field: field as u32 }), of));
            }
            if let Some(alias) = self.alias(table, name, up) {
                return alias;
            }
        }
        Err(match table {
            Some(table) => error::no_field(name, table),
            None => error::no_column(name),
        })
    }

    /// A column of the result by its name.
    fn alias(
        &mut self,
        table: Option<&str>,
        name: &str,
        up: usize,
    ) -> Option<Result<Typed, Error>> {
        if table.is_some() {
            return None;
        }
        let aliases = &self.scopes[..self.scopes.len() - up].last()?.aliases;
        let (_, expr) = aliases.iter().find(|(alias, _)| alias == name)?;
        // In a subquery, the columns of others would be looked up among its own.
        if up > 0 && !matches!(expr, Expr::Literal(_)) {
            return None;
        }
        let expr = expr.clone();
        // It does not name itself.
        let aliases = std::mem::take(&mut self.scope().aliases);
        let bound = self.expr(&expr);
        self.scope().aliases = aliases;
        Some(bound)
    }

    fn unary(&mut self, op: Unary, inner: &Expr) -> Result<Typed, Error> {
        let (inner, of) = self.expr(inner)?;
        let kind = match op {
            Unary::Not => FieldType::Boolean,
            Unary::BitNot => FieldType::Integer,
            Unary::Minus | Unary::Plus => of.kind,
        };
        Ok((Ex::Unary(op, Box::new(inner)), Static { kind, ..of }))
    }

    fn binary(&mut self, op: Binary, a: &Expr, b: &Expr) -> Result<Typed, Error> {
        let compares = matches!(
            op,
            Binary::Equal
                | Binary::Unequal
                | Binary::Less
                | Binary::LessEqual
                | Binary::Greater
                | Binary::GreaterEqual
        );
        if compares && (matches!(a, Expr::Row(_)) || matches!(b, Expr::Row(_))) {
            return self.compare_rows(op, a, b);
        }
        let (a, a_of) = self.expr(a)?;
        let (b, b_of) = self.expr(b)?;
        let (a, b) = (Box::new(a), Box::new(b));
        if compares {
            return Ok(boolean(Ex::Compare(op, a, b, comparison(a_of, b_of)?)));
        }
        Ok(match op {
            Binary::And => boolean(Ex::And(a, b)),
            Binary::Or => boolean(Ex::Or(a, b)),
            Binary::Concat => {
                let collation = collation_of(a_of, b_of)?;
                let is_explicit = a_of.is_explicit || b_of.is_explicit;
                // A column's collation is that of a text of which all parts have it.
                let is_shared = is_explicit || a_of.collation == b_of.collation;
                let collation = if is_shared { collation } else { 0 };
                let of = Static { kind: FieldType::String, collation, is_explicit };
                (Ex::Concat(a, b), of)
            }
            Binary::BitAnd | Binary::BitOr | Binary::ShiftLeft | Binary::ShiftRight => {
                (Ex::Arithmetic(op, a, b), Static::of(FieldType::Integer))
            }
            _ => {
                let kind = numeric_result(a_of.kind, b_of.kind);
                (Ex::Arithmetic(op, a, b), Static::of(kind))
            }
        })
    }

    fn row(&mut self, expr: &Expr) -> Result<Vec<Typed>, Error> {
        match expr {
            Expr::Row(all) => self.all(all),
            other => Ok(vec![self.expr(other)?]),
        }
    }

    fn compare_rows(&mut self, op: Binary, a: &Expr, b: &Expr) -> Result<Typed, Error> {
        let (a, b) = (self.row(a)?, self.row(b)?);
        if a.len() != b.len() {
            return Err(unequal_rows(a.len(), b.len()));
        }
        let mut pairs = Vec::new();
        for ((a, a_of), (b, b_of)) in a.into_iter().zip(b) {
            pairs.push((a, b, comparison(a_of, b_of)?));
        }
        Ok(boolean(Ex::CompareRows(op, pairs)))
    }

    /// A value that is computed once for several comparisons: in 2.6, only a column's own collation
    /// and one that was written are not forgotten.
    fn once(&mut self, expr: &Expr) -> Result<Typed, Error> {
        let (ex, mut of) = self.expr(expr)?;
        if !of.is_explicit && !matches!(expr, Expr::Column(..)) {
            of.collation = 0;
        }
        Ok((ex, of))
    }

    fn between(
        &mut self,
        [value, low, high]: &[Expr; 3],
        is_negated: bool,
    ) -> Result<Typed, Error> {
        let (value, of) = self.once(value)?;
        let (low, low_of) = self.expr(low)?;
        let (high, high_of) = self.expr(high)?;
        let at_least = Ex::Compare(
            Binary::GreaterEqual,
            Box::new(value.clone()),
            Box::new(low),
            comparison(of, low_of)?,
        );
        let at_most = Ex::Compare(
            Binary::LessEqual,
            Box::new(value),
            Box::new(high),
            comparison(of, high_of)?,
        );
        let both = Ex::And(Box::new(at_least), Box::new(at_most));
        Ok(boolean(if is_negated { Ex::Unary(Unary::Not, Box::new(both)) } else { both }))
    }

    fn in_list(&mut self, left: &Expr, list: &[Expr], is_negated: bool) -> Result<Typed, Error> {
        if let Expr::Row(_) = left {
            // As equalities with each.
            let mut any = Ex::Value(Value::Bool(false));
            for row in list {
                let (equal, _) = self.compare_rows(Binary::Equal, left, row)?;
                any = Ex::Or(Box::new(any), Box::new(equal));
            }
            let found = if is_negated { Ex::Unary(Unary::Not, Box::new(any)) } else { any };
            return Ok(boolean(found));
        }
        let keeps_texts = list.len() > 1 && list.iter().all(is_number);
        let any_type = is_of_any_type(left);
        let (left, of) = self.expr(left)?;
        let any_type = any_type || of.kind == FieldType::Scalar;
        let mut bound = Vec::with_capacity(list.len());
        for (item, item_of) in self.all(list)? {
            let how = comparison(of, item_of)?;
            let is_numeric = how.is_numeric && !(keeps_texts && any_type);
            bound.push((item, Comparison { is_numeric, ..how }));
        }
        Ok(boolean(Ex::InList(Box::new(left), bound, is_negated)))
    }

    fn in_select(
        &mut self,
        left: &Expr,
        select: &crate::ast::Select,
        is_negated: bool,
    ) -> Result<Typed, Error> {
        let left = self.row(left)?;
        let sub = self.sub(select)?;
        if sub.query.outputs.len() != left.len() {
            return Err(unequal_rows(left.len(), sub.query.outputs.len()));
        }
        let mut bound = Vec::new();
        for ((ex, of), output) in left.into_iter().zip(&sub.query.outputs) {
            bound.push((ex, comparison(of, output.of)?));
        }
        Ok(boolean(Ex::InQuery(bound, Box::new(sub), is_negated)))
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
    ) -> Result<Typed, Error> {
        let operand = operand.map(|expr| self.once(expr)).transpose()?;
        let mut kinds = Vec::new();
        let mut bound = Vec::new();
        for (condition, result) in branches {
            let (condition, of) = self.expr(condition)?;
            let how = match &operand {
                Some((_, operand)) => comparison(*operand, of)?,
                None => Comparison { is_numeric: false, collation: 0 },
            };
            let (result, of) = self.expr(result)?;
            kinds.push(of);
            bound.push((condition, result, how));
        }
        let otherwise = match otherwise {
            Some(expr) => {
                let (ex, of) = self.expr(expr)?;
                kinds.push(of);
                Some(Box::new(ex))
            }
            None => None,
        };
        let first = kinds[0];
        let are_alike = kinds.iter().all(|of| of.kind == first.kind);
        let of = match are_alike {
            // A column's collation is not that of CASE.
            true if !first.is_explicit => Static::of(first.kind),
            true => first,
            false => Static::of(FieldType::Scalar),
        };
        Ok((Ex::Case(operand.map(|(ex, _)| Box::new(ex)), bound, otherwise), of))
    }

    fn call(&mut self, call: &Call) -> Result<Typed, Error> {
        let name = &call.name[..];
        if let Some(facts) = AGGREGATES.iter().find(|facts| facts.0 == name) {
            let count = call.arguments.len();
            if call.is_distinct && count != 1 {
                let message = "DISTINCT aggregates must have exactly one argument";
                return Err(error::generic(message));
            }
            if !(facts.2..=facts.3).contains(&count) || call.is_star && name != "COUNT" {
                return Err(functions::wrong_count(name, facts.2, facts.3, count));
            }
            return self.aggregate(call, facts.1, facts.4);
        }
        let found = functions::find(name, call.arguments.len());
        let Some(found) = found else {
            let message = format!("Function '{name}' does not exist");
            return Err(error::make(error::NO_SUCH_FUNCTION, message));
        };
        let (function, kind) = found?;
        if name == "LIKELIHOOD" {
            check_likelihood(&call.arguments)?;
        }
        let arguments = self.all(&call.arguments)?;
        if name == "TYPEOF"
            && let (Ex::Column(_) | Ex::Cast(..), of) = &arguments[0]
            && !matches!(of.kind, FieldType::Scalar | FieldType::Any)
        {
            return Ok((Ex::Value(Value::text(of.kind.name())), Static::of(kind)));
        }
        if name == "POSITION"
            && let [(_, a), (_, b)] = &arguments[..]
        {
            collation_of(*a, *b)?;
        }
        let collation = arguments.iter().map(|(_, of)| of.collation).find(|id| *id != 0);
        let how = Comparison { is_numeric: false, collation: collation.unwrap_or(0) };
        // What 2.6 flags with SQL_FUNC_DERIVEDCOLL compares as its first argument does.
        let derives = matches!(name, "LOWER" | "UPPER" | "REPLACE" | "SUBSTR" | "TRIM");
        let first = arguments.first().filter(|_| derives).map(|(_, of)| of.collation);
        let kind = decimal_result(name, &arguments).unwrap_or(kind);
        let of = Static { collation: first.unwrap_or(0), ..Static::of(kind) };
        let arguments = arguments.into_iter().map(|(ex, _)| ex).collect();
        Ok((Ex::Function(function, arguments, how), of))
    }

    fn aggregate(
        &mut self,
        call: &Call,
        of: crate::aggregate::Aggregate,
        kind: FieldType,
    ) -> Result<Typed, Error> {
        let of_function = if self.scopes.last().is_some_and(|it| it.is_grouped_filter) {
            "aggregate:"
        } else {
            "aggregate function"
        };
        let misused = || error::generic(format!("misuse of {of_function} {}()", call.name));
        if self.scopes.is_empty() || self.scope().mode == Aggregates::Refused {
            return Err(misused());
        }
        self.scope().mode = Aggregates::Refused;
        let arguments = self.all(&call.arguments);
        self.scope().mode = Aggregates::Taken;
        let arguments = arguments?;
        let first = arguments.first().map(|(_, of)| *of);
        let arguments = arguments.into_iter().map(|(ex, _)| ex).collect();
        let collation = first.map_or(0, |of| of.collation);
        let is_decimal = first.is_some_and(|of| of.kind == FieldType::Decimal);
        let kind = match call.name.as_str() {
            "SUM" | "AVG" | "MIN" | "MAX" if is_decimal => FieldType::Decimal,
            _ => kind,
        };
        let aggregates = &mut self.scope().aggregates;
        aggregates.push(AggregateCall { of, arguments, is_distinct: call.is_distinct, collation });
        let at = aggregates.len() - 1;
        Ok((Ex::Aggregate(at), Static { collation, ..Static::of(kind) }))
    }
}
