//! Values of expressions.

use super::keep::{Kept, ValueSet, as_compared, canonical};
use super::{Env, Run, Seen};
use crate::ast::{Binary, Unary};
use crate::convert::{cast, to_integer, to_numeric, to_truth};
use crate::error::{self, Error};
use crate::functions::Around;
use crate::operators::{arithmetic, concat, holds, like, negate, of_integers, order};
use crate::tree::{Comparison, Ex, Place, Sub};
use crate::value::Value;
use std::collections::HashSet;
use std::rc::Rc;

fn truth(value: Option<bool>) -> Value {
    value.map_or(Value::Null, Value::Bool)
}

impl Run<'_> {
    /// The value of an expression.
    #[inline]
    pub(crate) fn eval(&self, ex: &Ex, env: &Env<'_>) -> Result<Value, Error> {
        self.see(ex, env).map(Seen::into_value)
    }

    /// The value of an expression, where it is.
    #[inline]
    pub(crate) fn see<'v>(&'v self, ex: &'v Ex, env: &Env<'v>) -> Result<Seen<'v>, Error> {
        match ex {
            Ex::Column(place) => Ok(field(*place, env)),
            Ex::Value(value) => Ok(Seen::of(value)),
            Ex::Parameter(at) => Ok(self.parameters.get(*at).map_or(Seen::Null, Seen::of)),
            Ex::Compare(op, a, b, how) => {
                let order = self.see(a, env)?.compare(&self.see(b, env)?, *how)?;
                Ok(order.map_or(Seen::Null, |order| Seen::Bool(holds(*op, order))))
            }
            _ => self.see_computed(ex, env),
        }
    }

    fn see_computed<'v>(&'v self, ex: &'v Ex, env: &Env<'v>) -> Result<Seen<'v>, Error> {
        let truth = |value: Option<bool>| value.map_or(Seen::Null, Seen::Bool);
        match ex {
            Ex::And(a, b) => self.and(a, b, env).map(truth),
            Ex::Or(a, b) => self.or(a, b, env).map(truth),
            Ex::Arithmetic(op, a, b) => {
                let (a, b) = (self.see(a, env)?, self.see(b, env)?);
                match (&a, &b) {
                    (Seen::Int(a), Seen::Int(b)) => of_integers(*op, *a, *b),
                    _ => arithmetic(*op, &a.into_value(), &b.into_value()),
                }
                .map(Seen::from)
            }
            Ex::IsNull(inner, has_to_be) => {
                Ok(Seen::Bool(self.see(inner, env)?.is_null() == *has_to_be))
            }
            Ex::Case(operand, branches, otherwise) => {
                self.case(operand.as_deref(), branches, otherwise.as_deref(), env)
            }
            Ex::Aggregate(at) => Ok(env.aggregates.get(*at).map_or(Seen::Null, Seen::of)),
            _ => self.compute(ex, env).map(Seen::from),
        }
    }

    fn compute(&self, ex: &Ex, env: &Env<'_>) -> Result<Value, Error> {
        match ex {
            Ex::Unary(op, inner) => self.unary(*op, self.eval(inner, env)?),
            Ex::Concat(a, b) => {
                let both = concat(&self.eval(a, env)?, &self.eval(b, env)?)?;
                self.limited(both)
            }
            Ex::CompareRows(op, pairs) => self.compare_rows(*op, pairs, env).map(truth),
            Ex::InList(left, list, is_negated) => self.in_list(left, list, *is_negated, env),
            Ex::InQuery(left, sub, is_negated) => self.in_query(left, sub, *is_negated, env),
            Ex::Like(left, pattern, escape, is_negated, collation) => {
                let found = self.like((left, pattern, escape.as_deref()), *collation, env)?;
                Ok(truth(found.map(|found| found != *is_negated)))
            }
            Ex::Cast(inner, kind) => cast(self.eval(inner, env)?, *kind),
            Ex::Function(function, arguments, how) => {
                if function.is("COALESCE") || function.is("IFNULL") {
                    return self.first_of(arguments, env);
                }
                let values: Result<Vec<Value>, Error> =
                    arguments.iter().map(|it| self.eval(it, env)).collect();
                let random = self.next_random();
                let around = Around { collation: how.collation, random, ..self.around };
                function.run(&values?, &around, self.budget)
            }
            Ex::Raise(raise) => Err(error::raised(raise)),
            Ex::Exists(sub) => {
                let rows = self.sub_rows(sub, env, Some(1))?;
                Ok(Value::Bool(!rows.is_empty()))
            }
            Ex::Scalar(sub) => {
                let rows = self.sub_rows(sub, env, Some(2))?;
                if rows.len() > 1 {
                    return Err(error::execute("Expression subquery returned more than 1 row"));
                }
                Ok(rows.first().map_or(Value::Null, |row| row[0].clone()))
            }
            _ => self.eval(ex, env),
        }
    }

    /// Whether a condition holds; unknown is no.
    pub(crate) fn holds(&self, ex: &Ex, env: &Env<'_>) -> Result<bool, Error> {
        Ok(self.truth_of(ex, env)? == Some(true))
    }

    #[inline]
    fn truth_of(&self, ex: &Ex, env: &Env<'_>) -> Result<Option<bool>, Error> {
        match self.see(ex, env)? {
            Seen::Bool(is) => Ok(Some(is)),
            Seen::Null => Ok(None),
            other => to_truth(&other.into_value()),
        }
    }

    #[inline]
    pub(crate) fn all_hold(&self, all: &[Ex], env: &Env<'_>) -> Result<bool, Error> {
        for ex in all {
            if !self.holds(ex, env)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A xorshift of 64 bits.
    fn next_random(&self) -> u64 {
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.set(state);
        state
    }

    fn limited(&self, value: Value) -> Result<Value, Error> {
        const BYTES_MAX: usize = 16 << 20;
        if value.heap_bytes() > BYTES_MAX {
            return Err(error::execute("string or blob too big"));
        }
        self.budget.work(value.heap_bytes())?;
        Ok(value)
    }

    fn first_of(&self, arguments: &[Ex], env: &Env<'_>) -> Result<Value, Error> {
        for argument in arguments {
            let value = self.eval(argument, env)?;
            if !value.is_null() {
                return Ok(value);
            }
        }
        Ok(Value::Null)
    }

    fn unary(&self, op: Unary, value: Value) -> Result<Value, Error> {
        Ok(match op {
            Unary::Plus => value,
            Unary::Minus => return negate(&value),
            Unary::Not => truth(to_truth(&value)?.map(|is| !is)),
            Unary::BitNot if value.is_null() => value,
            Unary::BitNot => Value::Int((!(to_integer(&value)? as i64)).into()),
        })
    }

    fn and(&self, a: &Ex, b: &Ex, env: &Env<'_>) -> Result<Option<bool>, Error> {
        let a = self.truth_of(a, env)?;
        if a == Some(false) {
            return Ok(a);
        }
        let b = self.truth_of(b, env)?;
        Ok(match (a, b) {
            (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        })
    }

    fn or(&self, a: &Ex, b: &Ex, env: &Env<'_>) -> Result<Option<bool>, Error> {
        let a = self.truth_of(a, env)?;
        if a == Some(true) {
            return Ok(a);
        }
        let b = self.truth_of(b, env)?;
        Ok(match (a, b) {
            (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        })
    }

    fn compare_rows(
        &self,
        op: Binary,
        pairs: &[(Ex, Ex, Comparison)],
        env: &Env<'_>,
    ) -> Result<Option<bool>, Error> {
        let is_equality = matches!(op, Binary::Equal | Binary::Unequal);
        let mut is_unknown = false;
        for (a, b, how) in pairs {
            match self.see(a, env)?.compare(&self.see(b, env)?, *how)? {
                None if is_equality => is_unknown = true,
                None => return Ok(None),
                Some(order) if order.is_ne() => return Ok(Some(holds(op, order))),
                Some(_) => {}
            }
        }
        Ok((!is_unknown).then(|| holds(op, std::cmp::Ordering::Equal)))
    }

    fn in_list(
        &self,
        left: &Ex,
        list: &[(Ex, Comparison)],
        is_negated: bool,
        env: &Env<'_>,
    ) -> Result<Value, Error> {
        if list.is_empty() {
            return Ok(Value::Bool(is_negated));
        }
        let left = self.see(left, env)?;
        if left.is_null() {
            return Ok(Value::Null);
        }
        let mut has_null = false;
        for (ex, how) in list {
            let value = self.see(ex, env)?;
            if value.is_null() {
                has_null = true;
            } else if is_same(&left, &value, *how) {
                return Ok(Value::Bool(!is_negated));
            }
        }
        Ok(if has_null { Value::Null } else { Value::Bool(is_negated) })
    }

    fn in_query(
        &self,
        left: &[(Ex, Comparison)],
        sub: &Sub,
        is_negated: bool,
        env: &Env<'_>,
    ) -> Result<Value, Error> {
        let mut key = Vec::new();
        let mut has_null = false;
        for (ex, how) in left {
            let value = self.eval(ex, env)?;
            has_null |= value.is_null();
            canonical(&as_compared(&value, *how), how.collation, &mut key);
        }
        let set = self.set_of(left, sub, env)?;
        let found = match () {
            () if set.0.is_empty() && !set.1 => Some(false),
            () if has_null => None,
            () if set.0.contains(&key) => Some(true),
            () if set.1 => None,
            () => Some(false),
        };
        Ok(truth(found.map(|found| found != is_negated)))
    }

    fn set_of(
        &self,
        left: &[(Ex, Comparison)],
        sub: &Sub,
        env: &Env<'_>,
    ) -> Result<ValueSet, Error> {
        if let Some(Kept::Set(set)) = sub.kept.map(|place| self.kept(place)) {
            return Ok(set);
        }
        let rows = self.query(&sub.query, Some(env), None)?;
        let (mut set, mut has_null) = (HashSet::new(), false);
        for row in &rows {
            let mut key = Vec::new();
            for (value, (_, how)) in row.iter().zip(left) {
                has_null |= value.is_null();
                canonical(&as_compared(value, *how), how.collation, &mut key);
            }
            if !row.iter().any(Value::is_null) {
                if sub.kept.is_some() {
                    self.budget.take(key.len() + 32)?;
                }
                set.insert(key);
            }
        }
        self.forget(&rows);
        let set = Rc::new((set, has_null));
        if let Some(place) = sub.kept {
            self.keep(place, Kept::Set(Rc::clone(&set)));
        }
        Ok(set)
    }

    fn like(
        &self,
        (left, pattern, escape): (&Ex, &Ex, Option<&Ex>),
        collation: u32,
        env: &Env<'_>,
    ) -> Result<Option<bool>, Error> {
        const PATTERN_BYTES_MAX: usize = 50_000;
        let left = self.eval(left, env)?;
        let pattern = self.eval(pattern, env)?;
        self.budget.work(left.heap_bytes() + pattern.heap_bytes())?;
        let chars = |value: &Value| -> Result<Option<Vec<char>>, Error> {
            match value {
                Value::Null => Ok(None),
                Value::Str(text) => Ok(Some(String::from_utf8_lossy(text).chars().collect())),
                other => Err(error::inconsistent("text", other.type_shown())),
            }
        };
        let (left, wanted) = (chars(&left)?, chars(&pattern)?);
        let escape = match escape {
            None => None,
            Some(ex) => match chars(&self.eval(ex, env)?)?.as_deref() {
                Some([one]) => Some(*one),
                None => return Ok(None),
                Some(_) => {
                    return Err(error::execute("ESCAPE expression must be a single character"));
                }
            },
        };
        if pattern.heap_bytes() > PATTERN_BYTES_MAX {
            return Err(error::execute("LIKE pattern is too complex"));
        }
        let (Some(left), Some(wanted)) = (left, wanted) else { return Ok(None) };
        like(&wanted, &left, (escape, collation), &mut |steps| self.budget.work(steps)).map(Some)
    }

    fn case<'v>(
        &'v self,
        operand: Option<&'v Ex>,
        branches: &'v [(Ex, Ex, Comparison)],
        otherwise: Option<&'v Ex>,
        env: &Env<'v>,
    ) -> Result<Seen<'v>, Error> {
        let operand = operand.map(|ex| self.see(ex, env)).transpose()?;
        for (condition, result, how) in branches {
            let is_it = match &operand {
                None => self.holds(condition, env)?,
                Some(operand) => {
                    let order = operand.compare(&self.see(condition, env)?, *how)?;
                    order.is_some_and(std::cmp::Ordering::is_eq)
                }
            };
            if is_it {
                return self.see(result, env);
            }
        }
        otherwise.map_or(Ok(Seen::Null), |ex| self.see(ex, env))
    }

    /// The number of a LIMIT or an OFFSET.
    pub(super) fn limit(&self, ex: &Ex, clause: &str) -> Result<usize, Error> {
        match self.eval(ex, &Env::NOTHING).and_then(|value| to_numeric(&value)) {
            Ok(Value::Int(number)) if number >= 0 => {
                Ok(usize::try_from(number).unwrap_or(usize::MAX))
            }
            _ => {
                let message = format!("Only positive integers are allowed in the {clause} clause");
                Err(error::execute(&message))
            }
        }
    }
}

/// Whether a value is one of a list's.
fn is_same(left: &Seen<'_>, value: &Seen<'_>, how: Comparison) -> bool {
    if let (Seen::Int(left), Seen::Int(value)) = (left, value) {
        return left == value;
    }
    let [left, value] = [left, value].map(|seen| as_compared(&seen.clone().into_value(), how));
    order(&left, &value, how.collation).is_eq()
}

#[inline]
fn field<'v>(place: Place, env: &Env<'v>) -> Seen<'v> {
    if place.up == 0 {
        return env.slots.get(place.slot).map_or(Seen::Null, |slot| slot.see(place.field));
    }
    let mut env = *env;
    for _ in 0..place.up {
        match env.outer {
            Some(outer) => env = *outer,
            None => return Seen::Null,
        }
    }
    env.slots.get(place.slot).map_or(Seen::Null, |slot| slot.see(place.field))
}
