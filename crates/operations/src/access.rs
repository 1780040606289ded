//! Who may see what: a password, and protected mode as the Redis port has it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ladon_kernel::client::clients::DEFAULT_USER;
use ladon_settings::Settings;
use sha2::{Digest as _, Sha256};
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
    /// Decides by the peer and its `Authorization` header.
    pub fn of(settings: &Settings, peer: &Peer, authorization: Option<&[u8]>) -> Access {
        let password = password(settings);
        if password.is_empty() {
            let is_protected = settings.protected_mode() && !peer.is_local();
            return if is_protected { Access::Protected } else { Access::Granted };
        }
        let Some(authorization) = authorization else { return Access::Asked };
        match given(authorization) {
            Some(given) if is_same(password.as_bytes(), &given) => Access::Granted,
            _ => Access::Wrong,
        }
    }
}

/// The port's password: its own, or else that of the default user; empty for none.
fn password(settings: &Settings) -> String {
    let own = settings.http_admin_password();
    match own.is_empty() {
        true => settings.requirepass().to_string(),
        false => own.to_string(),
    }
}

/// Whether a start should say that other machines are refused.
pub(crate) fn is_protected(settings: &Settings) -> bool {
    settings.protected_mode() && password(settings).is_empty()
}

/// The password in a header: `Bearer PASSWORD`, or `Basic` with the name of the default user.
fn given(authorization: &[u8]) -> Option<Vec<u8>> {
    let blank = authorization.iter().position(|&byte| byte == b' ')?;
    let (scheme, rest) = (&authorization[..blank], authorization[blank..].trim_ascii());
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Some(rest.to_vec());
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let decoded = STANDARD.decode(rest).ok()?;
    let colon = decoded.iter().position(|&byte| byte == b':')?;
    (&decoded[..colon] == DEFAULT_USER.as_bytes()).then(|| decoded[colon + 1..].to_vec())
}

/// Compares digests, so that the time says nothing about the secret.
fn is_same(secret: &[u8], guess: &[u8]) -> bool {
    let (secret, guess) = (Sha256::digest(secret), Sha256::digest(guess));
    secret.iter().zip(&guess).fold(0, |sum, (one, other)| sum | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(settings: &[(&str, &str)], peer: &str, authorization: &str, expected: Access) {
        let all = Settings::new();
        all.set_many(settings).expect("settings");
        let peer = match peer {
            "unix" => Peer::Unix,
            address => Peer::Tcp(address.parse().expect("an address")),
        };
        let header = Some(authorization.as_bytes()).filter(|header| !header.is_empty());
        assert_eq!(Access::of(&all, &peer, header), expected, "{settings:?} {authorization}");
    }

    #[test]
    fn without_a_password_only_this_machine_may() {
        for peer in ["unix", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            check(&[], peer, "", Access::Granted);
        }
        for peer in ["10.0.0.1", "::ffff:10.0.0.1", "fe80::1"] {
            check(&[], peer, "", Access::Protected);
            check(&[], peer, "Bearer anything", Access::Protected);
            check(&[("protected-mode", "no")], peer, "", Access::Granted);
        }
    }

    #[test]
    fn a_password_is_asked_of_everybody() {
        let set = [("requirepass", "s3cret:")];
        for peer in ["unix", "127.0.0.1", "10.0.0.1"] {
            check(&set, peer, "", Access::Asked);
            check(&set, peer, "Bearer s3cret:", Access::Granted);
            check(&set, peer, "bearer   s3cret: ", Access::Granted);
            // default:s3cret:
            check(&set, peer, "Basic ZGVmYXVsdDpzM2NyZXQ6", Access::Granted);
            // admin:s3cret:
            check(&set, peer, "Basic YWRtaW46czNjcmV0Og==", Access::Wrong);
            for wrong in ["Bearer", "Bearer ", "Bearer s3cret", "Basic", "Basic !", "Digest x", " "]
            {
                check(&set, peer, wrong, Access::Wrong);
            }
        }
    }

    #[test]
    fn the_ports_own_password_is_the_only_one() {
        let set = [("requirepass", "one"), ("http-admin-password", "two")];
        check(&set, "127.0.0.1", "Bearer two", Access::Granted);
        check(&set, "127.0.0.1", "Bearer one", Access::Wrong);
    }
}
