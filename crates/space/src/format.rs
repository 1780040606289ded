//! What a space demands of its tuples: by its own format, and by the parts of its indexes.

use crate::error::{BoxError, ErrorCode};
use crate::field_type::FieldType;
use crate::key_part::Part;
use crate::path::{self, Step};
use ladon_msgpack::{self as msgpack, Value, write};
use std::borrow::Cow;

/// A field as a space's format describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: FieldType,
    /// Whether it may be nil or absent.
    pub is_nullable: bool,
    /// The value in the place of nil, in MessagePack.
    pub default: Option<Box<[u8]>>,
}

/// The named fields of a space; tuples may have more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// In order.
    pub fields: Vec<Field>,
}

impl Format {
    /// The number of the field with this name, from 0.
    pub fn number_of(&self, name: &[u8]) -> Option<u32> {
        let at = self.fields.iter().position(|field| field.name.as_bytes() == name)?;
        u32::try_from(at).ok()
    }
}

/// A tuple with the defaults of a format in the place of nil, and of fields that are not there.
/// What is no array stays as it is.
pub fn with_defaults<'t>(format: &Format, tuple: &'t [u8]) -> Cow<'t, [u8]> {
    let Some(last) = format.fields.iter().rposition(|field| field.default.is_some()) else {
        return tuple.into();
    };
    let mut rest = tuple;
    let Ok(count) = msgpack::read_array(&mut rest) else { return tuple.into() };
    let mut filled = Vec::with_capacity(tuple.len() + 16);
    write::array(&mut filled, count.max(last as u32 + 1));
    for (at, field) in format.fields[..=last].iter().enumerate() {
        let value =
            if (at as u32) < count { msgpack::take(&mut rest).ok() } else { Some(&NIL[..]) };
        // What is damaged is refused by the check of the tuple.
        let Some(value) = value else { return tuple.into() };
        let default = field.default.as_deref().filter(|_| value == NIL);
        filled.extend_from_slice(default.unwrap_or(value));
    }
    filled.extend_from_slice(rest);
    filled.into()
}

const NIL: [u8; 1] = [0xc0];

/// What a value must be, and what must be in it.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    kind: FieldType,
    is_nullable: bool,
    /// How messages name the value.
    label: String,
    /// The order in which missing values are reported.
    number: usize,
    /// Of an array or a map: the rules of what paths of indexes lead to.
    inside: Vec<(Step, Rule)>,
}

/// The checks of each tuple that is written.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// By field number.
    fields: Vec<Rule>,
    /// How many fields a tuple has; 0 if any number will do.
    field_count: u32,
    /// Whether there are rules of what is in fields.
    has_paths: bool,
}

impl Rules {
    /// The rules of a format, and of these parts of indexes.
    ///
    /// # Errors
    /// Tarantool's, if a value had to be of two types.
    pub fn new<'a>(
        format: &Format,
        field_count: u32,
        parts: impl Iterator<Item = &'a Part> + Clone,
    ) -> Result<Rules, BoxError> {
        let fields = format.fields.iter().enumerate().map(|(at, field)| Rule {
            kind: field.kind,
            is_nullable: field.is_nullable,
            label: format!("{} ({})", at + 1, field.name),
            number: at,
            inside: Vec::new(),
        });
        let mut rules = Rules { fields: fields.collect(), field_count, has_paths: false };
        let formatted = rules.fields.len();
        let indexed = parts.clone().map(|part| part.field as usize + 1).max().unwrap_or(0);
        rules.fields.extend((formatted..indexed).map(|at| Rule::of_any(at, (at + 1).to_string())));
        let mut is_named = vec![false; rules.fields.len()];
        let mut count = rules.fields.len();
        for part in parts {
            let at = part.field as usize;
            let mut rule = &mut rules.fields[at];
            if !part.path.is_empty() {
                rules.has_paths = true;
                for step in part.path.steps() {
                    rule = rule.step(step, part.field, &mut count)?;
                }
                rule.is_nullable &= part.is_nullable;
            } else {
                // Before another part has named the field, it is as nullable as this one.
                let is_new = at >= formatted && !is_named[at];
                rule.is_nullable = part.is_nullable && (is_new || rule.is_nullable);
                is_named[at] = true;
            }
            rule.narrow(part.kind)?;
        }
        Ok(rules)
    }

    /// Whether every tuple that meets the other rules meets these, as far as that is easily seen:
    /// rules of what is in a field have to be of the same places.
    pub(crate) fn are_met_by(&self, others: &Rules) -> bool {
        let is_count_kept = self.field_count == 0 || self.field_count == others.field_count;
        let any = Rule::of_any(0, String::new());
        let of = |at: usize| others.fields.get(at).unwrap_or(&any);
        is_count_kept && self.fields.iter().enumerate().all(|(at, rule)| rule.is_met_by(of(at)))
    }

    /// The rule of a field, if there is one.
    pub(crate) fn of_field(&self, number: u32) -> Option<&Rule> {
        self.fields.get(number as usize)
    }

    /// Checks that bytes are one MessagePack array with the fields that there must be.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn check(&self, tuple: &[u8]) -> Result<(), BoxError> {
        let mut rest = tuple;
        let count = match msgpack::read(&mut rest)? {
            Value::Array(count) => count,
            _ => return Err(BoxError::not_array()),
        };
        if self.field_count != 0 && count != self.field_count {
            let expected = self.field_count;
            let message =
                format!("Tuple field count {count} does not match space field count {expected}");
            return Err(BoxError::new(ErrorCode::EXACT_FIELD_COUNT, message));
        }
        let mut left = count;
        let mut missing = None;
        for (at, rule) in self.fields.iter().enumerate() {
            if left == 0 {
                self.fields[at..].iter().for_each(|rule| rule.note_missing(&mut missing));
                break;
            }
            left -= 1;
            let before = rest;
            let value = msgpack::read(&mut rest)?;
            rule.check_type(&value)?;
            if matches!(value, Value::Array(_) | Value::Map(_)) {
                rest = before;
                msgpack::skip(&mut rest)?;
            }
            if self.has_paths && !rule.inside.is_empty() {
                rule.check_inside(before, &mut missing)?;
            }
        }
        if let Some(rule) = missing {
            return Err(rule.missing());
        }
        for _ in 0..left {
            msgpack::skip(&mut rest)?;
        }
        if rest.is_empty() { Ok(()) } else { Err(msgpack::Error::Trailing.into()) }
    }
}

impl Rule {
    fn is_met_by(&self, other: &Rule) -> bool {
        let is_met = other.kind.is_within(self.kind) && (self.is_nullable || !other.is_nullable);
        is_met
            && self.inside.len() == other.inside.len()
            && self.inside.iter().zip(&other.inside).all(|((step, own), (other_step, other))| {
                step == other_step && own.is_met_by(other)
            })
    }

    /// The type that the value must have.
    pub(crate) fn kind(&self) -> FieldType {
        self.kind
    }

    /// The rule of an array's element.
    pub(crate) fn of_element(&self, number: u32) -> Option<&Rule> {
        let is_it = |step: &Step| matches!(step, Step::Each) || *step == Step::Element(number);
        self.inside.iter().find(|(step, _)| is_it(step)).map(|(_, rule)| rule)
    }

    /// The rule of the value that a map has for a key.
    pub(crate) fn of_key(&self, key: &[u8]) -> Option<&Rule> {
        let is_it = |step: &Step| matches!(step, Step::Key(other) if &**other == key);
        self.inside.iter().find(|(step, _)| is_it(step)).map(|(_, rule)| rule)
    }

    fn of_any(number: usize, label: String) -> Rule {
        Rule { kind: FieldType::Any, is_nullable: true, label, number, inside: Vec::new() }
    }

    /// The rule of what a step leads to; `count` is the number of rules that there are.
    fn step(&mut self, step: &Step, field: u32, count: &mut usize) -> Result<&mut Rule, BoxError> {
        let container = match step {
            Step::Key(_) => FieldType::Map,
            Step::Element(_) | Step::Each => FieldType::Array,
        };
        if !container.is_within(self.kind) {
            return Err(self.mismatch(container));
        }
        self.kind = container;
        let is_each = |step: &Step| *step == Step::Each;
        if self.inside.first().is_some_and(|(other, _)| is_each(other) != is_each(step)) {
            let message = format!(
                "Field {} is used as multikey in one index and as single key in another",
                self.label
            );
            return Err(BoxError::new(ErrorCode::MULTIKEY_INDEX_MISMATCH, message));
        }
        let at = match self.inside.iter().position(|(other, _)| other == step) {
            Some(at) => at,
            None => {
                let outer = if self.label.starts_with('[') {
                    self.label.clone()
                } else {
                    format!("[{}]", u64::from(field) + 1)
                };
                self.inside.push((step.clone(), Rule::of_any(*count, format!("{outer}{step}"))));
                *count += 1;
                self.inside.len() - 1
            }
        };
        Ok(&mut self.inside[at].1)
    }

    /// Demands that the values are of this type as well.
    fn narrow(&mut self, kind: FieldType) -> Result<(), BoxError> {
        if kind.is_within(self.kind) {
            self.kind = kind;
        } else if !self.kind.is_within(kind) {
            return Err(self.mismatch(kind));
        }
        Ok(())
    }

    fn mismatch(&self, kind: FieldType) -> BoxError {
        let message = format!(
            "Field {} has type '{}' in one index, but type '{}' in another",
            self.label,
            self.kind.name(),
            kind.name()
        );
        BoxError::new(ErrorCode::INDEX_PART_TYPE_MISMATCH, message)
    }

    #[inline]
    fn check_type(&self, value: &Value<'_>) -> Result<(), BoxError> {
        let may_be_nil = self.is_nullable && *value == Value::Nil;
        if may_be_nil || self.kind.accepts(value) {
            return Ok(());
        }
        let message = format!(
            "Tuple field {} type does not match one required by operation: expected {}, got {}",
            self.label,
            self.kind.name(),
            value.kind().name()
        );
        Err(BoxError::new(ErrorCode::FIELD_TYPE, message))
    }

    /// Checks what is in a value, and notes the first of what is missing there.
    fn check_inside<'a>(
        &'a self,
        value: &[u8],
        missing: &mut Option<&'a Rule>,
    ) -> Result<(), BoxError> {
        for (step, rule) in &self.inside {
            if *step == Step::Each {
                rule.check_each(value)?;
                continue;
            }
            match path::follow(value, std::slice::from_ref(step)) {
                Some(value) => {
                    rule.check_type(&msgpack::read(&mut { value })?)?;
                    rule.check_inside(value, missing)?;
                }
                None => rule.note_missing(missing),
            }
        }
        Ok(())
    }

    /// Checks each element of an array, as the rule of an element.
    fn check_each(&self, array: &[u8]) -> Result<(), BoxError> {
        let mut rest = array;
        let Value::Array(count) = msgpack::read(&mut rest)? else { return Ok(()) };
        for _ in 0..count {
            self.check_type(&msgpack::read(&mut { rest })?)?;
            let mut missing = None;
            self.check_inside(rest, &mut missing)?;
            if let Some(rule) = missing {
                return Err(rule.missing());
            }
            msgpack::skip(&mut rest)?;
        }
        Ok(())
    }

    /// Notes what is missing if there is no value: what comes first is kept.
    fn note_missing<'a>(&'a self, missing: &mut Option<&'a Rule>) {
        if !self.inside.is_empty() {
            let each = self.inside.iter().filter(|(step, _)| *step != Step::Each);
            each.for_each(|(_, rule)| rule.note_missing(missing));
        } else if !self.is_nullable && missing.is_none_or(|other| self.number < other.number) {
            *missing = Some(self);
        }
    }

    fn missing(&self) -> BoxError {
        let message = format!("Tuple field {} required by space format is missing", self.label);
        BoxError::new(ErrorCode::FIELD_MISSING, message)
    }
}
