//! TLS of a tool that is a server's client: the names are those of `redis-cli`.

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use ladon_settings::{AuthClients, Endpoint, Settings};
use ladon_tls::{ClientOptions, Trust};
use std::path::PathBuf;

/// The arguments' names.
pub const NAMES: [&str; 7] = ["tls", "cacert", "cacertdir", "cert", "key", "sni", "insecure"];

/// Adds the arguments.
pub fn with_tls(command: Command) -> Command {
    let arg = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).help_heading("TLS to the server")
    };
    let file = |name: &'static str, help: &'static str| {
        arg(name, help).value_name("FILE").value_parser(value_parser!(PathBuf))
    };
    let switch = |name, help| arg(name, help).action(ArgAction::SetTrue);
    command
        .arg(switch("tls", "Speak TLS to the server"))
        .arg(
            file(
                "cacert",
                "The authorities that the server's certificate may be of; without, the system's",
            )
            .conflicts_with("insecure"),
        )
        .arg(
            file("cacertdir", "A directory of them")
                .value_name("DIR")
                .conflicts_with_all(["cacert", "insecure"]),
        )
        .arg(file("cert", "The certificate to show").requires("key"))
        .arg(file("key", "Its key").requires("cert"))
        .arg(
            arg("sni", "The server's name, if not the one by which it is reached")
                .value_name("NAME"),
        )
        .arg(switch("insecure", "Take anybody for the server"))
}

/// What the arguments say of TLS. `None`: nothing but, perhaps, that it is spoken.
pub fn options(matches: &ArgMatches) -> Option<ClientOptions> {
    let path = |name| matches.get_one::<PathBuf>(name).cloned();
    let is_insecure = matches.get_flag("insecure");
    let cert = path("cert").zip(path("key"));
    let options = ClientOptions {
        cacert: path("cacert"),
        cacertdir: path("cacertdir"),
        sni: matches.get_one::<String>("sni").cloned(),
        trust: if is_insecure { Trust::Anybody } else { Trust::Name },
        cert,
        ..ClientOptions::default()
    };
    let has = |it: &Option<PathBuf>| it.is_some();
    let is_said = is_insecure
        || has(&options.cacert)
        || has(&options.cacertdir)
        || options.sni.is_some()
        || options.cert.is_some();
    is_said.then_some(options)
}

/// For a running server that an argument names: TLS if `--tls` says so.
///
/// # Errors
/// Options of TLS without it.
pub fn of_server(matches: &ArgMatches) -> Result<Option<ClientOptions>, String> {
    match (matches.get_flag("tls"), options(matches)) {
        (true, options) => Ok(Some(options.unwrap_or_default())),
        (false, None) => Ok(None),
        (false, Some(_)) => Err("--cacert, --cert, --sni and --insecure need --tls".to_owned()),
    }
}

/// The server that the settings describe: its first address, with TLS if `--tls` says so or there is
/// no other. `None`: it has none.
///
/// # Errors
/// Options of TLS without it.
pub fn own_server(
    matches: &ArgMatches,
    settings: &Settings,
) -> Result<Option<(Endpoint, Option<ClientOptions>)>, String> {
    let plain = settings.resp().into_iter().next();
    match plain {
        Some(plain) if !matches.get_flag("tls") => Ok(Some((plain, of_server(matches)?))),
        _ => {
            let sealed = settings.resp_tls().into_iter().next();
            Ok(sealed.map(|sealed| (sealed, Some(own_options(matches, settings)))))
        }
    }
}

/// What the command line says of TLS, or else what the server's own settings do.
fn own_options(matches: &ArgMatches, settings: &Settings) -> ClientOptions {
    let said = options(matches);
    let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
    let own = (path(&settings.tls_cert_file()), path(&settings.tls_key_file()));
    let trusts = said.as_ref().is_some_and(|said| {
        said.cacert.is_some() || said.cacertdir.is_some() || matches!(said.trust, Trust::Anybody)
    });
    let mut options = said.unwrap_or_default();
    if !trusts && let Some(cert) = &own.0 {
        options.trust = Trust::OwnServer(cert.clone());
        options.cacert = path(&settings.tls_ca_cert_file());
        options.cacertdir = path(&settings.tls_ca_cert_dir());
    }
    if options.cert.is_none() && settings.tls_auth_clients() != AuthClients::No {
        options.cert = own.0.zip(own.1);
        options.key_pass = settings.tls_key_file_pass();
    }
    options
}
