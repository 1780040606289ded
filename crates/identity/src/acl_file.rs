//! The file of users (`aclfile`): one `user NAME RULES` a line, nothing else.
//!
//! Comments are errors, because `ACL SAVE` writes the file anew and would drop them. Reading finds
//! all errors of a file; with one of them, no user is taken.

use crate::pattern::has_blank;
use crate::rule_error::RuleError;
use crate::rule_words::join_selectors;
use crate::selector::RuleContext;
use crate::user::User;
use crate::users::Users;
use std::collections::BTreeSet;

/// What is wrong with a file, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileErrors(Vec<u8>);

impl FileErrors {
    /// All errors with their lines, for a log.
    pub fn text(&self) -> &[u8] {
        &self.0
    }

    /// The reply of `ACL LOAD`.
    pub fn reply(&self) -> Vec<u8> {
        [b"ERR ", &self.0[..]].concat()
    }
}

/// Users out of a file. `path` is for the errors.
///
/// # Errors
/// All that is wrong with the file, in Redis' words.
pub fn read_file(
    text: &[u8],
    path: &str,
    context: RuleContext<'_>,
) -> Result<Vec<User>, FileErrors> {
    let mut reader =
        Reader { path, context, errors: Vec::new(), names: BTreeSet::new(), users: Vec::new() };
    for (number, line) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        reader.line(number, line);
    }
    if reader.errors.is_empty() {
        return Ok(reader.users);
    }
    reader.errors.extend_from_slice(
        b"WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
    );
    Err(FileErrors(reader.errors))
}

/// The file that [`read_file`] makes the same users of.
pub fn write_file(users: &Users) -> Vec<u8> {
    users.iter().flat_map(|user| [user.line(), b"\n".to_vec()].concat()).collect()
}

struct Reader<'a> {
    path: &'a str,
    context: RuleContext<'a>,
    errors: Vec<u8>,
    /// Names so far, those of wrong lines too.
    names: BTreeSet<Vec<u8>>,
    users: Vec<User>,
}

impl Reader<'_> {
    fn line(&mut self, number: usize, line: &[u8]) {
        let place = format!("{}:{number}", self.path);
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        let mut words = line.split(|&byte| byte == b' ');
        let (Some(b"user"), Some(name)) = (words.next(), words.next()) else {
            return self.error(&[
                place.as_bytes(),
                b" should start with user keyword followed by the username. ",
            ]);
        };
        if has_blank(name) {
            let place = format!("'{place}: username '");
            return self.error(&[place.as_bytes(), name, b"' contains invalid characters. "]);
        }
        if !self.names.insert(name.to_vec()) {
            let place = format!("' found on line {number}. ");
            return self.error(&[b"WARNING: Duplicate user '", name, place.as_bytes()]);
        }
        match join_selectors(words) {
            Ok(rules) => self.user(&place, name, rules),
            Err(_) => {
                self.error(&[place.as_bytes(), b": Unmatched parenthesis in selector definition."])
            }
        }
    }

    /// Applies all rules of a line. Each unknown command is reported. Of the other errors only the
    /// first is, as the later ones may follow from it, and without its rule, which may have a
    /// password in it.
    fn user(&mut self, place: &str, name: &[u8], rules: Vec<Vec<u8>>) {
        let mut user = User::new(name, self.context);
        let mut is_named = false;
        for rule in &rules {
            let rule = rule.trim_ascii();
            let Err(error) = user.apply(rule, self.context) else { continue };
            let reason = format!("{error}. ");
            if error == RuleError::UnknownCommand {
                let before = format!("{place}: Error in applying operation '");
                self.error(&[before.as_bytes(), rule, b"': ", reason.as_bytes()]);
            } else if !is_named {
                is_named = true;
                self.error(&[place.as_bytes(), b": ", reason.as_bytes()]);
            }
        }
        self.users.push(user);
    }

    fn error(&mut self, parts: &[&[u8]]) {
        self.errors.extend(parts.concat());
    }
}
