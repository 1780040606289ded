//! Random JSON paths of update operations, valid and not.
//!
//! Some of what 2.11 answers crashes 2.6, or lets it read what is not there: paths into what
//! another operation has set or inserted. None of these is made.

use super::setup::Space;
use super::value::Value;
use super::values;
use crate::random::rng::Rng;

/// None is the beginning of another one: 2.6 mistakes them.
const KEYS: [&str; 5] = ["x", "y", "a", "b", "é"];
const BROKEN: [&str; 8] = ["[", "[0]", "[1", "[*]", "..x", "['']", "[x]", "["];

/// Some operations by paths into one or two fields.
pub fn operations(rng: &mut Rng, space: &Space) -> Vec<Value> {
    let deep: Vec<usize> = (0..space.fields.len())
        .filter(|at| matches!(space.fields[*at].kind, "any" | "array" | "map"))
        .collect();
    let mut used: Vec<(usize, String)> = Vec::new();
    let mut operations = Vec::new();
    for _ in 0..1 + rng.below(4) {
        let number = match used.last() {
            Some((number, _)) if rng.percent(75) => *number,
            _ if deep.is_empty() || rng.percent(5) => rng.below(space.fields.len() + 1),
            _ => *rng.pick(&deep),
        };
        let path = path(rng);
        // Another one may end in front of it, but not the other way round.
        let plain = path.replace("['", ".").replace("']", "");
        if used.iter().any(|(field, other)| *field == number && plain.starts_with(other)) {
            continue;
        }
        let name = match space.fields.get(number) {
            Some(field) if rng.percent(50) => field.name.to_owned(),
            Some(field) if rng.percent(10) => format!("[\"{}\"]", field.name),
            _ => format!("[{}]", number + 1),
        };
        operations.push(one(rng, &format!("{name}{path}")));
        used.push((number, plain));
    }
    operations
}

/// The steps from a field on.
fn path(rng: &mut Rng) -> String {
    let mut path = String::new();
    for _ in 0..*rng.pick(&[1, 1, 1, 2, 2, 3]) {
        match rng.below(20) {
            0..=9 => path += &format!("[{}]", 1 + rng.below(4)),
            10..=15 => path += &format!(".{}", rng.pick(&KEYS)),
            16 | 17 => path += &format!("['{}']", rng.pick(&KEYS)),
            18 if rng.percent(30) => path += rng.pick::<&str>(&BROKEN),
            _ => path += ".nothing",
        }
    }
    path
}

fn one(rng: &mut Rng, path: &str) -> Value {
    let code = *rng.pick(&["=", "=", "=", "!", "!", "#", "#", "+", "+", "-", "&", "|", "^", ":"]);
    let mut words = vec![Value::text(code), Value::text(path)];
    match code {
        "+" | "-" => words.push(values::right(rng, "number")),
        "&" | "|" | "^" => words.push(values::right(rng, "unsigned")),
        ":" => {
            words.push(Value::int(rng.below(6) as i64 - 2));
            words.push(Value::int(rng.below(6) as i64 - 2));
            words.push(values::text(rng));
        }
        "#" => words.push(Value::int(rng.below(4) as u64)),
        _ => words.push(values::any(rng)),
    }
    Value::Array(words)
}
