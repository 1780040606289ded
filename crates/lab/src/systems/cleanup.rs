//! Nothing of a run outlives it: servers and their directories go when the run ends, panics or is
//! interrupted.
//!
//! Ends and panics are the business of `Drop`. A signal runs no destructors, so every server is
//! also in the list below, and a thread that waits for signals empties it before it ends the
//! process.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static RUNNING: Mutex<Vec<(u32, PathBuf)>> = Mutex::new(Vec::new());

/// Whether the first signal is only a wish: see [`end_gently`].
static GENTLE: AtomicBool = AtomicBool::new(false);

/// False once a gentle end was asked for.
static GO_ON: AtomicBool = AtomicBool::new(true);

/// How long a gentle end may take: a server that is being started is waited for.
const GENTLE_MAX: Duration = Duration::from_secs(30);

/// From now on the first signal only makes [`go_on`] false, so that the program can end in order
/// and keep what it has; a second signal, or half a minute, ends it as otherwise the first one
/// does.
pub fn end_gently() {
    GENTLE.store(true, Ordering::SeqCst);
}

/// False once the user wants the program to end.
#[must_use]
pub fn go_on() -> &'static AtomicBool {
    &GO_ON
}

/// Whether the user wants the program to end.
#[must_use]
pub fn is_ending() -> bool {
    !GO_ON.load(Ordering::SeqCst)
}

/// Starts a server and adds it to the list in one step, so that no signal falls in between.
///
/// # Errors
/// What `start` says.
pub fn start_listed(
    directory: &Path,
    start: impl FnOnce() -> io::Result<Child>,
) -> io::Result<Child> {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let child = start()?;
    running.push((child.id(), directory.to_owned()));
    Ok(child)
}

/// Takes a server off the list, once it has been waited for.
pub fn forget(pid: u32) {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|(running, _)| *running != pid);
}

/// Starts the thread that cleans up on SIGINT, SIGTERM and SIGHUP and ends the process with
/// 128 + the signal's number.
///
/// # Errors
/// What the operating system says when handlers cannot be set.
pub fn on_signals() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            let first = GO_ON.swap(false, Ordering::SeqCst);
            if !first || !GENTLE.load(Ordering::SeqCst) {
                end(signal);
            }
            std::thread::spawn(move || {
                std::thread::sleep(GENTLE_MAX);
                end(signal);
            });
        }
    })?;
    Ok(())
}

/// Kills everything that runs, removes its directories, and ends the process.
fn end(signal: i32) -> ! {
    // The lock stays held: no further server may start while the process ends.
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    for (pid, directory) in running.iter() {
        kill_and_wait(*pid);
        // A directory that cannot be removed is a leftover, not a reason to stay.
        let _ = std::fs::remove_dir_all(directory);
    }
    std::process::exit(128 + signal);
}

/// SIGKILL to a server and everything it started: each is started as the leader of its own process
/// group. A process that has ended already is fine.
pub fn kill_group(pid: u32) {
    if let Ok(pid) = i32::try_from(pid) {
        // The group first: once its leader was waited for, another process may get its number.
        let _ = kill(Pid::from_raw(-pid), Signal::SIGKILL);
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

/// SIGKILL; a process that has ended already is fine. Waits for it, because a server that still
/// writes while its directory is removed would leave files.
fn kill_and_wait(pid: u32) {
    kill_group(pid);
    if let Ok(pid) = i32::try_from(pid) {
        let _ = waitpid(Pid::from_raw(pid), None);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_a_server_started_goes_with_it() {
        let mut server = Command::new("sh")
            .args(["-c", "sleep 600 & echo $!; wait"])
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(server.stdout.take().unwrap());
        let mut child = String::new();
        output.read_line(&mut child).unwrap();
        kill_group(server.id());
        server.wait().unwrap();
        // The pipe ends when nobody is left that could write to it, and the child could.
        assert_eq!(output.read_line(&mut child).unwrap(), 0);
    }
}
