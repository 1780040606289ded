//! The users of a node.

use crate::command::table::CommandTable;
use crate::message::{Message, ThreadHandle};
use ladon_identity::{self as identity, AuditLog, CommandFacts, RuleContext, Users};
use ladon_settings::Settings;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

/// Redis' categories, in its order.
pub const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// The users of a node, and what was denied to them.
pub struct Accounts {
    /// The commands as rules name them, in the order of the command table.
    pub commands: identity::CommandTable,
    users: Mutex<Arc<Users>>,
    /// The users' own number; changes after them.
    generation: AtomicU64,
    /// `ACL LOG`, and the numbers of denials.
    pub denials: Mutex<AuditLog>,
    threads: Arc<[ThreadHandle]>,
}

impl Accounts {
    /// The default user, who may do everything, and has the password of `requirepass`.
    pub(crate) fn new(
        table: &CommandTable,
        settings: &Settings,
        threads: Arc<[ThreadHandle]>,
    ) -> Accounts {
        let facts = table.iter().map(|(_, entry)| CommandFacts {
            name: &entry.full_name,
            categories: &entry.doc.acl_categories,
            no_auth: entry.doc.flags.contains(&"no_auth"),
        });
        let commands = identity::CommandTable::new(&CATEGORIES, facts);
        let users = Users::new(&commands);
        let accounts = Accounts {
            generation: users.generation().into(),
            users: Mutex::new(Arc::new(users)),
            commands,
            denials: Mutex::default(),
            threads,
        };
        if !settings.requirepass().is_empty() {
            accounts.set_default_password(&settings.requirepass(), settings);
        }
        accounts
    }

    /// A number that grows with each change of the users.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    /// The users as they are now.
    pub fn users(&self) -> Arc<Users> {
        Arc::clone(&self.users.lock())
    }

    /// What rules are read with.
    pub fn context(&self, settings: &Settings) -> RuleContext<'_> {
        RuleContext {
            table: &self.commands,
            all_channels_at_first: settings.acl_pubsub_default().allows_all(),
        }
    }

    /// Changes the users. Whoever was answered afterwards meets no right that is gone, and the IO
    /// threads look after their connections.
    pub fn change<R>(&self, change: impl FnOnce(&mut Users) -> R) -> R {
        let mut users = self.users.lock();
        let mut next = Users::clone(&users);
        let result = change(&mut next);
        let generation = next.generation();
        if generation != users.generation() {
            *users = Arc::new(next);
            self.generation.store(generation, Release);
            drop(users);
            self.threads.iter().for_each(|thread| thread.send(Message::UsersChanged));
        }
        result
    }

    /// Gives the default user this password and no other; none if it is empty: `requirepass`.
    pub fn set_default_password(&self, password: &str, settings: &Settings) {
        let password = (!password.is_empty()).then_some(password.as_bytes());
        let context = self.context(settings);
        self.change(|users| users.set_default_password(password, context));
    }
}
