//! HTTP on the data, on the real binary: commands as JSON, keys, spaces, functions, and what clients
//! may not do.

mod attacks;
mod client;
mod commands;
mod keys;
mod spaces;
mod users;

pub(crate) use client::Http;
use ladon_crash::{Launch, Server};
use ladon_testkit::Ports;
use std::path::Path;

/// A server that also speaks HTTP.
pub(super) struct Node {
    dir: tempfile::TempDir,
    ports: Ports,
    more: Vec<String>,
}

impl Node {
    pub(super) fn new(more: &[&str]) -> Node {
        let dir = tempfile::tempdir().expect("a directory");
        let more = more.iter().map(|&word| word.to_owned()).collect();
        Node { dir, ports: Ports::take(2).expect("ports"), more }
    }

    pub(super) fn port(&self) -> u16 {
        self.ports.first()
    }

    /// A second port.
    pub(super) fn other_port(&self) -> u16 {
        self.ports.first() + 1
    }

    pub(super) fn start(&self) -> Server {
        let address = format!("127.0.0.1:{}", self.port());
        let mut arguments = vec!["--http", &address, "--gate", "fsync"];
        arguments.extend(self.more.iter().map(String::as_str));
        let binary = Path::new(env!("CARGO_BIN_EXE_ladon"));
        Launch::new(binary, self.dir.path(), &arguments).start().expect("starts")
    }

    fn connect(&self) -> Http {
        Http::connect(self.port())
    }
}

/// Ends a server in order.
pub(super) fn stop(mut server: Server) {
    let output = server.output();
    let status = server.terminate().expect("ends");
    assert!(status.success() && !output.contains("panicked"), "{output}");
}
