//! `user` lines of redis.conf.
//!
//! A line is checked when it is read and applied when all lines are read: until then the commands
//! may not be known.

use crate::pattern::has_blank;
use crate::rule_error::RuleError;
use crate::rule_words::join_selectors;
use crate::selector::RuleContext;
use crate::user::User;
use crate::users::Users;

/// A line that is wrong: a word of it, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    word: Vec<u8>,
    error: RuleError,
}

impl LineError {
    /// What is wrong, for the report that names the line.
    pub fn text(&self) -> Vec<u8> {
        let reason = format!("': {}", self.error);
        [b"Error in user declaration '", &self.word[..], reason.as_bytes()].concat()
    }
}

/// Users that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// A name with a blank or a zero byte in it.
    Name,
    /// A rule, the user, and why.
    Rule(Vec<u8>, Vec<u8>, RuleError),
}

impl LoadError {
    /// What is wrong, for the log.
    pub fn text(&self) -> Vec<u8> {
        match self {
            LoadError::Name => b"Spaces not allowed in ACL usernames".to_vec(),
            LoadError::Rule(rule, name, error) => {
                let reason = format!("': {error}");
                let parts: [&[u8]; 5] = [
                    b"Error loading ACL rule '",
                    rule,
                    b"' for the user named '",
                    name,
                    reason.as_bytes(),
                ];
                parts.concat()
            }
        }
    }
}

/// The users of a configuration.
#[derive(Clone, Debug, Default)]
pub struct ConfiguredUsers {
    /// Names and rules, in the order of the lines.
    users: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
}

impl ConfiguredUsers {
    /// Whether there is none. A configuration may have users or an `aclfile`, not both.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Takes a line in: a name and rules. An unknown command is no error yet.
    ///
    /// # Errors
    /// A name that another line has, or the rule that is wrong. (Redis 7 counts the rule from the
    /// line's first word, and so names another word.)
    pub fn add<'a>(
        &mut self,
        name: &[u8],
        rules: impl IntoIterator<Item = &'a [u8]>,
        context: RuleContext<'_>,
    ) -> Result<(), LineError> {
        let wrong = |word: &[u8], error| Err(LineError { word: word.to_vec(), error });
        if self.users.iter().any(|(known, _)| known == name) {
            return wrong(name, RuleError::DuplicateUser);
        }
        let rules = match join_selectors(rules) {
            Ok(rules) => rules,
            Err(word) => return wrong(&word, RuleError::Syntax),
        };
        let mut user = User::new(name, context);
        for rule in &rules {
            match user.apply(rule, context) {
                Ok(()) | Err(RuleError::UnknownCommand) => {}
                Err(error) => return wrong(rule, error),
            }
        }
        self.users.push((name.to_vec(), rules));
        Ok(())
    }

    /// Makes the users. Returns the names of those that are off, which may be a mistake.
    ///
    /// # Errors
    /// The first thing that is wrong; `users` is then unchanged.
    pub fn load(
        &self,
        users: &mut Users,
        context: RuleContext<'_>,
    ) -> Result<Vec<Vec<u8>>, LoadError> {
        let mut made = Vec::new();
        for (name, rules) in &self.users {
            if has_blank(name) {
                return Err(LoadError::Name);
            }
            let mut user = User::new(name, context);
            for rule in rules {
                user.apply(rule, context)
                    .map_err(|error| LoadError::Rule(rule.clone(), name.clone(), error))?;
            }
            made.push(user);
        }
        let off = made.iter().filter(|user| !user.is_on());
        let off = off.map(|user| user.name().to_vec()).collect();
        for user in made {
            users.insert(user);
        }
        Ok(off)
    }
}
