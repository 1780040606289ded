//! The web console of a real server: who gets in, what its requests do, and what its clients cannot
//! do to others. `scripts/console-clicks.sh` tries its pages in a browser.

mod attacks;
mod bounds;
mod commands;
mod login;
mod streams;

use crate::live::{call, ok};
use ladon_crash::{Launch, Server};
use serde_json::{Value as Json, json};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A server with a console at a unix socket.
pub(super) struct Node {
    pub(super) server: Server,
    pub(super) socket: PathBuf,
    _dir: TempDir,
}

/// What the console answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    fn of(bytes: &[u8]) -> Answer {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("{head:?}"));
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    pub(super) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The cookie that it sets, as a browser sends it back.
    pub(super) fn cookie(&self) -> String {
        let line = self.head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let line = line.unwrap_or_else(|| panic!("no cookie: {self:?}"));
        line.split(';').next().unwrap_or_default().to_owned()
    }
}

/// A request in bytes; `headers` end with their line's end.
pub(super) fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} /console/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\
         {headers}\r\n{body}"
    )
}

impl Node {
    pub(super) fn new(arguments: &[&str]) -> Node {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("http.sock");
        let address = format!("unix:{}", socket.display());
        let mut all = vec!["--http-admin", &address];
        all.extend(arguments);
        let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), &all);
        Node { server: launch.start().expect("starts"), socket, _dir: dir }
    }

    /// One whose default user has this password.
    pub(super) fn with_password(arguments: &[&str], password: &str) -> Node {
        let node = Node::new(arguments);
        let mut client = node.server.connect().expect("connects");
        assert_eq!(call(&mut client, &["CONFIG", "SET", "requirepass", password]), ok());
        node
    }

    /// Sends bytes, and reads until the server hangs up.
    pub(super) fn exchange(&self, bytes: &[u8]) -> Answer {
        let mut stream = UnixStream::connect(&self.socket).expect("connects");
        // A server that has answered need not take the rest.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Answer::of(&answer)
    }

    pub(super) fn get(&self, path: &str, cookie: &str) -> Answer {
        let headers = format!("Cookie: {cookie}\r\n");
        self.exchange(request("GET", path, &headers, "").as_bytes())
    }

    pub(super) fn post(&self, path: &str, cookie: &str, body: &Json) -> Answer {
        let headers = format!("Cookie: {cookie}\r\nContent-Type: application/json\r\n");
        self.exchange(request("POST", path, &headers, &body.to_string()).as_bytes())
    }

    pub(super) fn try_log_in(&self, name: &str, password: &str) -> Answer {
        self.post("api/login", "", &json!({ "name": name, "password": password }))
    }

    /// Logs in; returns the cookie.
    pub(super) fn log_in(&self, name: &str, password: &str) -> String {
        let answer = self.try_log_in(name, password);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.cookie()
    }

    /// Runs commands as the cookie's user; the whole answer.
    pub(super) fn run(&self, cookie: &str, commands: &Json) -> Json {
        let answer = self.post("api/command", cookie, &json!({ "commands": commands }));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// The reply to one command.
    pub(super) fn one(&self, cookie: &str, words: &[&str]) -> Json {
        self.run(cookie, &json!([words]))["replies"][0].clone()
    }
}
