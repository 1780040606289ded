//! Plays a script against one server and records the replies.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::reply::Reply;
use crate::script::{Action, Script, Step};
use crate::words;

/// How long `@poll` keeps asking.
const POLL_LIMIT: Duration = Duration::from_secs(10);
/// The pause between two questions of `@poll`.
const POLL_PAUSE: Duration = Duration::from_millis(20);
/// How many pages a cursor iteration may have before it is taken for endless.
const SCAN_PAGES_MAX: usize = 100_000;

/// What one step brought.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The step.
    pub step: Step,
    /// The reply; several are an array.
    pub reply: Reply,
}

/// What a server answered to a script.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// One entry for each step that has a reply.
    pub entries: Vec<Entry>,
}

/// Plays `script` against the server at `address`, which is emptied first, in protocol version
/// `protocol`.
///
/// # Errors
/// Only if a connection cannot be opened: anything else is a reply.
pub fn play(script: &Script, address: SocketAddr, protocol: u8) -> io::Result<Transcript> {
    let mut admin = Connection::open(address, 2)?;
    for words in [&["flushall"][..], &["config", "resetstat"], &["slowlog", "reset"]] {
        let reply = admin.call(words);
        if reply != Reply::Simple("OK".into()) {
            return Err(io::Error::other(format!("{words:?} answered {}", reply.show())));
        }
    }
    drop(admin);
    let mut player = Player {
        address,
        protocol,
        connections: BTreeMap::new(),
        current: "a".into(),
        variables: BTreeMap::new(),
    };
    player.switch("a")?;
    let mut transcript = Transcript::default();
    for step in &script.steps {
        if let Some(reply) = player.step(&step.action)? {
            transcript.entries.push(Entry { step: step.clone(), reply });
        }
    }
    Ok(transcript)
}

struct Player {
    address: SocketAddr,
    protocol: u8,
    connections: BTreeMap<String, Connection>,
    current: String,
    variables: BTreeMap<String, String>,
}

impl Player {
    fn step(&mut self, action: &Action) -> io::Result<Option<Reply>> {
        Ok(Some(match action {
            Action::Command(words) => self.call(words)?,
            Action::Repeat(count, words) => self.repeat(*count, words)?,
            Action::Scan(words) => self.scan(words)?,
            Action::Let(name, words) => {
                let reply = self.call(words)?;
                self.variables.insert(name.clone(), reply.text());
                return Ok(None);
            }
            Action::Poll(text, words) => self.poll(text, words)?,
            Action::Read(count) => {
                let connection = self.connection()?;
                Reply::Array((0..*count).map(|_| connection.read()).collect())
            }
            Action::Eof => self.read_to_end()?,
            Action::Silence(milliseconds) => {
                self.connection()?.silence(Duration::from_millis(*milliseconds))
            }
            Action::Switch(name) => {
                self.switch(name)?;
                return Ok(None);
            }
            Action::Reconnect => {
                self.connections.remove(&self.current);
                let name = self.current.clone();
                self.switch(&name)?;
                return Ok(None);
            }
            Action::Raw(bytes) => {
                self.connection()?.send_raw(bytes);
                return Ok(None);
            }
            Action::Send(words) => {
                let words = self.fill(words);
                self.connection()?.send(&words);
                return Ok(None);
            }
            Action::Sleep(milliseconds) => {
                std::thread::sleep(Duration::from_millis(*milliseconds));
                return Ok(None);
            }
        }))
    }

    fn call(&mut self, words: &[Vec<u8>]) -> io::Result<Reply> {
        let words = self.fill(words);
        Ok(self.connection()?.call(&words))
    }

    /// The different replies, in order.
    fn repeat(&mut self, count: u64, words: &[Vec<u8>]) -> io::Result<Reply> {
        let mut replies = Vec::new();
        for index in 0..count {
            self.variables.insert("i".into(), index.to_string());
            replies.push(self.call(words)?);
        }
        replies.dedup();
        Ok(Reply::Array(replies))
    }

    /// Repeats a command until its reply holds `text`.
    fn poll(&mut self, text: &str, words: &[Vec<u8>]) -> io::Result<Reply> {
        let start = Instant::now();
        loop {
            let reply = self.call(words)?;
            if reply.loose().contains(text) {
                return Ok(Reply::Simple("found".into()));
            }
            if start.elapsed() > POLL_LIMIT {
                return Ok(Reply::Array(vec![Reply::Timeout, reply]));
            }
            std::thread::sleep(POLL_PAUSE);
        }
    }

    /// All replies until the connection is closed, or none comes.
    fn read_to_end(&mut self) -> io::Result<Reply> {
        let connection = self.connection()?;
        let mut replies = Vec::new();
        loop {
            let reply = connection.read();
            let last = matches!(reply, Reply::Closed | Reply::Timeout | Reply::Malformed(_));
            replies.push(reply);
            if last {
                return Ok(Reply::Array(replies));
            }
        }
    }

    /// Follows a cursor from 0 to 0. The elements come out once each, sorted: which page an
    /// element is on, and whether it comes twice, is the server's own affair.
    fn scan(&mut self, words: &[Vec<u8>]) -> io::Result<Reply> {
        let mut words = self.fill(words);
        let Some(place) = words.iter().position(|word| word == b"0") else {
            return Err(io::Error::other("@scan needs a cursor 0"));
        };
        let mut found = BTreeMap::new();
        for _ in 0..SCAN_PAGES_MAX {
            let reply = self.connection()?.call(&words);
            let [cursor, page] = &reply.elements()[..] else { return Ok(reply) };
            for element in page.elements() {
                found.insert(element.show(), element);
            }
            words[place] = cursor.text().into_bytes();
            if words[place] == b"0" {
                return Ok(Reply::Array(found.into_values().collect()));
            }
        }
        Ok(Reply::Malformed("an endless iteration".into()))
    }

    fn fill(&self, words: &[Vec<u8>]) -> Vec<Vec<u8>> {
        words
            .iter()
            .map(|word| {
                let mut word = words::expand(word);
                if word.windows(2).any(|window| window == b"${") {
                    let mut text = String::from_utf8_lossy(&word).into_owned();
                    for (name, value) in &self.variables {
                        text = text.replace(&format!("${{{name}}}"), value);
                    }
                    word = text.into_bytes();
                }
                word
            })
            .collect()
    }

    fn switch(&mut self, name: &str) -> io::Result<()> {
        self.current = name.into();
        if !self.connections.contains_key(name) {
            let connection = Connection::open(self.address, self.protocol)?;
            self.connections.insert(name.into(), connection);
        }
        Ok(())
    }

    fn connection(&mut self) -> io::Result<&mut Connection> {
        let current = &self.current;
        self.connections
            .get_mut(current)
            .ok_or_else(|| io::Error::other(format!("no connection {current}")))
    }
}
