//! `ladon serve`: from the command line to a running server, and its end.

use crate::cli;
use crate::exit::Exit;
use crate::systemd::Systemd;
use crate::{allocator, logging, panics, signals};
use clap::ArgMatches;
use ladon_kernel::durability::Shutdown;
use ladon_log::{OpenError, RecoverError};
use ladon_net::ListenError;
use ladon_platform::allow_open_files;
use ladon_server::{Reload, RunError, StopSignal};
use ladon_settings::{Settings, lines_for_log};
use std::io;
use std::sync::Arc;

/// Open files besides those of IO threads, listeners and connections: ten at rest (standard streams,
/// log, lock, signals), and for a moment those of segments, a checkpoint, messages, and clients that
/// are refused.
const OTHER_FILES: u64 = 24;
/// Open files of an IO thread: its ring or poll, and what wakes it.
const FILES_OF_IO_THREAD: u64 = 2;

/// Runs a server until it is asked to stop.
pub fn run(matches: &ArgMatches) -> Exit {
    let (settings, notes) = match cli::load(matches) {
        Ok((settings, notes)) => (Arc::new(settings), notes),
        Err(error) => {
            eprintln!("{error}\nladon: these settings cannot be used; nothing was started");
            return Exit::Usage;
        }
    };
    let has_plain = !settings.resp().is_empty()
        || !settings.iproto().is_empty()
        || !settings.memcached().is_empty()
        || !settings.http().is_empty();
    if !has_plain && !settings.has_tls() {
        eprintln!(
            "ladon: there is nothing to listen on; give an address with --resp, --port, --tls-port, \
             --iproto, --memcached or --http"
        );
        return Exit::Usage;
    }
    if let Err(error) = take_admin_password(&settings) {
        eprintln!("ladon: {error}");
        return Exit::Refused;
    }
    if let Err(error) = logging::start(Arc::clone(&settings)) {
        let file = settings.logfile();
        eprintln!("ladon: cannot write the log file {file}: {error}; name another with --logfile");
        return Exit::Refused;
    }
    panics::abort_from_now_on();
    for line in lines_for_log(&notes) {
        tracing::warn!("{line}");
    }
    make_room_for_clients(&settings);
    let stop = Arc::new(StopSignal::default());
    let reload = Arc::new(Reload::default());
    let ended = match signals::watch(Arc::clone(&stop), Arc::clone(&reload), |stop| {
        stop.request(Shutdown::default())
    }) {
        Ok(()) => {
            let process = Arc::new(allocator::process());
            ladon_server::run(Arc::clone(&settings), stop, &reload, process, &Systemd)
        }
        Err(error) => Err(RunError::Start { what: "the signal handler".to_owned(), error }),
    };
    let Err(error) = ended else { return Exit::Ok };
    let message = match way_out(&error) {
        Some(way_out) => format!("{error}; {way_out}"),
        None => error.to_string(),
    };
    if !settings.logfile().is_empty() {
        tracing::error!("{message}");
    }
    eprintln!("ladon: {message}");
    exit_of(&error)
}

/// Takes the password of IPROTO's `admin` from its file, unless it was given.
fn take_admin_password(settings: &Settings) -> Result<(), String> {
    if !settings.iproto_admin_password().is_empty() {
        return Ok(());
    }
    let file = settings.iproto_admin_password_file();
    if file.is_empty() {
        return Ok(());
    }
    let password = std::fs::read_to_string(&file).map_err(|error| {
        format!("cannot read {file}, which iproto-admin-password-file names: {error}")
    })?;
    let password = password.trim_end_matches(['\r', '\n']).to_owned();
    let set = settings.set_many(&[("iproto-admin-password", password)]);
    set.map(drop).map_err(|error| error.to_string())
}

/// As Redis does: rather fewer connections than ones that fail for want of a file descriptor.
pub(crate) fn make_room_for_clients(settings: &Settings) {
    let threads = FILES_OF_IO_THREAD * settings.io_threads() as u64;
    let mut listeners =
        settings.resp().len() + settings.iproto().len() + settings.memcached().len();
    listeners += settings.http().len();
    if settings.has_tls() {
        listeners +=
            ladon_server::HALF_OPEN_MAX + settings.resp_tls().len() + settings.iproto_tls().len();
        listeners += settings.memcached_tls().len() + settings.http_tls().len();
    }
    if !settings.http_admin().is_empty() {
        listeners += settings.http_admin().len() + ladon_server::HTTP_ADMIN_FILES;
    }
    let others = OTHER_FILES + threads + listeners as u64;
    let wanted = settings.maxclients() as u64 + others;
    let allowed = allow_open_files(wanted);
    if allowed >= wanted {
        return;
    }
    let clients = allowed.saturating_sub(others).max(1);
    tracing::warn!(
        "the system allows {allowed} open files (ulimit -n), and maxclients {} needs {wanted}: \
         maxclients is {clients}",
        settings.maxclients()
    );
    if let Err(error) = settings.set_many(&[("maxclients", clients.to_string())]) {
        tracing::error!("{error}");
    }
}

/// What to do, where the message does not say so itself.
fn way_out(error: &RunError) -> Option<&'static str> {
    match error {
        RunError::Listen(ListenError::InUse(_)) => {
            Some("stop that one, or listen elsewhere with --resp or --port")
        }
        RunError::Listen(ListenError::NotASocket(_)) => {
            Some("remove it, or listen elsewhere with --resp")
        }
        RunError::Tls(_) => Some("see to that, or start without TLS: --tls-port 0"),
        RunError::Listen(ListenError::Io { .. }) | RunError::Address { .. } => {
            Some("listen elsewhere with --resp or --port")
        }
        RunError::Recover(RecoverError::Sink { .. }) => {
            Some("start the version of Ladon that wrote it, or restore the directory from a backup")
        }
        RunError::Open(OpenError::Io { error, .. })
        | RunError::Recover(RecoverError::Io { error, .. }) => match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Some(
                "give the directory to the user that runs the server, or use another one with --data",
            ),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Some("make room on that disk, or use another directory with --data")
            }
            _ => Some("see to that, or use another directory with --data"),
        },
        _ => None,
    }
}

fn exit_of(error: &RunError) -> Exit {
    match error {
        RunError::Open(OpenError::Damaged(_))
        | RunError::Recover(RecoverError::Damaged(_) | RecoverError::Sink { .. }) => Exit::Damaged,
        RunError::Log(_) | RunError::Thread(_) => Exit::Failed,
        _ => Exit::Refused,
    }
}
