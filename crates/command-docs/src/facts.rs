//! The facts about all commands, read from `commands.txt`, whose head describes its format.
//!
//! The text is part of the program, and a test reads it: a malformed line is a panic.

use crate::doc::{BeginSearch, CommandDoc, FindKeys, KeySpec};

/// A family of commands.
#[derive(Debug)]
pub struct Family {
    /// As `COMMAND DOCS` says it.
    pub name: &'static str,
    /// Its commands, those that Ladon does not have included: those have a name only.
    pub commands: Vec<(&'static str, Option<CommandDoc>)>,
}

/// Reads the facts.
pub(crate) fn read(text: &'static str) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        read_line(&mut families, line)
            .unwrap_or_else(|| panic!("line {}: {line:?} is no fact", number + 1));
    }
    families
}

fn read_line(families: &mut Vec<Family>, line: &'static str) -> Option<()> {
    if let Some(name) = line.strip_prefix("= ") {
        families.push(Family { name, commands: Vec::new() });
        return Some(());
    }
    let family = families.last_mut()?;
    let Some(fact) = line.strip_prefix("    ") else {
        let (name, syntax) = line.split_once(' ').unwrap_or((line, ""));
        family.commands.push((name, None));
        if !syntax.is_empty() {
            begin(family)?.syntax = syntax;
        }
        return Some(());
    };
    let doc = begin(family)?;
    let (word, rest) = fact.split_once(' ').unwrap_or((fact, ""));
    match word {
        "summary" => doc.summary = rest,
        "since" => doc.since = rest,
        "own" => doc.own = true,
        "complexity" => doc.complexity = rest,
        "arity" => doc.arity = rest.parse().ok()?,
        "flags" => doc.flags = rest.split(' ').collect(),
        "acl" => doc.acl_categories = rest.split(' ').collect(),
        "keys" => doc.key_specs.push(keys(rest)?),
        "tip" => doc.tips.push(rest),
        "history" => doc.history.push(rest.split_once(' ')?),
        "deprecated" => {
            doc.deprecated = Some(rest.split_once(' ')?);
            doc.doc_flags.push("deprecated");
        }
        "doc-flag" => doc.doc_flags.push(rest),
        "partly" => doc.partly = Some(rest),
        "note" => doc.note = Some(rest),
        _ => return None,
    }
    Some(())
}

/// The entry of the family's last command, which is one that Ladon has.
fn begin(family: &mut Family) -> Option<&mut CommandDoc> {
    let group = family.name;
    let (name, doc) = family.commands.last_mut()?;
    let (name, complexity) = (*name, "O(1)");
    Some(doc.get_or_insert_with(|| CommandDoc { name, group, complexity, ..CommandDoc::default() }))
}

/// `1..-1/2 RW access -- note`
fn keys(text: &'static str) -> Option<KeySpec> {
    let (text, notes) = match text.split_once(" -- ") {
        Some((text, notes)) => (text, Some(notes)),
        None => (text, None),
    };
    let mut words = text.split(' ');
    let place = words.next()?;
    let flags = words.collect();
    let (begin_search, find_keys) = if place == "?" {
        (BeginSearch::Unknown, FindKeys::Unknown)
    } else if let Some(index) = place.strip_prefix("numkeys@") {
        let (index, step) = index.split_once('/').unwrap_or((index, "1"));
        let key_step = step.parse().ok()?;
        let find_keys = FindKeys::KeyNumber { key_number_index: 0, first_key: 1, key_step };
        (BeginSearch::Index(index.parse().ok()?), find_keys)
    } else if let Some((keyword, from)) = place.split_once('@') {
        let (from, last_key, limit) = match (from.strip_suffix("/2"), from.strip_suffix("..")) {
            (Some(from), _) => (from, -1, 2),
            (None, Some(from)) => (from, -1, 0),
            (None, None) => (from, 0, 0),
        };
        let keyword = BeginSearch::Keyword { keyword, from: from.parse().ok()? };
        (keyword, FindKeys::Range { last_key, key_step: 1, limit })
    } else {
        let (range, step) = place.split_once('/').unwrap_or((place, "1"));
        let (first, last) = range.split_once("..").unwrap_or((range, range));
        let (first, last): (i32, i32) = (first.parse().ok()?, last.parse().ok()?);
        let last_key = if last < 0 { last } else { last - first };
        let key_step = step.parse().ok()?;
        (BeginSearch::Index(first), FindKeys::Range { last_key, key_step, limit: 0 })
    };
    Some(KeySpec { notes, flags, begin_search, find_keys })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_people_count_them() {
        let range = |last_key, key_step| FindKeys::Range { last_key, key_step, limit: 0 };
        for (text, index, find_keys) in [
            ("1 RW", 1, range(0, 1)),
            ("1..2 RW", 1, range(1, 1)),
            ("2..-1 RO access", 2, range(-1, 1)),
            ("1..-1/2 OW update", 1, range(-1, 2)),
        ] {
            let spec = keys(text).expect("well-formed");
            assert_eq!((spec.begin_search, spec.find_keys), (BeginSearch::Index(index), find_keys));
        }
        let spec = keys("? RO access -- of BY").expect("well-formed");
        assert_eq!((spec.notes, spec.flags.len()), (Some("of BY"), 2));
        let spec = keys("STREAMS@4/2 RO access").expect("well-formed");
        let keyword = BeginSearch::Keyword { keyword: "STREAMS", from: 4 };
        let find_keys = FindKeys::Range { last_key: -1, key_step: 1, limit: 2 };
        assert_eq!((spec.begin_search, spec.find_keys), (keyword, find_keys));
        let spec = keys("KEYS@-2.. RO access").expect("well-formed");
        let keyword = BeginSearch::Keyword { keyword: "KEYS", from: -2 };
        let find_keys = FindKeys::Range { last_key: -1, key_step: 1, limit: 0 };
        assert_eq!((spec.begin_search, spec.find_keys), (keyword, find_keys));
        assert_eq!((keys("x RO"), keys("STREAMS@x RO")), (None, None));
    }

    #[test]
    #[should_panic(expected = "line 3")]
    fn a_line_that_is_no_fact_is_named() {
        read("= string\nget key#0\n    color red\n");
    }
}
