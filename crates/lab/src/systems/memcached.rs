//! memcached: the newest of the peers' tree or of this machine, over its text protocol.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::program_paths::{ProgramPaths, on_path};
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Promise, Setting, System,
};
use crate::topology::Topology;

/// memcached.
#[derive(Clone, Copy, Debug)]
pub struct Memcached;

impl System for Memcached {
    fn name(&self) -> &'static str {
        "memcached"
    }

    fn title(&self) -> &'static str {
        "memcached"
    }

    fn find(&self, places: &ProgramPaths) -> Result<Program, Missing> {
        let mut candidates = places.in_trees("usr/bin/memcached");
        candidates.extend(on_path("memcached"));
        places.program(self.name(), candidates, &["-V"], "apt-get install memcached")
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting { name: "memory only", promise: Promise::None }]
    }

    fn driver(&self) -> DriverKind {
        DriverKind::MemcachedText
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let mut arguments: Vec<String> = [
            "-l",
            "127.0.0.1",
            "-p",
            &launch.ports[0].to_string(),
            "-U",
            "0",
            "-t",
            &launch.io_threads.to_string(),
            // More than any work stores: an evicted item would be a wrong answer.
            "-m",
            "8192",
            "-c",
            "20000",
            // Requests of one connection before another's turn; the most that the program takes.
            "-R",
            "100",
        ]
        .map(str::to_owned)
        .into();
        // Started by root it wants to be told that it may stay root.
        if nix::unistd::geteuid().is_root() {
            arguments.extend(["-u".to_owned(), "root".to_owned()]);
        }
        Ok(vec![Process::new(program, arguments, launch.extra)])
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        let lines = ask(address, "version\r\n", "VERSION ")?;
        if lines.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
    }

    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        let lines = ask(address, "stats settings\r\n", "END")?;
        let pairs = lines.iter().filter_map(|line| line.strip_prefix("STAT ")?.split_once(' '));
        Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Single) => Ok(()),
            Capability::Nodes(_) => {
                Err("servers know nothing of each other: clients deal keys to them".to_owned())
            }
            Capability::Snapshot => Err("no snapshots".to_owned()),
            Capability::Restart => Err("nothing is kept over a restart".to_owned()),
        }
    }
}

/// Sends a request and reads lines up to the one that starts with `last`, which is among them.
///
/// # Errors
/// Errors of the socket; `UnexpectedEof` when no such line came.
pub fn ask(address: SocketAddr, request: &str, last: &str) -> io::Result<Vec<String>> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.write_all(request.as_bytes())?;
    let mut lines = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line = line?;
        let ends = line.starts_with(last);
        lines.push(line);
        if ends {
            return Ok(lines);
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}
