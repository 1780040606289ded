//! A node of a cluster, as the command line talks to it: `LADON.CLUSTER` over Redis' protocol.

use ladon_files::{Client, ClientError, Reply, ServerOptions};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// How long a node may take to answer; orders wait for other nodes.
const PATIENCE: Duration = Duration::from_secs(15);
/// The same, where only the node itself is asked; a busy machine is asked again.
const STATUS_PATIENCE: Duration = Duration::from_secs(3);

/// How a node is reached.
#[derive(Clone)]
pub struct Node {
    options: ServerOptions,
}

/// Names and values, as the node says them.
#[derive(Clone, Debug, Default)]
pub struct Facts(BTreeMap<String, String>);

/// What a node says of its cluster.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Of itself and the cluster.
    pub own: Facts,
    /// Of each member.
    pub members: Vec<Facts>,
}

impl Facts {
    /// The value of this name; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |value| value)
    }

    /// The value as a number, if it is one.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name).parse().ok()
    }
}

impl Status {
    /// The member with this number.
    pub fn member(&self, number: u64) -> Option<&Facts> {
        self.members.iter().find(|member| member.number("member") == Some(number))
    }

    /// The member that leads, as far as the node knows.
    pub fn leader(&self) -> Option<&Facts> {
        self.own.number("leader").and_then(|number| self.member(number))
    }

    /// Whether the node itself leads, and may answer for the cluster.
    pub fn leads(&self) -> bool {
        self.own.text("role") == "leader"
    }
}

/// Why a node did not do what it was asked.
#[derive(Debug)]
pub enum NoAnswer {
    /// It says so.
    Refused(String),
    /// Nobody knows whether it did: no answer came.
    Silent(String),
}

impl NoAnswer {
    /// For whom it makes no difference.
    pub fn text(self) -> String {
        match self {
            NoAnswer::Refused(text) | NoAnswer::Silent(text) => text,
        }
    }
}

impl Node {
    /// A node that is reached like this.
    pub fn new(options: ServerOptions) -> Node {
        Node { options }
    }

    /// Another one, which takes the same users and speaks TLS in the same way.
    pub fn at(&self, address: &str) -> Node {
        Node { options: ServerOptions { address: address.to_owned(), ..self.options.clone() } }
    }

    /// Where it is.
    pub fn address(&self) -> &str {
        &self.options.address
    }

    fn ask(&self, words: &[&str], patience: Duration) -> Result<Reply, NoAnswer> {
        let told = |error: ClientError| match error {
            ClientError::Refused(_) => NoAnswer::Refused(format!("{}: {error}", self.address())),
            ClientError::Io(error) if is_late(&error) => NoAnswer::Silent(format!(
                "{}: no answer in {} s",
                self.address(),
                patience.as_secs()
            )),
            _ => NoAnswer::Silent(format!("{}: {error}", self.address())),
        };
        let mut client = Client::connect_within(&self.options, patience).map_err(told)?;
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        client.ask(&words).map_err(told)
    }

    /// How the node sees its cluster.
    pub fn status(&self) -> Result<Status, String> {
        let reply =
            self.ask(&["LADON.CLUSTER", "STATUS"], STATUS_PATIENCE).map_err(NoAnswer::text)?;
        let bad = || format!("{}: it answers no status of a cluster", self.address());
        let mut status = Status::default();
        for (name, value) in pairs(reply).ok_or_else(bad)? {
            match value {
                Reply::Array(members) => {
                    for member in members {
                        let facts = pairs(member).ok_or_else(bad)?.into_iter();
                        let facts = facts.map(|(name, value)| Some((name, text(value)?)));
                        let facts: Option<BTreeMap<_, _>> = facts.collect();
                        status.members.push(Facts(facts.ok_or_else(bad)?));
                    }
                }
                value => drop(status.own.0.insert(name, text(value).ok_or_else(bad)?)),
            }
        }
        Ok(status)
    }

    /// Has it begin a checkpoint.
    pub fn save(&self) -> Result<(), String> {
        let reply = self.ask(&["BGSAVE"], PATIENCE).map_err(NoAnswer::text)?;
        text(reply).map(drop).ok_or_else(|| format!("{}: it makes no checkpoint", self.address()))
    }

    /// Has it do something; returns what it says.
    pub fn order(&self, words: &[&str]) -> Result<String, NoAnswer> {
        let words: Vec<&str> = ["LADON.CLUSTER"].iter().chain(words).copied().collect();
        let reply = self.ask(&words, PATIENCE)?;
        let other = || format!("{}: it answers something else", self.address());
        text(reply).ok_or_else(|| NoAnswer::Refused(other()))
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn text(reply: Reply) -> Option<String> {
    match reply {
        Reply::Bulk(Some(bytes)) => String::from_utf8(bytes).ok(),
        Reply::Simple(text) => Some(text),
        Reply::Integer(number) => Some(number.to_string()),
        Reply::Bulk(None) | Reply::Array(_) | Reply::Error(_) => None,
    }
}

/// A map, as RESP2 has it.
fn pairs(reply: Reply) -> Option<Vec<(String, Reply)>> {
    let Reply::Array(elements) = reply else { return None };
    let (mut elements, mut pairs) = (elements.into_iter(), Vec::new());
    while let Some(name) = elements.next() {
        pairs.push((text(name)?, elements.next()?));
    }
    Some(pairs)
}

#[cfg(test)]
impl Facts {
    /// The same, but for one.
    pub fn with(mut self, name: &str, value: &str) -> Facts {
        self.0.insert(name.to_owned(), value.to_owned());
        self
    }
}

/// Facts for tests.
#[cfg(test)]
pub fn facts(pairs: &[(&str, &str)]) -> Facts {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Facts(pairs.iter().map(owned).collect())
}
