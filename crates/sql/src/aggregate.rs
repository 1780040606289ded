//! Aggregates: what comes of the rows of a group.

use crate::ast::Binary;
use crate::convert::{text_of, to_numeric};
use crate::error::{self, Error};
use crate::operators::{arithmetic, integer, order};
use crate::value::Value;
use ladon_space::{Decimal, FieldType};
use std::cmp::Ordering;

/// Which aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregate {
    Count,
    Sum,
    Total,
    Average,
    Min,
    Max,
    GroupConcat,
}

/// The names, the least and the greatest number of arguments, and the types of results.
pub(crate) const AGGREGATES: [(&str, Aggregate, usize, usize, FieldType); 7] = [
    ("AVG", Aggregate::Average, 1, 1, FieldType::Number),
    ("COUNT", Aggregate::Count, 0, 1, FieldType::Integer),
    ("GROUP_CONCAT", Aggregate::GroupConcat, 1, 2, FieldType::String),
    ("MAX", Aggregate::Max, 1, 1, FieldType::Scalar),
    ("MIN", Aggregate::Min, 1, 1, FieldType::Scalar),
    ("SUM", Aggregate::Sum, 1, 1, FieldType::Number),
    ("TOTAL", Aggregate::Total, 1, 1, FieldType::Number),
];

/// What an aggregate has come to so far.
#[derive(Clone, Debug)]
pub(crate) struct State {
    of: Aggregate,
    count: i128,
    value: Value,
    sum: f64,
    text: Vec<u8>,
}

impl State {
    pub(crate) fn new(of: Aggregate) -> State {
        State { of, count: 0, value: Value::Null, sum: 0.0, text: Vec::new() }
    }

    /// Bytes of memory that it takes beside itself.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.value.heap_bytes()
    }

    /// Takes in a row. Returns whether it is the row that MIN or MAX shows.
    ///
    /// # Errors
    /// If a value is no number, or the sum is too large.
    pub(crate) fn take(&mut self, arguments: &[Value], collation: u32) -> Result<bool, Error> {
        let Some(value) = arguments.first() else {
            self.count += 1;
            return Ok(false);
        };
        if value.is_null() {
            return Ok(false);
        }
        self.count += 1;
        match self.of {
            Aggregate::Count => {}
            Aggregate::Sum | Aggregate::Total | Aggregate::Average => self.add(value)?,
            Aggregate::Min | Aggregate::Max => {
                let wanted =
                    if self.of == Aggregate::Min { Ordering::Less } else { Ordering::Greater };
                let is_better =
                    self.value.is_null() || order(value, &self.value, collation) == wanted;
                if is_better {
                    self.value = value.clone();
                }
                return Ok(is_better);
            }
            Aggregate::GroupConcat => {
                if self.count > 1 {
                    match arguments.get(1) {
                        Some(Value::Null) => {}
                        Some(separator) => self.text.extend(text_of(separator)),
                        None => self.text.push(b','),
                    }
                }
                self.text.extend(text_of(value));
            }
        }
        Ok(false)
    }

    /// As [`State::take`], of an integer. Returns whether the aggregate takes them so.
    ///
    /// # Errors
    /// If the sum is too large.
    #[inline]
    pub(crate) fn take_integer(&mut self, number: i128) -> Result<bool, Error> {
        match (self.of, &mut self.value) {
            (Aggregate::Count, _) => {}
            (Aggregate::Total | Aggregate::Average, _) => self.sum += number as f64,
            (Aggregate::Sum, Value::Int(sum)) => *sum = integer(*sum + number)?,
            (Aggregate::Sum, sum @ Value::Null) => *sum = Value::Int(number),
            _ => return Ok(false),
        }
        self.count += 1;
        Ok(true)
    }

    fn add(&mut self, value: &Value) -> Result<(), Error> {
        let number = match value {
            Value::Bin(_) => Err(error::mismatch(&value.shown(), "number")),
            value => to_numeric(value).map_err(|_| error::mismatch(&value.shown(), "number")),
        }?;
        self.sum += match number {
            Value::Int(number) => number as f64,
            Value::Double(number) => number,
            ref number => {
                let Some(decimal) = number.decimal() else { return Ok(()) };
                if self.of != Aggregate::Total {
                    return self.add_decimal(decimal);
                }
                decimal.to_double()
            }
        };
        if self.of != Aggregate::Sum {
            return Ok(());
        }
        self.value = match &self.value {
            Value::Null => number,
            sum => arithmetic(Binary::Add, sum, &number)?,
        };
        Ok(())
    }

    /// Adds a decimal to the exact part of a sum; what else is averaged is in `sum`.
    fn add_decimal(&mut self, decimal: Decimal) -> Result<(), Error> {
        let number = Value::of_decimal(decimal);
        self.value = match &self.value {
            Value::Null => number,
            sum => arithmetic(Binary::Add, sum, &number)?,
        };
        Ok(())
    }

    /// The average, if decimals are among the values.
    fn decimal_average(&self) -> Value {
        let sum = match self.sum.fract() == 0.0 && self.sum.abs() < 2f64.powi(53) {
            true => Value::Int(self.sum as i128),
            false => Value::Double(self.sum),
        };
        let all = arithmetic(Binary::Add, &self.value, &sum);
        all.and_then(|all| arithmetic(Binary::Divide, &all, &Value::Int(self.count)))
            .unwrap_or(Value::Null)
    }

    pub(crate) fn result(self) -> Value {
        match self.of {
            Aggregate::Count => Value::Int(self.count),
            Aggregate::Total => Value::Double(self.sum),
            Aggregate::Average if !self.value.is_null() => self.decimal_average(),
            Aggregate::Average if self.count > 0 => Value::Double(self.sum / self.count as f64),
            Aggregate::GroupConcat if self.count > 0 => Value::Str(self.text.into()),
            _ => self.value,
        }
    }
}
