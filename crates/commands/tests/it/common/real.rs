//! The same scripts against a real server, to check what they expect: set `LADON_TEST_REDIS` to
//! the address (`127.0.0.1:6390`) of a redis-server whose data may be lost.
//!
//! Run with `--test-threads=1` then, as every script begins with `FLUSHALL`.

use super::script::{Step, differs, steps, words};
use super::show::show_value;
use ladon_resp::client::{Decoder, write_request};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub struct RealServer {
    address: String,
    connections: BTreeMap<String, TcpStream>,
}

impl RealServer {
    pub fn from_environment() -> Option<RealServer> {
        let address = std::env::var("LADON_TEST_REDIS").ok()?;
        Some(RealServer { address, connections: BTreeMap::new() })
    }

    #[track_caller]
    pub fn check(&mut self, script: &str) {
        self.run("1", "FLUSHALL");
        let mut current = "1";
        for step in steps(script) {
            match step {
                Step::Client(name) => current = name,
                Step::Resp3 => {
                    self.run(current, "HELLO 3");
                }
                Step::Advance(ms) if ms <= 200 => std::thread::sleep(Duration::from_millis(ms)),
                // Not worth the wait.
                Step::Advance(_) => break,
                Step::Request { line, expected, newer } => {
                    let reply = self.run(current, line);
                    assert!(
                        newer || expected == "*" || reply == expected,
                        "the real server differs{}",
                        differs(line, expected, &reply)
                    );
                }
            }
        }
        self.connections.clear();
    }

    fn run(&mut self, connection: &str, line: &str) -> String {
        let stream = self
            .connections
            .entry(connection.to_owned())
            .or_insert_with(|| TcpStream::connect(&self.address).expect("the real server"));
        let mut request = Vec::new();
        write_request(&mut request, &words(line));
        stream.write_all(&request).expect("a request sent");
        let (mut decoder, mut bytes) = (Decoder::default(), Vec::new());
        loop {
            let mut piece = [0; 4096];
            let count = stream.read(&mut piece).expect("a reply");
            bytes.extend_from_slice(&piece[..count]);
            let decoded = decoder.decode(&bytes).expect("a well-formed reply");
            bytes.drain(..decoded.consumed);
            if let Some(value) = decoded.value {
                return show_value(&value);
            }
            assert_ne!(count, 0, "the real server hung up");
        }
    }
}
