//! Users and rights as plain data, and the matcher that compares a request with them.
//!
//! [`Users`] maps names to users. A [`User`] has passwords and [`Selector`]s; each selector lists
//! the commands, keys, channels and databases that it allows. A request may run if one selector
//! allows all of it ([`User::check`]). Rules in Redis' language ([`User::changed_by`]) make users,
//! and users describe themselves in that language ([`User::description`]).
//!
//! The language and the behaviour are those of `ACL` in Redis 7.2
//! (<https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/>), with the
//! databases of Valkey 9.1 (<https://valkey.io/topics/acl/>). Where Ladon deliberately differs,
//! the function that does says so:
//!
//! - [`Selector::apply`] refuses what Redis accepts and cannot describe afterwards;
//! - [`ConfiguredUsers::add`] names the rule that is wrong, not the word at its place in the line.
//!
//! **Architecture invariant:** this crate knows no command, no protocol and no engine. A caller
//! describes its commands in a [`CommandTable`] and a request in a [`Request`]. There is no lock,
//! clock, file or source of randomness here: times and random bytes are arguments, so that the
//! simulator decides them.

mod access_check;
mod acl_file;
mod audit_log;
mod command_rights;
mod command_table;
mod configured_users;
mod databases;
mod description;
mod generated_password;
mod key_patterns;
mod login;
mod password;
mod pattern;
mod rule_error;
mod rule_words;
mod selector;
mod subscriptions;
mod user;
mod users;

pub use access_check::{Channel, Denied, Key, Request, RequestDatabases};
pub use acl_file::{FileErrors, read_file, write_file};
pub use audit_log::{AuditLog, Context, Denials, Entry, Event, Field, Reason};
pub use command_rights::CommandRights;
pub use command_table::{CommandFacts, CommandId, CommandTable};
pub use configured_users::{ConfiguredUsers, LineError, LoadError};
pub use databases::DatabaseRights;
pub use description::{SelectorFields, UserFields};
pub use generated_password::{BITS_DEFAULT, BITS_MAX, BitsError, generate_password};
pub use key_patterns::{KeyAccess, KeyRights};
pub use login::Login;
pub use password::{PASSWORD_BYTES_MAX, PasswordHash};
pub use rule_error::{RuleError, RulesError};
pub use selector::{RuleContext, Selector};
pub use subscriptions::{ChannelsLeft, has_lost_keys};
pub use user::{Credentials, User};
pub use users::{DEFAULT_USER, DeleteError, NameError, SetError, Users, WRONG_PASSWORD};
