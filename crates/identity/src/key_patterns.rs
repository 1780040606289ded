//! Which keys a selector may read and write.

use crate::pattern::{Pattern, has_blank};
use crate::rule_error::RuleError;

/// What is done with a key, or what a pattern allows.
///
/// A key specification's `access` is reading; `insert`, `update` and `delete` are writing. A
/// command that does neither (`EXISTS`, `TYPE`) needs any pattern that matches
/// (<https://redis.io/docs/latest/develop/reference/key-specs/>).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyAccess {
    /// Data of the key is returned, copied or used.
    pub read: bool,
    /// The key changes.
    pub write: bool,
}

impl KeyAccess {
    /// Neither.
    pub const NONE: KeyAccess = KeyAccess { read: false, write: false };
    /// Reading only.
    pub const READ: KeyAccess = KeyAccess { read: true, write: false };
    /// Writing only.
    pub const WRITE: KeyAccess = KeyAccess { read: false, write: true };
    /// Both.
    pub const BOTH: KeyAccess = KeyAccess { read: true, write: true };

    /// Whether this allows all of `wanted`.
    pub fn covers(self, wanted: KeyAccess) -> bool {
        self.read >= wanted.read && self.write >= wanted.write
    }

    fn or(self, other: KeyAccess) -> KeyAccess {
        KeyAccess { read: self.read || other.read, write: self.write || other.write }
    }

    /// What stands before a pattern that allows this.
    fn prefix(self) -> &'static [u8] {
        match (self.read, self.write) {
            (true, false) => b"%R~",
            (false, true) => b"%W~",
            _ => b"~",
        }
    }
}

/// The keys of a selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRights {
    /// All keys, in every way; then there are no patterns.
    all: bool,
    /// In the order in which they were added.
    patterns: Vec<(KeyAccess, Pattern)>,
}

impl KeyRights {
    /// Whether every key may be read and written.
    pub fn is_all(&self) -> bool {
        self.all
    }

    pub(crate) fn allow_all(&mut self) {
        *self = KeyRights { all: true, patterns: Vec::new() };
    }

    /// Adds the pattern of a rule `~...` or `%...~...`.
    ///
    /// `%R` without `~` is an empty pattern, as in Redis. A lone `%` is a syntax error here; Redis
    /// takes it, and ends when it has to describe it.
    pub(crate) fn add(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        if self.all {
            return Err(RuleError::KeysAreAll);
        }
        let (access, text) = split_rule(rule).ok_or(RuleError::Syntax)?;
        if has_blank(text) {
            return Err(RuleError::Syntax);
        }
        match self.patterns.iter_mut().find(|(_, known)| known.text() == text) {
            Some((known, _)) => *known = known.or(access),
            None => self.patterns.push((access, Pattern::new(text))),
        }
        Ok(())
    }

    /// Whether `key` may be used in this way.
    pub fn allows(&self, key: &[u8], wanted: KeyAccess) -> bool {
        let fits = |(access, pattern): &(KeyAccess, Pattern)| {
            access.covers(wanted) && pattern.matches(key)
        };
        self.all || self.patterns.iter().any(fits)
    }

    /// Whether every key that there may be can be used in this way, by one rule.
    pub fn allows_every_key(&self, wanted: KeyAccess) -> bool {
        let fits = |(access, pattern): &(KeyAccess, Pattern)| {
            access.covers(wanted) && pattern.text() == b"*"
        };
        self.all || self.patterns.iter().any(fits)
    }

    /// Whether every key that begins with `prefix` may be read, by one rule.
    pub fn allows_prefix(&self, prefix: &[u8]) -> bool {
        const SPECIAL: &[u8] = b"*?[]\\";
        let fits = |pattern: &[u8]| match pattern.split_last() {
            Some((b'*', head)) => {
                prefix.starts_with(head) && !head.iter().any(|byte| SPECIAL.contains(byte))
            }
            _ => false,
        };
        self.all || self.readable().any(fits)
    }

    /// Whether a rule allows to read all that this pattern matches: it has the very same one.
    pub(crate) fn has_readable(&self, pattern: &[u8]) -> bool {
        self.all || self.readable().any(|known| known == pattern)
    }

    /// The patterns of the keys that may be read.
    pub(crate) fn readable(&self) -> impl Iterator<Item = &[u8]> {
        let readable = self.patterns.iter().filter(|(access, _)| access.read);
        readable.map(|(_, pattern)| pattern.text())
    }

    /// The rules that make these rights, with blanks between.
    ///
    /// A pattern `*` for both reading and writing (`%RW~*`, or `%R~*` and `%W~*`) is described as
    /// `~*`, as in Redis, and alone: rules may not add a pattern to `~*`, so a description with
    /// more could not be read back. (The two differ for the empty key, which `*` does not match.)
    pub fn description(&self) -> Vec<u8> {
        if self.allows_every_key(KeyAccess::BOTH) {
            return b"~*".to_vec();
        }
        let rule =
            |(access, pattern): &(KeyAccess, Pattern)| [access.prefix(), pattern.text()].concat();
        self.patterns.iter().map(rule).collect::<Vec<_>>().join(&b' ')
    }
}

/// What a rule allows, and the text of its pattern.
fn split_rule(rule: &[u8]) -> Option<(KeyAccess, &[u8])> {
    match rule {
        [b'~', text @ ..] => Some((KeyAccess::BOTH, text)),
        [b'%', rest @ ..] => {
            let tilde = rest.iter().position(|&byte| byte == b'~').unwrap_or(rest.len());
            let mut access = KeyAccess::NONE;
            for letter in &rest[..tilde] {
                match letter.to_ascii_uppercase() {
                    b'R' if !access.read => access.read = true,
                    b'W' if !access.write => access.write = true,
                    _ => return None,
                }
            }
            (access != KeyAccess::NONE).then(|| (access, rest.get(tilde + 1..).unwrap_or_default()))
        }
        _ => None,
    }
}
