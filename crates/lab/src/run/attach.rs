//! Servers that run already, a cloud's managed one for example: where, with TLS or not, logged in how.

use std::net::ToSocketAddrs;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use crate::dialects::resp::Resp;
use crate::load::stream::Target;

/// A server to measure that the lab did not start.
#[derive(Clone, Debug)]
pub struct Attached {
    /// Its name in tables.
    pub name: String,
    /// Where it is.
    pub target: Target,
    user: Option<String>,
    password: Option<String>,
}

impl Attached {
    /// Reads `NAME=HOST:PORT` or `NAME=SCHEME://USER:PASSWORD@HOST:PORT`; certificates are checked
    /// against `authorities`, or against the system's.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str, authorities: Option<&Path>) -> Result<Self, String> {
        let shape = "NAME=HOST:PORT or NAME=redis[s]://USER:PASSWORD@HOST:PORT";
        let (name, address) =
            text.split_once('=').ok_or_else(|| format!("`{}`: {shape}", without_password(text)))?;
        if name.is_empty() {
            return Err(format!("`{}`: {shape}", without_password(text)));
        }
        let (scheme, rest) = address.split_once("://").unwrap_or(("redis", address));
        let encrypted = match scheme {
            "redis" => false,
            "rediss" => true,
            other => return Err(format!("{name}: scheme `{other}`, known are redis and rediss")),
        };
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, rest),
        };
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or(("", login)))
        {
            Some((user, password)) => {
                ((!user.is_empty()).then(|| user.to_owned()), Some(password.to_owned()))
            }
            None => (None, None),
        };
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
        Ok(Self { name: name.to_owned(), target: Target { address, tls }, user, password })
    }

    /// Whether it is logged in to.
    #[must_use]
    pub const fn has_login(&self) -> bool {
        self.password.is_some()
    }

    /// What speaks to it.
    #[must_use]
    pub fn dialect(&self) -> Resp {
        match &self.password {
            Some(password) => Resp::with_login(self.user.clone(), password.clone()),
            None => Resp::new(),
        }
    }
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
        for bad in ["x", "=a:1", "c=http://127.0.0.1:1", "c=127.0.0.1", "c=redis://u:pw@nowhere"] {
            let reason = Attached::parse(bad, None).err().unwrap();
            assert!(!reason.contains("pw"), "{reason}");
        }
    }

    #[test]
    fn the_record_has_no_password() {
        let words = ["--attach", "c=rediss://me:secret@h:1", "--attach", "c=h:1"];
        let shown = without_passwords(words.iter().map(|&word| word.to_owned()));
        assert_eq!(shown, ["--attach", "c=rediss://me:***@h:1", "--attach", "c=h:1"]);
    }
}
