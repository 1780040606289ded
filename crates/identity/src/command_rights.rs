//! Which commands a selector allows: a set of ids, and the rules that made it.
//!
//! The set answers in one look; the rules are kept for descriptions, because a set cannot tell
//! `+@hash` from its commands one by one, and a later version may have more of them. Rules are
//! kept in order, each command and category once: a rule replaces the earlier ones that it makes
//! void, so a list of rules does not grow with each change.

use crate::command_table::{CommandId, CommandTable};
use crate::pattern::has_blank;
use crate::rule_error::RuleError;
use std::collections::BTreeMap;

/// A rule `+NAME` or `-NAME` that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Applied {
    allow: bool,
    /// Lower case: a command, `container|subcommand`, `command|first argument` or `@category`.
    name: Vec<u8>,
}

/// The commands of a selector. A new one allows none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandRights {
    /// `+@all` was the last rule about all commands.
    starts_with_all: bool,
    /// One bit for each id.
    allowed: Vec<u64>,
    /// First arguments, in lower case, with which a command may run although its bit is not set.
    arguments: BTreeMap<CommandId, Vec<Vec<u8>>>,
    rules: Vec<Applied>,
}

impl CommandRights {
    /// Whether the command may run; `argument` is what follows its name.
    pub fn allows(
        &self,
        table: &CommandTable,
        command: CommandId,
        argument: Option<&[u8]>,
    ) -> bool {
        if self.has(command) || table.is_no_auth(command) {
            return true;
        }
        let (Some(allowed), Some(argument)) = (self.arguments.get(&command), argument) else {
            return false;
        };
        allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(argument))
    }

    /// Whether every command of the table may run.
    pub fn is_all(&self, table: &CommandTable) -> bool {
        table.ids().all(|id| self.has(id))
    }

    /// Applies a rule that begins with `+` or `-`.
    pub(crate) fn apply(&mut self, rule: &[u8], table: &CommandTable) -> Result<(), RuleError> {
        let (allow, name) = match rule {
            [b'+', name @ ..] => (true, name),
            [b'-', name @ ..] => (false, name),
            _ => return Err(RuleError::Syntax),
        };
        if name.eq_ignore_ascii_case(b"@all") {
            self.set_all(allow, table);
            return Ok(());
        }
        if let Some(category) = name.strip_prefix(b"@") {
            let bit = table.category(category).ok_or(RuleError::UnknownCommand)?;
            for id in table.ids().filter(|&id| table.is_in(id, bit)) {
                self.set(id, allow, table);
            }
            self.keep(allow, name);
            return Ok(());
        }
        match name.iter().rposition(|&byte| byte == b'|') {
            Some(bar) if allow => self.allow_part(name, bar, table),
            _ => {
                let id = table.find(name).ok_or(RuleError::UnknownCommand)?;
                self.set(id, allow, table);
                self.keep(allow, table.name(id).as_bytes());
                Ok(())
            }
        }
    }

    /// Allows or forbids everything, and forgets all rules before.
    pub(crate) fn set_all(&mut self, allow: bool, table: &CommandTable) {
        *self = CommandRights { starts_with_all: allow, ..CommandRights::default() };
        self.allowed.resize(table.len().div_ceil(64), 0);
        if allow {
            table.ids().for_each(|id| self.put(id, true));
        }
    }

    /// `+container|subcommand`, or `+command|argument` for a command without subcommands.
    ///
    /// An argument with a blank is a syntax error: Redis accepts it and then ends when it has to
    /// describe the user.
    fn allow_part(
        &mut self,
        name: &[u8],
        bar: usize,
        table: &CommandTable,
    ) -> Result<(), RuleError> {
        let (command, argument) = (&name[..bar], &name[bar + 1..]);
        let id = table.find(command).ok_or(RuleError::UnknownCommand)?;
        if table.parent(id).is_some() {
            return Err(RuleError::ArgumentOfSubcommand);
        }
        if argument.is_empty() {
            return Err(RuleError::Syntax);
        }
        if !table.subcommands(id).is_empty() {
            let subcommand = table.find(name).ok_or(RuleError::UnknownCommand)?;
            self.set(subcommand, true, table);
        } else if has_blank(argument) {
            return Err(RuleError::Syntax);
        } else {
            let (known, argument) = (self.arguments.entry(id).or_default(), lower(argument));
            if !known.contains(&argument) {
                known.push(argument);
            }
        }
        self.keep(true, name);
        Ok(())
    }

    /// Sets a command's bit and those of its subcommands. The command's allowed arguments go: an
    /// allowed command does not need them, a forbidden one loses them.
    fn set(&mut self, command: CommandId, allow: bool, table: &CommandTable) {
        self.put(command, allow);
        self.arguments.remove(&command);
        for &subcommand in table.subcommands(command) {
            self.put(subcommand, allow);
        }
    }

    /// Keeps a rule in the place of those that it makes void: the same name, and the subcommands
    /// and arguments of the command.
    fn keep(&mut self, allow: bool, name: &[u8]) {
        let name = lower(name);
        self.rules.retain(|rule| match rule.name.strip_prefix(&name[..]) {
            Some(rest) => !rest.is_empty() && rest[0] != b'|',
            None => true,
        });
        self.rules.push(Applied { allow, name });
    }

    fn has(&self, id: CommandId) -> bool {
        self.allowed.get(id.0 as usize / 64).is_some_and(|word| word >> (id.0 % 64) & 1 == 1)
    }

    fn put(&mut self, id: CommandId, allow: bool) {
        let (word, bit) = (id.0 as usize / 64, 1 << (id.0 % 64));
        if self.allowed.len() <= word {
            self.allowed.resize(word + 1, 0);
        }
        if allow {
            self.allowed[word] |= bit;
        } else {
            self.allowed[word] &= !bit;
        }
    }

    /// The rules that make these rights, with blanks between: first `+@all` or `-@all`.
    pub fn description(&self) -> Vec<u8> {
        let mut text = if self.starts_with_all { b"+@all".to_vec() } else { b"-@all".to_vec() };
        for rule in &self.rules {
            text.extend_from_slice(if rule.allow { b" +" } else { b" -" });
            text.extend_from_slice(&rule.name);
        }
        text
    }
}

fn lower(text: &[u8]) -> Vec<u8> {
    text.to_ascii_lowercase()
}
