//! A table of commands with lookup by name. `families.rs` builds the only one.

use crate::command::command_id::CommandId;
use crate::command::spec::{Code, CommandSpec};
use ladon_command_docs::CommandDoc;

/// Entry of the table: a command, or a subcommand with its container.
pub struct Entry {
    /// What it is.
    pub spec: &'static CommandSpec,
    /// Its documentation.
    pub doc: &'static CommandDoc,
    /// The container of a subcommand.
    pub parent: Option<CommandId>,
    /// `get`, or `client|list`.
    pub full_name: String,
    /// A container's subcommands.
    pub subcommands: Vec<CommandId>,
}

/// All commands by number and by name.
pub struct CommandTable {
    entries: Vec<Entry>,
    /// Open addressing by `slot_of`; top-level names only.
    slots: Box<[Slot; SLOTS]>,
}

/// Several times the number of commands, so that most names hit at once.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 11;

impl CommandTable {
    /// The table of these families' commands, which lasts as long as the process.
    ///
    /// # Panics
    /// When there are no facts about one of them; a test makes the table.
    pub fn of(families: &[&'static [Code]]) -> CommandTable {
        let mut table = CommandTable { entries: Vec::new(), slots: Box::new([FREE; SLOTS]) };
        for code in families.iter().copied().flatten() {
            let id = table.push(code, None);
            let new = Slot::new(code.name, id.0);
            let mut slot = slot_of(new.word, code.name.len());
            while table.slots[slot].index != FREE.index {
                slot = (slot + 1) % SLOTS;
            }
            table.slots[slot] = new;
        }
        table
    }

    fn push(&mut self, code: &'static Code, parent: Option<CommandId>) -> CommandId {
        let id = CommandId(self.entries.len() as u16);
        let full_name = match parent {
            Some(parent) => format!("{}|{}", self.entry(parent).spec.name, code.name),
            None => code.name.to_owned(),
        };
        let doc = ladon_command_docs::find(&full_name)
            .unwrap_or_else(|| panic!("{full_name}: no facts in command-docs/commands.txt"));
        let spec = Box::leak(Box::new(CommandSpec::new(doc, code)));
        self.entries.push(Entry { spec, doc, parent, full_name, subcommands: Vec::new() });
        for subcommand in code.subcommands {
            let subcommand = self.push(subcommand, Some(id));
            self.entries[usize::from(id.0)].subcommands.push(subcommand);
        }
        id
    }

    /// The command of this name, whatever its case.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<CommandId> {
        let word = word_of(name);
        let mut slot = slot_of(word, name.len());
        loop {
            let found = &self.slots[slot];
            if found.index == FREE.index {
                return None;
            }
            if found.word == word && usize::from(found.length) == name.len() {
                let full = || self.entries[usize::from(found.index)].spec.name.as_bytes();
                if found.exact || full().eq_ignore_ascii_case(name) {
                    return Some(CommandId(found.index));
                }
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// The subcommand of this name.
    pub fn find_subcommand(&self, container: CommandId, name: &[u8]) -> Option<CommandId> {
        self.entry(container)
            .subcommands
            .iter()
            .copied()
            .find(|&id| self.spec(id).name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// The command of these words, or the subcommand if they name one.
    pub fn find_with_subcommand(&self, words: &[&[u8]]) -> Option<CommandId> {
        let id = self.find(words.first()?)?;
        let subcommand = words.get(1).and_then(|name| self.find_subcommand(id, name));
        Some(subcommand.unwrap_or(id))
    }

    /// The command or subcommand with a name like `client|list`.
    pub fn find_full(&self, name: &[u8]) -> Option<CommandId> {
        match name.iter().position(|&byte| byte == b'|') {
            Some(at) => self.find_subcommand(self.find(&name[..at])?, &name[at + 1..]),
            None => self.find(name),
        }
    }

    /// An entry.
    #[inline]
    pub fn entry(&self, id: CommandId) -> &Entry {
        &self.entries[usize::from(id.0)]
    }

    /// A command's data.
    #[inline]
    pub fn spec(&self, id: CommandId) -> &'static CommandSpec {
        self.entry(id).spec
    }

    /// All entries, subcommands right after their container.
    pub fn iter(&self) -> impl Iterator<Item = (CommandId, &Entry)> {
        self.entries.iter().enumerate().map(|(index, entry)| (CommandId(index as u16), entry))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no commands (there are).
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// A slot in the hash table of names.
#[derive(Clone, Copy)]
struct Slot {
    /// See `word_of`.
    word: u64,
    index: u16,
    length: u8,
    /// The word and the length identify the name, so it need not be compared.
    exact: bool,
}

const FREE: Slot = Slot { word: 0, index: u16::MAX, length: 0, exact: false };

impl Slot {
    fn new(name: &str, index: u16) -> Slot {
        // Every byte that folding turns into a letter is that letter in one of its cases.
        let exact = name.len() <= 8 && name.bytes().all(|byte| byte.is_ascii_alphabetic());
        Slot { word: word_of(name.as_bytes()), index, length: name.len() as u8, exact }
    }
}

/// First and last bytes in one word, letters without case: all bytes of a name of up to eight.
#[inline]
fn word_of(name: &[u8]) -> u64 {
    const FOLD: u64 = 0x2020_2020_2020_2020;
    let four = |at: usize| {
        let bytes = name[at..].first_chunk().copied().unwrap_or_default();
        u64::from(u32::from_le_bytes(bytes))
    };
    let word = match name.len() {
        0 => 0,
        length @ 1..=3 => {
            let byte = |at: usize| u64::from(name[at]);
            byte(0) | byte(length / 2) << 8 | byte(length - 1) << 16
        }
        length => four(0) | four(length - 4) << 32,
    };
    word | FOLD
}

#[inline]
fn slot_of(word: u64, length: usize) -> usize {
    ((word ^ length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOT_BITS)) as usize
}
