//! A connection's user.

use crate::client::clients::CertificateNames;
use crate::client::session::Session;
use crate::node::Node;
use crate::pubsub::published::Kind;
use ladon_identity::{ChannelsLeft, User, has_lost_keys};
use ladon_settings::CertificateUser;
use std::sync::Arc;

/// A connection's user, as it was when the connection looked last.
#[derive(Clone, Debug)]
pub struct Access {
    /// The user.
    pub user: Arc<User>,
    /// The generation of the users that it is one of.
    seen: u64,
    /// The generation at which the connection was found logged in as a user who may do everything;
    /// 0 for none.
    free_at: u64,
}

/// What has become of a connection's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The connection goes on.
    Goes,
    /// The user was deleted, or has lost what comes to the connection without a request: a channel
    /// that it is subscribed to, keys of which it is told. The connection has to end.
    Gone,
}

impl Access {
    /// That of a new connection.
    pub fn of_new_connection(node: &Node) -> Access {
        let seen = node.accounts.generation();
        Access { user: Arc::clone(node.accounts.users().default_user()), seen, free_at: 0 }
    }

    /// That of a user out of the users of this generation.
    pub fn of(user: Arc<User>, seen: u64) -> Access {
        Access { user, seen, free_at: 0 }
    }

    /// That of the user of this name, if there is one that may log in.
    pub fn of_name(node: &Node, name: &[u8]) -> Option<Access> {
        let seen = node.accounts.generation();
        let users = node.accounts.users();
        let user = users.get(name).filter(|user| user.is_on());
        Some(Access::of(Arc::clone(user?), seen))
    }

    /// That of the user whom a client's certificate names, if that may log in.
    pub fn of_certificate(node: &Node, names: &CertificateNames) -> Option<Access> {
        let seen = node.accounts.generation();
        let users = node.accounts.users();
        let named = |name: &String| users.get(name.as_bytes()).filter(|user| user.is_on());
        let user = match node.settings.tls_auth_clients_user() {
            CertificateUser::Off => None,
            CertificateUser::CommonName => names.common_name.iter().find_map(named),
            CertificateUser::Uri => names.uris.iter().find_map(named),
        };
        Some(Access::of(Arc::clone(user?), seen))
    }

    /// That of a user whom another part of the server has let in; `None` if the user was deleted.
    pub fn of_user(node: &Node, user: &User) -> Option<Access> {
        let seen = node.accounts.generation();
        let users = node.accounts.users();
        users.current(user).map(|now| Access::of(Arc::clone(now), seen))
    }

    /// That of the same user as it is now; `None` if the user was deleted.
    pub(crate) fn renewed(&self, node: &Node) -> Option<Access> {
        // A change from now on is seen the next time.
        let generation = node.accounts.generation();
        let users = node.accounts.users();
        users.current(&self.user).map(|now| Access::of(Arc::clone(now), generation))
    }

    /// Whether nothing is to be checked: the user is logged in and may do everything.
    #[inline(always)]
    pub fn is_free(&self, node: &Node) -> bool {
        self.free_at == node.accounts.generation()
    }

    /// Looks whether the connection is free from now on. Its user is as it is now.
    fn note_free(&mut self, is_logged_in: bool) -> bool {
        let is_free = is_logged_in && self.user.is_unlimited();
        self.free_at = if is_free { self.seen } else { 0 };
        is_free
    }
}

/// Looks what has become of a connection's user since it looked last.
#[cold]
pub fn stands(node: &Node, session: &mut Session) -> Standing {
    if session.access.seen == node.accounts.generation() {
        return Standing::Goes;
    }
    let Some(now) = session.access.renewed(node) else { return Standing::Gone };
    let before = std::mem::replace(&mut session.access, now);
    let is_tracked = session.tracking.as_ref().is_some_and(|tracking| tracking.on);
    let has_lost = has_lost_channel(session, &before.user)
        || is_tracked && has_lost_keys(&before.user, &session.access.user);
    if has_lost { Standing::Gone } else { Standing::Goes }
}

/// Whether a connection subscribes to something that its user has lost.
fn has_lost_channel(session: &Session, before: &User) -> bool {
    let Some(subscribed) = &session.subscribed else { return false };
    let Some(left) = ChannelsLeft::after(before, &session.access.user) else { return false };
    let is_lost = |kind: Kind| {
        let is_pattern = kind == Kind::Pattern;
        subscribed.names(kind).iter().any(|name| !left.allows(name, is_pattern))
    };
    Kind::ALL.into_iter().any(is_lost)
}

impl Session {
    /// Whether the connection is free, after its user was looked up anew.
    pub(crate) fn note_free(&mut self, node: &Node) -> bool {
        let is_logged_in = self.authenticated || !node.requires_login();
        self.access.note_free(is_logged_in)
    }

    /// The connection is this user's from now on.
    pub fn log_in(&mut self, access: Access) {
        self.authenticated = true;
        self.info.set_user(access.user.name());
        self.access = access;
    }

    /// The connection is as a new one.
    pub fn log_out(&mut self, node: &Node) {
        self.access = Access::of_new_connection(node);
        self.authenticated = !node.requires_login();
        self.info.set_user(self.access.user.name());
    }
}
