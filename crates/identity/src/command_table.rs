//! What rules and checks have to know of commands: a name, categories, subcommands.
//!
//! The table is the caller's: this crate knows no command. An id is a command's place in the list
//! that the table was made from, so a caller that keeps that order needs no map of its own.

use std::collections::HashMap;

/// A command or a subcommand: its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u32);

impl CommandId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// One command, as the caller describes it.
#[derive(Clone, Copy, Debug)]
pub struct CommandFacts<'a> {
    /// Lower case; a subcommand is `container|subcommand`.
    pub name: &'a str,
    /// Names of its categories, without `@`. A name that the table does not know is left out.
    pub categories: &'a [&'a str],
    /// It runs without authentication, and no rule can forbid it (`AUTH`, `HELLO`, `RESET`).
    pub no_auth: bool,
}

#[derive(Debug)]
struct Command {
    name: Box<str>,
    /// One bit for each of its categories.
    categories: u64,
    no_auth: bool,
    parent: Option<CommandId>,
    subcommands: Vec<CommandId>,
}

/// All commands, subcommands among them.
#[derive(Debug)]
pub struct CommandTable {
    commands: Vec<Command>,
    ids: HashMap<Box<str>, CommandId>,
    categories: Vec<Box<str>>,
}

impl CommandTable {
    /// A table of `commands`, with the `categories` that there are.
    ///
    /// # Panics
    /// If there are more than 64 categories, or if two commands share a name.
    pub fn new<'a>(
        categories: &[&str],
        commands: impl IntoIterator<Item = CommandFacts<'a>>,
    ) -> CommandTable {
        assert!(categories.len() <= 64, "a category is one bit of 64");
        let commands = commands.into_iter();
        let count = commands.size_hint().0;
        let mut table = CommandTable {
            commands: Vec::with_capacity(count),
            ids: HashMap::with_capacity(count),
            categories: categories.iter().map(|&name| name.into()).collect(),
        };
        for facts in commands {
            let bits = facts.categories.iter().filter_map(|name| table.category(name.as_bytes()));
            let categories = bits.fold(0, |all, bit| all | bit);
            let id = CommandId(u32::try_from(table.commands.len()).expect("an id has 32 bits"));
            let before = table.ids.insert(facts.name.into(), id);
            assert!(before.is_none(), "two commands are called {}", facts.name);
            table.commands.push(Command {
                name: facts.name.into(),
                categories,
                no_auth: facts.no_auth,
                parent: None,
                subcommands: Vec::new(),
            });
        }
        table.link();
        table
    }

    /// Joins containers and their subcommands by name.
    fn link(&mut self) {
        for id in self.ids() {
            let name = &self.commands[id.index()].name;
            let Some((container, _)) = name.split_once('|') else { continue };
            let Some(&parent) = self.ids.get(container) else { continue };
            self.commands[id.index()].parent = Some(parent);
            self.commands[parent.index()].subcommands.push(id);
        }
    }

    /// Number of commands, subcommands included.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether there is no command.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Every id.
    pub fn ids(&self) -> impl Iterator<Item = CommandId> + use<> {
        (0..self.commands.len() as u32).map(CommandId)
    }

    /// The command of this name, in any case.
    pub fn find(&self, name: &[u8]) -> Option<CommandId> {
        let name = std::str::from_utf8(name).ok()?;
        self.ids.get(name.to_ascii_lowercase().as_str()).copied()
    }

    /// Its name: lower case, `container|subcommand` for a subcommand.
    pub fn name(&self, id: CommandId) -> &str {
        &self.commands[id.index()].name
    }

    /// Whether it runs without authentication.
    pub fn is_no_auth(&self, id: CommandId) -> bool {
        self.commands[id.index()].no_auth
    }

    /// The container of a subcommand.
    pub fn parent(&self, id: CommandId) -> Option<CommandId> {
        self.commands[id.index()].parent
    }

    /// The subcommands of a container.
    pub fn subcommands(&self, id: CommandId) -> &[CommandId] {
        &self.commands[id.index()].subcommands
    }

    /// The bit of a category, named in any case and without `@`.
    pub fn category(&self, name: &[u8]) -> Option<u64> {
        let same = |known: &str| known.as_bytes().eq_ignore_ascii_case(name);
        Some(1 << self.categories.iter().position(|known| same(known))?)
    }

    /// Whether the command is in one of the categories of these bits.
    pub fn is_in(&self, id: CommandId, categories: u64) -> bool {
        self.commands[id.index()].categories & categories != 0
    }
}
