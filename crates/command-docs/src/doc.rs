//! One command's entry.

use crate::argument::Argument;
use crate::syntax;

/// Everything about one command or subcommand that does not execute it.
#[derive(Debug, Default)]
pub struct CommandDoc {
    /// In lower case; a subcommand's follows its command's: `client|kill`.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The version of Redis that brought it.
    pub since: &'static str,
    /// Redis does not have it.
    pub own: bool,
    /// The family of Redis' documentation: `sorted-set`.
    pub group: &'static str,
    /// How the time it takes grows; empty where nobody says.
    pub complexity: &'static str,
    /// What may be changed about it since: version, change.
    pub history: Vec<(&'static str, &'static str)>,
    /// `deprecated`, `syscmd`.
    pub doc_flags: Vec<&'static str>,
    /// Since when it is deprecated, and what to use instead.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// Its arguments in the notation of [`crate::parse`].
    pub syntax: &'static str,
    /// Number of words, the command's own (and its subcommand's) included; negative: at least.
    pub arity: i16,
    /// As `COMMAND INFO` says them, in its order.
    pub flags: Vec<&'static str>,
    /// Where the keys are and what happens to them.
    pub key_specs: Vec<KeySpec>,
    /// Without the `@`, in the order of `COMMAND INFO`.
    pub acl_categories: Vec<&'static str>,
    /// Hints for clients and proxies, as `request_policy:all_nodes`.
    pub tips: Vec<&'static str>,
    /// What of it is missing.
    pub partly: Option<&'static str>,
    /// What is to be known about it.
    pub note: Option<&'static str>,
}

impl CommandDoc {
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

    /// First key's position, last key's (negative: from the end), step, of the ranges of keys that
    /// follow each other; zeros: no keys, or not to be found that way.
    pub fn key_range(&self) -> (i32, i32, i32) {
        let mut range = (0, 0, 0);
        for spec in &self.key_specs {
            let (BeginSearch::Index(index), FindKeys::Range { last_key, key_step, .. }) =
                (spec.begin_search, spec.find_keys)
            else {
                continue;
            };
            let last = if last_key < 0 { last_key } else { index + last_key };
            match range {
                (0, ..) => range = (index, last, key_step),
                (first, before, step) if before > 0 && index == before + step => {
                    range = (first, last, key_step);
                }
                _ => break,
            }
        }
        range
    }
}

/// How to find some of a command's keys, and what happens to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// A remark, where the flags need one.
    pub notes: Option<&'static str>,
    /// One of RO, RW, OW, RM; of access, update, insert, delete; and others.
    pub flags: Vec<&'static str>,
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
    /// Behind a word of the request, which is at `from` or after it.
    Keyword {
        /// In upper case.
        keyword: &'static str,
        /// Where the word is looked for first.
        from: i32,
    },
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
