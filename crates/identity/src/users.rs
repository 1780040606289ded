//! All users by name, with a number that changes when one of them does.
//!
//! A connection keeps the `Arc` of its user and the generation that it saw last. Before a request
//! it compares one number; if that differs, [`Users::current`] gives it the user as it is now, or
//! tells it that the user was deleted and the connection has to end.

use crate::command_table::CommandTable;
use crate::pattern::has_blank;
use crate::rule_error::RulesError;
use crate::selector::RuleContext;
use crate::user::{Credentials, User};
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// The user of a connection that has not named another one.
pub const DEFAULT_USER: &[u8] = b"default";

/// The reply to a login that failed, whatever the cause.
pub const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// A change of a user that was refused; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// The name cannot be a user's.
    Name(NameError),
    /// A rule is wrong.
    Rules(RulesError),
}

/// A name with a blank or a zero byte in it.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("ERR Usernames can't contain spaces or null characters")]
pub struct NameError;

/// The default user cannot be deleted.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("ERR The 'default' user cannot be removed")]
pub struct DeleteError;

impl SetError {
    /// The reply of `ACL SETUSER`, its error code included.
    pub fn reply(&self) -> Vec<u8> {
        match self {
            SetError::Name(error) => error.to_string().into_bytes(),
            SetError::Rules(error) => error.reply(),
        }
    }
}

/// All users. There is always a user [`DEFAULT_USER`].
#[derive(Clone, Debug)]
pub struct Users {
    users: BTreeMap<Vec<u8>, Arc<User>>,
    generation: u64,
}

impl Users {
    /// The default user, who is unlimited and needs no password, and no other.
    pub fn new(table: &CommandTable) -> Users {
        let mut users = Users { users: BTreeMap::new(), generation: 0 };
        users.insert(User::unlimited(DEFAULT_USER, table));
        users
    }

    /// A number that grows with each change.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The user of this name.
    pub fn get(&self, name: &[u8]) -> Option<&Arc<User>> {
        self.users.get(name)
    }

    /// The default user.
    pub fn default_user(&self) -> &Arc<User> {
        &self.users[DEFAULT_USER]
    }

    /// All users, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<User>> {
        self.users.values()
    }

    /// Whether a new connection is logged in as the default user.
    pub fn new_connections_are_in(&self) -> bool {
        let user = self.default_user();
        user.is_on() && user.needs_no_password()
    }

    /// The user who may log in with this password. An unknown name takes as long as a known one
    /// with one password.
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<&Arc<User>> {
        match self.get(name) {
            Some(user) => (user.authenticate(password) == Credentials::Right).then_some(user),
            None => {
                std::hint::black_box(self.default_user().authenticate(password));
                None
            }
        }
    }

    /// The user whom a connection holds, as it is now; `None` if it was deleted, even if there is
    /// another one of that name by now.
    pub fn current(&self, held: &User) -> Option<&Arc<User>> {
        self.get(held.name()).filter(|user| user.created == held.created)
    }

    /// Makes or changes a user: `ACL SETUSER`. Returns the user as it was before.
    ///
    /// # Errors
    /// A name or a rule that is wrong; nothing was changed.
    pub fn set<'a>(
        &mut self,
        name: &[u8],
        rules: impl IntoIterator<Item = &'a [u8]>,
        context: RuleContext<'_>,
    ) -> Result<Option<Arc<User>>, SetError> {
        if has_blank(name) {
            return Err(SetError::Name(NameError));
        }
        let changed = match self.get(name) {
            Some(user) => user.changed_by(rules, context),
            None => User::new(name, context).changed_by(rules, context),
        };
        Ok(self.insert(changed.map_err(SetError::Rules)?))
    }

    /// Gives the default user this password and no other, or none at all: `requirepass`.
    ///
    /// # Panics
    /// If the password is longer than [`PASSWORD_BYTES_MAX`](crate::PASSWORD_BYTES_MAX).
    pub fn set_default_password(&mut self, password: Option<&[u8]>, context: RuleContext<'_>) {
        let rule = password.map_or(b"nopass".to_vec(), |password| [b">", password].concat());
        let mut user = User::clone(self.default_user());
        for rule in [&b"resetpass"[..], &rule] {
            user.apply(rule, context).expect("any password of this length will do");
        }
        self.insert(user);
    }

    /// Deletes the users of these names that there are: `ACL DELUSER`. Returns their number.
    ///
    /// # Errors
    /// The default user is among them; none was deleted.
    pub fn delete<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a [u8], IntoIter: Clone>,
    ) -> Result<usize, DeleteError> {
        let names = names.into_iter();
        if names.clone().any(|name| name == DEFAULT_USER) {
            return Err(DeleteError);
        }
        let deleted = names.filter(|&name| self.users.remove(name).is_some()).count();
        self.generation += u64::from(deleted > 0);
        Ok(deleted)
    }

    /// Replaces all users: `ACL LOAD`. One who has the name of a user before is that user,
    /// changed, so connections stay. Without a default user among them there is one as in
    /// [`Users::new`].
    pub fn replace(&mut self, users: Vec<User>, table: &CommandTable) {
        let before = std::mem::take(&mut self.users);
        self.generation += 1;
        let unlimited = User::unlimited(DEFAULT_USER, table);
        for mut user in std::iter::once(unlimited).chain(users) {
            let known = before.get(user.name());
            user.created = known.map_or(self.generation, |known| known.created);
            self.users.insert(user.name().to_vec(), Arc::new(user));
        }
    }

    /// Puts a user in the place of the one of its name, or beside the others.
    pub(crate) fn insert(&mut self, mut user: User) -> Option<Arc<User>> {
        self.generation += 1;
        user.created = self.get(user.name()).map_or(self.generation, |known| known.created);
        self.users.insert(user.name().to_vec(), Arc::new(user))
    }
}
