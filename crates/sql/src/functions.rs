//! Scalar functions.

use crate::budget::Budget;
use crate::convert::text_of;
use crate::decimals;
use crate::error::{self, Error};
use crate::extensions;
use crate::operators::order;
use crate::value::Value;
use ladon_space::FieldType;
use memchr::memmem;
use std::collections::HashSet;
use std::hash::Hash;

/// A function: its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function(usize);

type Run = fn(&[Value], &Around, &Budget) -> Result<Value, Error>;

/// What a function knows beside its arguments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around {
    pub(crate) collation: u32,
    /// Rows that the session's last statement has changed.
    pub(crate) row_count: u64,
    /// A random number.
    pub(crate) random: u64,
    /// Another one.
    pub(crate) random_too: u64,
    /// Milliseconds since 1970.
    pub(crate) now_ms: u64,
}

struct Facts {
    name: &'static str,
    least: usize,
    most: usize,
    kind: FieldType,
    run: Run,
}

/// So many arguments that only the limit of columns counts.
const MANY: usize = 2_000;
/// Longest result of a function, in bytes.
pub(crate) const BYTES_MAX: usize = 16 << 20;

const fn facts(name: &'static str, count: (usize, usize), kind: FieldType, run: Run) -> Facts {
    Facts { name, least: count.0, most: count.1, kind, run }
}

const FUNCTIONS: [Facts; 36] = [
    facts(ARRAY, (0, MANY), FieldType::Array, extensions::array),
    facts(MAP, (0, 2 * MANY), FieldType::Map, extensions::map),
    facts(ITEM, (2, 2), FieldType::Any, extensions::item),
    facts("ABS", (1, 1), FieldType::Number, abs),
    facts("CHAR", (0, MANY), FieldType::String, char_of),
    facts("CHARACTER_LENGTH", (1, 1), FieldType::Integer, length),
    facts("CHAR_LENGTH", (1, 1), FieldType::Integer, length),
    facts("COALESCE", (2, MANY), FieldType::Scalar, coalesce),
    facts("DATE_PART", (2, 2), FieldType::Integer, extensions::date_part),
    facts("GREATEST", (2, MANY), FieldType::Scalar, greatest),
    facts("HEX", (1, 1), FieldType::String, hex),
    facts("IFNULL", (2, 2), FieldType::Integer, coalesce),
    facts("LEAST", (2, MANY), FieldType::Scalar, least),
    facts("LENGTH", (1, 1), FieldType::Integer, length),
    facts("LIKELIHOOD", (2, 2), FieldType::Boolean, first),
    facts("LIKELY", (1, 1), FieldType::Boolean, first),
    facts("LOWER", (1, 1), FieldType::String, lower),
    facts("NOW", (0, 0), FieldType::Datetime, extensions::now),
    facts("NULLIF", (2, 2), FieldType::Scalar, nullif),
    facts("POSITION", (2, 2), FieldType::Integer, position),
    facts("PRINTF", (0, MANY), FieldType::String, crate::printf::printf),
    facts("QUOTE", (1, 1), FieldType::String, quote),
    facts("RANDOM", (0, 0), FieldType::Integer, random),
    facts("RANDOMBLOB", (1, 1), FieldType::Varbinary, random_blob),
    facts("REPLACE", (3, 3), FieldType::String, replace),
    facts("ROUND", (1, 2), FieldType::Integer, round),
    facts("ROW_COUNT", (0, 0), FieldType::Integer, row_count),
    facts("SOUNDEX", (1, 1), FieldType::String, soundex),
    facts("SUBSTR", (2, 3), FieldType::String, substr),
    facts("TRIM", (1, 3), FieldType::String, trim),
    facts("TYPEOF", (1, 1), FieldType::String, type_of),
    facts("UNICODE", (1, 1), FieldType::String, unicode),
    facts("UNLIKELY", (1, 1), FieldType::Boolean, first),
    facts("UPPER", (1, 1), FieldType::String, upper),
    facts("UUID", (0, 1), FieldType::Uuid, extensions::uuid),
    facts("ZEROBLOB", (1, 1), FieldType::Varbinary, zeroblob),
];

/// What the parser makes of `[a, b]`, `{a: b}` and `a[b]`.
pub(crate) const ARRAY: &str = "[]";
pub(crate) const MAP: &str = "{}";
pub(crate) const ITEM: &str = "a[b]";

/// Names of all functions, for the documentation.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS
        .iter()
        .map(|facts| facts.name)
        .filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// The function with this name, and the type of its result.
///
/// # Errors
/// If it takes another number of arguments.
pub(crate) fn find(name: &str, count: usize) -> Option<Result<(Function, FieldType), Error>> {
    let place = FUNCTIONS.iter().position(|facts| facts.name == name)?;
    let facts = &FUNCTIONS[place];
    if (facts.least..=facts.most).contains(&count) {
        return Some(Ok((Function(place), facts.kind)));
    }
    Some(Err(wrong_count(name, facts.least, facts.most, count)))
}

pub(crate) fn wrong_count(name: &str, least: usize, most: usize, count: usize) -> Error {
    let expected = match (least, most) {
        (least, most) if least == most => least.to_string(),
        (2, MANY) => "at least two".to_owned(),
        (least, MANY) => format!("at least {least}"),
        // The words of Tarantool, which takes two or three.
        (2, 3) if name == "SUBSTR" => "1 or 2".to_owned(),
        (0, 1) => "0 or 1".to_owned(),
        (1, 2) => "1 or 2".to_owned(),
        (least, most) => format!("from {least} to {most}"),
    };
    let message = format!(
        "Wrong number of arguments is passed to {name}(): expected {expected}, got {count}"
    );
    error::make(error::FUNC_WRONG_ARG_COUNT, message)
}

impl Function {
    /// Its value. What it does takes time for each byte of its arguments, which is paid for before.
    ///
    /// # Errors
    /// Those of the function and of the budget.
    pub(crate) fn run(
        self,
        arguments: &[Value],
        around: &Around,
        budget: &Budget,
    ) -> Result<Value, Error> {
        budget.work(arguments.iter().map(Value::heap_bytes).sum())?;
        (FUNCTIONS[self.0].run)(arguments, around, budget)
    }

    pub(crate) fn is(self, name: &str) -> bool {
        FUNCTIONS[self.0].name == name
    }
}

fn chars(value: &Value) -> Vec<char> {
    String::from_utf8_lossy(&text_of(value)).chars().collect()
}

fn limited(bytes: Vec<u8>) -> Result<Value, Error> {
    if bytes.len() > BYTES_MAX {
        return Err(error::execute("string or blob too big"));
    }
    Ok(Value::Str(bytes.into()))
}

fn abs(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    Ok(match &arguments[0] {
        Value::Int(number) => Value::Int(number.abs()),
        Value::Double(number) => Value::Double(number.abs()),
        Value::Null => Value::Null,
        Value::Str(text) => match crate::value::parse_number(text) {
            Some(Value::Int(number)) => Value::Double((number as f64).abs()),
            Some(Value::Double(number)) => Value::Double(number.abs()),
            _ => Value::Double(0.0),
        },
        other => match other.decimal() {
            Some(number) => decimals::abs(number),
            None => return Err(error::inconsistent("number", other.type_shown())),
        },
    })
}

fn char_of(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    let of = |value: &Value| match value {
        Value::Int(code) => u32::try_from(*code).ok().and_then(char::from_u32),
        _ => Some('\0'),
    };
    let text: String = arguments.iter().map(|it| of(it).unwrap_or('\u{fffd}')).collect();
    Ok(Value::text(&text))
}

fn length(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    Ok(match &arguments[0] {
        Value::Null => Value::Null,
        Value::Bin(bytes) => Value::Int(bytes.len() as i128),
        Value::Raw(_) => {
            return Err(error::inconsistent("text or varbinary", arguments[0].type_shown()));
        }
        other => Value::Int(String::from_utf8_lossy(&text_of(other)).chars().count() as i128),
    })
}

fn coalesce(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    Ok(arguments.iter().find(|value| !value.is_null()).cloned().unwrap_or(Value::Null))
}

fn extreme(arguments: &[Value], around: &Around, is_greatest: bool) -> Result<Value, Error> {
    if arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let mut best = &arguments[0];
    for value in &arguments[1..] {
        let order = order(value, best, around.collation);
        if if is_greatest { order.is_gt() } else { order.is_lt() } {
            best = value;
        }
    }
    Ok(best.clone())
}

fn greatest(arguments: &[Value], around: &Around, _: &Budget) -> Result<Value, Error> {
    extreme(arguments, around, true)
}

fn least(arguments: &[Value], around: &Around, _: &Budget) -> Result<Value, Error> {
    extreme(arguments, around, false)
}

/// Two digits of each byte.
fn digits_of(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]);
    halves.map(|half| DIGITS[usize::from(half)]).collect()
}

fn hex(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    if arguments[0].is_null() {
        return Ok(Value::text(""));
    }
    limited(digits_of(&text_of(&arguments[0])))
}

fn first(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    Ok(arguments[0].clone())
}

fn cased(value: &Value, change: impl Fn(&str) -> String) -> Result<Value, Error> {
    match value {
        Value::Null => Ok(Value::Null),
        Value::Bin(_) | Value::Raw(_) => Err(error::inconsistent("text", value.type_shown())),
        other => Ok(Value::text(&change(&String::from_utf8_lossy(&text_of(other))))),
    }
}

fn lower(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    cased(&arguments[0], str::to_lowercase)
}

fn upper(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    cased(&arguments[0], str::to_uppercase)
}

fn nullif(arguments: &[Value], around: &Around, _: &Budget) -> Result<Value, Error> {
    let are_equal = order(&arguments[0], &arguments[1], around.collation).is_eq();
    Ok(if are_equal { Value::Null } else { arguments[0].clone() })
}

fn position(arguments: &[Value], around: &Around, budget: &Budget) -> Result<Value, Error> {
    let (needle, haystack) = (&arguments[0], &arguments[1]);
    if needle.is_null() || haystack.is_null() {
        return Ok(Value::Null);
    }
    let is_text = |value: &Value| matches!(value, Value::Str(_) | Value::Bin(_));
    if let Some(other) = [haystack, needle].into_iter().find(|value| !is_text(value)) {
        return Err(error::inconsistent("text or varbinary", other.type_shown()));
    }
    if needle.type_shown() != haystack.type_shown() {
        return Err(error::inconsistent(needle.type_shown(), haystack.type_shown()));
    }
    let place = match (needle, haystack) {
        (Value::Bin(needle), Value::Bin(haystack)) => memmem::find(haystack, needle),
        _ => {
            let [needle, haystack] = [needle, haystack].map(text_of);
            let needle = String::from_utf8_lossy(&needle);
            let haystack = String::from_utf8_lossy(&haystack);
            match around.collation {
                0 => haystack.find(&*needle).map(|at| haystack[..at].chars().count()),
                id => find_collated(&needle, &haystack, id, budget)?,
            }
        }
    };
    Ok(Value::Int(place.map_or(0, |place| place as i128 + 1)))
}

/// The place of the first part, of as many characters, that is equal by a collation.
fn find_collated(
    needle: &str,
    haystack: &str,
    collation: u32,
    budget: &Budget,
) -> Result<Option<usize>, Error> {
    /// Each comparison is a step at least.
    const STEP_BYTES: usize = 64;
    let equal = crate::operators::strings(collation);
    let ends = haystack.char_indices().map(|(at, _)| at).chain([haystack.len()]);
    let ends = ends.skip(needle.chars().count());
    for (place, ((begin, _), end)) in haystack.char_indices().zip(ends).enumerate() {
        budget.work(STEP_BYTES + end - begin + needle.len())?;
        if equal(needle.as_bytes(), &haystack.as_bytes()[begin..end]).is_eq() {
            return Ok(Some(place));
        }
    }
    Ok(needle.is_empty().then_some(0))
}

fn quote(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    Ok(match &arguments[0] {
        Value::Null => Value::text("NULL"),
        Value::Str(text) => {
            let text = String::from_utf8_lossy(text).replace('\'', "''");
            return limited(format!("'{text}'").into_bytes());
        }
        Value::Bin(bytes) => {
            return limited([b"X'", &digits_of(bytes)[..], b"'"].concat());
        }
        Value::Bool(_) | Value::Double(_) => Value::text(&arguments[0].shown()),
        Value::Raw(bytes) => return limited(ladon_space::whole_text(bytes).into_bytes()),
        other => other.clone(),
    })
}

fn random(_: &[Value], around: &Around, _: &Budget) -> Result<Value, Error> {
    Ok(Value::Int(i128::from(around.random.cast_signed())))
}

fn random_blob(arguments: &[Value], around: &Around, budget: &Budget) -> Result<Value, Error> {
    let Value::Int(length) = &arguments[0] else { return Ok(Value::Null) };
    let length = match usize::try_from(*length) {
        Err(_) | Ok(0) => return Ok(Value::Null),
        Ok(length) if length > BYTES_MAX => return Err(error::execute("string or blob too big")),
        Ok(length) => length,
    };
    budget.work(length)?;
    let mut state = around.random | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    Ok(Value::Bin((0..length).map(|_| next()).collect()))
}

/// A letter and three digits that names which sound alike have in common.
fn soundex(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    const CODES: &[u8; 26] = b"01230120022455012623010202";
    let text = if arguments[0].is_null() { Vec::new() } else { text_of(&arguments[0]) };
    let code = |byte: u8| match byte.to_ascii_uppercase() {
        letter @ b'A'..=b'Z' => CODES[usize::from(letter - b'A')],
        _ => b'0',
    };
    let Some(first) = text.iter().position(u8::is_ascii_alphabetic) else {
        return Ok(Value::text("?000"));
    };
    let mut out = vec![text[first].to_ascii_uppercase()];
    let mut last = code(text[first]);
    for byte in &text[first + 1..] {
        let digit = code(*byte);
        if digit == b'0' {
            last = b'0';
        } else if digit != last {
            out.push(digit);
            last = digit;
        }
        if out.len() == 4 {
            break;
        }
    }
    out.resize(4, b'0');
    Ok(Value::Str(out.into()))
}

fn replace(arguments: &[Value], _: &Around, budget: &Budget) -> Result<Value, Error> {
    if arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let [text, from, to] = [0, 1, 2].map(|at| text_of(&arguments[at]));
    if from.is_empty() {
        return Ok(Value::Str(text.into()));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    for found in memmem::find_iter(&text, &from) {
        out.extend_from_slice(&text[at..found]);
        out.extend_from_slice(&to);
        at = found + from.len();
        if out.len() > BYTES_MAX {
            break;
        }
        budget.work(to.len())?;
    }
    out.extend_from_slice(&text[at..]);
    limited(out)
}

fn round(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    const DIGITS_MAX: i128 = 30;
    let digits = match arguments.get(1) {
        None => 0,
        Some(Value::Null) => return Ok(Value::Null),
        Some(digits) => crate::convert::to_integer(digits)?.clamp(0, DIGITS_MAX),
    };
    let number = match &arguments[0] {
        Value::Null => return Ok(Value::Null),
        Value::Int(number) => return Ok(Value::Double(*number as f64)),
        Value::Double(number) => *number,
        Value::Str(text) => match crate::value::parse_number(text) {
            Some(Value::Int(number)) => number as f64,
            Some(Value::Double(number)) => number,
            _ => 0.0,
        },
        other => match other.decimal() {
            Some(number) => return Ok(decimals::round(number, digits as i32)),
            None => return Err(error::inconsistent("numeric", other.type_shown())),
        },
    };
    let is_whole = number.abs() >= 2f64.powi(52);
    if is_whole {
        return Ok(Value::Double(number));
    }
    if digits == 0 {
        return Ok(Value::Double((number.abs() + 0.5).floor().copysign(number)));
    }
    let text = format!("{number:.*}", digits as usize);
    Ok(Value::Double(text.parse().unwrap_or(number)))
}

fn row_count(_: &[Value], around: &Around, _: &Budget) -> Result<Value, Error> {
    Ok(Value::Int(around.row_count.into()))
}

fn substr(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    if arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let start = crate::convert::to_integer(&arguments[1])?;
    let length = match arguments.get(2) {
        Some(length) => crate::convert::to_integer(length)?,
        None => i128::from(i32::MAX),
    };
    match &arguments[0] {
        Value::Bin(bytes) => Ok(Value::Bin(part(bytes, start, length).into())),
        text => Ok(Value::text(&part(&chars(text), start, length).iter().collect::<String>())),
    }
}

/// From a place on, which counts from the end if it is negative; a negative length reaches before it.
fn part<T>(all: &[T], start: i128, length: i128) -> &[T] {
    let count = all.len() as i128;
    let mut first = match start {
        0 => 0,
        start if start > 0 => start - 1,
        start => count + start,
    };
    let mut length = length;
    if start == 0 && length > 0 {
        length -= 1;
    }
    if length < 0 {
        first += length;
        length = -length;
    }
    let last = (first + length).clamp(0, count) as usize;
    let first = first.clamp(0, last as i128) as usize;
    &all[first..last]
}

fn trim(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    const LEADING: i128 = 1;
    const TRAILING: i128 = 2;
    if arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let side = match arguments.get(1) {
        Some(Value::Int(side)) => *side,
        _ => 0,
    };
    if let Value::Bin(bytes) = &arguments[0] {
        let set = arguments.get(2).map_or_else(|| vec![0], text_of);
        let part = trimmed(bytes, &set, side != TRAILING, side != LEADING);
        return Ok(Value::Bin(part.into()));
    }
    let set = arguments.get(2).map_or_else(|| vec![' '], chars);
    let all = chars(&arguments[0]);
    let part = trimmed(&all, &set, side != TRAILING, side != LEADING);
    Ok(Value::text(&part.iter().collect::<String>()))
}

fn trimmed<'a, T: Copy + Eq + Hash>(
    all: &'a [T],
    set: &[T],
    leading: bool,
    trailing: bool,
) -> &'a [T] {
    let mut part = all;
    let set: HashSet<T> = set.iter().copied().collect();
    while leading && part.first().is_some_and(|it| set.contains(it)) {
        part = &part[1..];
    }
    while trailing && part.last().is_some_and(|it| set.contains(it)) {
        part = &part[..part.len() - 1];
    }
    part
}

fn type_of(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    let kind = arguments[0].kind().unwrap_or(FieldType::Boolean);
    Ok(Value::text(kind.name()))
}

fn unicode(arguments: &[Value], _: &Around, _: &Budget) -> Result<Value, Error> {
    if arguments[0].is_null() {
        return Ok(Value::Null);
    }
    let first = chars(&arguments[0]).first().map(|it| Value::Int(u32::from(*it).into()));
    Ok(first.unwrap_or(Value::Null))
}

fn zeroblob(arguments: &[Value], _: &Around, budget: &Budget) -> Result<Value, Error> {
    let Value::Int(length) = &arguments[0] else { return Ok(Value::Bin([][..].into())) };
    match usize::try_from(*length).unwrap_or(0) {
        length if length > BYTES_MAX => Err(error::execute("string or blob too big")),
        length => {
            budget.work(length)?;
            Ok(Value::Bin(vec![0; length].into()))
        }
    }
}
