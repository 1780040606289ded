//! How the command line names a running server, and how to log in there.

use crate::cli_tls;
use clap::ArgMatches;
use ladon_files::ServerOptions;
use ladon_settings::{Endpoint, Settings};
use std::fs;
use std::path::PathBuf;

/// The password of the running server, if no other place has it.
const PASSWORD_VARIABLE: &str = "LADON_PASSWORD";

/// The running server that an argument names, if it does.
pub fn named(matches: &ArgMatches, argument: &str) -> Result<Option<ServerOptions>, String> {
    let Some(address) = matches.get_one::<String>(argument) else { return Ok(None) };
    let (user, password) = login(matches)?;
    let tls = cli_tls::of_server(matches)?;
    Ok(Some(ServerOptions { address: address.clone(), user, password, tls }))
}

/// A running server at this address, reached as the other arguments say.
pub fn at(matches: &ArgMatches, address: &str) -> Result<ServerOptions, String> {
    let (user, password) = login(matches)?;
    let tls = cli_tls::of_server(matches)?;
    Ok(ServerOptions { address: address.to_owned(), user, password, tls })
}

/// The server that the settings describe: on this machine, as `ladon ping` finds it.
pub fn described(matches: &ArgMatches, settings: &Settings) -> Result<ServerOptions, String> {
    let (endpoint, tls) = cli_tls::own_server(matches, settings)?
        .ok_or("the settings name no address for RESP: name one with --from")?;
    let address = match &endpoint {
        Endpoint::Tcp { host, port, .. } => {
            // Every address includes the loopback.
            let host = match host.as_str() {
                "*" | "0.0.0.0" => "127.0.0.1",
                "::*" | "::" => "::1",
                host => host,
            };
            let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
            format!("{host}:{port}")
        }
        Endpoint::Unix(path) => format!("unix:{}", path.display()),
    };
    let (user, password) = login(matches)?;
    let own = Some(settings.requirepass().to_string());
    let own = own.filter(|own| user.is_none() && !own.is_empty());
    Ok(ServerOptions { address, user, password: password.or(own), tls })
}

fn login(matches: &ArgMatches) -> Result<(Option<String>, Option<String>), String> {
    let password = match matches.get_one::<PathBuf>("password-file") {
        None => std::env::var(PASSWORD_VARIABLE).ok(),
        Some(path) => {
            let read = fs::read_to_string(path);
            let text = read.map_err(|error| {
                format!("cannot read the password from {}: {error}", path.display())
            })?;
            Some(text.trim_end_matches(['\r', '\n']).to_owned())
        }
    };
    Ok((matches.get_one::<String>("user").cloned(), password))
}
