//! The `ladon` program: one server and the tools for its files.
//!
//! Every command line ends in an [`Exit`]. A failure is one message on the standard error output
//! that says what to do.

mod allocator;
mod backup;
mod check;
mod cli;
mod cli_files;
mod cli_tls;
mod cluster;
mod config;
mod console;
mod dump;
mod exit;
mod export;
mod import;
mod logging;
mod output;
mod panics;
mod ping;
mod program;
mod progress;
mod readable;
mod running_server;
mod serve;
mod signals;
mod space;
mod sql;
mod systemd;
mod terminal;

use exit::Exit;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    ladon_app::set_key_functions();
    ladon_app::run_persistent_functions();
    let matches = match cli::command().try_get_matches_from(command_line()) {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version are errors to clap. A closed output is harmless here.
            let _ = error.print();
            if let Some(hint) = cli::hint(&error) {
                eprintln!("\nladon: {hint}");
            }
            return if error.use_stderr() { Exit::Usage } else { Exit::Ok }.into();
        }
    };
    if let Some(("tarantool", matches)) = matches.subcommand() {
        return program::run(matches);
    }
    let exit = match matches.subcommand() {
        Some(("backup", matches)) => backup::run(matches),
        Some(("restore", matches)) => backup::restore(matches),
        Some(("completions", matches)) => cli_files::completions(matches),
        Some(("man", matches)) => cli_files::man(matches),
        Some(("check", matches)) => check::run(matches),
        Some(("dump", matches)) => dump::run(matches),
        Some(("export", matches)) => export::run(matches),
        Some(("import", matches)) => import::run(matches),
        Some(("config", matches)) => config::run(matches),
        Some(("ping", matches)) => ping::run(matches),
        Some(("cluster", matches)) => cluster::run(matches),
        Some(("console", matches)) => console::run(matches),
        Some(("space", matches)) => space::run(matches),
        Some(("sql", matches)) => sql::run(matches),
        Some(("version", _)) => version(),
        Some(("serve", matches)) => serve::run(matches),
        // `ladon` alone, or with settings: the server.
        _ => serve::run(&matches),
    };
    exit.into()
}

/// The words of the command line. A program named `tarantool` has that one's command line.
fn command_line() -> Vec<OsString> {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let is_tarantool = Path::new(&name).file_name().is_some_and(|name| name == "tarantool");
    let own = if is_tarantool { &["tarantool", "--"][..] } else { &[] };
    std::iter::once(name).chain(own.iter().map(OsString::from)).chain(words).collect()
}

fn version() -> Exit {
    let text = concat!("ladon ", env!("CARGO_PKG_VERSION"), "\n");
    output::with_stdout(|out| out.write_all(text.as_bytes())).err().unwrap_or(Exit::Ok)
}
