//! `ACL LOG`: what was denied lately, newest first.
//!
//! Denials that are alike within a minute are one entry with a count, so that a client that
//! retries does not push out all others
//! (<https://redis.io/docs/latest/commands/acl-log/>).

use crate::access_check::Denied;
use std::collections::VecDeque;

/// Denials further apart are two entries.
const GROUPING_MS: u64 = 60_000;
/// A new denial is compared with this many of the newest entries, so that a long log costs
/// nothing.
const COMPARED_MAX: usize = 10;

/// What was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Running a command.
    Command,
    /// Using a key.
    Key,
    /// Using a channel.
    Channel,
    /// Using a database.
    Database,
    /// Logging in.
    Auth,
}

impl Reason {
    /// As the log shows it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Database => "database",
            Reason::Auth => "auth",
        }
    }
}

impl From<Denied> for Reason {
    fn from(denied: Denied) -> Reason {
        match denied {
            Denied::Command => Reason::Command,
            Denied::Key(_) => Reason::Key,
            Denied::Channel(_) => Reason::Channel,
            Denied::Database(_) => Reason::Database,
        }
    }
}

/// Where the request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// A client.
    TopLevel,
    /// A transaction, when it was queued or when it ran.
    Multi,
    /// A script or a function.
    Lua,
}

impl Context {
    /// As the log shows it.
    pub fn name(self) -> &'static str {
        match self {
            Context::TopLevel => "toplevel",
            Context::Multi => "multi",
            Context::Lua => "lua",
        }
    }
}

/// A denial.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// What was denied.
    pub reason: Reason,
    /// Where the request came from.
    pub context: Context,
    /// The command's full name, the key, the channel or the database; for a login, the command's
    /// first word.
    pub object: &'a [u8],
    /// The user, or the name that could not log in.
    pub username: &'a [u8],
    /// The client, as a line of `CLIENT LIST`.
    pub client: &'a str,
    /// Milliseconds since 1970.
    pub now_ms: u64,
}

/// Denials that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// How many.
    pub count: u64,
    /// What was denied.
    pub reason: Reason,
    /// Where the requests came from.
    pub context: Context,
    /// What the denial is about.
    pub object: Vec<u8>,
    /// The user.
    pub username: Vec<u8>,
    /// The client of the last one.
    pub client: String,
    /// A number that no other entry has.
    pub id: u64,
    /// When the first one was, in milliseconds since 1970.
    pub created_ms: u64,
    /// When the last one was.
    pub updated_ms: u64,
}

/// A field's value in a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// An integer.
    Integer(u64),
    /// A bulk string.
    Text(Vec<u8>),
    /// A double.
    Seconds(f64),
}

impl Entry {
    /// The fields of `ACL LOG`, in its order.
    pub fn fields(&self, now_ms: u64) -> [(&'static str, Field); 10] {
        let text = |text: &[u8]| Field::Text(text.to_vec());
        // The clock may have been set back.
        let age_ms = now_ms as f64 - self.updated_ms as f64;
        [
            ("count", Field::Integer(self.count)),
            ("reason", text(self.reason.name().as_bytes())),
            ("context", text(self.context.name().as_bytes())),
            ("object", text(&self.object)),
            ("username", text(&self.username)),
            ("age-seconds", Field::Seconds(age_ms / 1000.0)),
            ("client-info", text(self.client.as_bytes())),
            ("entry-id", Field::Integer(self.id)),
            ("timestamp-created", Field::Integer(self.created_ms)),
            ("timestamp-last-updated", Field::Integer(self.updated_ms)),
        ]
    }

    fn is_like(&self, event: &Event<'_>) -> bool {
        self.reason == event.reason
            && self.context == event.context
            && self.updated_ms.abs_diff(event.now_ms) <= GROUPING_MS
            && self.object == event.object
            && self.username == event.username
    }
}

/// Numbers of denials since the start, for `INFO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Denials {
    /// `acl_access_denied_auth`.
    pub auth: u64,
    /// `acl_access_denied_cmd`.
    pub command: u64,
    /// `acl_access_denied_key`.
    pub key: u64,
    /// `acl_access_denied_channel`.
    pub channel: u64,
    /// Of databases, which Redis does not have.
    pub database: u64,
}

/// The log.
#[derive(Clone, Debug, Default)]
pub struct AuditLog {
    /// Newest first.
    entries: VecDeque<Entry>,
    next_id: u64,
    denials: Denials,
}

impl AuditLog {
    /// Takes a denial in, and drops the oldest entries beyond `length_max` (`acllog-max-len`).
    pub fn add(&mut self, event: &Event<'_>, length_max: usize) {
        self.count(event.reason);
        if length_max == 0 {
            return self.entries.clear();
        }
        let newest = self.entries.iter().take(COMPARED_MAX);
        match newest.into_iter().position(|entry| entry.is_like(event)) {
            Some(place) => {
                let mut entry = self.entries.remove(place).expect("it was found there");
                entry.count += 1;
                entry.updated_ms = event.now_ms;
                entry.client = event.client.to_owned();
                self.entries.push_front(entry);
            }
            None => {
                self.entries.push_front(Entry {
                    count: 1,
                    reason: event.reason,
                    context: event.context,
                    object: event.object.to_vec(),
                    username: event.username.to_vec(),
                    client: event.client.to_owned(),
                    id: self.next_id,
                    created_ms: event.now_ms,
                    updated_ms: event.now_ms,
                });
                self.next_id += 1;
                self.entries.truncate(length_max);
            }
        }
    }

    fn count(&mut self, reason: Reason) {
        let counter = match reason {
            Reason::Auth => &mut self.denials.auth,
            Reason::Command => &mut self.denials.command,
            Reason::Key => &mut self.denials.key,
            Reason::Channel => &mut self.denials.channel,
            Reason::Database => &mut self.denials.database,
        };
        *counter += 1;
    }

    /// The entries, newest first.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Numbers of denials since the start.
    pub fn denials(&self) -> Denials {
        self.denials
    }

    /// Sets the numbers to zero: `CONFIG RESETSTAT`.
    pub fn reset_denials(&mut self) {
        self.denials = Denials::default();
    }

    /// Drops all entries: `ACL LOG RESET`.
    pub fn reset(&mut self) {
        self.entries.clear();
    }
}
