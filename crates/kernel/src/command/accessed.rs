//! What a command accesses, as rights know it: keys and what happens to them, channels, databases.

use crate::command::spec::CommandSpec;
use ladon_command_docs::{BeginSearch, FindKeys, KeySpec};
use ladon_identity::KeyAccess;
use smallvec::SmallVec;

/// The flags of a command's key (`COMMAND GETKEYSANDFLAGS`), out of its arguments.
pub type KeyFlags = fn(&[&[u8]]) -> &'static [&'static str];

/// Finds the databases that arguments name: each with its position.
pub type NamedDatabases = fn(&[&[u8]]) -> SmallVec<[(usize, u32); 2]>;

/// The channels among a command's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// It has none.
    None,
    /// The one at position 1.
    One,
    /// All arguments.
    All,
    /// All arguments, which are patterns.
    Patterns,
}

/// The databases that a command uses.
#[derive(Clone, Copy)]
pub enum Databases {
    /// The selected one, if it uses data.
    Selected,
    /// Those that the function finds.
    Named(NamedDatabases),
    /// The selected one and those that the function finds.
    SelectedAndNamed(NamedDatabases),
    /// All of them.
    Each,
}

/// What a command accesses.
#[derive(Clone, Copy)]
pub struct Accessed {
    pub(crate) key_specs: &'static [KeySpec],
    pub(crate) key_flags: Option<KeyFlags>,
    /// Channels.
    pub channels: Channels,
    /// Databases.
    pub databases: Databases,
}

impl CommandSpec {
    /// What happens to the key at this position, in the words of `COMMAND GETKEYSANDFLAGS`.
    pub fn key_flags(&self, args: &[&[u8]], at: usize) -> &'static [&'static str] {
        match (self.accessed.key_flags, self.key_spec(args, at)) {
            (Some(key_flags), _) => key_flags(args),
            (None, Some(spec)) => &spec.flags,
            (None, None) => &[],
        }
    }

    /// The keys among these arguments, and what happens to each.
    pub fn keys_with_access(&self, args: &[&[u8]]) -> impl Iterator<Item = (usize, KeyAccess)> {
        // As in Redis, the rights to what is refused anyway are not asked for.
        let is_refused = self.keys.lack_announced(args);
        self.keys.positions(args).filter(move |_| !is_refused).filter_map(|at| {
            if self.key_spec(args, at).is_none() {
                // Nobody knows, so everything is asked for.
                return Some((at, KeyAccess::BOTH));
            }
            let flags = self.key_flags(args, at);
            let has = |name: &&str| flags.contains(name);
            let write = ["insert", "update", "delete"].iter().any(has);
            // A channel that is routed as a key is no key.
            (!has(&"not_key")).then_some((at, KeyAccess { read: has(&"access"), write }))
        })
    }

    /// The fact about the key at this position.
    fn key_spec(&self, args: &[&[u8]], at: usize) -> Option<&'static KeySpec> {
        self.accessed.key_specs.iter().find(|spec| {
            // Of keys that depend on options, those after STORE are found.
            let begin = match spec.begin_search {
                BeginSearch::Index(begin) => begin,
                BeginSearch::Keyword { .. } => return true,
                BeginSearch::Unknown => return spec.flags.contains(&"OW"),
            };
            let begin = usize::try_from(begin).unwrap_or(0);
            match spec.find_keys {
                FindKeys::Range { last_key, .. } => {
                    let last = match usize::try_from(last_key) {
                        Ok(last) => begin + last,
                        Err(_) => args.len().saturating_sub(last_key.unsigned_abs() as usize),
                    };
                    (begin..=last).contains(&at)
                }
                FindKeys::Unknown => true,
                FindKeys::KeyNumber { first_key, .. } => {
                    at >= begin + usize::try_from(first_key).unwrap_or(0)
                }
            }
        })
    }
}
