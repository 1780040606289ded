//! The server's users, as this port knows them.

use ladon_identity::Users;
use ladon_kernel::access::Accounts;
use parking_lot::Mutex;
use std::sync::Arc;

/// The users, and the number of their last change.
pub(crate) struct KnownUsers(Mutex<(u64, Arc<Users>)>);

impl KnownUsers {
    pub(crate) fn new(accounts: &Accounts) -> KnownUsers {
        KnownUsers(Mutex::new((accounts.generation(), accounts.users())))
    }

    /// Asks for the users, which takes a lock that IO threads know, after they have changed only.
    pub(crate) fn now(&self, accounts: &Accounts) -> Arc<Users> {
        let mut known = self.0.lock();
        let generation = accounts.generation();
        if known.0 != generation {
            *known = (generation, accounts.users());
        }
        Arc::clone(&known.1)
    }
}
