//! Idempotent producers of streams on the real binary: what is sent again after a kill is in the
//! stream once.

use crate::live::{call, ok};
use ladon_crash::{Client, Launch, Server};
use ladon_resp::client::{Value, write_request};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::thread;
use std::time::Duration;

fn connect(server: &Server) -> Client {
    server.connect().expect("connects")
}

/// One that sends until it knows that each message has arrived: what it got no answer for, it sends
/// again.
#[derive(Default)]
struct Producer {
    /// Messages sent at least once.
    sent: u64,
    /// The entries of those that were answered.
    entries: BTreeMap<u64, Vec<u8>>,
}

impl Producer {
    /// Sends until the connection breaks, first what was on its way when the last one broke.
    fn send(&mut self, name: &str, client: &mut Client) {
        let mut unanswered: VecDeque<u64> = (self.entries.len() as u64..self.sent).collect();
        let mut bytes = Vec::new();
        for number in &unanswered {
            write(name, *number, &mut bytes);
        }
        loop {
            while unanswered.len() < 8 {
                write(name, self.sent, &mut bytes);
                unanswered.push_back(self.sent);
                self.sent += 1;
            }
            if client.send(&bytes).is_err() {
                return;
            }
            bytes.clear();
            // Half of the answers: a kill hits the others on their way.
            for _ in 0..unanswered.len().div_ceil(2) {
                match client.reply() {
                    Ok(Value::Bulk(entry)) => {
                        let number = unanswered.pop_front().expect("a message");
                        assert_eq!(self.entries.insert(number, entry), None);
                    }
                    Ok(other) => panic!("{other:?}"),
                    Err(_) => return,
                }
            }
        }
    }
}

fn write(name: &str, number: u64, bytes: &mut Vec<u8>) {
    let number = number.to_string();
    // Two ways to say which message it is.
    let way: &[&[u8]] = match name.starts_with("auto") {
        true => &[b"IDMPAUTO", name.as_bytes()],
        false => &[b"IDMP", name.as_bytes(), number.as_bytes()],
    };
    let entry: [&[u8]; 5] = [b"*", b"from", name.as_bytes(), b"number", number.as_bytes()];
    write_request(bytes, &[&[b"XADD", &b"s"[..]], way, &entry].concat());
}

#[test]
fn what_is_sent_again_after_a_kill_is_there_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--gate", "fsync", "--io-threads", "2"];
    let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &arguments);
    let names = ["a", "b", "auto1", "auto2"];
    let mut producers: [Producer; 4] = Default::default();
    for round in 0..5 {
        let mut server = launch.start().expect("starts");
        if round == 3 {
            // From here on, what was sent before is in a checkpoint only.
            assert_eq!(call(&mut connect(&server), &["SAVE"]), ok());
        }
        thread::scope(|scope| {
            for (name, producer) in names.iter().zip(&mut producers) {
                let server = &server;
                scope.spawn(move || producer.send(name, &mut connect(server)));
            }
            thread::sleep(Duration::from_millis(120));
            let pid = nix::unistd::Pid::from_raw(server.pid() as i32);
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("killed");
        });
        server.kill().expect("killed");
    }
    let server = launch.start().expect("starts");
    let Value::Array(entries) = call(&mut connect(&server), &["XRANGE", "s", "-", "+"]) else {
        panic!("no entries")
    };
    let mut found: Vec<BTreeMap<u64, Vec<u8>>> = vec![BTreeMap::new(); names.len()];
    for entry in &entries {
        let Value::Array(parts) = entry else { panic!("{entry:?}") };
        let Value::Array(words) = &parts[1] else { panic!("{entry:?}") };
        let text = |value: &Value| value.as_bytes().expect("bytes").to_vec();
        let from = names.iter().position(|name| name.as_bytes() == text(&words[1]));
        let number = String::from_utf8(text(&words[3])).expect("text").parse().expect("a number");
        let before = found[from.expect("a producer")].insert(number, text(&parts[0]));
        assert_eq!(before, None, "{number} is there twice");
    }
    for (producer, found) in producers.iter().zip(&found) {
        let known = producer.entries.iter();
        assert!(known.clone().count() > 20, "enough was sent");
        for (number, entry) in known {
            assert_eq!(found.get(number), Some(entry), "{number} is where it was acknowledged");
        }
        assert!(found.keys().copied().eq(0..found.len() as u64), "in their order");
        assert!(found.len() as u64 <= producer.sent);
    }
}
