//! Random Lua programs for EVAL and for libraries of functions: short, without loops that do not
//! end, and with nothing in them that a clock or chance decides.
//!
//! ```text
//! #!lua flags=no-writes          sometimes
//! local r = {}
//! r[#r+1] = ...                  some lines, each for itself (statement.rs)
//! return r                       or another end
//! ```
//!
//! A line can be left out, which is how a program that shows a difference gets short.

mod statement;
mod text;
mod value;

use super::rng::Rng;
use sha1::{Digest, Sha1};

/// A line that can be left out begins so.
const LINE: &str = "r[#r+1] = ";

/// Programs that all rounds know, so that their hashes mean something.
const KNOWN: u64 = 6;

/// A program for EVAL.
pub fn script(rng: &mut Rng) -> String {
    let head = match rng.below(30) {
        0 => "#!lua\n",
        1 => "#!lua flags=no-writes\n",
        2 => "#!lua flags=allow-oom,allow-stale\n",
        3 => "#!lua flags=no-cluster,allow-cross-slot-keys\n",
        4 => text::one_of(
            rng,
            &[
                "#!lua flags=none\n",
                "#!js\n",
                "#!lua name=x\n",
                "#!lua x\n",
                "#!lua",
                "#!\n",
                "#\n",
            ],
        ),
        _ => "",
    };
    format!("{head}{}", body(rng))
}

/// One of the programs that all rounds know.
pub fn known_script(rng: &mut Rng) -> String {
    let number = rng.bits() % KNOWN;
    script(&mut Rng::new(number + 0x5c12_1975))
}

/// The hash of such a program, or one of none.
pub fn hash(rng: &mut Rng) -> String {
    if rng.percent(8) {
        return text::one_of(rng, &["", "x", "ffffffffffffffffffffffffffffffffffffffff"]).into();
    }
    let digest = Sha1::digest(known_script(rng).as_bytes());
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    if rng.percent(10) { hash.to_uppercase() } else { hash }
}

/// A library with a function.
pub fn library(rng: &mut Rng) -> String {
    let (library, function) = (library_name(rng), function_name(rng));
    let head = match rng.below(25) {
        0 => text::one_of(
            rng,
            &[
                "",
                "#!lua\n",
                "#!js name=l1\n",
                "#!lua name=\n",
                "#!lua name=l-1\n",
                "#!lua name=l1 name=l2\n",
                "#!lua flags=x name=l1\n",
                "#!lua name=l1",
            ],
        )
        .to_owned(),
        _ => format!("#!lua name={library}\n"),
    };
    let before = match rng.below(12) {
        0 => statement::line(rng),
        1 => "local r = {}".to_owned(),
        2 => "redis.log(redis.LOG_DEBUG, 'x')".to_owned(),
        3 => text::one_of(
            rng,
            &["x = 1", "redis.call('GET', 'x')", "error('no')", "local", "return 1"],
        )
        .to_owned(),
        _ => String::new(),
    };
    let body = body(rng);
    let register = match rng.below(14) {
        0 => format!("redis.register_function('{function}', f)"),
        1 => format!("redis.register_function{{function_name='{function}', callback=f}}"),
        2 => format!("redis.register_function({{name='{function}', callback=f}})"),
        3 => text::one_of(
            rng,
            &[
                "redis.register_function('f1')",
                "redis.register_function('f1', 1)",
                "redis.register_function({})",
                "redis.register_function{function_name='f1', callback=f, x=1}",
                "redis.register_function{function_name='f1', callback=f, flags='no-writes'}",
                "redis.register_function{function_name='f1', callback=f, flags={'x'}}",
                "redis.register_function{function_name='f 1', callback=f}",
                "redis.register_function{function_name=1, callback=f}",
                "redis.register_function('f1', f) redis.register_function('f1', f)",
                "local g = f",
            ],
        )
        .to_owned(),
        4..=6 => format!(
            "redis.register_function{{function_name='{function}', callback=f, flags={{'no-writes'}}}}"
        ),
        7 => format!(
            "redis.register_function{{function_name='{function}', callback=f, description='d', \
             flags={{'allow-oom', 'allow-stale', 'no-cluster', 'allow-cross-slot-keys'}}}}"
        ),
        _ => format!("redis.register_function('{function}', f)"),
    };
    format!("{head}{before}\nlocal function f(KEYS, ARGV)\n{body}\nend\n{register}")
}

/// The name of a library, or of none.
pub fn library_name(rng: &mut Rng) -> &'static str {
    text::one_of(rng, &["l1", "l1", "l2", "l2", "none"])
}

/// The name of a function, or of none.
pub fn function_name(rng: &mut Rng) -> &'static str {
    text::one_of(rng, &["f1", "f1", "f2", "f2", "F1", "none"])
}

/// The lines, and an end.
fn body(rng: &mut Rng) -> String {
    let mut lines = vec!["local r = {}".to_owned()];
    let count = if rng.percent(5) { 12 } else { 1 + rng.below(4) };
    lines.extend((0..count).map(|_| statement::line(rng)));
    lines.push(statement::end(rng));
    lines.join("\n")
}

/// The program without each of the lines that it may be without.
pub fn shorter(program: &[u8]) -> Vec<Vec<u8>> {
    let Ok(program) = std::str::from_utf8(program) else { return Vec::new() };
    let lines: Vec<&str> = program.split('\n').collect();
    let without = |at: usize| {
        let kept = lines.iter().enumerate().filter(|(other, _)| *other != at);
        kept.map(|(_, line)| *line).collect::<Vec<_>>().join("\n").into_bytes()
    };
    let may_go = |line: &&str| line.starts_with(LINE) || line.starts_with("redis.");
    (0..lines.len()).filter(|&at| may_go(&lines[at])).map(without).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_one_by_one() {
        let shorter = shorter(b"local r = {}\nr[#r+1] = 1\nr[#r+1] = 2\nreturn r");
        let wanted = ["local r = {}\nr[#r+1] = 2\nreturn r", "local r = {}\nr[#r+1] = 1\nreturn r"];
        assert_eq!(shorter, wanted.map(|it| it.as_bytes().to_vec()));
    }

    #[test]
    fn hashes_are_those_of_the_known_programs() {
        let known: Vec<String> = (0..300).map(|seed| known_script(&mut Rng::new(seed))).collect();
        let hash = hash(&mut Rng::new(3)).to_lowercase();
        let of = |text: &String| {
            Sha1::digest(text.as_bytes())
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        assert!(known.iter().any(|text| of(text) == hash));
    }
}
