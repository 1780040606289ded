//! Functions: what clients load and call, and what it means.
//!
//! A library's code has a value unlike any other, which its functions show. So a reply says which
//! load of a library it comes from, and the oracle knows whether that load may be forgotten, or may
//! have come so early. A call's changes are in the log together or not at all, as a script's are.
//!
//! Two of the libraries have a function of the same name: one cannot be loaded beside the other.

use crate::oracle_commands::{Call, State, apply};
use ladon_resp::client::Value;
use ladon_testkit::Random;
use std::collections::{BTreeMap, BTreeSet};

/// A library: its name, and the names and bodies of its functions. `v` is the library's value.
struct Kind {
    name: &'static str,
    functions: &'static [(&'static str, &'static str)],
}

const SHARED: &str = "f0";

const KINDS: [Kind; 3] = [
    Kind {
        name: "L0",
        functions: &[(
            SHARED,
            "redis.call('incrby', keys[1], '5') redis.call('set', keys[2], v .. args[1]) return v",
        )],
    },
    Kind { name: "L1", functions: &[("f1", "return {v, redis.call('get', keys[1])}")] },
    Kind {
        name: "L2",
        functions: &[
            // Somebody may wait for the list, which is not declared.
            (
                "f2",
                "redis.call('rpush', args[1], v, args[2]) return redis.error_reply('ERR ' .. v)",
            ),
            (SHARED, "redis.call('set', keys[2], v) return redis.call('get', keys[2])"),
        ],
    },
];

/// Libraries by their names: their code.
pub(crate) type Libraries = BTreeMap<Vec<u8>, Vec<u8>>;

/// `RDB_OPCODE_FUNCTION2`.
const LIBRARY: u8 = 245;

/// A call that changes libraries or runs a function; `value` is unlike any other.
pub(crate) fn call(random: &mut Random, value: &str) -> Call {
    let kind = &KINDS[random.below(3) as usize];
    let key = |random: &mut Random| format!("k{}", random.below(4));
    let (a, b) = (key(random), key(random));
    let list = if random.chance(1, 2) { "w0" } else { "l0" };
    let code = code(kind, value);
    let words: Vec<&[u8]> = match random.below(20) {
        0..2 => vec![b"FUNCTION", b"LOAD", &code],
        2..5 => vec![b"FUNCTION", b"LOAD", b"REPLACE", &code],
        5 => vec![b"FUNCTION", b"DELETE", kind.name.as_bytes()],
        6 if random.chance(1, 3) => vec![b"FUNCTION", b"FLUSH"],
        6 => vec![b"FUNCTION", b"DUMP"],
        7 => {
            let mut codes = vec![code];
            if random.chance(1, 2) {
                codes.push(self::code(&KINDS[random.below(3) as usize], &format!("{value}+")));
            }
            let payload = payload(codes.iter());
            let policy = ["FLUSH", "APPEND", "REPLACE"][random.below(3) as usize];
            let words = [b"FUNCTION", &b"RESTORE"[..], &payload, policy.as_bytes()];
            return words.map(<[u8]>::to_vec).to_vec();
        }
        8..14 => vec![b"FCALL", b"f0", b"2", b"n0", a.as_bytes(), value.as_bytes()],
        14 | 15 => vec![b"FCALL", b"f1", b"1", a.as_bytes(), b.as_bytes()],
        16 => vec![b"FCALL_RO", b"f1", b"1", b.as_bytes(), a.as_bytes()],
        _ => vec![b"FCALL", b"f2", b"0", list.as_bytes(), value.as_bytes()],
    };
    words.into_iter().map(<[u8]>::to_vec).collect()
}

fn code(kind: &Kind, value: &str) -> Vec<u8> {
    let mut code = format!("#!lua name={}\nlocal v = '{value}'", kind.name);
    for (name, body) in kind.functions {
        let flags = if body.starts_with("return {") { "flags={'no-writes'}, " } else { "" };
        let callback = format!("callback=function(keys, args) {body} end");
        code += &format!(" redis.register_function{{function_name='{name}', {flags}{callback}}}");
    }
    code.into_bytes()
}

/// What library it is the code of, and its value.
fn read(code: &[u8]) -> (&'static Kind, Vec<u8>) {
    let kind = KINDS.iter().find(|kind| code[11..].starts_with(kind.name.as_bytes()));
    let mut words = code.split(|&byte| byte == b'\'');
    let value = words.nth(1).unwrap_or_default().to_vec();
    (kind.expect("one of these"), value)
}

/// A payload of `FUNCTION DUMP`.
fn payload<'c>(codes: impl Iterator<Item = &'c Vec<u8>>) -> Vec<u8> {
    let mut payload = Vec::new();
    for code in codes {
        // Long enough for the second form of a length, and short enough.
        assert!((64..1 << 14).contains(&code.len()));
        payload.extend([LIBRARY, 0x40 | (code.len() >> 8) as u8, code.len() as u8]);
        payload.extend_from_slice(code);
    }
    ladon_rdb::payload::seal(&mut payload, ladon_rdb::Version::Redis10);
    payload
}

/// The codes in a payload.
fn unpack(payload: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = payload;
    let mut codes = Vec::new();
    while let [LIBRARY, high, low, body @ ..] = rest {
        let (code, behind) = body.split_at(usize::from(high & 0x3f) << 8 | usize::from(*low));
        codes.push(code.to_vec());
        rest = behind;
    }
    codes
}

/// Whether a function runs with this call.
pub(crate) fn is_run(call: &Call) -> bool {
    matches!(call[0].as_slice(), b"FCALL" | b"FCALL_RO")
}

/// Whether it has surely changed libraries.
pub(crate) fn surely_wrote(call: &Call, reply: &Value) -> bool {
    let is_load = matches!(call[1].as_slice(), b"LOAD" | b"DELETE");
    is_load && !matches!(reply, Value::Error(_))
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn error(text: impl Into<Vec<u8>>) -> Value {
    Value::Error(text.into())
}

/// Changes the libraries, or shows them.
pub(crate) fn manage(libraries: &mut Libraries, call: &Call) -> Value {
    match call[1].as_slice() {
        b"LOAD" => {
            let code = call.last().expect("a code");
            let name = read(code).0.name;
            if call.len() == 3 && libraries.contains_key(name.as_bytes()) {
                return error(format!("ERR Library '{name}' already exists"));
            }
            if let Some(taken) = taken(libraries, std::slice::from_ref(code)) {
                return taken;
            }
            libraries.insert(name.into(), code.clone());
            Value::Bulk(name.into())
        }
        b"DELETE" => match libraries.remove(&call[2]) {
            Some(_) => ok(),
            None => error("ERR Library not found"),
        },
        b"FLUSH" => {
            libraries.clear();
            ok()
        }
        b"DUMP" => Value::Bulk(payload(libraries.values())),
        b"RESTORE" => restore(libraries, &unpack(&call[2]), &call[3]),
        other => unreachable!("FUNCTION {} is not modelled", other.escape_ascii()),
    }
}

fn restore(libraries: &mut Libraries, codes: &[Vec<u8>], policy: &[u8]) -> Value {
    let kinds: Vec<&Kind> = codes.iter().map(|code| read(code).0).collect();
    let mut names = BTreeSet::new();
    if let Some(twice) = kinds.iter().find(|kind| !names.insert(kind.name)) {
        return error(format!("ERR Library '{}' already exists", twice.name));
    }
    if names.contains("L0") && names.contains("L2") {
        return error(format!("ERR Function {SHARED} already exists"));
    }
    if policy == b"FLUSH" {
        libraries.clear();
    }
    if policy == b"APPEND"
        && let Some(there) = kinds.iter().find(|it| libraries.contains_key(it.name.as_bytes()))
    {
        return error(format!("ERR Library {} already exists", there.name));
    }
    if let Some(taken) = taken(libraries, codes) {
        return taken;
    }
    let new = kinds.iter().zip(codes).map(|(kind, code)| (kind.name.into(), code.clone()));
    libraries.extend(new);
    ok()
}

/// The error if a library that would stay has a function of one of these.
fn taken(libraries: &Libraries, codes: &[Vec<u8>]) -> Option<Value> {
    let new: Vec<&str> = codes.iter().map(|code| read(code).0.name).collect();
    let has_shared = |name: &str| matches!(name, "L0" | "L2");
    let stays = |name: &&Vec<u8>| new.iter().all(|new| new.as_bytes() != **name);
    let mut stay = libraries.keys().filter(stays);
    let clash = new.iter().any(|name| has_shared(name))
        && stay.any(|name| std::str::from_utf8(name).is_ok_and(has_shared));
    clash.then(|| error(format!("ERR Function {SHARED} already exists")))
}

/// Runs a function on the data, command by command.
pub(crate) fn run(state: &mut State, call: &Call) -> Value {
    let name = std::str::from_utf8(&call[1]).unwrap_or_default();
    let found = state.libraries.values().map(|code| read(code)).find_map(|(kind, value)| {
        let function = kind.functions.iter().find(|(function, _)| *function == name)?;
        Some((kind.name, function.0, value))
    });
    let Some((library, function, value)) = found else {
        return error("ERR Function not found");
    };
    let mut run = |words: &[&[u8]]| apply(state, &words.iter().map(|word| word.to_vec()).collect());
    match (library, function) {
        ("L0", SHARED) => {
            run(&[b"INCRBY", &call[3], b"5"]);
            run(&[b"SET", &call[4], &[&value[..], &call[5]].concat()]);
            Value::Bulk(value)
        }
        ("L2", SHARED) => {
            run(&[b"SET", &call[4], &value]);
            run(&[b"GET", &call[4]])
        }
        ("L1", _) => {
            let found = run(&[b"GET", &call[3]]);
            Value::Array(vec![Value::Bulk(value), found])
        }
        _ => {
            run(&[b"RPUSH", &call[3], &value, &call[4]]);
            error([b"ERR ", &value[..]].concat())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&[u8]]) -> Call {
        words.iter().map(|word| word.to_vec()).collect()
    }

    #[test]
    fn a_payload_has_what_was_put_into_it() {
        let codes = [code(&KINDS[0], "1:1"), code(&KINDS[2], "1:2")];
        let payload = payload(codes.iter());
        assert_eq!(unpack(&payload), codes);
        assert_eq!(read(&codes[1]).1, b"1:2");
        assert_eq!(ladon_rdb::payload::version_of(&payload), Some(10));
    }

    #[test]
    fn a_call_shows_the_load_that_it_comes_from() {
        let mut state = State::new();
        let call = words(&[b"FCALL", b"f0", b"2", b"n0", b"k0", b"x"]);
        assert_eq!(run(&mut state, &call), error("ERR Function not found"));
        for value in ["1:1", "1:2"] {
            let load = words(&[b"FUNCTION", b"LOAD", b"REPLACE", &code(&KINDS[0], value)]);
            assert_eq!(manage(&mut state.libraries, &load), Value::Bulk(b"L0".to_vec()));
            assert_eq!(run(&mut state, &call), Value::Bulk(value.into()));
        }
    }

    #[test]
    fn two_libraries_do_not_have_one_function() {
        let mut libraries = Libraries::new();
        let load = |libraries: &mut Libraries, at: usize| {
            manage(libraries, &words(&[b"FUNCTION", b"LOAD", &code(&KINDS[at], "1:1")]))
        };
        assert_eq!(load(&mut libraries, 0), Value::Bulk(b"L0".to_vec()));
        assert_eq!(load(&mut libraries, 2), error("ERR Function f0 already exists"));
        assert_eq!(load(&mut libraries, 0), error("ERR Library 'L0' already exists"));
        let payload = payload([code(&KINDS[2], "1:2")].iter());
        let restore = |how: &[u8]| words(&[b"FUNCTION", b"RESTORE", &payload, how]);
        assert!(matches!(manage(&mut libraries, &restore(b"REPLACE")), Value::Error(_)));
        assert_eq!(manage(&mut libraries, &restore(b"FLUSH")), ok());
        assert_eq!(libraries.keys().collect::<Vec<_>>(), [b"L2"]);
    }
}
