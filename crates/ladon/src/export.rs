//! `ladon export`: a data directory, or a running server, to a file that Redis or Valkey loads.

use crate::cli;
use crate::exit::Exit;
use crate::progress::Line;
use crate::running_server;
use clap::ArgMatches;
use ladon_files::{ExportError, Exported, export_directory, export_server};
use ladon_log::{OpenError, RecoverError};
use ladon_rdb::Version;
use std::path::PathBuf;
use std::time::Instant;

/// Exports what the command line names.
pub fn run(matches: &ArgMatches) -> Exit {
    let Some(path) = matches.get_one::<PathBuf>("file") else { return Exit::Usage };
    let number = matches.get_one::<String>("rdb-version").map_or("10", String::as_str);
    let is_it = |version: &Version| version.number().to_string() == number;
    let Some(version) = Version::ALL.into_iter().find(is_it) else { return Exit::Usage };
    let (began, mut line) = (Instant::now(), Line::default());
    let mut show = |exported: Exported| line.show(|| format!("{} keys", exported.keys));
    let ended = match running_server::named(matches, "from") {
        Err(error) => {
            eprintln!("ladon export: {error}");
            return Exit::Refused;
        }
        Ok(Some(server)) => export_server(path, version, &server, &mut show),
        Ok(None) => match cli::load(matches) {
            Ok((settings, _)) => export_directory(path, version, &settings, &mut show),
            Err(error) => {
                eprintln!("{error}\nladon export: these settings cannot be used");
                return Exit::Usage;
            }
        },
    };
    line.end();
    match ended {
        Ok(Exported { keys, functions }) => {
            let (path, seconds) = (path.display(), began.elapsed().as_secs_f64());
            eprintln!(
                "exported {keys} keys, {functions} libraries of functions to {path} in \
                 {seconds:.1} s"
            );
            Exit::Ok
        }
        Err(error) => {
            eprintln!("ladon export: {error}");
            match error {
                ExportError::Open(OpenError::Damaged(_))
                | ExportError::Recover(RecoverError::Damaged(_)) => Exit::Damaged,
                _ => Exit::Refused,
            }
        }
    }
}
