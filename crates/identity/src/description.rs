//! Users in words: lines of `ACL LIST` and of files, fields of `ACL GETUSER`.

use crate::selector::Selector;
use crate::user::User;

/// A selector's fields in `ACL GETUSER`, each in rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorFields {
    /// `commands`.
    pub commands: Vec<u8>,
    /// `keys`.
    pub keys: Vec<u8>,
    /// `channels`.
    pub channels: Vec<u8>,
    /// `databases`, which Redis does not have: `alldbs`, `resetdbs` or `db=0,1`.
    pub databases: String,
}

/// A user's fields in `ACL GETUSER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserFields {
    /// `flags`.
    pub flags: Vec<&'static str>,
    /// `passwords`: hashes in hexadecimal.
    pub passwords: Vec<String>,
    /// The fields that stand beside `flags`.
    pub root: SelectorFields,
    /// `selectors`: the others.
    pub selectors: Vec<SelectorFields>,
}

impl Selector {
    /// Its fields in `ACL GETUSER`.
    pub fn fields(&self) -> SelectorFields {
        SelectorFields {
            commands: self.commands.description(),
            keys: self.keys.description(),
            channels: self.channels.description(),
            databases: self.databases.description(),
        }
    }

    /// The rules that make it, with blanks between.
    fn description(&self) -> Vec<u8> {
        let mut words = Vec::new();
        let keys = self.keys.description();
        if !keys.is_empty() {
            words.push(keys);
        }
        if !self.channels.all {
            words.push(b"resetchannels".to_vec());
        }
        let channels = self.channels.description();
        if !channels.is_empty() {
            words.push(channels);
        }
        if !self.databases.is_all() {
            words.push(self.databases.description().into_bytes());
        }
        words.push(self.commands.description());
        words.join(&b' ')
    }
}

impl User {
    /// The flags, in the order in which descriptions have them.
    pub fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.is_on() { "on" } else { "off" }];
        if self.needs_no_password() {
            flags.push("nopass");
        }
        flags.push(if self.skips_sanitizing() {
            "skip-sanitize-payload"
        } else {
            "sanitize-payload"
        });
        flags
    }

    /// The fields of `ACL GETUSER`.
    pub fn fields(&self) -> UserFields {
        UserFields {
            flags: self.flags(),
            passwords: self.passwords().iter().map(|hash| hash.to_hex()).collect(),
            root: self.selectors()[0].fields(),
            selectors: self.selectors()[1..].iter().map(Selector::fields).collect(),
        }
    }

    /// The rules that make the user out of a new one, with blanks between.
    pub fn description(&self) -> Vec<u8> {
        let mut words: Vec<Vec<u8>> =
            self.flags().into_iter().map(|flag| flag.as_bytes().to_vec()).collect();
        words.extend(self.passwords().iter().map(|hash| format!("#{}", hash.to_hex()).into()));
        words.push(self.selectors()[0].description());
        for selector in &self.selectors()[1..] {
            words.push([b"(", &selector.description()[..], b")"].concat());
        }
        words.join(&b' ')
    }

    /// The line of `ACL LIST` and of a file: `user NAME RULES`.
    pub fn line(&self) -> Vec<u8> {
        [b"user ", self.name(), b" ", &self.description()[..]].concat()
    }
}
