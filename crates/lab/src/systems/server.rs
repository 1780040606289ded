//! One running server: a child of this process in a directory of its own, pinned, on a free port.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ladon_ports::Ports;
use tempfile::TempDir;

use super::arguments::{Setup, arguments};
use super::cleanup;
use super::control::{Control, Reply};
use super::find::Program;
use crate::measure::cores;
use crate::measure::cpu::CpuClock;
use crate::measure::memory::{Resident, resident_bytes};

/// A started server. Dropping it kills it and removes its directory.
#[derive(Debug)]
pub struct Server {
    /// The program's name in tables.
    pub label: String,
    /// Its whole command line, for the record.
    pub command_line: Vec<String>,
    /// Where it listens.
    pub address: SocketAddr,
    child: Child,
    directory: TempDir,
    /// Which of this run's starts of the server this is; names its output file.
    starts: u32,
    cores: Vec<usize>,
    /// Held while it may be started again.
    _ports: Ports,
}

/// Why a server is not up.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Starting the program or making its directory failed.
    #[error("cannot start {label}: {source}")]
    Start {
        /// The server.
        label: String,
        /// What the operating system says.
        source: io::Error,
    },
    /// It ended, or did not answer in time.
    #[error("{label} {what}; it wrote:\n{output}")]
    NotUp {
        /// The server.
        label: String,
        /// What happened.
        what: String,
        /// The end of what it wrote.
        output: String,
    },
}

impl Server {
    /// Starts `program` with its directory below `data_root`, all its threads on `cores`, and waits
    /// until it answers PING, for up to `patience`.
    ///
    /// # Errors
    /// When it cannot be started, ends, or does not answer in time; with the end of its output.
    pub fn start(
        program: &Program,
        setup: &Setup,
        data_root: &Path,
        cores: &[usize],
        patience: Duration,
    ) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Start { label: program.label.clone(), source };
        let directory =
            tempfile::Builder::new().prefix("ladon-lab-").tempdir_in(data_root).map_err(failed)?;
        let data = directory.path().join("data");
        std::fs::create_dir(&data).map_err(failed)?;
        let ports = Ports::take(1).map_err(failed)?;
        let port = ports.first();
        let mut command_line = program.command.clone();
        command_line.extend(arguments(program.kind, port, &data, setup));
        let output = directory.path().join("output-0");
        let child =
            cleanup::start_listed(directory.path(), || spawn(&command_line, &output, cores))
                .map_err(failed)?;
        let mut server = Self {
            label: program.label.clone(),
            command_line,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            child,
            directory,
            starts: 0,
            cores: cores.to_vec(),
            _ports: ports,
        };
        server.wait_until_up(patience)?;
        Ok(server)
    }

    /// Starts the server again on what it left on the disk, after [`Self::stop`] or [`Self::kill`].
    /// Returns how long it took from the start of the process to its first PONG.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn restart(
        &mut self,
        extra: &[String],
        patience: Duration,
    ) -> Result<Duration, ServerError> {
        self.starts += 1;
        let output = self.directory.path().join(format!("output-{}", self.starts));
        let mut command_line = self.command_line.clone();
        command_line.extend(extra.iter().cloned());
        let began = Instant::now();
        self.child = cleanup::start_listed(self.directory.path(), || {
            spawn(&command_line, &output, &self.cores)
        })
        .map_err(|source| ServerError::Start { label: self.label.clone(), source })?;
        self.wait_until_up(patience)?;
        Ok(began.elapsed())
    }

    /// Ends the server with SIGTERM and waits until it is gone; SIGKILL after `patience`.
    /// Returns whether it went by itself.
    pub fn stop(&mut self, patience: Duration) -> bool {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // An error means that it is gone, which the wait below finds out.
            let _ =
                nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGTERM);
        }
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                cleanup::forget(self.child.id());
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.kill();
        false
    }

    /// Ends the server with SIGKILL, as a crash would.
    pub fn kill(&mut self) {
        // Both fail only when it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
        cleanup::forget(self.child.id());
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its directory: `data` below it is the server's, the rest the lab's.
    #[must_use]
    pub fn data_directory(&self) -> std::path::PathBuf {
        self.directory.path().join("data")
    }

    /// Its CPU-time clock.
    ///
    /// # Errors
    /// `ESRCH` when it is gone.
    pub fn cpu_clock(&self) -> nix::Result<CpuClock> {
        CpuClock::of_process(self.pid())
    }

    /// Its memory; `None` when it is gone.
    #[must_use]
    pub fn resident(&self) -> Option<Resident> {
        resident_bytes(self.pid())
    }

    /// A connection for commands beside the load.
    ///
    /// # Errors
    /// What connecting says.
    pub fn control(&self) -> io::Result<Control> {
        Control::connect(self.address)
    }

    /// The end of what the server wrote since its last start.
    #[must_use]
    pub fn output_tail(&self) -> String {
        let path = self.directory.path().join(format!("output-{}", self.starts));
        let text = std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let text = text.unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    fn wait_until_up(&mut self, patience: Duration) -> Result<(), ServerError> {
        let deadline = Instant::now() + patience;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.not_up(format!("ended ({status}) before it answered")));
            }
            // Refused while it does not listen, an error reply while it loads.
            let pong = self.control().and_then(|mut control| control.call(&["PING"]));
            if pong.is_ok_and(|reply| reply == Reply::Simple("PONG".to_owned())) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(self.not_up(format!("did not answer PING within {patience:?}")));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn not_up(&self, what: String) -> ServerError {
        ServerError::NotUp { label: self.label.clone(), what, output: self.output_tail() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(command_line: &[String], output: &Path, cores: &[usize]) -> io::Result<Child> {
    let file = File::create(output)?;
    let errors = file.try_clone()?;
    let mut command = Command::new(&command_line[0]);
    command.args(&command_line[1..]).stdin(Stdio::null()).stdout(file).stderr(errors);
    cores::pinned_to(cores, || command.spawn())?
}
