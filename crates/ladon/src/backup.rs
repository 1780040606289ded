//! `ladon backup`: all data of a running server to a folder; `ladon restore`: a data directory out of
//! such a folder.

use crate::cli;
use crate::exit::Exit;
use crate::progress::Line;
use crate::running_server;
use clap::ArgMatches;
use ladon_files::{BackupError, BackupProgress, Copied, ListError, back_up, restore as restore_to};
use ladon_log::OpenError;
use std::path::PathBuf;
use std::time::Instant;

/// Backs up the server that the command line names.
pub fn run(matches: &ArgMatches) -> Exit {
    let Some(dir) = matches.get_one::<PathBuf>("dir") else { return Exit::Usage };
    let server = match running_server::named(matches, "from") {
        Ok(Some(server)) => Ok(server),
        Ok(None) => match cli::load(matches) {
            Ok((settings, _)) => running_server::described(matches, &settings),
            Err(error) => {
                eprintln!("{error}\nladon backup: these settings cannot be used");
                return Exit::Usage;
            }
        },
        Err(error) => Err(error),
    };
    let server = match server {
        Ok(server) => server,
        Err(error) => {
            eprintln!("ladon backup: {error}");
            return Exit::Refused;
        }
    };
    let (began, mut line) = (Instant::now(), Line::default());
    let mut show = |progress: BackupProgress| line.show(|| text_of(progress));
    let ended = back_up(dir, &server, matches.get_flag("checkpoint"), &mut show);
    line.end();
    match ended {
        Ok(copied) => {
            let (dir, seconds) = (dir.display(), began.elapsed().as_secs_f64());
            eprintln!("backed up {} to {dir} in {seconds:.1} s; it is sound", summary(&copied));
            Exit::Ok
        }
        Err(error) => failed("backup", &error),
    }
}

/// Restores the backup that the command line names.
pub fn restore(matches: &ArgMatches) -> Exit {
    let dir = matches.get_one::<PathBuf>("dir");
    let (Some(dir), Some(target)) = (dir, matches.get_one::<PathBuf>("to")) else {
        return Exit::Usage;
    };
    let (began, mut line) = (Instant::now(), Line::default());
    let mut show = |progress: BackupProgress| line.show(|| text_of(progress));
    let ended = restore_to(dir, target, &mut show);
    line.end();
    match ended {
        Ok(copied) => {
            let (target, seconds) = (target.display(), began.elapsed().as_secs_f64());
            eprintln!("restored {} to {target} in {seconds:.1} s", summary(&copied));
            let users = copied.users.map(|users| format!(" --aclfile {}", users.display()));
            eprintln!("start it with: ladon serve --dir {target}{}", users.unwrap_or_default());
            Exit::Ok
        }
        Err(error) => failed("restore", &error),
    }
}

fn text_of(progress: BackupProgress) -> String {
    match progress {
        BackupProgress::Checkpoint => "the server makes a checkpoint".to_owned(),
        BackupProgress::Checking => "checking every byte".to_owned(),
        BackupProgress::Copying { bytes_done, bytes_total } => {
            let percent = (u128::from(bytes_done) * 100).checked_div(bytes_total.into());
            let (done, total) = (bytes_done >> 20, bytes_total >> 20);
            format!("{} % ({done} of {total} MB)", percent.unwrap_or(100))
        }
    }
}

fn summary(copied: &Copied) -> String {
    let Copied { files, bytes, end, .. } = copied;
    format!("{files} files ({bytes} bytes), to LSN {end}")
}

fn failed(command: &str, error: &BackupError) -> Exit {
    eprintln!("ladon {command}: {error}");
    match error {
        BackupError::Unfinished { .. }
        | BackupError::Changed { .. }
        | BackupError::Damaged(_)
        | BackupError::List { error: ListError::Damaged { .. }, .. }
        | BackupError::Open(OpenError::Damaged(_)) => Exit::Damaged,
        _ => Exit::Refused,
    }
}
