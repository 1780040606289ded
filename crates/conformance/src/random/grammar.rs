//! The grammar of requests: one line is one form of one command.
//!
//! ```text
//! # comment
//! @on redis-8 valkey-9      from here on for peers whose names begin so; "@on all" ends it
//! @unordered SMEMBERS <set> how the reply is compared (see `judge::Check`), then the request
//! WORD                      itself
//! <set>                     a word that `pool` makes up
//! [ NX | XX ]               one of these, or nothing
//! ( NX | XX )               one of these
//! ( <field> <value> )+      once to four times, sometimes more; each time one of the alternatives
//! ( GET | NX )*             up to three times
//! #( <key> )                how many times, then so many times: FIELDS, numkeys
//! =( <score> )              as many times as the last #( ) of the line: WEIGHTS
//! ```
//!
//! Brackets and bars stand between blanks.

use super::judge::Check;
use super::pool::Hole;
use std::sync::OnceLock;

/// A part of a line.
#[derive(Clone, Debug)]
pub enum Node {
    /// A word as it is written.
    Word(String),
    /// A word to make up.
    Hole(Hole),
    /// One of the alternatives.
    One(Vec<Vec<Node>>),
    /// One of the alternatives, or nothing.
    Maybe(Vec<Vec<Node>>),
    /// One of the alternatives, again and again: how often at least, and how often usually at most.
    Repeat(usize, usize, Vec<Vec<Node>>),
    /// A count, and the alternatives so many times.
    Counted(Vec<Vec<Node>>),
    /// The alternatives as often as the last count said.
    Same(Vec<Vec<Node>>),
}

/// One form of one command.
#[derive(Clone, Debug)]
pub struct Line {
    /// How its reply is compared.
    pub check: Check,
    /// Its words.
    pub nodes: Vec<Node>,
}

/// The lines of a family.
#[derive(Clone, Debug)]
pub struct Family {
    /// Its file's name.
    pub name: &'static str,
    /// At least one line.
    pub lines: Vec<Line>,
    /// It takes several connections.
    pub crowd: bool,
}

/// Families that are played on several connections only.
const CROWD: [&str; 3] = ["pubsub", "waiting", "tracking"];

/// Families of data: what a script calls is of these.
const DATA: [&str; 8] =
    ["string", "hash", "list", "set", "sorted_set", "bitmap", "stream", "generic"];

const TEXTS: [(&str, &str); 16] = [
    ("string", include_str!("../../grammar/string.txt")),
    ("hash", include_str!("../../grammar/hash.txt")),
    ("list", include_str!("../../grammar/list.txt")),
    ("set", include_str!("../../grammar/set.txt")),
    ("sorted_set", include_str!("../../grammar/sorted_set.txt")),
    ("bitmap", include_str!("../../grammar/bitmap.txt")),
    ("hyperloglog", include_str!("../../grammar/hyperloglog.txt")),
    ("geo", include_str!("../../grammar/geo.txt")),
    ("stream", include_str!("../../grammar/stream.txt")),
    ("generic", include_str!("../../grammar/generic.txt")),
    ("sort", include_str!("../../grammar/sort.txt")),
    ("transaction", include_str!("../../grammar/transaction.txt")),
    ("script", include_str!("../../grammar/script.txt")),
    ("pubsub", include_str!("../../grammar/pubsub.txt")),
    ("waiting", include_str!("../../grammar/waiting.txt")),
    ("tracking", include_str!("../../grammar/tracking.txt")),
];

/// All families, with the lines that the peer of this name knows.
///
/// # Errors
/// A line that is no grammar, with its place.
pub fn families(peer: &str) -> Result<Vec<Family>, String> {
    TEXTS.iter().map(|(name, text)| family(name, text, peer)).collect()
}

/// The families of data, with the lines that every peer knows.
pub(super) fn data_families() -> &'static [Family] {
    static FAMILIES: OnceLock<Vec<Family>> = OnceLock::new();
    FAMILIES.get_or_init(|| {
        let all = families("oldest").expect("the grammar is understood");
        all.into_iter().filter(|family| DATA.contains(&family.name)).collect()
    })
}

fn family(name: &'static str, text: &str, peer: &str) -> Result<Family, String> {
    let mut lines = Vec::new();
    let mut known = true;
    for (number, text) in text.lines().enumerate() {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if let Some(peers) = text.strip_prefix("@on ") {
            known = peers.split(' ').any(|it| it == "all" || peer.starts_with(it));
            continue;
        }
        let line = line(text).map_err(|why| format!("{name}.txt:{}: {why}", number + 1))?;
        if known {
            lines.push(line);
        }
    }
    Ok(Family { name, lines, crowd: CROWD.contains(&name) })
}

fn line(text: &str) -> Result<Line, String> {
    let (check, text) = match text.strip_prefix('@') {
        None => (Check::Exact, text),
        Some(rest) => {
            let (name, rest) = rest.split_once(' ').ok_or("a check without a request")?;
            (Check::named(name).ok_or(format!("no check is called {name}"))?, rest)
        }
    };
    let mut tokens = text.split_ascii_whitespace();
    let mut alternatives = alternatives(&mut tokens, None)?;
    match (alternatives.pop(), alternatives.is_empty()) {
        (Some(nodes), true) => Ok(Line { check, nodes }),
        _ => Err("a bar outside of brackets".into()),
    }
}

/// What is between two brackets, `close` being the second one's beginning.
fn alternatives<'a>(
    tokens: &mut impl Iterator<Item = &'a str>,
    close: Option<&str>,
) -> Result<Vec<Vec<Node>>, String> {
    let mut all = vec![Vec::new()];
    while let Some(token) = tokens.next() {
        if token == "|" {
            all.push(Vec::new());
            continue;
        }
        if close == Some(token) {
            return Ok(all);
        }
        let node = match token {
            "[" => Node::Maybe(alternatives(tokens, Some("]"))?),
            "#(" => Node::Counted(alternatives(tokens, Some(")"))?),
            "=(" => Node::Same(alternatives(tokens, Some(")"))?),
            "(" => {
                // The suffix is at the closing bracket, which is found by looking for all
                // three.
                repeated(tokens)?
            }
            hole if hole.starts_with('<') => {
                let name = hole.trim_start_matches('<').trim_end_matches('>');
                Node::Hole(Hole::named(name).ok_or(format!("nothing is called {hole}"))?)
            }
            word => Node::Word(word.into()),
        };
        if let Some(last) = all.last_mut() {
            last.push(node);
        }
    }
    match close {
        None => Ok(all),
        Some(close) => Err(format!("no {close}")),
    }
}

/// The rest of `( ... )`, `( ... )+` or `( ... )*`.
fn repeated<'a>(tokens: &mut impl Iterator<Item = &'a str>) -> Result<Node, String> {
    let (mut inner, mut depth) = (Vec::new(), 0);
    for token in tokens {
        match token {
            "(" | "#(" | "=(" => depth += 1,
            ")" | ")+" | ")*" if depth == 0 => {
                let all = alternatives(&mut inner.into_iter(), None)?;
                return Ok(match token {
                    ")+" => Node::Repeat(1, 4, all),
                    ")*" => Node::Repeat(0, 3, all),
                    _ => Node::One(all),
                });
            }
            ")" | ")+" | ")*" => depth -= 1,
            _ => {}
        }
        inner.push(token);
    }
    Err("no closing bracket".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_understood_for_every_peer() {
        for peer in ["redis-7.0", "redis-8.0", "redis-8.2", "valkey-9.1"] {
            for family in families(peer).expect("grammar") {
                assert!(!family.lines.is_empty(), "{} has no lines for {peer}", family.name);
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        for text in ["SET ( a", "SET [ a", "SET <nothing>", "@whatever SET", "a | b"] {
            assert!(line(text).is_err(), "{text}");
        }
    }
}
