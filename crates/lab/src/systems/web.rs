//! Web programs: one written in Go over LevelDB, over Tarantool, over Ladon and over Redis, and
//! Tarantool's own `http.server`. All answer the requests of [`crate::dialects::http`].
//!
//! A program over a server is two processes, and both count: the question is what a page costs.
//!
//! Not tried here: `http.server`, as the rock `http` is in no package.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use super::primary::Primary;
use super::program_paths::ProgramPaths;
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Promise, Setting, System,
};
use super::{helpers, ladon, redis, tarantool};
use crate::topology::Topology;

/// A web program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Web {
    /// Go with `goleveldb`.
    GoLevelDb,
    /// Go with `go-tarantool` before a Tarantool.
    GoTarantool,
    /// Go with `rueidis` before a Ladon.
    GoLadon,
    /// Go with `rueidis` before a Redis.
    GoRedis,
    /// Tarantool's module `http.server`.
    TarantoolHttp,
}

/// Serves HTTP from within Tarantool.
const HTTP_PROGRAM: &str = include_str!("../../helpers/tarantool/http.lua");

impl Web {
    /// The server behind it, which is started first.
    const fn server(self) -> Option<&'static dyn System> {
        match self {
            Self::GoLevelDb => None,
            Self::GoTarantool | Self::TarantoolHttp => Some(&tarantool::TARANTOOL),
            Self::GoLadon => Some(&ladon::Ladon),
            Self::GoRedis => Some(&redis::REDIS),
        }
    }

    /// `go-leveldb` and so on also on their own: [`System::only_in`] has the others to the web's
    /// work.
    const fn store(self) -> &'static str {
        match self {
            Self::GoLevelDb => "leveldb",
            Self::GoTarantool | Self::TarantoolHttp => "tarantool",
            Self::GoLadon | Self::GoRedis => "resp",
        }
    }

    fn missing(self, reason: String) -> Missing {
        let install = match self {
            Self::TarantoolHttp => "tarantoolctl rocks install http",
            _ => "scripts/install-systems.sh (Go from https://go.dev/dl, then the lab builds it)",
        };
        Missing { system: self.name(), reason, install: install.to_owned() }
    }
}

impl System for Web {
    fn name(&self) -> &'static str {
        match self {
            Self::GoLevelDb => "go-leveldb",
            Self::GoTarantool => "go-tarantool",
            Self::GoLadon => "go-ladon",
            Self::GoRedis => "go-redis",
            Self::TarantoolHttp => "tarantool-http",
        }
    }

    fn title(&self) -> &'static str {
        match self {
            Self::GoLevelDb => "Go + LevelDB",
            Self::GoTarantool => "Go + Tarantool",
            Self::GoLadon => "Go + Ladon",
            Self::GoRedis => "Go + Redis",
            Self::TarantoolHttp => "Tarantool http.server",
        }
    }

    fn find(&self, places: &ProgramPaths) -> Result<Program, Missing> {
        // NAME@PROGRAM names the server behind the program, if there is one.
        let server = self.server().map(|server| server.find(places)).transpose();
        let server = server.map_err(|missing| Missing { system: self.name(), ..missing })?;
        let mut program = Program {
            system: self.name(),
            label: self.name().to_owned(),
            command: Vec::new(),
            version: server.as_ref().map(|server| server.version.clone()).unwrap_or_default(),
            behind: None,
        };
        if *self == Self::TarantoolHttp {
            let server = server.ok_or_else(|| self.missing("no Tarantool".to_owned()))?;
            let question = "os.exit(pcall(require, 'http.server') and 0 or 1)";
            super::program_paths::version(&server.command, &["-e", question])
                .map_err(|_| self.missing("its module http.server is not installed".to_owned()))?;
            return Ok(Program { command: server.command, ..program });
        }
        let web = helpers::web(places).map_err(|reason| self.missing(reason))?;
        let go = helpers::go().ok_or_else(|| self.missing("no Go".to_owned()))?;
        let go = super::program_paths::version(&[go.display().to_string()], &["version"])
            .map_err(|reason| self.missing(reason))?;
        program.version = match &server {
            Some(server) => format!("{go}; {}", server.version),
            None => go,
        };
        program.command = vec![web.display().to_string()];
        program.behind = server.map(Box::new);
        Ok(program)
    }

    fn settings(&self) -> Vec<Setting> {
        match self.server() {
            Some(server) => server.settings(),
            None => vec![
                Setting { name: "Sync: false", promise: Promise::Os },
                Setting { name: "Sync: true", promise: Promise::Fsync },
            ],
        }
    }

    fn driver(&self) -> DriverKind {
        DriverKind::Http
    }

    fn only_in(&self) -> Option<&'static str> {
        (*self != Self::GoLevelDb).then_some("web")
    }

    /// The web program's, the server's, and one in reserve for the server.
    fn ports(&self) -> usize {
        3
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let behind = Launch { ports: &launch.ports[1..], ..launch.clone() };
        let web_address = format!("127.0.0.1:{}", launch.ports[0]);
        if *self == Self::TarantoolHttp {
            let listen = format!("local http_port = {}\n", launch.ports[0]);
            let program_text = tarantool::script(program, &behind, Primary::Tree)?;
            let text = program_text + &listen + HTTP_PROGRAM;
            let path = launch.directory.join("lab.lua");
            let arguments = vec![path.display().to_string()];
            let mut process = Process::new(program, arguments, launch.extra);
            process.files = vec![(path, text)];
            return Ok(vec![process]);
        }
        let mut processes = Vec::new();
        if let (Some(server), Some(found)) = (self.server(), &program.behind) {
            processes.extend(server.launch(found, &behind)?);
        }
        let mut arguments = vec![
            format!("-listen={web_address}"),
            format!("-store={}", self.store()),
            format!("-threads={}", launch.io_threads.max(1)),
        ];
        if self.server().is_some() {
            arguments.push(format!("-address=127.0.0.1:{}", launch.ports[1]));
        } else {
            arguments.push(format!("-path={}", launch.directory.join("leveldb").display()));
            arguments.push(format!("-sync={}", launch.setting.promise == Promise::Fsync));
        }
        processes.push(Process::new(program, arguments, launch.extra));
        Ok(processes)
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        let (status, body) = get(address, "/ready")?;
        if status == 204 {
            return Ok(());
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        Err(io::Error::new(io::ErrorKind::WouldBlock, body))
    }

    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        let (_, body) = get(address, "/settings")?;
        let mut all: BTreeMap<String, String> = serde_json::from_slice(&body)?;
        // The server behind it reports its address, and then its settings.
        let behind = all.get("address").and_then(|address| address.parse::<SocketAddr>().ok());
        if let (Some(server), Some(behind)) = (self.server(), behind) {
            all.extend(server.effective_settings(behind)?);
        }
        Ok(all)
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Single) | Capability::Restart => Ok(()),
            Capability::Nodes(_) => Err("a single web program".to_owned()),
            Capability::Snapshot => Err("the web program has no request for a snapshot".to_owned()),
        }
    }
}

/// One GET on a connection of its own.
fn get(address: SocketAddr, path: &str) -> io::Result<(u16, Vec<u8>)> {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, address.port()));
    let mut stream = TcpStream::connect_timeout(&loopback, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n")?;
    let mut reply = Vec::new();
    // Ends when the server closes, as it was asked to.
    stream.take(1 << 20).read_to_end(&mut reply)?;
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "no reply of HTTP");
    match response.parse(&reply) {
        Ok(httparse::Status::Complete(head)) => {
            Ok((response.code.ok_or_else(invalid)?, reply.split_off(head)))
        }
        _ => Err(invalid()),
    }
}
