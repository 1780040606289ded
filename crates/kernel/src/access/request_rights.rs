//! A request as rights know it.

use crate::client::session::Session;
use crate::command::accessed::{Channels, Databases};
use crate::command::command_id::CommandId;
use crate::command::flags::Flags;
use crate::command::spec::{CommandSpec, KeyPositions};
use crate::node::Node;
use ladon_identity::{
    self as identity, Channel, Denied, Key, KeyAccess, Request, RequestDatabases, User,
};
use smallvec::SmallVec;

/// What a request asks for, as far as its user's rights depend on it.
pub struct Asked<'a> {
    command: identity::CommandId,
    argument: Option<&'a [u8]>,
    keys: SmallVec<[Key<'a>; 4]>,
    channels: SmallVec<[Channel<'a>; 2]>,
    databases: SmallVec<[(usize, u32); 2]>,
    each_database: bool,
    database_count: u32,
}

impl Asked<'_> {
    /// The request in the words of `ladon-identity`.
    pub fn request(&self) -> Request<'_> {
        Request {
            command: self.command,
            argument: self.argument,
            keys: &self.keys,
            channels: &self.channels,
            databases: match self.each_database {
                true => RequestDatabases::Each(self.database_count),
                false => RequestDatabases::These(&self.databases),
            },
        }
    }
}

/// What this command asks for with these arguments while database `db` is selected. What the user's
/// rights do not depend on is left out.
pub fn asked_by<'a>(
    node: &Node,
    user: &User,
    db: u16,
    id: CommandId,
    args: &'a [&'a [u8]],
) -> Asked<'a> {
    let entry = node.table.entry(id);
    let spec = entry.spec;
    // Behind the subcommand's name.
    let behind = if entry.parent.is_some() { 2 } else { 1 };
    let mut asked = Asked {
        command: identity::CommandId(id.0.into()),
        argument: args.get(behind).copied(),
        keys: SmallVec::new(),
        channels: SmallVec::new(),
        databases: SmallVec::new(),
        each_database: false,
        database_count: u32::try_from(node.settings.databases()).unwrap_or(u32::MAX),
    };
    if user.checks_keys() {
        let keys = spec.keys_with_access(args);
        asked.keys.extend(keys.map(|(word, access)| Key { word, name: args[word], access }));
    }
    if user.checks_channels() {
        asked.channels.extend(channels(spec.accessed.channels, args));
    }
    if user.checks_databases() {
        asked.add_databases(spec, db, args);
    }
    asked
}

fn channels<'a>(
    which: Channels,
    args: &'a [&'a [u8]],
) -> impl Iterator<Item = Channel<'a>> + use<'a> {
    let words = match which {
        Channels::None => 0..0,
        Channels::One => 1..args.len().min(2),
        Channels::All | Channels::Patterns => 1..args.len(),
    };
    let is_pattern = which == Channels::Patterns;
    words.map(move |word| Channel { word, name: args[word], is_pattern })
}

impl Asked<'_> {
    fn add_databases(&mut self, spec: &CommandSpec, db: u16, args: &[&[u8]]) {
        const DATA: u32 = Flags::WRITE.0 | Flags::READONLY.0;
        let selected = (0, u32::from(db));
        let uses_data = spec.flags.0 & DATA != 0 || !matches!(spec.keys, KeyPositions::None);
        match spec.accessed.databases {
            Databases::Selected => self.databases.extend(uses_data.then_some(selected)),
            Databases::Named(named) => self.databases = named(args),
            Databases::SelectedAndNamed(named) => {
                self.databases = named(args);
                self.databases.push(selected);
            }
            Databases::Each => self.each_database = true,
        }
    }
}

/// Whether the user may run this.
///
/// # Errors
/// What is denied.
pub fn may_run(
    node: &Node,
    user: &User,
    db: u16,
    id: CommandId,
    args: &[&[u8]],
) -> Result<(), Denied> {
    if user.is_unlimited() {
        return Ok(());
    }
    let asked = asked_by(node, user, db, id, args);
    user.check(&node.accounts.commands, &asked.request()).map(drop)
}

/// Whether the connection's user may run this and, beyond it, read every key.
pub fn may_read_every_key(node: &Node, session: &Session, args: &[&[u8]]) -> bool {
    let user = &session.access.user;
    let Some(id) = node.table.find_with_subcommand(args) else { return false };
    let asked = asked_by(node, user, session.db, id, args);
    user.allows_every_key(&node.accounts.commands, &asked.request(), KeyAccess::READ)
}
