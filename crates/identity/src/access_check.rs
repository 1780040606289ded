//! Whether a user may run a request.

use crate::command_table::{CommandId, CommandTable};
use crate::key_patterns::KeyAccess;
use crate::selector::Selector;
use crate::user::User;

/// A key of a request.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// Which word of the request it is; the command's name is word 0.
    pub word: usize,
    /// The key.
    pub name: &'a [u8],
    /// What the command does with it.
    pub access: KeyAccess,
}

/// A channel that a request publishes to or subscribes to. Leaving one needs no right.
#[derive(Clone, Copy, Debug)]
pub struct Channel<'a> {
    /// Which word of the request it is.
    pub word: usize,
    /// The channel or the pattern.
    pub name: &'a [u8],
    /// It is a pattern to subscribe to, as `PSUBSCRIBE` takes it.
    pub is_pattern: bool,
}

/// The databases that a request uses.
#[derive(Clone, Copy, Debug)]
pub enum RequestDatabases<'a> {
    /// These: each with the word that names it, or word 0 for the one that is selected. None for a
    /// command that does not touch the data.
    These(&'a [(usize, u32)]),
    /// All of a server that has so many (`FLUSHALL`).
    Each(u32),
}

/// What a check has to know of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The command, or the subcommand.
    pub command: CommandId,
    /// The word behind the command's name.
    pub argument: Option<&'a [u8]>,
    /// Its keys; may be left empty if the user does not need them ([`User::checks_keys`]).
    pub keys: &'a [Key<'a>],
    /// Its channels; as for the keys.
    pub channels: &'a [Channel<'a>],
    /// Its databases; as for the keys.
    pub databases: RequestDatabases<'a>,
}

/// Why a request may not run. The order is the one of weight: of what several selectors deny, the
/// greatest is reported, as the selector that got furthest has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denied {
    /// A database; the word that names it, 0 if none does.
    Database(usize),
    /// The command.
    Command,
    /// The key at this word.
    Key(usize),
    /// The channel at this word.
    Channel(usize),
}

impl Denied {
    /// The word of the request that is denied: what the log of denials shows as the object, except
    /// for a command, which it calls by its full name.
    pub fn word(self) -> usize {
        match self {
            Denied::Command => 0,
            Denied::Database(word) | Denied::Key(word) | Denied::Channel(word) => word,
        }
    }

    /// What a client and a script are told, without an error code. It names no key and no channel.
    pub fn reason(self, user: &User, command: &str) -> Vec<u8> {
        match self {
            Denied::Command => {
                let run = format!(" has no permissions to run the '{command}' command");
                [b"User ", user.name(), run.as_bytes()].concat()
            }
            Denied::Key(_) => b"No permissions to access a key".to_vec(),
            Denied::Channel(_) => b"No permissions to access a channel".to_vec(),
            Denied::Database(_) => b"No permissions to access database".to_vec(),
        }
    }

    /// The error that a client gets. `command` is the full name, `config|set`.
    pub fn reply(self, user: &User, command: &str) -> Vec<u8> {
        [b"NOPERM ", &self.reason(user, command)[..]].concat()
    }

    /// The error that a script gets.
    pub fn script_reply(self, user: &User, command: &str) -> Vec<u8> {
        [b"ERR ACL failure in script: ", &self.reason(user, command)[..]].concat()
    }

    /// What `ACL DRYRUN` replies, as a bulk string. `object` is the word that is denied.
    pub fn dry_run(self, user: &User, command: &str, object: &[u8]) -> Vec<u8> {
        let (before, after): (&[u8], &[u8]) = match self {
            Denied::Command => return self.reason(user, command),
            Denied::Key(_) => (b"the '", b"' key"),
            Denied::Channel(_) => (b"the '", b"' channel"),
            Denied::Database(_) => (b"database ", b""),
        };
        [b"User ", user.name(), b" has no permissions to access ", before, object, after].concat()
    }
}

impl Selector {
    fn check(&self, table: &CommandTable, request: &Request<'_>) -> Result<(), Denied> {
        self.check_databases(request.databases)?;
        if !self.commands.allows(table, request.command, request.argument) {
            return Err(Denied::Command);
        }
        let denied = |key: &&Key<'_>| !self.keys.allows(key.name, key.access);
        if let Some(key) = request.keys.iter().find(denied) {
            return Err(Denied::Key(key.word));
        }
        let denied =
            |channel: &&Channel<'_>| !self.channels.allows(channel.name, channel.is_pattern);
        match request.channels.iter().find(denied) {
            Some(channel) => Err(Denied::Channel(channel.word)),
            None => Ok(()),
        }
    }

    fn check_databases(&self, databases: RequestDatabases<'_>) -> Result<(), Denied> {
        match databases {
            RequestDatabases::Each(count) if self.databases.allows_each(count) => Ok(()),
            RequestDatabases::Each(_) => Err(Denied::Database(0)),
            RequestDatabases::These(named) => {
                let denied = |&&(_, database): &&(usize, u32)| !self.databases.allows(database);
                named.iter().find(denied).map_or(Ok(()), |&(word, _)| Err(Denied::Database(word)))
            }
        }
    }
}

impl User {
    /// Whether one selector allows all of the request: the first that does, 0 being the root.
    ///
    /// # Errors
    /// What to report. If a selector allows the command, the last key or channel that no selector
    /// got over; otherwise the command.
    pub fn check(&self, table: &CommandTable, request: &Request<'_>) -> Result<usize, Denied> {
        let mut reported = Denied::Database(0);
        for (place, selector) in self.selectors().iter().enumerate() {
            match selector.check(table, request) {
                Ok(()) => return Ok(place),
                Err(denied) => reported = reported.max(denied),
            }
        }
        Err(reported)
    }

    /// Whether one selector allows the request and, beyond it, every key in this way: what `SORT`
    /// needs for patterns in `BY` and `GET`, whose keys only the data tells.
    pub fn allows_every_key(
        &self,
        table: &CommandTable,
        request: &Request<'_>,
        access: KeyAccess,
    ) -> bool {
        let allows = |selector: &Selector| {
            selector.keys.allows_every_key(access) && selector.check(table, request).is_ok()
        };
        self.selectors().iter().any(allows)
    }

    /// Whether one selector allows the key in this way, whatever the command.
    pub fn allows_key(&self, key: &[u8], access: KeyAccess) -> bool {
        self.selectors().iter().any(|selector| selector.keys.allows(key, access))
    }

    /// Whether one selector allows to read every key that begins with `prefix`, whatever the
    /// command.
    pub fn allows_prefix(&self, prefix: &[u8]) -> bool {
        self.selectors().iter().any(|selector| selector.keys.allows_prefix(prefix))
    }

    /// Whether one selector allows the channel, whatever the command.
    pub fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.selectors().iter().any(|selector| selector.channels.allows(channel, is_pattern))
    }
}
