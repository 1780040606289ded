//! An import into a running server, over Redis' protocol.
//!
//! A value of up to [`WHOLE_BYTES`] arrives whole, in one `RESTORE`, and so does a stream of any
//! size. Another large value is written element by element under its key; until it is complete,
//! clients see a part of it.

use crate::import::{
    Elements, ImportError, Imported, Progress, Taken, Target, TargetError, fill, shown,
};
use crate::pieces::Pieces;
use ladon_peers::{Client, ClientError, Reply, ServerOptions};
use ladon_platform::{Clock, SystemClock};
use ladon_rdb::{Element, Key, Value, Version, payload};
use std::collections::VecDeque;
use std::mem;
use std::path::Path;

/// A larger value is written element by element.
const WHOLE_BYTES: usize = 1 << 20;

/// So many requests, and bytes of them, are on their way before a reply is read.
const REQUESTS_MAX: usize = 512;
const REQUEST_BYTES_MAX: usize = 4 << 20;

/// Imports `path` into a running server: Ladon, Redis or Valkey. A key that is there already ends the
/// import, or is replaced.
///
/// # Errors
/// See [`ImportError`]. What came before stays in the server.
pub fn import_into_server(
    path: &Path,
    options: &ServerOptions,
    replace: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Imported, ImportError> {
    let mut client = Client::connect(options).map_err(|error| at_server(options, &error))?;
    let about = about_server(&mut client).map_err(|error| at_server(options, &error))?;
    let line = |name: &str| about.lines().find_map(|line| line.strip_prefix(name));
    let is_valkey = line("valkey_version:").is_some();
    let major = line("redis_version:").and_then(|version| version.split('.').next()?.parse().ok());
    let is_before_7 = major.is_some_and(|major: u32| major < 7);
    let pipeline = Pipeline { client, asked: VecDeque::new(), bytes: 0 };
    let now_ms = SystemClock.unix_ms();
    let mut target = Running { pipeline, replace, db: 0, now_ms, is_before_7, is_valkey };
    let imported = fill(path, &mut target, progress)?;
    target.pipeline.settle().map_err(|error| ImportError::Server {
        address: options.address.clone(),
        why: error.to_string(),
    })?;
    Ok(imported)
}

/// What `INFO server` says; nothing, where the user may not ask.
fn about_server(client: &mut Client) -> Result<String, ClientError> {
    match client.ask(&[b"INFO", b"server"]) {
        Ok(Reply::Bulk(Some(text))) => Ok(String::from_utf8_lossy(&text).replace('\r', "")),
        Ok(_) | Err(ClientError::Refused(_)) => Ok(String::new()),
        Err(error) => Err(error),
    }
}

fn at_server(options: &ServerOptions, error: &ClientError) -> ImportError {
    ImportError::Server { address: options.address.clone(), why: error.to_string() }
}

/// Requests on their way.
pub(crate) struct Pipeline {
    client: Client,
    /// What each unanswered request is about, and its bytes.
    asked: VecDeque<(String, usize)>,
    bytes: usize,
}

impl Pipeline {
    /// Sends a request about a key, or another thing.
    pub(crate) fn send(&mut self, about: &[u8], words: &[&[u8]]) -> Result<(), TargetError> {
        let bytes = words.iter().map(|word| word.len()).sum();
        self.asked.push_back((shown(about), bytes));
        self.bytes += bytes;
        self.client.send(words).map_err(|error| TargetError::This(error.to_string()))?;
        if self.asked.len() >= REQUESTS_MAX || self.bytes >= REQUEST_BYTES_MAX {
            // Down to half of them, so that requests and replies move many at a time.
            while self.asked.len() > REQUESTS_MAX / 2 || self.bytes > REQUEST_BYTES_MAX / 2 {
                self.take()?;
            }
        }
        Ok(())
    }

    fn take(&mut self) -> Result<(), TargetError> {
        let Some((about, bytes)) = self.asked.pop_front() else { return Ok(()) };
        self.bytes -= bytes;
        match self.client.reply() {
            Ok(Reply::Error(error)) => {
                Err(TargetError::This(format!("the server refused '{about}': {error}")))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(TargetError::This(error.to_string())),
        }
    }

    /// Waits for all replies.
    fn settle(&mut self) -> Result<(), TargetError> {
        while !self.asked.is_empty() {
            self.take()?;
        }
        Ok(())
    }

    /// Whether a key is there.
    fn exists(&mut self, key: &[u8]) -> Result<bool, TargetError> {
        self.settle()?;
        let reply = self.client.ask(&[b"EXISTS", key]);
        let reply = reply.map_err(|error| TargetError::This(error.to_string()))?;
        Ok(reply != Reply::Integer(0))
    }
}

struct Running {
    pipeline: Pipeline,
    replace: bool,
    /// The database that is selected.
    db: u64,
    now_ms: u64,
    /// It is a Redis 6 or older.
    is_before_7: bool,
    /// Whose format of fields that expire it reads.
    is_valkey: bool,
}

impl Running {
    /// The version that a payload is made in: the oldest that has the value, of those that the
    /// server reads.
    fn version(&self, value: &Value) -> Version {
        match value {
            Value::Hash(fields) if fields.iter().any(|it| it.expires_at_ms.is_some()) => {
                match self.is_valkey {
                    true => Version::Valkey80,
                    false => Version::Redis12,
                }
            }
            // Such a server keeps no counters of a stream.
            Value::Stream(_) if !self.is_before_7 => Version::Redis10,
            _ => Version::Redis9,
        }
    }

    fn restore(&mut self, key: &Key, value: &Value) -> Result<(), TargetError> {
        let payload = payload::make(value, self.version(value));
        let payload = payload.map_err(|fault| TargetError::This(fault.to_string()))?;
        let at = key.expires_at_ms.unwrap_or(0).to_string();
        let mut words: Vec<&[u8]> = vec![b"RESTORE", &key.name, at.as_bytes(), &payload];
        if key.expires_at_ms.is_some() {
            words.push(b"ABSTTL");
        }
        if self.replace {
            words.push(b"REPLACE");
        }
        let (idle, frequency);
        if let Some(seconds) = key.idle_s {
            idle = seconds.to_string();
            words.extend([b"IDLETIME", idle.as_bytes()]);
        } else if let Some(count) = key.frequency {
            frequency = count.to_string();
            words.extend([&b"FREQ"[..], frequency.as_bytes()]);
        }
        self.pipeline.send(&key.name, &words)
    }

    /// Writes a value of which `first` was read, element by element.
    fn build(
        &mut self,
        key: &Key,
        first: Vec<Element>,
        elements: Elements<'_>,
    ) -> Result<(), TargetError> {
        if self.replace {
            self.pipeline.send(&key.name, &[b"DEL", &key.name])?;
        } else if self.pipeline.exists(&key.name)? {
            return Err(TargetError::This("the server has that key already".to_owned()));
        }
        let mut pieces = Pieces::new(&key.name);
        for element in first.into_iter().map(Ok).chain(elements) {
            pieces.push(element?, &mut self.pipeline)?;
        }
        pieces.flush(&mut self.pipeline)?;
        if let Some(at) = key.expires_at_ms {
            let at = at.to_string();
            self.pipeline.send(&key.name, &[b"PEXPIREAT", &key.name, at.as_bytes()])?;
        }
        Ok(())
    }
}

impl Target for Running {
    fn key(&mut self, db: u64, key: &Key, elements: Elements<'_>) -> Result<Taken, TargetError> {
        if key.expires_at_ms.is_some_and(|at| at <= self.now_ms.cast_signed()) {
            return Ok(Taken::NoKey);
        }
        if self.db != db {
            self.pipeline.send(b"SELECT", &[b"SELECT", db.to_string().as_bytes()])?;
            self.db = db;
        }
        let is_stream = key.encoding.type_name() == "stream";
        let (mut first, mut bytes) = (Vec::new(), 0);
        while let Some(element) = elements.next() {
            let element = element?;
            bytes += mem::size_of::<Element>() + crate::events::bytes_of(&element);
            first.push(element);
            if bytes >= WHOLE_BYTES && !is_stream {
                self.build(key, first, elements)?;
                return Ok(Taken::Here);
            }
        }
        let value = Value::of(key.encoding, first);
        if value.is_nothing() {
            return Ok(Taken::NoKey);
        }
        self.restore(key, &value)?;
        Ok(Taken::Here)
    }

    fn function(&mut self, code: &[u8]) -> Result<(), TargetError> {
        let words: &[&[u8]] = match self.replace {
            true => &[b"FUNCTION", b"LOAD", b"REPLACE", code],
            false => &[b"FUNCTION", b"LOAD", code],
        };
        self.pipeline.send(b"FUNCTION LOAD", words)
    }

    fn command(&mut self, words: &[Vec<u8>]) -> Result<(), TargetError> {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        self.pipeline.send(words[0], &words)
    }
}
