//! Redis' glob patterns, byte for byte: `KEYS`, `SCAN MATCH`, `PSUBSCRIBE`, `CONFIG GET` and their
//! like.
//!
//! `*` any run, `?` any byte, `[a-c]`, `[^x]`, `\x` the byte itself. Redis' corner cases are part
//! of the contract: a class without its `]` ends with the pattern, a range may be written
//! backwards, and the empty string matches the empty pattern only (not even `*`: the commands
//! that take "everything" check for a lone `*` themselves).
//!
//! A pattern is compiled once and then matches many names. Between two stars each step matches one
//! byte, whatever it is, and a class is a set of bytes. So a step takes the same time however long
//! its class was written, and what stands between two stars is looked for once, from left to right:
//! an earlier place leaves the later parts more room, so no other place has to be tried.

use memchr::memmem;
use std::collections::HashMap;

/// Redis gives up on a pattern that nests deeper, and so says no; one with a star more never
/// matches here either. The star at a pattern's end does not nest.
const STARS_MAX: usize = 1000;

/// A compiled pattern.
#[derive(Debug)]
pub struct Glob {
    /// The parts between the stars: one more than there are stars, of which some are empty.
    parts: Box<[Part]>,
    /// The sets that steps refer to.
    sets: Box<[ByteSet]>,
    /// Bytes that the parts match together.
    length: usize,
    /// Steps of the longest part that is looked for step by step.
    longest_search: usize,
    /// It has more stars than Redis follows.
    is_too_deep: bool,
}

/// A part of a pattern without stars.
#[derive(Debug)]
enum Part {
    /// These bytes.
    Bytes(Box<[u8]>),
    Steps(Box<[Step]>),
}

/// Matches one byte.
#[derive(Clone, Copy, Debug)]
enum Step {
    Any,
    Byte(u8),
    /// A letter in either case; this is the lower one.
    Letter(u8),
    /// Index of a set.
    Set(u32),
}

/// A set of bytes, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct ByteSet([u64; 4]);

impl ByteSet {
    fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    /// Inserts the bytes from `low` to `high`; none if `low` is above.
    fn insert_range(&mut self, low: u8, high: u8) {
        for word in low >> 6..=high >> 6 {
            let from = if word == low >> 6 { low & 63 } else { 0 };
            let to = if word == high >> 6 { high & 63 } else { 63 };
            self.0[usize::from(word)] |= u64::MAX << from & u64::MAX >> (63 - to);
        }
    }

    fn negated(self) -> ByteSet {
        ByteSet(self.0.map(|bits| !bits))
    }

    fn len(&self) -> u32 {
        self.0.iter().map(|bits| bits.count_ones()).sum()
    }
}

impl Glob {
    /// Compiles a pattern; `nocase` folds ASCII case.
    pub fn new(pattern: &[u8], nocase: bool) -> Glob {
        let mut compiler = Compiler { nocase, steps: Vec::new(), sets: Vec::new(), known: None };
        let (mut parts, mut rest) = (Vec::new(), pattern);
        while let Some(&byte) = rest.first() {
            if byte == b'*' {
                parts.push(compiler.take_part());
                while let [b'*', after @ ..] = rest {
                    rest = after;
                }
            } else {
                rest = compiler.step(rest);
            }
        }
        parts.push(compiler.take_part());
        let inner = parts.get(1..parts.len() - 1).unwrap_or_default();
        let searches = inner.iter().map(|part| match part {
            Part::Bytes(_) => 0,
            Part::Steps(steps) => steps.len(),
        });
        let ends_with_star = parts.len() > 1 && parts.last().is_some_and(|part| part.len() == 0);
        let depth = parts.len() - 1 - usize::from(ends_with_star);
        Glob {
            length: parts.iter().map(Part::len).sum(),
            longest_search: searches.max().unwrap_or(0),
            is_too_deep: depth > STARS_MAX,
            parts: parts.into(),
            sets: compiler.sets.into(),
        }
    }

    /// Whether all of `name` matches.
    pub fn matches(&self, name: &[u8]) -> bool {
        let (Some((first, after)), false) = (self.parts.split_first(), self.is_too_deep) else {
            return false;
        };
        let Some((last, inner)) = after.split_last() else {
            return name.len() == self.length && first.fits(&self.sets, name);
        };
        if name.is_empty() || name.len() < self.length {
            return false;
        }
        let (head, rest) = name.split_at(first.len());
        let (mut rest, tail) = rest.split_at(rest.len() - last.len());
        if !first.fits(&self.sets, head) || !last.fits(&self.sets, tail) {
            return false;
        }
        for part in inner {
            match part.find(&self.sets, rest) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        true
    }

    /// An upper bound of the steps that matching a name of this length takes, to judge how many
    /// names can be examined at once.
    pub fn steps_max(&self, name_bytes: usize) -> usize {
        name_bytes.saturating_mul(1 + self.longest_search.min(name_bytes))
    }

    /// Memory that it takes.
    pub fn bytes(&self) -> usize {
        let parts = self.parts.iter().map(|part| match part {
            Part::Bytes(bytes) => bytes.len(),
            Part::Steps(steps) => size_of_val(&**steps),
        });
        size_of_val(&*self.parts) + size_of_val(&*self.sets) + parts.sum::<usize>()
    }
}

impl Part {
    /// Bytes that it matches.
    fn len(&self) -> usize {
        match self {
            Part::Bytes(bytes) => bytes.len(),
            Part::Steps(steps) => steps.len(),
        }
    }

    /// Whether it matches this text, which has its length.
    fn fits(&self, sets: &[ByteSet], text: &[u8]) -> bool {
        match self {
            Part::Bytes(bytes) => **bytes == *text,
            Part::Steps(steps) => steps.iter().zip(text).all(|(step, &byte)| match *step {
                Step::Any => true,
                Step::Byte(wanted) => byte == wanted,
                Step::Letter(lower) => byte.to_ascii_lowercase() == lower,
                Step::Set(index) => sets[index as usize].has(byte),
            }),
        }
    }

    /// Where it first matches within `text`.
    fn find(&self, sets: &[ByteSet], text: &[u8]) -> Option<usize> {
        match self {
            Part::Bytes(bytes) if bytes.len() > text.len() => None,
            Part::Bytes(bytes) => memmem::find(text, bytes),
            Part::Steps(steps) => {
                text.windows(steps.len()).position(|window| self.fits(sets, window))
            }
        }
    }
}

struct Compiler {
    nocase: bool,
    /// Of the present part.
    steps: Vec<Step>,
    sets: Vec<ByteSet>,
    /// Indexes of the sets, once there are some.
    known: Option<HashMap<ByteSet, u32>>,
}

impl Compiler {
    fn take_part(&mut self) -> Part {
        let bytes = self.steps.iter().map(|step| match step {
            Step::Byte(byte) => Some(*byte),
            _ => None,
        });
        if let Some(bytes) = bytes.collect::<Option<Box<[u8]>>>() {
            self.steps.clear();
            return Part::Bytes(bytes);
        }
        Part::Steps(std::mem::take(&mut self.steps).into())
    }

    /// Compiles the head of a pattern that is not `*`; returns what is behind it.
    fn step<'p>(&mut self, pattern: &'p [u8]) -> &'p [u8] {
        let (step, rest) = match pattern {
            [b'?', rest @ ..] => (Step::Any, rest),
            [b'[', rest @ ..] => {
                let (set, rest) = self.set(rest);
                (self.step_of(set), rest)
            }
            [b'\\', escaped, rest @ ..] => (self.literal(*escaped), rest),
            [literal, rest @ ..] => (self.literal(*literal), rest),
            [] => return pattern,
        };
        self.steps.push(step);
        rest
    }

    fn literal(&self, byte: u8) -> Step {
        match self.nocase && byte.is_ascii_alphabetic() {
            true => Step::Letter(byte.to_ascii_lowercase()),
            false => Step::Byte(byte),
        }
    }

    fn step_of(&mut self, set: ByteSet) -> Step {
        match set.len() {
            1 => Step::Byte((0..=u8::MAX).find(|&byte| set.has(byte)).unwrap_or_default()),
            256 => Step::Any,
            _ => {
                let known = self.known.get_or_insert_default();
                let index = *known.entry(set).or_insert(self.sets.len() as u32);
                if index as usize == self.sets.len() {
                    self.sets.push(set);
                }
                Step::Set(index)
            }
        }
    }

    /// The set of a class, from behind its `[`; and what is behind its `]`.
    fn set<'p>(&self, class: &'p [u8]) -> (ByteSet, &'p [u8]) {
        let fold = |byte: u8| if self.nocase { byte.to_ascii_lowercase() } else { byte };
        let (is_negated, mut rest) = match class {
            [b'^', rest @ ..] => (true, rest),
            _ => (false, class),
        };
        // Redis compares an escaped byte of a class exactly, also where case does not count.
        let (mut exact, mut folded) = (ByteSet::default(), ByteSet::default());
        loop {
            match rest {
                [b'\\', escaped, after @ ..] => {
                    exact.insert(*escaped);
                    rest = after;
                }
                [b']', after @ ..] => {
                    rest = after;
                    break;
                }
                [] => break,
                [first, b'-', last, after @ ..] => {
                    let (low, high) = (first.min(last), first.max(last));
                    folded.insert_range(fold(*low), fold(*high));
                    rest = after;
                }
                [literal, after @ ..] => {
                    folded.insert(fold(*literal));
                    rest = after;
                }
            }
        }
        (0..=u8::MAX).filter(|&byte| folded.has(fold(byte))).for_each(|byte| exact.insert(byte));
        (if is_negated { exact.negated() } else { exact }, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    fn matches(pattern: &[u8], string: &[u8], nocase: bool) -> bool {
        Glob::new(pattern, nocase).matches(string)
    }

    #[track_caller]
    fn check(pattern: &str, string: &str, expected: bool) {
        assert_eq!(matches(pattern.as_bytes(), string.as_bytes(), false), expected);
    }

    #[test]
    fn more_than_a_thousand_stars_match_nothing_as_in_redis() {
        let string = "a".repeat(5000);
        check(&"*?".repeat(1000), &string, true);
        check(&"*?".repeat(1001), &string, false);
        check(&("*?".repeat(1000) + "**"), &string, true);
        check(&"*?".repeat(50_000), &"a".repeat(50_000), false);
        check(&"*".repeat(5000), &string, true);
        check(&"[*]".repeat(5000), &"*".repeat(5000), true);
    }

    #[test]
    fn patterns_match_as_in_redis() {
        check("*", "x", true);
        check("", "", true);
        check("*", "", false);
        check("", "x", false);
        check("h?llo", "hello", true);
        check("h?llo", "hllo", false);
        check("h*llo", "heeeello", true);
        check("h[ae]llo", "hallo", true);
        check("h[ae]llo", "hillo", false);
        check("h[^e]llo", "hbllo", true);
        check("h[^e]llo", "hello", false);
        check("h[a-c]llo", "hbllo", true);
        check("h[c-a]llo", "hbllo", true);
        check("a*b*c", "aXbYbZc", true);
        check("a*b*c", "aXbYbZ", false);
        check("a*[bc]?*c", "aXbYbZc", true);
        check("a*[bc]?*c", "aXYZbc", false);
        check("*a", "ba", true);
        check("ab*ba", "aba", false);
        check("a***", "a", true);
        check("\\*", "*", true);
        check("\\*", "x", false);
        check("\\", "\\", true);
        check("[", "x", false);
        check("[", "", false);
        check("[x", "x", true);
        check("[^", "x", true);
        check("[]x", "x", false);
        check("[\\]]", "]", true);
        check("[a-]", "-", false);
        check("[aa-bb-aa]", "b", true);
        check("[a-ac-c]", "b", false);
        check("a?", "a", false);
    }

    #[test]
    fn case_folds_only_where_redis_folds_it() {
        assert!(matches(b"MaX*", b"maxmemory", true));
        assert!(matches(b"*[A-C]*", b"xbx", true));
        assert!(!matches(b"[\\B]", b"b", true));
        assert!(!matches(b"[^B]", b"b", true));
    }

    #[test]
    fn hostile_patterns_take_no_exponential_time() {
        let pattern = "a*".repeat(200) + "b";
        check(&pattern, &"a".repeat(5000), false);
        check(&("*".to_owned() + &"a*".repeat(200) + "b*"), &"a".repeat(5000), false);
    }

    /// A class is read once, and then it is one step.
    #[test]
    fn a_long_class_is_one_step() {
        for (class, len) in [("[ab]", 2), ("[a-z]", 26), ("[^a-z]", 230)] {
            let long = format!(
                "{}{}]",
                &class[..class.len() - 1],
                &class[1..class.len() - 1].repeat(1 << 18)
            );
            let long = if class.contains('^') { long.replace("z^", "z") } else { long };
            let glob = Glob::new(format!("*{long}*").as_bytes(), false);
            assert_eq!((glob.sets.len(), glob.sets[0].len()), (1, len), "{class}");
            assert_eq!(glob.steps_max(1000), 2000, "{class}");
            assert!(glob.bytes() < 200, "{class}");
        }
    }
}
