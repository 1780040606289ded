//! `ladon import`: the files of a Redis or Valkey server into a fresh data directory or a
//! running server.

use crate::cli;
use crate::exit::Exit;
use crate::progress::Line;
use crate::running_server;
use clap::ArgMatches;
use ladon_files::{ImportError, Imported, Progress, import_into_directory, import_into_server};
use ladon_log::{OpenError, RecoverError};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Imports what the command line names.
pub fn run(matches: &ArgMatches) -> Exit {
    let Some(path) = matches.get_one::<PathBuf>("file") else { return Exit::Usage };
    let server = match running_server::named(matches, "into") {
        Ok(server) => server,
        Err(error) => {
            eprintln!("ladon import: {error}");
            return Exit::Refused;
        }
    };
    let settings = match cli::load(matches) {
        Ok((settings, _)) => Arc::new(settings),
        Err(error) => {
            eprintln!("{error}\nladon import: these settings cannot be used; nothing was imported");
            return Exit::Usage;
        }
    };
    let (began, mut line) = (Instant::now(), Line::default());
    let mut show = |progress: Progress| line.show(|| text_of(&progress));
    let ended = match &server {
        Some(server) => import_into_server(path, server, matches.get_flag("replace"), &mut show),
        None => import_into_directory(path, &settings, &mut show),
    };
    line.end();
    let target = server.map_or_else(|| settings.data(), |server| server.address);
    match ended {
        Ok(imported) => {
            let seconds = began.elapsed().as_secs_f64();
            eprintln!("{}, into {target} in {seconds:.1} s", summary(&imported));
            Exit::Ok
        }
        Err(error) => {
            eprintln!("ladon import: {error}");
            exit_of(&error)
        }
    }
}

fn text_of(progress: &Progress) -> String {
    let Progress { bytes_total, bytes_done, imported, saved } = progress;
    let keys = imported.keys + imported.expired;
    match saved {
        Some(share) => format!("{keys} keys read; saving: {:.0} %", share * 100.0),
        None => {
            let percent = (u128::from(*bytes_done) * 100).checked_div((*bytes_total).into());
            let (percent, megabytes) = (percent.unwrap_or(100), bytes_done >> 20);
            let commands = imported.commands;
            format!("{percent} % ({megabytes} MB): {keys} keys, {commands} commands")
        }
    }
}

fn summary(imported: &Imported) -> String {
    let Imported { keys, expired, functions, commands, cut_bytes } = imported;
    let mut text = format!("imported {keys} keys");
    let parts = [(functions, "libraries of functions"), (commands, "commands")];
    for (count, name) in parts.into_iter().filter(|(count, _)| **count != 0) {
        text += &format!(", {count} {name}");
    }
    if *expired != 0 {
        text += &format!("; {expired} keys had expired and were left out");
    }
    if *cut_bytes != 0 {
        text += &format!("; the last {cut_bytes} bytes are a part of a command and were left out");
    }
    text
}

fn exit_of(error: &ImportError) -> Exit {
    match error {
        ImportError::Rdb { .. }
        | ImportError::Manifest { .. }
        | ImportError::Commands { .. }
        | ImportError::Open(OpenError::Damaged(_))
        | ImportError::Recover(RecoverError::Damaged(_)) => Exit::Damaged,
        ImportError::Log(_) => Exit::Failed,
        _ => Exit::Refused,
    }
}
