//! Random update operations: of every kind, on fields by number, name and path, and invalid ones.

use super::paths;
use super::setup::Space;
use super::value::Value;
use super::values;
use crate::random::rng::Rng;

/// Some operations. `base` is the number of the first field. `fills_nothing`: none sets a field
/// behind others that a tuple may lack.
pub fn random(rng: &mut Rng, space: &Space, base: u64, fills_nothing: bool) -> Value {
    if rng.percent(2) {
        return values::any(rng);
    }
    // Those by paths come first: 2.6 crashes over a path into what another operation has set.
    let mut operations = match rng.percent(25) {
        true => paths::operations(rng, space),
        false => Vec::new(),
    };
    let count = match operations.is_empty() {
        true => *rng.pick(&[0, 1, 1, 1, 1, 2, 2, 3]),
        false => *rng.pick(&[0, 0, 1, 2]),
    };
    for _ in 0..count {
        let next = one(rng, space, base, fills_nothing);
        // 2.6 refuses to compute with what was set, and to set behind what is left, which an upsert
        // does not show.
        let is_hidden = (computes(&next) && operations.iter().any(|it| is_any(it, b"=")))
            || (is_any(&next, b"=!") && operations.iter().any(|it| is_any(it, b"#")));
        if !fills_nothing || !is_hidden {
            operations.push(next);
        }
    }
    Value::Array(operations)
}

fn computes(operation: &Value) -> bool {
    is_any(operation, b"+-&|^:")
}

/// Whether its operator is one of these.
fn is_any(operation: &Value, operators: &[u8]) -> bool {
    code_of(operation).is_some_and(|code| matches!(code, [one] if operators.contains(one)))
}

fn code_of(operation: &Value) -> Option<&[u8]> {
    match operation {
        Value::Array(words) => match words.first() {
            Some(Value::Str(code)) => Some(code),
            _ => None,
        },
        _ => None,
    }
}

fn one(rng: &mut Rng, space: &Space, base: u64, fills_nothing: bool) -> Value {
    if rng.percent(2) {
        return values::any(rng);
    }
    let code = *rng.pick(&["=", "=", "+", "+", "-", "&", "|", "^", ":", "!", "#", "=", "+"]);
    let code = if rng.percent(2) { *rng.pick(&["", "%", "==", "i", "++"]) } else { code };
    // 2.6 does not fill in fields in front of one that is set.
    let is_bound = matches!(code, "=" | "!") && (fills_nothing || rng.percent(90));
    let number = rng.below(if is_bound { space.width_min() + 1 } else { space.fields.len() + 2 });
    let field = match field(rng, space, number, base) {
        // Any value may be a higher number.
        Value::Int(_) if is_bound && fills_nothing => Value::int(number as u64 + base),
        field => field,
    };
    let mut words = vec![Value::text(code), field];
    let kind = space.fields.get(number).map_or("any", |field| field.kind);
    match code {
        "+" | "-" if rng.percent(85) => words.push(values::right(rng, "number")),
        "&" | "|" | "^" if rng.percent(85) => words.push(values::right(rng, "unsigned")),
        ":" => {
            words.push(splice_number(rng));
            words.push(splice_number(rng));
            words.push(if rng.percent(90) { values::text(rng) } else { values::any(rng) });
        }
        "#" if rng.percent(85) => words.push(Value::int(rng.below(4) as u64)),
        "#" => words.push(values::right(rng, "number")),
        "!" if rng.percent(50) => words.push(values::any(rng)),
        _ => words.push(values::of_type(rng, kind)),
    }
    if rng.percent(2) {
        words.pop();
    }
    if rng.percent(1) {
        words.push(Value::int(1u64));
    }
    Value::Array(words)
}

fn splice_number(rng: &mut Rng) -> Value {
    match rng.below(10) {
        0 => values::any(rng),
        1..=3 => Value::int(-(rng.below(5) as i64)),
        _ => Value::int(rng.below(6) as u64),
    }
}

/// A field by its number (from either end) or its name.
fn field(rng: &mut Rng, space: &Space, number: usize, base: u64) -> Value {
    let name = space.fields.get(number).map_or("nothing", |field| field.name);
    match rng.below(20) {
        0..=2 => Value::int(-1 - number as i64),
        3..=5 => Value::text(name),
        7 if rng.percent(30) => values::any(rng),
        7 => Value::int(number as u64),
        _ => Value::int(number as u64 + base),
    }
}
