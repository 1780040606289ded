//! Facts that a running server reports about itself when it is asked, once, before the run:
//! version, settings, what an acknowledged write promises, and whether it has a search module.
//!
//! A server may refuse any of it, as managed ones do. It is measured nonetheless, and the record
//! says what is missing. **Invariant:** no password that a server reports is recorded.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream;
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};

use crate::load::stream::Target;
use crate::systems::control::{Control, Reply, Talk};
use crate::systems::redis_like;
use crate::systems::system::Promise;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// Name and number.
    pub version: Option<String>,
    /// Effective settings, or why there are none.
    pub settings: BTreeMap<String, String>,
    /// What an acknowledged write is worth.
    pub promise: Option<Promise>,
    /// Whether it has indexes of RediSearch: it knows `FT.CREATE`.
    pub search: bool,
}

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection beside the load to a server that speaks RESP, by TLS and logged in where the target
/// says so.
///
/// # Errors
/// Errors of the socket or TLS, or the server's words to the login.
pub fn connect(target: &Target, login: Option<(Option<&str>, &str)>) -> io::Result<Control> {
    let stream = TcpStream::connect_timeout(&target.address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let stream: Box<dyn Talk> = match &target.tls {
        None => Box::new(stream),
        Some((config, name)) => {
            let connection = ClientConnection::new(config.clone(), name.clone());
            Box::new(StreamOwned::new(connection.map_err(io::Error::other)?, stream))
        }
    };
    let mut control = Control::over(stream);
    if let Some((user, password)) = login {
        let words: Vec<&str> = ["AUTH"].into_iter().chain(user).chain([password]).collect();
        match control.call(&words)? {
            Reply::Simple(_) => {}
            // The command itself has the password in it.
            other => return Err(io::Error::other(format!("AUTH answered {other:?}"))),
        }
    }
    Ok(control)
}

/// Asks a server that speaks RESP.
///
/// # Errors
/// Those of the socket; a refusal is not an error.
pub fn by_resp(control: &mut Control) -> io::Result<ServerFacts> {
    let settings = redis_like::settings_of(control);
    let promise = settings.as_ref().ok().and_then(promise);
    let refused = |error: io::Error| [("(not told)".to_owned(), error.to_string())].into();
    let settings = settings.map_or_else(refused, without_secrets);
    let version = control.text(&["INFO", "server"]).ok().and_then(|text| version(&text));
    let search = match control.call(&["COMMAND", "INFO", "FT.CREATE"])? {
        Reply::Array(items) => matches!(&items[..], [Reply::Array(known)] if !known.is_empty()),
        // Whom COMMAND is denied to.
        _ => matches!(control.call(&["FT._LIST"])?, Reply::Array(_)),
    };
    Ok(ServerFacts { version, settings, promise, search })
}

/// The most special name that INFO has a version under: descendants of Redis tell that one's too.
fn version(info: &str) -> Option<String> {
    let versions = info.lines().filter_map(|line| line.trim().split_once("_version:"));
    let known = versions.filter(|(name, _)| *name != "gcc" && !name.is_empty());
    let (name, number) = known.min_by_key(|(name, _)| *name == "redis")?;
    Some(format!("{name} {number}"))
}

/// By the two options that Redis and its descendants have for it.
fn promise(settings: &BTreeMap<String, String>) -> Option<Promise> {
    let of = |name: &str| settings.get(name).map(String::as_str);
    match (of("appendonly")?, of("appendfsync")) {
        ("no", _) => Some(Promise::None),
        ("yes", Some("no")) => Some(Promise::Os),
        ("yes", Some("everysec")) => Some(Promise::Everysec),
        ("yes", Some("always")) => Some(Promise::Fsync),
        _ => None,
    }
}

fn without_secrets(mut settings: BTreeMap<String, String>) -> BTreeMap<String, String> {
    for (name, value) in &mut settings {
        let secret = ["pass", "auth", "secret"];
        if !value.is_empty() && secret.iter().any(|word| name.contains(word)) {
            "***".clone_into(value);
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_servers_own() {
        let info =
            "# Server\r\nredis_version:7.2.4\r\nladon_version:0.1.0\r\ngcc_version:12.2.0\r\n";
        assert_eq!(version(info).as_deref(), Some("ladon 0.1.0"));
        assert_eq!(version("redis_version:7.0.15\r\n").as_deref(), Some("redis 7.0.15"));
        assert_eq!(version("uptime:1"), None);
    }

    #[test]
    fn a_promise_is_read_from_two_options() {
        let told = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            promise(&pairs.collect())
        };
        assert_eq!(told(&[("appendonly", "no"), ("appendfsync", "always")]), Some(Promise::None));
        assert_eq!(
            told(&[("appendonly", "yes"), ("appendfsync", "everysec")]),
            Some(Promise::Everysec)
        );
        assert_eq!(told(&[("appendfsync", "always")]), None);
    }

    #[test]
    fn passwords_are_not_kept() {
        let settings = [("requirepass", "geheim"), ("masterauth", ""), ("port", "1")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let kept = without_secrets(settings);
        assert_eq!((kept["requirepass"].as_str(), kept["masterauth"].as_str()), ("***", ""));
        assert_eq!(kept["port"], "1");
    }
}
