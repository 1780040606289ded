//! Update operations by JSON paths: a real Tarantool's replies as data, and random operations
//! against a plain model.

use super::{Val, array, field, index_def, map, part, space_def};
use crate::Space;
use ladon_msgpack::{self as msgpack, DEPTH_MAX, Value, write};
use ladon_testkit::Random;

fn space(fields: &[(&str, &str)]) -> Space {
    let format = fields.iter().map(|(name, kind)| field(name, kind, *name != "id")).collect();
    let mut space = Space::new(space_def(format).expect("a definition"));
    let def = index_def(space.def(), 0, "tree", true, vec![part(0, "unsigned")]);
    space.create_index(def.expect("a definition")).expect("the first index");
    space
}

fn numbers(numbers: &[u64]) -> Val {
    Val::Array(numbers.iter().map(|number| (*number).into()).collect())
}

/// `[1, {x: 1, y: [1, 2, 3]}, [10, 20, [30, 40]]]`.
fn tuple() -> Vec<Val> {
    let c = Val::Array(vec![10.into(), 20.into(), numbers(&[30, 40])]);
    vec![1.into(), map(&[("x", 1.into()), ("y", numbers(&[1, 2, 3]))]), c]
}

/// An operation out of text: operator, path, and a number, string or array.
fn op(text: &str) -> Val {
    let words: Vec<&str> = text.split(' ').collect();
    let value = |word: &str| match word.strip_prefix('\'') {
        Some(text) => text.into(),
        None if word == "[7]" => numbers(&[7]),
        None if word == "{u}" => map(&[("u", 5.into())]),
        None => word.parse::<u64>().expect("a number").into(),
    };
    let [operator, path] = [words[0], words[1]];
    let place = match path.parse::<u64>() {
        Ok(number) => number.into(),
        Err(_) => path.into(),
    };
    Val::Array(
        [vec![operator.into(), place], words[2..].iter().map(|it| value(it)).collect()].concat(),
    )
}

fn update(tuple: &[Val], operations: &[Val]) -> Result<String, String> {
    let mut space = space(&[("id", "unsigned"), ("b", "any"), ("c", "any"), ("d.e", "any")]);
    space.replace(&array(tuple)).expect("a tuple");
    match space.update(0, &array(&[1.into()]), &array(operations), 1) {
        Ok(written) => Ok(written.new.map_or("nil".to_owned(), |new| format!("{new:?}"))),
        Err(error) => Err(format!("{} {}", error.code.0, error.message)),
    }
}

const CASES: [(&str, &str); 69] = [
    ("= b.x 5", r#"[1, {"x": 5, "y": [1, 2, 3]}, [10, 20, [30, 40]]]"#),
    ("= b.z 5", r#"[1, {"z": 5, "x": 1, "y": [1, 2, 3]}, [10, 20, [30, 40]]]"#),
    ("! b.z 5", r#"[1, {"z": 5, "x": 1, "y": [1, 2, 3]}, [10, 20, [30, 40]]]"#),
    ("! b.x 5", "29 Field 'b.x' UPDATE error: the key exists already"),
    ("# b.x 1", r#"[1, {"y": [1, 2, 3]}, [10, 20, [30, 40]]]"#),
    ("# b.x 2", "29 Field 'b.x' UPDATE error: can delete only 1 field from a map in a row"),
    ("# b.q 1", "201 Field ''b.q'' was not found in the tuple"),
    ("# c[3][1] 1", r#"[1, {"x": 1, "y": [1, 2, 3]}, [10, 20, [40]]]"#),
    ("# c[3][1] 9", r#"[1, {"x": 1, "y": [1, 2, 3]}, [10, 20, []]]"#),
    ("# c[9] 1", "201 Field ''c[9]'' was not found in the tuple"),
    ("# b.y[1] 0", "29 Field 'b.y[1]' UPDATE error: cannot delete 0 fields"),
    ("+ c[1] 1", r#"[1, {"x": 1, "y": [1, 2, 3]}, [11, 20, [30, 40]]]"#),
    ("- [3][1] 1", r#"[1, {"x": 1, "y": [1, 2, 3]}, [9, 20, [30, 40]]]"#),
    ("| [3][3][2] 3", r#"[1, {"x": 1, "y": [1, 2, 3]}, [10, 20, [30, 43]]]"#),
    ("^ c[1] 3", r#"[1, {"x": 1, "y": [1, 2, 3]}, [9, 20, [30, 40]]]"#),
    ("& c[1] 3", r#"[1, {"x": 1, "y": [1, 2, 3]}, [2, 20, [30, 40]]]"#),
    ("+ [3][1].x 1", "201 Field ''[3][1].x'' was not found in the tuple"),
    ("+ [3].x 1", "201 Field ''[3].x'' was not found in the tuple"),
    ("= [3].x 1", "29 Field '[3].x' UPDATE error: can not access by key a non-map field"),
    ("= b[1] 1", "29 Field 'b[1]' UPDATE error: can not access by index a non-array field"),
    ("= b.y[4] 1", r#"[1, {"x": 1, "y": [1, 2, 3, 1]}, [10, 20, [30, 40]]]"#),
    ("! b.y[2] 9", r#"[1, {"x": 1, "y": [1, 9, 2, 3]}, [10, 20, [30, 40]]]"#),
    ("= b.y[5] 1", "201 Field ''b.y[5]'' was not found in the tuple"),
    ("= b.y[0] 1", "29 Field 'b.y[0]' UPDATE error: invalid JSON in position 5"),
    ("= b.y[*] 1", "29 Field 'b.y[*]' UPDATE error: invalid JSON in position 5"),
    ("= [*] 1", "201 Field '[*]' was not found in the tuple"),
    ("= b.y[ 1", "29 Field 'b.y[' UPDATE error: invalid JSON in position 4"),
    ("= b.y[1 1", "29 Field 'b.y[1' UPDATE error: invalid JSON in position 6"),
    ("= b..y 1", "29 Field 'b..y' UPDATE error: invalid JSON in position 3"),
    ("= b.q.u.z[ 1", "201 Field ''b.q.u.z['' was not found in the tuple"),
    ("= b.q[ 1", "29 Field 'b.q[' UPDATE error: invalid JSON in position 4"),
    ("= zz.y 1", "201 Field 'zz.y' was not found in the tuple"),
    ("= [9].y 1", "201 Field ''[9].y'' was not found in the tuple"),
    (
        "= [9] 1",
        "[1, {\"x\": 1, \"y\": [1, 2, 3]}, [10, 20, [30, 40]], null, null, null, null, null, 1]",
    ),
    ("= .b 1", "[1, 1, [10, 20, [30, 40]]]"),
    ("= d.e 1", r#"[1, {"x": 1, "y": [1, 2, 3]}, [10, 20, [30, 40]], 1]"#),
    ("= d.e.f 1", "201 Field 'd.e.f' was not found in the tuple"),
    ("= [\"d.e\"] 1", r#"[1, {"x": 1, "y": [1, 2, 3]}, [10, 20, [30, 40]], 1]"#),
    (
        ": c[1] 1 1 'x",
        "26 Argument type in operation ':' on field 'c[1]' does not match field type: expected a string",
    ),
    (
        "& c[1] 'x",
        "26 Argument type in operation '&' on field 'c[1]' does not match field type: expected a positive integer",
    ),
    ("= b.x 1;= b.x 2", "29 Field 'b.x' UPDATE error: double update of the same field"),
    ("= b.x 1;= b.z 2", r#"[1, {"z": 2, "x": 1, "y": [1, 2, 3]}, [10, 20, [30, 40]]]"#),
    (
        "! b.z 1;! b.w 2;= b.x 3;+ b.y[1] 4",
        r#"[1, {"y": [5, 2, 3], "w": 2, "z": 1, "x": 3}, [10, 20, [30, 40]]]"#,
    ),
    ("= b.x 1;= b.y[1] 2;# b.x 1;! b.x 7", r#"[1, {"x": 7, "y": [2, 2, 3]}, [10, 20, [30, 40]]]"#),
    ("+ c[1] 1;+ c[1]..y 1", "29 Field 'c[1]..y' UPDATE error: invalid JSON in position 6"),
    ("= b.x 1;= b.x..y 1", "29 Field 'b.x..y' UPDATE error: invalid JSON in position 5"),
    ("+ b.x 1;= b.x..y 1", "29 Field 'b.x..y' UPDATE error: invalid JSON in position 5"),
    ("! c[1] 1;! c[1] 2", "29 Field 'c[1]' UPDATE error: double update of the same field"),
    ("! c[1] 1;! c[2] 2;! c[1] 3", r#"[1, {"x": 1, "y": [1, 2, 3]}, [3, 1, 2, 10, 20, [30, 40]]]"#),
    ("# c[1] 1;# c[1] 1", "29 Field 'c[1]' UPDATE error: double update of the same field"),
    ("+ c[3][1] 1;+ c[3][2] 1;- c[1] 1", r#"[1, {"x": 1, "y": [1, 2, 3]}, [9, 20, [31, 41]]]"#),
    ("+ c[3][1] 1;+ c 1", "29 Field 'c' UPDATE error: double update of the same field"),
    ("! c [7];+ c[1] 1", r#"[1, {"x": 1, "y": [1, 2, 3]}, [8], [10, 20, [30, 40]]]"#),
    ("= c [7];+ c[1] 1", r#"[1, {"x": 1, "y": [1, 2, 3]}, [8]]"#),
    ("+ c[1] 1;= c 5", r#"[1, {"x": 1, "y": [1, 2, 3]}, 5]"#),
    ("+ c[1] 1;# c 1", r#"[1, {"x": 1, "y": [1, 2, 3]}]"#),
    (
        "= b.y[1] 1;= b.y 2",
        "29 Field 'b.y' UPDATE error: can not update array by non-integer index",
    ),
    ("= b {u};= b.u 1;= b 1", "[1, 1, [10, 20, [30, 40]]]"),
    (
        "+ b.y[1] 1;+ b.y[2] 1;= b.y.z 2",
        "29 Field 'b.y.z' UPDATE error: can't update an array by a non-numeric index",
    ),
    (
        "+ b.y[1] 1;+ b.x 1;= b[2] 2",
        "29 Field 'b[2]' UPDATE error: can't update a map by not a string key",
    ),
    (
        "+ b.y[1] 1;+ b.x 1;= b.y[4] 2;= b.y[4] 3",
        r#"[1, {"y": [2, 2, 3, 3], "x": 2}, [10, 20, [30, 40]]]"#,
    ),
    ("= b.x {u};+ b.x.u 1", "29 Field 'b.x.u' UPDATE error: double update of the same field"),
    ("! b.z {u};+ b.z.u 1", r#"[1, {"z": {"u": 6}, "x": 1, "y": [1, 2, 3]}, [10, 20, [30, 40]]]"#),
    ("! c[4] [7];+ c[4][1] 1", r#"[1, {"x": 1, "y": [1, 2, 3]}, [10, 20, [30, 40], [8]]]"#),
    (
        "= b.z 5;= b.w 6;+ b.z 1",
        r#"[1, {"w": 6, "z": 6, "x": 1, "y": [1, 2, 3]}, [10, 20, [30, 40]]]"#,
    ),
    ("= b.x 5;= b.z 6;+ b.x 1", "29 Field 'b.x' UPDATE error: double update of the same field"),
    ("+ b.x 1;= b.y[1] 7;# b.q 1", r#"[1, {"y": [7, 2, 3], "x": 2}, [10, 20, [30, 40]]]"#),
    (
        "+ c[3][1] 1;+ c[3][2] 1;+ c[3][1] 1",
        "29 Field 'c[3][1]' UPDATE error: double update of the same field",
    ),
    // A step that begins as another one's text is another step.
    (
        "= b.y[1] 5;= b.y[2] 6;= b.yz 7",
        r#"[1, {"yz": 7, "y": [5, 6, 3], "x": 1}, [10, 20, [30, 40]]]"#,
    ),
];

#[test]
fn operations_by_path_reply_as_tarantool_does() {
    for (operations, expected) in CASES {
        let parsed: Vec<Val> = operations.split(';').map(op).collect();
        let reply = update(&tuple(), &parsed).unwrap_or_else(|error| error);
        assert_eq!(reply, expected, "{operations}");
    }
}

#[test]
fn keys_that_were_named_come_first() {
    let letters: Vec<String> = (0..40).map(|at| format!("k{at}")).collect();
    let pairs: Vec<(&str, Val)> = letters.iter().map(|key| (key.as_str(), 1.into())).collect();
    let tuple = [1.into(), map(&pairs), Val::Nil];
    let operations = ["+ b.k1 1", "= b.k30 5", "# b.k20 1", "= b.new 6", "+ b.k2 1", "! b.k20 8"];
    let reply = update(&tuple, &operations.map(op)).expect("a tuple");
    let named = r#"[1, {"k20": 8, "k2": 2, "new": 6, "k30": 5, "k1": 2, "#;
    let untouched = reply.strip_prefix(named).unwrap_or_else(|| panic!("{reply}"));
    let mut kept = (0..40).filter(|at| ![1, 2, 20, 30].contains(at));
    assert!(kept.all(|at| untouched.contains(&format!("\"k{at}\": 1"))), "{reply}");
    assert_eq!(untouched.matches(": 1").count(), 36, "{reply}");
}

#[test]
fn rules_of_nested_values_hold_after_an_update() {
    let mut space = space(&[("id", "unsigned"), ("b", "map")]);
    let place = map(&[("field", 1.into()), ("type", "double".into()), ("path", "x[1]".into())]);
    let def = index_def(space.def(), 1, "tree", true, vec![place]);
    space.create_index(def.expect("a definition")).expect("an index");
    let tuple = |id: u64, x: f64| {
        let mut out = vec![0x92];
        write::uint(&mut out, id);
        write::map(&mut out, 1);
        write::str(&mut out, b"x");
        write::array(&mut out, 1);
        write::double(&mut out, x);
        out
    };
    space.insert(&tuple(1, 1.5)).expect("a tuple");
    space.insert(&tuple(2, 3.5)).expect("a tuple");
    let mut update = |id: u64, operation: &str| match space.update(
        0,
        &array(&[id.into()]),
        &array(&[op(operation)]),
        1,
    ) {
        Ok(written) => format!("{:?}", written.new.expect("a tuple")),
        Err(error) => format!("{} {}", error.code.0, error.message),
    };
    // A float's sum is written as the double that the index demands.
    assert_eq!(update(1, "+ b.x[1] 1"), r#"[1, {"x": [2.5]}]"#);
    assert!(update(1, "+ b.x[1] 1").starts_with("3 Duplicate key exists"));
    assert_eq!(
        update(1, "= b.x[1] 'a"),
        "23 Tuple field [2][\"x\"][1] type does not match one required by operation: \
         expected double, got string"
    );
    assert_eq!(
        update(1, "# b.x 1"),
        "39 Tuple field [2][\"x\"][1] required by space format is missing"
    );
    assert_eq!(update(2, "- b.x[1] 3"), r#"[2, {"x": [0.5]}]"#);
    let key = |x: f64| {
        let mut out = vec![0x91];
        write::double(&mut out, x);
        out
    };
    let found = |x: f64| space.get(1, &key(x)).expect("a key").is_some();
    assert_eq!([found(2.5), found(0.5), found(1.5), found(3.5)], [true, true, false, false]);
}

#[test]
fn deep_paths_and_many_operations_are_bounded() {
    let mut deep = Val::from(1);
    for _ in 0..DEPTH_MAX - 2 {
        deep = Val::Array(vec![deep]);
    }
    let path = |steps: usize| format!("b{}", "[1]".repeat(steps));
    let tuple = [1.into(), deep];
    let levels = DEPTH_MAX - 2;
    assert!(update(&tuple, &[op(&format!("+ {} 1", path(levels)))]).is_ok());
    let missing = update(&tuple, &[op(&format!("+ {} 1", path(levels + 1)))]);
    assert!(missing.is_err_and(|error| error.starts_with("201 ")));
    let endless = update(&tuple, &[op(&format!("+ {} 1", path(100_000)))]);
    assert!(endless.is_err_and(|error| error.starts_with("201 ") && error.len() < 1000));
    // Each makes the value one level deeper, until it is deeper than values may be.
    let deeper = op(&format!("= {} [7]", path(levels)));
    assert!(update(&tuple, std::slice::from_ref(&deeper)).is_ok());
    let again =
        Val::Array(vec!["=".into(), path(levels).as_str().into(), Val::Array(vec![numbers(&[7])])]);
    let error = update(&tuple, &[again]).expect_err("it is too deep");
    assert!(error.starts_with("20 Invalid MsgPack"), "{error}");
    // Thousands of operations, each of which passes a large value.
    let large = Val::Array(vec![Val::Array(vec![7.into(); 900_000])]);
    let many: Vec<Val> = (0..4000).map(|_| op("+ b[1].x 1")).collect();
    let error = update(&[1.into(), large], &many[..1]).expect_err("there is no key");
    assert!(error.starts_with("201 "), "{error}");
    let mut space = space(&[("id", "unsigned"), ("b", "any")]);
    let wide = Val::Array(vec![Val::Array(vec![7.into(); 900_000]), 7.into()]);
    space.replace(&array(&[1.into(), wide])).expect("a tuple");
    let far: Vec<Val> = (0..4000).map(|_| op("= b[2].x 1")).collect();
    let error = space.upsert(&array(&[1.into(), Val::Nil]), &array(&far), 1);
    let error = error.expect_err("they go too far").message;
    assert!(error.contains("walk through too many nested values"), "{error}");
}

/// A step of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(&'static str),
    Index(usize),
}

fn read(bytes: &mut &[u8]) -> Val {
    match msgpack::read(bytes).expect("a value") {
        Value::Uint(value) => Val::Uint(value),
        Value::Int(value) => Val::Int(value),
        Value::Str(value) => Val::Str(String::from_utf8_lossy(value).into_owned()),
        Value::Array(count) => Val::Array((0..count).map(|_| read(bytes)).collect()),
        Value::Map(count) => {
            let mut pairs: Vec<(String, Val)> = (0..count)
                .map(|_| match read(bytes) {
                    Val::Str(key) => (key, read(bytes)),
                    other => panic!("a key {other:?}"),
                })
                .collect();
            pairs.sort();
            Val::Map(pairs)
        }
        other => panic!("{other:?}"),
    }
}

/// Does an operation as its description says; false if it cannot be done.
fn model(root: &mut Val, operator: &str, path: &[Step], argument: &Val) -> bool {
    let Some((last, steps)) = path.split_last() else { return false };
    let mut parent = root;
    for step in steps {
        let next = match (parent, step) {
            (Val::Array(items), Step::Index(at)) => items.get_mut(*at),
            (Val::Map(pairs), Step::Key(key)) => {
                pairs.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            _ => None,
        };
        let Some(next) = next else { return false };
        parent = next;
    }
    match (parent, last) {
        (Val::Array(items), Step::Index(at)) => {
            let has = *at < items.len();
            match operator {
                "=" if has => items[*at] = argument.clone(),
                "=" | "!" if *at <= items.len() => items.insert(*at, argument.clone()),
                "#" if has => drop(items.drain(*at..(*at + 1).min(items.len()))),
                "+" if has => return add(&mut items[*at], argument),
                _ => return false,
            }
            true
        }
        (Val::Map(pairs), Step::Key(key)) => {
            let found = pairs.iter().position(|(name, _)| name == key);
            match (operator, found) {
                ("=", Some(at)) => pairs[at].1 = argument.clone(),
                ("=" | "!", None) => pairs.push(((*key).to_owned(), argument.clone())),
                ("#", Some(at)) => drop(pairs.remove(at)),
                ("+", Some(at)) => return add(&mut pairs[at].1, argument),
                _ => return false,
            }
            true
        }
        _ => false,
    }
}

fn add(value: &mut Val, argument: &Val) -> bool {
    match (&mut *value, argument) {
        (Val::Uint(left), Val::Uint(right)) => *left += right,
        _ => return false,
    }
    true
}

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

fn random_value(random: &mut Random, depth: u64) -> Val {
    match random.below(if depth == 0 { 1 } else { 5 }) {
        1 | 2 => {
            Val::Array((0..random.below(4)).map(|_| random_value(random, depth - 1)).collect())
        }
        3 | 4 => {
            let mut pairs = Vec::new();
            for key in KEYS {
                if random.below(2) == 0 {
                    pairs.push((key.to_owned(), random_value(random, depth - 1)));
                }
            }
            Val::Map(pairs)
        }
        _ => random.below(100).into(),
    }
}

/// A path that mostly leads somewhere.
fn random_path(random: &mut Random, root: &Val) -> (String, Vec<Step>) {
    let (mut text, mut steps) = (String::from("b"), Vec::new());
    let mut value = root;
    loop {
        let is_array = match value {
            Val::Array(_) => !random.chance(1, 30),
            Val::Map(_) => random.chance(1, 30),
            _ => random.chance(1, 2),
        };
        let next = if is_array {
            let at = random.below(4) as usize;
            text += &format!("[{}]", at + 1);
            steps.push(Step::Index(at));
            match value {
                Val::Array(items) => items.get(at),
                _ => None,
            }
        } else {
            let key = random.pick(&KEYS);
            text += &match random.below(3) {
                0 => format!("[\"{key}\"]"),
                _ => format!(".{key}"),
            };
            steps.push(Step::Key(key));
            match value {
                Val::Map(pairs) => {
                    pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value)
                }
                _ => None,
            }
        };
        match next {
            Some(next @ (Val::Array(_) | Val::Map(_))) if random.chance(4, 5) => value = next,
            _ if random.chance(1, 40) => {}
            _ => return (text, steps),
        }
    }
}

/// Some operations are refused that could be done: those on what another one has done, and those on
/// an array or map in which others have changed something (where words are as if it was not there).
const REFUSED: [&str; 3] = ["double update", "can not update", "can't update"];

#[test]
fn random_operations_do_what_a_plain_model_does() {
    let mut random = Random::new(12);
    let (mut done, mut failed, mut several) = (0, 0, 0);
    for round in 0..60_000 {
        let value = random_value(&mut random, 4);
        let (mut strict, mut lenient) = (value.clone(), value.clone());
        let (mut is_possible, mut operations) = (true, Vec::new());
        let mut paths: Vec<Vec<Step>> = Vec::new();
        for _ in 0..1 + random.below(5) {
            let operator = ["=", "=", "!", "#", "+", "+"][random.below(6) as usize];
            let (text, path) = random_path(&mut random, &lenient);
            let argument = match operator {
                "#" => 1.into(),
                "+" => random.below(10).into(),
                _ => random_value(&mut random, 2),
            };
            is_possible &= model(&mut strict, operator, &path, &argument);
            model(&mut lenient, operator, &path, &argument);
            is_possible &= !paths.iter().any(|other| other.starts_with(&path));
            paths.push(path);
            operations.push(Val::Array(vec![operator.into(), text.as_str().into(), argument]));
        }
        let shown = format!("round {round}: {value:?} {operations:?}");
        let mut space = space(&[("id", "unsigned"), ("b", "any")]);
        space.replace(&array(&[1.into(), value])).expect("a tuple");
        match space.update(0, &array(&[1.into()]), &array(&operations), 1) {
            Ok(written) => {
                let new = written.new.expect("a tuple");
                let mut normal = Vec::new();
                Val::Array(vec![1.into(), lenient]).write(&mut normal);
                assert_eq!(read(&mut new.bytes()), read(&mut &normal[..]), "{shown}");
                done += 1;
                several += u32::from(operations.len() > 2);
            }
            Err(error) => {
                let is_refused = REFUSED.iter().any(|part| error.message.contains(part));
                assert!(is_refused || !is_possible, "{shown}: {error}");
                failed += 1;
            }
        }
    }
    assert!(done > 5_000 && failed > 5_000 && several > 500, "{done} {failed} {several}");
}
