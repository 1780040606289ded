//! A server process that lives as long as its value.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ladon_testkit::Ports;
use tempfile::TempDir;

use crate::connection::Connection;
use crate::iproto::Client;
use crate::locate;
use crate::reply::Reply;

/// How long a server may take to answer its first PING.
const START_LIMIT: Duration = Duration::from_secs(30);

/// The password of `admin` at servers that speak IPROTO.
pub const ADMIN_PASSWORD: &str = "secret";

/// The protocol whose PING tells that a server is ready.
#[derive(Clone, Copy, Debug)]
enum Protocol {
    Resp,
    Iproto,
}

/// A running server with a data directory of its own.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where it speaks IPROTO, if it does.
    pub iproto: Option<SocketAddr>,
    /// Held while it may be started again.
    _ports: Ports,
    more_ports: Option<Ports>,
    /// How it is known to be ready.
    protocol: Protocol,
    /// What starts it, the first time and after a kill.
    command: Command,
    process: Child,
    directory: TempDir,
}

impl Server {
    /// Starts a redis-server (or one that takes its arguments) without persistence.
    ///
    /// # Errors
    /// If it does not start, with the end of its output.
    pub fn redis(program: &Path) -> io::Result<Server> {
        let directory = tempfile::tempdir()?;
        let ports = Ports::take(1)?;
        let mut command = locate::command(program);
        command
            .args(["--port", &ports.first().to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--appendonly", "no", "--enable-debug-command", "yes", "--dir"])
            .arg(directory.path());
        Server::start(command, ports, directory)
    }

    /// Starts Ladon with two IO threads, `--gate` as given and `extra` arguments.
    ///
    /// # Errors
    /// If it does not start, with the end of its output.
    pub fn ladon(program: &Path, gate: &str, extra: &[&str]) -> io::Result<Server> {
        let directory = tempfile::tempdir()?;
        let ports = Ports::take(1)?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--resp", &format!("127.0.0.1:{}", ports.first()), "--data"])
            .arg(directory.path().join("data"))
            .args(["--gate", gate, "--io-threads", "2", "--enable-debug-command", "yes"])
            .args(extra);
        Server::start(command, ports, directory)
    }

    /// Starts Ladon as `ladon` does, with IPROTO on a port of its own.
    ///
    /// # Errors
    /// If it does not start, with the end of its output.
    pub fn ladon_with_iproto(program: &Path, extra: &[&str]) -> io::Result<Server> {
        let ports = Ports::take(1)?;
        let iproto = format!("127.0.0.1:{}", ports.first());
        let spoken = ["--iproto", &iproto, "--iproto-admin-password", ADMIN_PASSWORD];
        let mut server = Server::ladon(program, "none", &[&spoken, extra].concat())?;
        server.iproto = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, ports.first())));
        server.more_ports = Some(ports);
        Ok(server)
    }

    /// Starts a `tarantool` without a log.
    ///
    /// # Errors
    /// If it does not start, with the end of its output.
    pub fn tarantool(program: &Path) -> io::Result<Server> {
        let directory = tempfile::tempdir()?;
        let ports = Ports::take(1)?;
        let script = directory.path().join("init.lua");
        let text = format!(
            "box.cfg{{ work_dir = {:?}, wal_mode = 'none', checkpoint_interval = 0, log_level = 0, \
             listen = '127.0.0.1:{}' }}\n\
             box.schema.user.passwd('admin', '{ADMIN_PASSWORD}')\n",
            directory.path().display().to_string(),
            ports.first()
        );
        std::fs::write(&script, text)?;
        let mut command = locate::command(program);
        command.arg(&script);
        let mut server = Server::begin(command, ports, directory, Protocol::Iproto)?;
        server.iproto = Some(server.address);
        server.wait_until_ready()?;
        Ok(server)
    }

    /// The server under test: Ladon with gate `none`, or the one that `CONFORMANCE_SUBJECT`
    /// names, which has to take redis-server's arguments.
    ///
    /// # Errors
    /// If it cannot be built or started.
    pub fn subject() -> io::Result<Server> {
        match std::env::var_os("CONFORMANCE_SUBJECT") {
            Some(path) => Server::redis(Path::new(&path)),
            None => Server::ladon(&locate::ladon()?, "none", &[]),
        }
    }

    /// The server under test in a configuration that loses nothing: Ladon at the gate `fsync`, or
    /// the one that `CONFORMANCE_SUBJECT` names with an append-only file synced at every write.
    ///
    /// # Errors
    /// If it cannot be built or started.
    pub fn durable_subject() -> io::Result<Server> {
        let Some(path) = std::env::var_os("CONFORMANCE_SUBJECT") else {
            return Server::ladon(&locate::ladon()?, "fsync", &[]);
        };
        let directory = tempfile::tempdir()?;
        let ports = Ports::take(1)?;
        let mut command = Command::new(path);
        command
            .args(["--port", &ports.first().to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--appendonly", "yes", "--appendfsync", "always", "--dir"])
            .arg(directory.path());
        Server::start(command, ports, directory)
    }

    /// `kill -9`, then the same server again: same port, same data directory.
    ///
    /// # Errors
    /// If it does not come back, with the end of its output.
    pub fn kill_and_restart(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        self.process = self.command.spawn()?;
        self.wait_until_ready()
    }

    /// Whether its process has ended, or ends within this time.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn ends_within(&mut self, time: Duration) -> io::Result<bool> {
        let start = Instant::now();
        loop {
            if self.process.try_wait()?.is_some() {
                return Ok(true);
            }
            if start.elapsed() >= time {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The process, for what looks at it from outside.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// What it has written to standard output and error.
    pub fn output(&self) -> String {
        std::fs::read_to_string(output_path(&self.directory)).unwrap_or_default()
    }

    fn start(command: Command, ports: Ports, directory: TempDir) -> io::Result<Server> {
        let mut server = Server::begin(command, ports, directory, Protocol::Resp)?;
        server.wait_until_ready()?;
        Ok(server)
    }

    fn begin(
        mut command: Command,
        ports: Ports,
        directory: TempDir,
        protocol: Protocol,
    ) -> io::Result<Server> {
        let output = File::create(output_path(&directory))?;
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .current_dir(directory.path());
        let process =
            command.spawn().map_err(|error| io::Error::other(format!("{command:?}: {error}")))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports.first()));
        let (iproto, more_ports) = (None, None);
        let _ports = ports;
        Ok(Server { address, iproto, _ports, more_ports, protocol, command, process, directory })
    }

    /// Whether it answers, and if not, why.
    fn ping(&self) -> Result<(), String> {
        match self.protocol {
            Protocol::Resp => {
                match Connection::open(self.address, 2).map(|mut it| it.call(&["ping"])) {
                    Ok(Reply::Simple(text)) if text == "PONG" => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            }
            // Once its program has run to its end, `admin` has a password.
            Protocol::Iproto => Client::connect(self.address)
                .and_then(|mut client| client.log_in("admin", ADMIN_PASSWORD))
                .map_err(|error| error.to_string()),
        }
    }

    fn wait_until_ready(&mut self) -> io::Result<()> {
        let start = Instant::now();
        loop {
            let Err(why) = self.ping() else { return Ok(()) };
            let ended = self.process.try_wait()?;
            if ended.is_some() || start.elapsed() > START_LIMIT {
                let text = self.output();
                let command = &self.command;
                let why = format!("{command:?} does not answer ({ended:?}, {why})\n{text}");
                return Err(io::Error::other(why));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn output_path(directory: &TempDir) -> PathBuf {
    directory.path().join("output.txt")
}
