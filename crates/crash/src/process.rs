//! A server process on a data directory.

use crate::client::Client;
use ladon_resp::client::Value;
use ladon_testkit::Ports;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a server may take to answer its first PING, or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// How to start a server.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The binary.
    pub program: PathBuf,
    /// Its data directory.
    pub data: PathBuf,
    /// File that its output is appended to.
    pub output: PathBuf,
    /// Arguments of `serve` in addition to the port and the data directory.
    pub arguments: Vec<String>,
    /// Variables added to its environment.
    pub environment: Vec<(String, String)>,
    /// The port, if the caller has taken one; else each start takes another.
    pub port: Option<u16>,
}

/// A running server; killed when dropped.
pub struct Server {
    /// The port that it listens on.
    pub port: u16,
    /// Held while clients may look for it.
    _ports: Option<Ports>,
    process: Child,
    output: PathBuf,
}

impl Launch {
    /// A server of `program` with its files under `dir`.
    pub fn new(program: &Path, dir: &Path, arguments: &[&str]) -> Launch {
        Launch {
            program: program.to_owned(),
            data: dir.join("data"),
            output: dir.join("output.txt"),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            environment: Vec::new(),
            port: None,
        }
    }

    /// Starts the process without waiting until it is ready.
    ///
    /// # Errors
    /// If there is no such program.
    pub fn spawn(&self) -> io::Result<Server> {
        let ports = self.port.is_none().then(|| Ports::take(1)).transpose()?;
        let port = self.port.or_else(|| Some(ports.as_ref()?.first())).unwrap_or_default();
        let output = OpenOptions::new().create(true).append(true).open(&self.output)?;
        let process = Command::new(&self.program)
            .args(["serve", "--resp", &format!("127.0.0.1:{port}"), "--data"])
            .arg(&self.data)
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        Ok(Server { port, _ports: ports, process, output: self.output.clone() })
    }

    /// Starts the process and waits until it answers.
    ///
    /// # Errors
    /// If it ends or stays silent, with what it wrote.
    pub fn start(&self) -> io::Result<Server> {
        // Earlier output belongs to earlier servers.
        File::create(&self.output)?;
        let mut server = self.spawn()?;
        server.wait_until_ready()?;
        Ok(server)
    }
}

impl Server {
    /// A new connection.
    ///
    /// # Errors
    /// The system's.
    pub fn connect(&self) -> io::Result<Client> {
        Client::connect(self.port)
    }

    /// The process' number.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// What it has written to standard output and error.
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Waits until it answers PING.
    ///
    /// # Errors
    /// If it ends or stays silent, with what it wrote.
    pub fn wait_until_ready(&mut self) -> io::Result<()> {
        let start = Instant::now();
        loop {
            let pong = self.connect().and_then(|mut client| client.call(&["PING"]));
            if matches!(&pong, Ok(Value::Simple(text)) if text == b"PONG") {
                return Ok(());
            }
            let ended = self.process.try_wait()?;
            if ended.is_some() || start.elapsed() > PATIENCE {
                let text = format!("no answer ({ended:?}, {pong:?}):\n{}", self.output());
                return Err(io::Error::other(text));
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// `kill -9`.
    ///
    /// # Errors
    /// The system's.
    pub fn kill(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(|_| ())
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// The system's.
    pub fn signal(&self, signal: nix::sys::signal::Signal) -> io::Result<()> {
        let pid = nix::unistd::Pid::from_raw(self.process.id() as i32);
        Ok(nix::sys::signal::kill(pid, signal)?)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// `TimedOut` when it does not end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(status);
            }
            if start.elapsed() > PATIENCE {
                let text = format!("the server does not end:\n{}", self.output());
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// SIGTERM, and its end.
    ///
    /// # Errors
    /// As [`Server::wait`].
    pub fn terminate(&mut self) -> io::Result<ExitStatus> {
        self.signal(nix::sys::signal::Signal::SIGTERM)?;
        self.wait()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already.
        let ended = self.process.try_wait();
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("The server (ended by itself: {ended:?}) wrote:\n{}", self.output());
        }
    }
}

/// `ladon check`: its exit code and its report.
///
/// # Errors
/// If there is no such program.
pub fn ladon_check(program: &Path, data: &Path) -> io::Result<(Option<i32>, String)> {
    let output = Command::new(program).arg("check").arg(data).output()?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    Ok((output.status.code(), text))
}
