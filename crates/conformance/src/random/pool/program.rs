//! Words of scripts and functions.

use crate::random::program;
use crate::random::rng::Rng;

/// Kinds of words, named as in the grammar's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A program.
    Script,
    /// A program that every round knows.
    KnownScript,
    /// The hash of one of those.
    Hash,
    /// A library's code.
    Library,
    /// A library's name.
    LibraryName,
    /// A function's name.
    Function,
}

impl Word {
    pub(super) fn named(name: &str) -> Option<Word> {
        Some(match name {
            "script" => Word::Script,
            "knownscript" => Word::KnownScript,
            "hash-of-script" => Word::Hash,
            "library" => Word::Library,
            "libraryname" => Word::LibraryName,
            "function" => Word::Function,
            _ => return None,
        })
    }

    /// Makes one up.
    pub(super) fn make(self, rng: &mut Rng) -> Vec<u8> {
        match self {
            Word::Script => program::script(rng).into(),
            Word::KnownScript => program::known_script(rng).into(),
            Word::Hash => program::hash(rng).into(),
            Word::Library => program::library(rng).into(),
            Word::LibraryName => program::library_name(rng).into(),
            Word::Function => program::function_name(rng).into(),
        }
    }
}
