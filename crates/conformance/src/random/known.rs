//! Intended differences between Ladon and its peers, and differences among the peers themselves:
//! `grammar/known.txt` has them with their reasons.

use std::io;

use super::generate::Request;
use super::rules::Rules;
pub use super::rules::Verdict;
use crate::connection::Connection;
use crate::reply::Reply;

/// The real server's name and version: `redis-7.0.15`, `valkey-9.1.2`.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its name and version.
    pub name: String,
}

impl Peer {
    /// Asks it.
    ///
    /// # Errors
    /// If it does not say.
    pub fn of(connection: &mut Connection) -> io::Result<Peer> {
        let info = connection.call(&["info", "server"]).text();
        let field = |name: &str| {
            info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        let name = match (field("valkey_version"), field("redis_version")) {
            (Some(version), _) => format!("valkey-{version}"),
            (None, Some(version)) => format!("redis-{version}"),
            (None, None) => return Err(io::Error::other("INFO tells no version")),
        };
        Ok(Peer { name })
    }
}

/// The known differences from one peer.
#[derive(Debug)]
pub struct Known {
    rules: Rules,
    /// 7.0 writes doubles with seventeen digits; later servers with as few as distinguish them.
    long_doubles: bool,
    doubles_met: usize,
    /// Its `XREAD` notifies twice of a key that is missing.
    misses_twice: bool,
    misses_met: usize,
}

const TEXT: &str = include_str!("../../grammar/known.txt");

impl Known {
    /// The rules for this peer.
    ///
    /// # Errors
    /// A rule that is none, with its line.
    pub fn of(peer: &Peer) -> Result<Known, String> {
        let rules = Rules::parse("known.txt", TEXT, &peer.name)?;
        let long_doubles = peer.name.starts_with("redis-7.0");
        let misses_twice = !peer.name.starts_with("redis-8");
        Ok(Known { rules, long_doubles, doubles_met: 0, misses_twice, misses_met: 0 })
    }

    /// The verdict of the rules if this peer answers `wanted` and Ladon `got`.
    pub fn verdict(&mut self, request: &Request, wanted: &Reply, got: &Reply) -> Verdict {
        let same_numbers = request.check.same(&shortened(wanted), &shortened(got));
        let lengths = wanted.show().len().abs_diff(got.show().len());
        if same_numbers && (self.long_doubles || lengths <= 1) {
            self.doubles_met += 1;
            return Verdict::Known;
        }
        let is_pushed = request.words[0] == b"PUSHED";
        if is_pushed && self.misses_twice && told_once(wanted) == told_once(got) {
            self.misses_met += 1;
            return Verdict::Known;
        }
        self.rules.verdict(&request.line(), &wanted.show(), &got.show())
    }

    /// How many of these messages only tell again of missing keys.
    pub fn surplus(&self, pushed: &[Reply]) -> usize {
        match self.misses_twice {
            true => pushed.len() - told_once(&Reply::Array(pushed.to_vec())).len(),
            false => 0,
        }
    }

    /// How often each rule was needed, and its reason.
    pub fn met(&self) -> Vec<(usize, &'static str)> {
        let why = match self.long_doubles {
            true => "7.0 writes doubles in seventeen digits",
            false => "Redis' digits of a double are not always the shortest, or the nearest",
        };
        let doubles = (self.doubles_met, why);
        let misses = (self.misses_met, "Redis' XREAD misses a key twice until version 8");
        let special = [doubles, misses].into_iter().filter(|(met, _)| *met > 0);
        self.rules.met().chain(special).collect()
    }
}

/// The messages of a step, without those that notify again of a missing key.
fn told_once(pushed: &Reply) -> Vec<Reply> {
    let mut told: Vec<Reply> = Vec::new();
    for frame in pushed.elements() {
        let is_miss = || frame.elements().iter().any(|it| it.text().contains("keymiss"));
        if !told.contains(&frame) || !is_miss() {
            told.push(frame);
        }
    }
    told
}

/// The reply with every text that reads as a double in its shortest form.
fn shortened(reply: &Reply) -> Reply {
    let all = |items: &[Reply]| items.iter().map(shortened).collect();
    let number = |text: &str| text.parse::<f64>().ok().map(|it| format!("{:e}", it + 0.0));
    match reply {
        Reply::Bulk(bytes) => std::str::from_utf8(bytes)
            .ok()
            .filter(|text| text.contains(['.', 'e']) || text.len() > 15 || *text == "-0")
            .and_then(number)
            .map_or_else(|| reply.clone(), |text| Reply::Bulk(text.into())),
        Reply::Double(text) => number(text).map_or_else(|| reply.clone(), Reply::Double),
        Reply::Array(items) => Reply::Array(all(items)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::judge::Check;

    #[test]
    fn replies_without_elements_are_not_taken_for_messages() {
        for name in ["redis-7.0.15", "redis-8.0.6", "valkey-9.1.2"] {
            let mut known = Known::of(&Peer { name: name.into() }).expect("rules");
            let request = Request::new(Check::Exact, &[b"SELECT", b"2"]);
            let (wanted, got) = (Reply::Simple("OK".into()), Reply::Error("ERR no".into()));
            assert_eq!(known.verdict(&request, &wanted, &got), Verdict::Unknown, "{name}");
        }
    }

    #[test]
    fn every_rule_is_understood() {
        for name in ["redis-7.0.15", "redis-8.0.6", "valkey-9.1.2"] {
            Known::of(&Peer { name: name.into() }).expect("rules");
        }
    }
}
