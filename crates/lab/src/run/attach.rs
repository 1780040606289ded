//! Servers that run already, a cloud's managed one for example: where, with TLS or not, logged in
//! how.

use std::io;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::server_facts::{self, ServerFacts};
use crate::dialects::Dialect;
use crate::dialects::http::Http;
use crate::dialects::http_commands::HttpCommands;
use crate::dialects::iproto::Iproto;
use crate::dialects::memcached::Memcached;
use crate::dialects::prefixed::Prefixed;
use crate::dialects::resp::Resp;
use crate::load::random::mix;
use crate::load::stream::Target;
use crate::systems::control::Control;
use crate::systems::system::{DriverKind, Promise};
use crate::systems::{redisearch, tarantool};

/// A server to measure that the lab did not start.
#[derive(Debug)]
pub struct Attached {
    /// Its name in tables.
    pub name: String,
    /// Where it is.
    pub target: Target,
    driver: DriverKind,
    user: Option<String>,
    password: Option<String>,
    told: ServerFacts,
    /// See [`Prefixed`].
    pass: AtomicU16,
}

/// Scheme, protocol, and whether it is encrypted.
const SCHEMES: [(&str, DriverKind, bool); 6] = [
    ("redis", DriverKind::Resp, false),
    ("rediss", DriverKind::Resp, true),
    ("tarantool", DriverKind::Iproto, false),
    ("memcached", DriverKind::MemcachedText, false),
    ("http", DriverKind::Http, false),
    ("https", DriverKind::Http, true),
];

impl Attached {
    /// Reads `NAME=HOST:PORT` or `NAME=SCHEME://USER:PASSWORD@HOST:PORT`; certificates are checked
    /// against `authorities`, or against the system's.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str, authorities: Option<&Path>) -> Result<Self, String> {
        let shape = "NAME=HOST:PORT or NAME=SCHEME://USER:PASSWORD@HOST:PORT";
        let (name, address) =
            text.split_once('=').ok_or_else(|| format!("`{}`: {shape}", without_password(text)))?;
        if name.is_empty() {
            return Err(format!("`{}`: {shape}", without_password(text)));
        }
        let (scheme, rest) = address.split_once("://").unwrap_or(("redis", address));
        let known = SCHEMES.iter().find(|(known, ..)| *known == scheme);
        let &(_, driver, encrypted) = known.ok_or_else(|| {
            let known = SCHEMES.map(|(known, ..)| known).join(", ");
            format!("{name}: scheme `{scheme}`, known are {known}")
        })?;
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, rest),
        };
        let place = place.trim_end_matches('/');
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or(("", login)))
        {
            Some((user, password)) => {
                ((!user.is_empty()).then(|| user.to_owned()), Some(password.to_owned()))
            }
            None => (None, None),
        };
        match driver {
            DriverKind::MemcachedText | DriverKind::Http if password.is_some() => {
                return Err(format!("{name}: no login is spoken over {scheme}://"));
            }
            DriverKind::Iproto if password.is_some() && user.is_none() => {
                return Err(format!("{name}: a login of Tarantool has a user"));
            }
            _ => {}
        }
        let address = place
            .to_socket_addrs()
            .map_err(|error| format!("{name}: `{place}`: {error}"))?
            .next()
            .ok_or_else(|| format!("{name}: `{place}` has no address"))?;
        let tls = if encrypted {
            let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            let server = ServerName::try_from(host).map_err(|error| format!("{name}: {error}"))?;
            Some((Arc::new(trusting(authorities)?), server))
        } else {
            None
        };
        let target = Target { address, tls };
        let pass = AtomicU16::new(first_pass());
        // It keeps nothing on a disk, however it is run.
        let promise = (driver == DriverKind::MemcachedText).then_some(Promise::None);
        let told = ServerFacts { promise, ..ServerFacts::default() };
        Ok(Self { name: name.to_owned(), target, driver, user, password, told, pass })
    }

    /// Asks the server for its version and settings, if its protocol can. If it does not answer,
    /// the measurement will report that.
    pub fn ask(&mut self) {
        if self.driver != DriverKind::Resp {
            return;
        }
        if let Ok(told) = self.control().and_then(|mut control| server_facts::by_resp(&mut control))
        {
            if told.search {
                self.driver = DriverKind::RespSearch;
            }
            self.told = told;
        }
    }

    /// The facts that it reported.
    #[must_use]
    pub const fn told(&self) -> &ServerFacts {
        &self.told
    }

    fn control(&self) -> io::Result<Control> {
        let login = self.password.as_deref().map(|password| (self.user.as_deref(), password));
        server_facts::connect(&self.target, login)
    }

    /// Whether it is logged in to.
    #[must_use]
    pub const fn has_login(&self) -> bool {
        self.password.is_some()
    }

    /// The protocol that it speaks.
    #[must_use]
    pub const fn driver(&self) -> DriverKind {
        match self.driver {
            DriverKind::RespSearch => DriverKind::Resp,
            other => other,
        }
    }

    /// From now on keys have a new prefix; what the protocol's operations need is created if it is
    /// missing.
    ///
    /// # Errors
    /// The error, in words.
    pub fn begin_pass(&self) -> Result<(), String> {
        self.pass.fetch_add(1, Ordering::Relaxed);
        match self.driver {
            DriverKind::Iproto => {
                let login = self.user.as_deref().zip(self.password.as_deref());
                tarantool::prepare_attached(self.target.address, login)
                    .map_err(|error| format!("the lab's spaces cannot be made: {error}"))
            }
            DriverKind::RespSearch => self
                .control()
                .and_then(|mut control| redisearch::have_index(&mut control))
                .map_err(|error| format!("the lab's index cannot be made: {error}")),
            _ => Ok(()),
        }
    }

    /// What speaks to it.
    #[must_use]
    pub fn dialect(&self) -> Box<dyn Dialect> {
        let user = self.user.clone();
        let inner: Box<dyn Dialect> = match (self.driver, self.password.clone()) {
            (DriverKind::Iproto, Some(password)) => {
                Box::new(Iproto::with_login(user.unwrap_or_default(), password))
            }
            (DriverKind::Iproto, None) => Box::new(Iproto::new()),
            (DriverKind::MemcachedText, _) => Box::new(Memcached),
            (DriverKind::Http, _) => Box::new(Http),
            (DriverKind::HttpCommands, _) => Box::new(HttpCommands),
            // An address names none of the last two.
            (
                DriverKind::Resp | DriverKind::RespSearch | DriverKind::Sql | DriverKind::Helper,
                password,
            ) => {
                let search = self.driver == DriverKind::RespSearch;
                let resp = if search { Resp::with_search() } else { Resp::new() };
                match password {
                    Some(password) => Box::new(resp.logged_in(user, password)),
                    None => Box::new(resp),
                }
            }
        };
        Box::new(Prefixed::new(inner, self.pass.load(Ordering::Relaxed)))
    }
}

/// Another one in each run: what an earlier one left must not be met.
fn first_pass() -> u16 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    mix(now.map_or(0, |now| now.as_nanos() as u64)) as u16
}

fn trusting(authorities: Option<&Path>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = authorities {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))? {
            let certificate = certificate.map_err(|error| failed(&error))?;
            roots.add(certificate).map_err(|error| failed(&error))?;
        }
    } else {
        let (added, _) =
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if added == 0 {
            return Err("this system has no certificates to trust; say --attach-ca PEM".to_owned());
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The command line as it may stand in a record that others read.
#[must_use]
pub fn without_passwords(words: impl Iterator<Item = String>) -> Vec<String> {
    words.map(|word| without_password(&word)).collect()
}

fn without_password(word: &str) -> String {
    let Some((before, rest)) = word.split_once("://") else { return word.to_owned() };
    match rest.rsplit_once('@') {
        Some((login, place)) => {
            let user = login.split_once(':').map_or("", |(user, _)| user);
            format!("{before}://{user}:***@{place}")
        }
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_or_without_a_login() {
        let plain = Attached::parse("cloud=127.0.0.1:6379", None).unwrap();
        assert_eq!((plain.name.as_str(), plain.target.address.port()), ("cloud", 6379));
        assert!(plain.target.tls.is_none() && plain.password.is_none());
        let login = Attached::parse("c=redis://me:a:b@127.0.0.1:1", None).unwrap();
        assert_eq!(login.user.as_deref(), Some("me"));
        assert_eq!(login.password.as_deref(), Some("a:b"));
        let only = Attached::parse("c=redis://:secret@127.0.0.1:1", None).unwrap();
        assert_eq!((only.user, only.password.as_deref()), (None, Some("secret")));
    }

    #[test]
    fn what_is_no_address_says_so_without_the_password() {
        for bad in [
            "x",
            "=a:1",
            "c=ftp://127.0.0.1:1",
            "c=127.0.0.1",
            "c=redis://u:pw@nowhere",
            "c=memcached://u:pw@127.0.0.1:1",
            "c=http://u:pw@127.0.0.1:1",
            "c=tarantool://pw@127.0.0.1:1",
        ] {
            let reason = Attached::parse(bad, None).err().unwrap();
            assert!(!reason.contains("pw"), "{reason}");
        }
    }

    #[test]
    fn a_scheme_is_a_protocol() {
        for (scheme, driver, encrypted) in SCHEMES {
            let one = Attached::parse(&format!("c={scheme}://localhost:11/"), None);
            // Without certificates of the system's nothing encrypted can be trusted.
            let Ok(one) = one else { continue };
            assert_eq!((one.driver(), one.target.tls.is_some()), (driver, encrypted), "{scheme}");
        }
    }

    #[test]
    fn each_pass_has_keys_of_its_own() {
        let one = Attached::parse("c=127.0.0.1:1", None).unwrap();
        let bytes = || {
            let mut out = Vec::new();
            let get = crate::operation::Operation::Get { key: b"k".to_vec() };
            one.dialect().encode(0, &get, &mut out);
            out
        };
        let before = bytes();
        assert_eq!(bytes(), before);
        one.begin_pass().unwrap();
        assert_ne!(bytes(), before);
    }

    #[test]
    fn the_record_has_no_password() {
        let words = ["--attach", "c=rediss://me:secret@h:1", "--attach", "c=h:1"];
        let shown = without_passwords(words.iter().map(|&word| word.to_owned()));
        assert_eq!(shown, ["--attach", "c=rediss://me:***@h:1", "--attach", "c=h:1"]);
    }
}
