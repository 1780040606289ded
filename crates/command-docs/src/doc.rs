//! One command's entry.

use crate::argument::Argument;
use crate::syntax;

/// Everything about one command or subcommand that does not execute it.
#[derive(Debug)]
pub struct CommandDoc {
    /// In lower case; a subcommand's follows its command's: `client|kill`.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The version of Redis that brought it.
    pub since: &'static str,
    /// Family.
    pub group: Group,
    /// How the time it takes grows; empty where nobody says.
    pub complexity: &'static str,
    /// What may be changed about it since: version, change.
    pub history: &'static [(&'static str, &'static str)],
    /// `deprecated`, `syscmd`.
    pub doc_flags: &'static [&'static str],
    /// Since when it is deprecated, and what to use instead.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// Its arguments in the notation of [`crate::parse`].
    pub syntax: &'static str,
    /// Number of words, the command's own (and its subcommand's) included; negative: at least.
    pub arity: i32,
    /// As `COMMAND INFO` says them, in its order.
    pub flags: &'static [&'static str],
    /// First key's position, last key's (negative: from the end), step; zeros: no keys, or not
    /// to be found that way.
    pub keys: (i32, i32, i32),
    /// Where the keys are and what happens to them.
    pub key_specs: &'static [KeySpec],
    /// Without the `@`, in the order of `COMMAND INFO`.
    pub acl_categories: &'static [&'static str],
    /// Hints for clients and proxies, as `request_policy:all_nodes`.
    pub tips: &'static [&'static str],
}

impl CommandDoc {
    /// What most commands of a group have in common: the base of the table's entries.
    pub(crate) const fn in_group(group: Group) -> CommandDoc {
        CommandDoc {
            name: "",
            summary: "",
            since: "",
            group,
            complexity: "O(1)",
            history: &[],
            doc_flags: &[],
            deprecated: None,
            syntax: "",
            arity: 0,
            flags: &[],
            keys: (0, 0, 0),
            key_specs: &[],
            acl_categories: &[],
            tips: &[],
        }
    }

    /// The arguments as the tree that `COMMAND DOCS` answers.
    pub fn arguments(&self) -> Vec<Argument> {
        // The table is constant and a test parses every entry.
        syntax::parse(self.syntax).expect("the table's syntax texts are well-formed")
    }

    /// A subcommand's command: `client` for `client|kill`.
    pub fn parent(&self) -> Option<&'static str> {
        self.name.split_once('|').map(|(parent, _)| parent)
    }

    /// This command's subcommands.
    pub fn subcommands(&self) -> impl Iterator<Item = &'static CommandDoc> + use<> {
        let name = self.name;
        crate::all().filter(move |doc| doc.parent() == Some(name))
    }
}

/// The families of Redis' documentation that have entries here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Group {
    Bitmap,
    Connection,
    Generic,
    Hash,
    List,
    Scripting,
    Server,
    Set,
    SortedSet,
    String,
    Transactions,
}

impl Group {
    /// As `COMMAND DOCS` says it.
    pub fn name(self) -> &'static str {
        match self {
            Group::Bitmap => "bitmap",
            Group::Connection => "connection",
            Group::Generic => "generic",
            Group::Hash => "hash",
            Group::List => "list",
            Group::Scripting => "scripting",
            Group::Server => "server",
            Group::Set => "set",
            Group::SortedSet => "sorted-set",
            Group::String => "string",
            Group::Transactions => "transactions",
        }
    }
}

/// How to find some of a command's keys, and what happens to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// A remark, where the flags need one.
    pub notes: Option<&'static str>,
    /// One of RO, RW, OW, RM; of access, update, insert, delete; and others.
    pub flags: &'static [&'static str],
    /// Where to begin.
    pub begin_search: BeginSearch,
    /// Which words from there on are keys.
    pub find_keys: FindKeys,
}

/// Where the search for keys begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginSearch {
    /// At this word; the command itself is word 0.
    Index(i32),
    /// Nobody can say without knowing the data.
    Unknown,
}

/// Which words are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindKeys {
    /// All from the beginning to a last one.
    Range {
        /// Relative to the beginning; negative: from the end, -1 being the last word.
        last_key: i32,
        /// Distance between keys.
        key_step: i32,
        /// If `last_key` is -1: divides the number of words to look at; 0 and 1: all.
        limit: i32,
    },
    /// As many as a word says.
    KeyNumber {
        /// That word, relative to the beginning.
        key_number_index: i32,
        /// First key, relative to the beginning.
        first_key: i32,
        /// Distance between keys.
        key_step: i32,
    },
    /// Nobody can say without knowing the data.
    Unknown,
}

impl KeySpec {
    /// Keys that follow from options or from data.
    pub(crate) const fn unknown(flags: &'static [&'static str]) -> KeySpec {
        let (begin_search, find_keys) = (BeginSearch::Unknown, FindKeys::Unknown);
        KeySpec { notes: None, flags, begin_search, find_keys }
    }

    /// Keys from word `index` on: last key, step, limit.
    pub(crate) const fn range(
        flags: &'static [&'static str],
        index: i32,
        (last_key, key_step, limit): (i32, i32, i32),
    ) -> KeySpec {
        let begin_search = BeginSearch::Index(index);
        KeySpec {
            notes: None,
            flags,
            begin_search,
            find_keys: FindKeys::Range { last_key, key_step, limit },
        }
    }

    /// Keys counted by a word: its place after word `index`, first key's place, step.
    pub(crate) const fn key_number(
        flags: &'static [&'static str],
        index: i32,
        (key_number_index, first_key, key_step): (i32, i32, i32),
    ) -> KeySpec {
        let begin_search = BeginSearch::Index(index);
        KeySpec {
            notes: None,
            flags,
            begin_search,
            find_keys: FindKeys::KeyNumber { key_number_index, first_key, key_step },
        }
    }

    pub(crate) const fn noted(self, notes: &'static str) -> KeySpec {
        KeySpec { notes: Some(notes), ..self }
    }
}
