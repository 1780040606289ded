//! Who may see what: a password, and protected mode as the Redis port has it.

use ladon_identity::{
    CommandTable, DEFAULT_USER, Login, PasswordHash, Request, RequestDatabases, User, Users,
};
use ladon_settings::Settings;
use std::net::IpAddr;

/// Where a connection comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A program on this machine, through a unix socket.
    Unix,
    /// An address.
    Tcp(IpAddr),
}

impl Peer {
    fn is_local(&self) -> bool {
        match self {
            Peer::Unix => true,
            Peer::Tcp(address) => address.to_canonical().is_loopback(),
        }
    }
}

/// What a request may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everything on this port.
    Granted,
    /// Protected mode: nothing.
    Protected,
    /// A password is needed, and none was given.
    Asked,
    /// The name or the password was wrong.
    Wrong,
}

impl Access {
    /// Decides by the peer and its `Authorization` header. `http-admin-password` is the only one, if
    /// it is set; otherwise users log in who may run `INFO`, which shows the same.
    pub fn of(
        settings: &Settings,
        (users, table): (&Users, &CommandTable),
        peer: &Peer,
        authorization: Option<&[u8]>,
    ) -> Access {
        let own = settings.http_admin_password();
        if own.is_empty() && users.default_user().needs_no_password() {
            let is_protected = settings.protected_mode() && !peer.is_local();
            return if is_protected { Access::Protected } else { Access::Granted };
        }
        let Some(authorization) = authorization else { return Access::Asked };
        let Some(Login { user, password }) = Login::of_header(authorization) else {
            return Access::Wrong;
        };
        let name = user.as_deref().unwrap_or(DEFAULT_USER);
        let is_right = if own.is_empty() {
            let user = users.authenticate(name, &password);
            user.is_some_and(|user| may_run_info(user, table))
        } else {
            name == DEFAULT_USER
                && PasswordHash::of(own.as_bytes()).is_same(&PasswordHash::of(&password))
        };
        if is_right { Access::Granted } else { Access::Wrong }
    }
}

/// Whether a start should say that other machines are refused.
pub(crate) fn is_protected(settings: &Settings, users: &Users) -> bool {
    settings.protected_mode()
        && settings.http_admin_password().is_empty()
        && users.default_user().needs_no_password()
}

fn may_run_info(user: &User, table: &CommandTable) -> bool {
    let Some(command) = table.find(b"info") else { return user.is_unlimited() };
    let databases = RequestDatabases::These(&[]);
    let request = Request { command, argument: None, keys: &[], channels: &[], databases };
    user.check(table, &request).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use ladon_identity::{CommandFacts, RuleContext};

    /// `password` is the default user's; there is a user `watcher` (password `w`) who may run `INFO`
    /// and one `other` (password `o`) who may not.
    #[track_caller]
    fn check(
        settings: &[(&str, &str)],
        password: &str,
        peer: &str,
        authorization: &str,
        expected: Access,
    ) {
        let all = Settings::new();
        all.set_many(settings).expect("settings");
        let facts =
            ["info", "get"].map(|name| CommandFacts { name, categories: &[], no_auth: false });
        let table = CommandTable::new(&[], facts);
        let context = RuleContext { table: &table, all_channels_at_first: false };
        let mut users = Users::new(&table);
        let password = Some(password.as_bytes()).filter(|password| !password.is_empty());
        users.set_default_password(password, context);
        for (name, rules) in [("watcher", ["on", ">w", "+info"]), ("other", ["on", ">o", "+get"])] {
            let rules = rules.map(str::as_bytes);
            assert!(users.set(name.as_bytes(), rules, context).is_ok(), "{name}");
        }
        let peer = match peer {
            "unix" => Peer::Unix,
            address => Peer::Tcp(address.parse().expect("an address")),
        };
        let header = Some(authorization.as_bytes()).filter(|header| !header.is_empty());
        let found = Access::of(&all, (&users, &table), &peer, header);
        assert_eq!(found, expected, "{settings:?} {peer:?} {authorization}");
    }

    fn basic(text: &str) -> String {
        format!("Basic {}", STANDARD.encode(text))
    }

    #[test]
    fn without_a_password_only_this_machine_may() {
        for peer in ["unix", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            check(&[], "", peer, "", Access::Granted);
        }
        for peer in ["10.0.0.1", "::ffff:10.0.0.1", "fe80::1"] {
            check(&[], "", peer, "", Access::Protected);
            check(&[], "", peer, "Bearer anything", Access::Protected);
            check(&[("protected-mode", "no")], "", peer, "", Access::Granted);
        }
    }

    #[test]
    fn a_password_is_asked_of_everybody() {
        for peer in ["unix", "127.0.0.1", "10.0.0.1"] {
            let check = |authorization: &str, expected| {
                check(&[], "s3cret:", peer, authorization, expected);
            };
            check("", Access::Asked);
            check("Bearer :s3cret:", Access::Granted);
            check("bearer   :s3cret: ", Access::Granted);
            check("Bearer watcher:w", Access::Granted);
            check("Bearer other:o", Access::Wrong);
            check(&basic("default:s3cret:"), Access::Granted);
            check(&basic("watcher:w"), Access::Granted);
            check(&basic("watcher:o"), Access::Wrong);
            check(&basic("other:o"), Access::Wrong);
            check(&basic("nobody:s3cret:"), Access::Wrong);
            for wrong in
                ["Bearer", "Bearer ", "Bearer s3cret:", "Basic", "Basic !", "Digest x", " "]
            {
                check(wrong, Access::Wrong);
            }
        }
    }

    #[test]
    fn the_ports_own_password_is_the_only_one() {
        let set = [("http-admin-password", "two")];
        check(&set, "one", "127.0.0.1", "Bearer two", Access::Granted);
        check(&set, "", "10.0.0.1", &basic("default:two"), Access::Granted);
        check(&set, "", "10.0.0.1", "", Access::Asked);
        check(&set, "one", "127.0.0.1", "Bearer one", Access::Wrong);
        check(&set, "one", "127.0.0.1", &basic("watcher:w"), Access::Wrong);
    }
}
