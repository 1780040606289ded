//! Rules about differences that are known: a line each, of a file in `grammar/`.
//!
//! `PEERS | REQUEST | THE PEER'S REPLY | LADON'S REPLY | REASON`; the three in the middle are
//! regular expressions over the whole text. A group that the two replies' expressions both name has
//! to match the same text in both. A reason that begins with `!` ends the round.

use regex_lite::Regex;

/// What a rule says of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No rule knows it.
    Unknown,
    /// It is known, and the round continues.
    Known,
    /// It is known, and nothing that follows can be compared.
    Diverged,
}

#[derive(Debug)]
struct Rule {
    request: Regex,
    wanted: Regex,
    got: Regex,
    why: &'static str,
    /// The data differ from here on.
    ends: bool,
    met: usize,
}

impl Rule {
    /// Whether both replies are the rule's, and the groups of one name the same.
    fn agree(&self, wanted: &str, got: &str) -> bool {
        let (Some(wanted), Some(got)) = (self.wanted.captures(wanted), self.got.captures(got))
        else {
            return false;
        };
        let names = self.wanted.capture_names().flatten();
        names
            .filter_map(|name| wanted.name(name).zip(got.name(name)))
            .all(|(a, b)| a.as_str() == b.as_str())
    }
}

/// The rules of one file for one peer.
#[derive(Debug)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Reads `text`, the file `name`, for the peer of this name.
    ///
    /// # Errors
    /// A rule that is none, with its line.
    pub fn parse(name: &str, text: &'static str, peer: &str) -> Result<Rules, String> {
        let mut rules = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
            let [peers, request, wanted, got, why] = parts[..] else {
                return Err(format!("{name}:{}: not five parts", number + 1));
            };
            if !peers.split(' ').any(|it| it == "all" || peer.starts_with(it)) {
                continue;
            }
            let regex = |flags: &str, text: &str| {
                Regex::new(&format!("{flags}^(?:{text})$"))
                    .map_err(|error| format!("{name}:{}: {error}", number + 1))
            };
            let (request, wanted) = (regex("(?i)", request)?, regex("", wanted)?);
            let got = regex("", got)?;
            let (why, ends) = match why.strip_prefix("! ") {
                Some(why) => (why, true),
                None => (why, false),
            };
            rules.push(Rule { request, wanted, got, why, ends, met: 0 });
        }
        Ok(Rules(rules))
    }

    /// The verdict if the peer answers `request` with `wanted`, and Ladon with `got`.
    pub fn verdict(&mut self, request: &str, wanted: &str, got: &str) -> Verdict {
        let rule = self
            .0
            .iter_mut()
            .find(|rule| rule.request.is_match(request) && rule.agree(wanted, got));
        let Some(rule) = rule else { return Verdict::Unknown };
        rule.met += 1;
        if rule.ends { Verdict::Diverged } else { Verdict::Known }
    }

    /// How often each rule was needed, and its reason.
    pub fn met(&self) -> impl Iterator<Item = (usize, &'static str)> {
        self.0.iter().map(|rule| (rule.met, rule.why)).filter(|(met, _)| *met > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_one_name_are_the_same() {
        let text = "all | GET .* | -no (?P<what>.*) | -no (?P<what>[^ ]*), really | ! because";
        let mut rules = Rules::parse("a file", text, "redis-7").expect("rules");
        let mut verdict = |wanted, got| rules.verdict("GET a", wanted, got);
        assert_eq!(verdict("-no a", "-no a, really"), Verdict::Diverged);
        assert_eq!(verdict("-no a", "-no b, really"), Verdict::Unknown);
        assert_eq!(rules.met().collect::<Vec<_>>(), [(1, "because")]);
    }
}
