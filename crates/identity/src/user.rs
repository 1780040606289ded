//! A user: whether and with which passwords to log in, and what the user may do.

use crate::command_table::CommandTable;
use crate::password::{PASSWORD_BYTES_MAX, PasswordHash};
use crate::rule_error::{RuleError, RulesError};
use crate::rule_words::join_selectors;
use crate::selector::{RuleContext, Selector};

/// A user's name, flags, passwords and rights. Changing a user makes another one
/// ([`User::changed_by`]), so a refused change has changed nothing, and a connection may keep the
/// one that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: Vec<u8>,
    /// The first is the root: the rules outside of parentheses.
    selectors: Vec<Selector>,
    is_on: bool,
    no_password: bool,
    skips_sanitizing: bool,
    passwords: Vec<PasswordHash>,
    is_unlimited: bool,
    /// The generation of [`crate::Users`] that the name came with; 0 for a user of none.
    pub(crate) created: u64,
}

/// How a login ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// The user is on, and the password is one of the user's.
    Right,
    /// No such user, a wrong password, or the user is off. The reply must not tell which.
    Wrong,
}

impl User {
    /// A user who is off and may do nothing.
    pub fn new(name: &[u8], context: RuleContext<'_>) -> User {
        User {
            name: name.to_vec(),
            selectors: vec![Selector::new(context)],
            is_on: false,
            no_password: false,
            skips_sanitizing: false,
            passwords: Vec::new(),
            is_unlimited: false,
            created: 0,
        }
    }

    /// The user with these rules applied, left to right; all of them or, at an error, none.
    ///
    /// # Errors
    /// The first rule that is wrong, or a selector that does not end.
    pub fn changed_by<'a>(
        &self,
        rules: impl IntoIterator<Item = &'a [u8]>,
        context: RuleContext<'_>,
    ) -> Result<User, RulesError> {
        let mut user = self.clone();
        for rule in join_selectors(rules).map_err(RulesError::Unmatched)? {
            if let Err(error) = user.apply(&rule, context) {
                return Err(RulesError::Rule(rule, error));
            }
        }
        Ok(user)
    }

    /// Applies one rule. An empty one does nothing.
    ///
    /// # Errors
    /// As in Redis; see [`Selector::apply`]. The user is then unchanged.
    pub(crate) fn apply(&mut self, rule: &[u8], context: RuleContext<'_>) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            b"" => {}
            b"on" => self.is_on = true,
            b"off" => self.is_on = false,
            b"skip-sanitize-payload" => self.skips_sanitizing = true,
            b"sanitize-payload" => self.skips_sanitizing = false,
            b"nopass" => self.set_no_password(true),
            b"resetpass" => self.set_no_password(false),
            b"clearselectors" => self.selectors.truncate(1),
            b"reset" => {
                *self = User { created: self.created, ..User::new(&self.name, context) };
            }
            [b'>' | b'#', ..] => {
                let hash = password_of(rule)?;
                if !self.passwords.contains(&hash) {
                    self.passwords.push(hash);
                }
                self.no_password = false;
            }
            [b'<' | b'!', ..] => {
                let hash = password_of(rule)?;
                let place = self.passwords.iter().position(|known| *known == hash);
                self.passwords.remove(place.ok_or(RuleError::NoSuchPassword)?);
            }
            _ => match Selector::parse(rule, context) {
                Some(selector) => self.selectors.push(selector?),
                None => self.selectors[0].apply(rule, context)?,
            },
        }
        let mut selectors = self.selectors.iter();
        self.is_unlimited = selectors.any(|selector| selector.is_unlimited(context.table));
        Ok(())
    }

    fn set_no_password(&mut self, no_password: bool) {
        self.no_password = no_password;
        self.passwords.clear();
    }

    /// Whether `password` lets the user in. It takes the same time whichever password fits.
    pub fn authenticate(&self, password: &[u8]) -> Credentials {
        if password.len() > PASSWORD_BYTES_MAX && !self.no_password {
            return Credentials::Wrong;
        }
        // Any password will do without one, so a long one need not be looked at.
        let password = password.get(..PASSWORD_BYTES_MAX).unwrap_or(password);
        let hash = PasswordHash::of(password);
        let fits = self.passwords.iter().fold(false, |fits, known| fits | known.is_same(&hash));
        match self.is_on && (self.no_password || fits) {
            true => Credentials::Right,
            false => Credentials::Wrong,
        }
    }

    /// The name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Whether the user may log in. Connections that did stay when the user is turned off.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether any password lets the user in.
    pub fn needs_no_password(&self) -> bool {
        self.no_password
    }

    /// Whether the payloads that the user restores need not be checked.
    pub fn skips_sanitizing(&self) -> bool {
        self.skips_sanitizing
    }

    /// Hashes of the user's passwords, in the order in which they were added.
    pub fn passwords(&self) -> &[PasswordHash] {
        &self.passwords
    }

    /// The root selector and the added ones.
    pub fn selectors(&self) -> &[Selector] {
        &self.selectors
    }

    /// Whether nothing is forbidden, so that a request need not be looked at. It says nothing of
    /// commands that are not in the table that the rules were read with.
    pub fn is_unlimited(&self) -> bool {
        self.is_unlimited
    }

    /// Whether a check has to know a request's keys.
    pub fn checks_keys(&self) -> bool {
        !self.selectors.iter().all(|selector| selector.keys.is_all())
    }

    /// Whether a check has to know a request's channels.
    pub fn checks_channels(&self) -> bool {
        !self.selectors.iter().all(|selector| selector.channels.all)
    }

    /// Whether a check has to know a request's databases.
    pub fn checks_databases(&self) -> bool {
        !self.selectors.iter().all(|selector| selector.databases.is_all())
    }

    /// The user `default` as a server starts with: on, without a password, unlimited.
    pub(crate) fn unlimited(name: &[u8], table: &CommandTable) -> User {
        let context = RuleContext { table, all_channels_at_first: true };
        let rules: [&[u8]; 5] = [b"on", b"nopass", b"~*", b"&*", b"+@all"];
        User::new(name, context).changed_by(rules, context).expect("these are rules")
    }
}

/// The hash that a rule about a password means, given as a password or as a hash.
fn password_of(rule: &[u8]) -> Result<PasswordHash, RuleError> {
    match rule {
        [b'>' | b'<', password @ ..] if password.len() > PASSWORD_BYTES_MAX => {
            Err(RuleError::PasswordTooLong)
        }
        [b'>' | b'<', password @ ..] => Ok(PasswordHash::of(password)),
        _ => PasswordHash::parse(&rule[1..]).ok_or(RuleError::NotAHash),
    }
}
