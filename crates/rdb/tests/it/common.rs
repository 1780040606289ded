//! Files as maps, and a redis-server that has loaded one.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ladon_rdb::{Error, Event, Key, Reader, Value};
use ladon_testkit::Ports;
use tempfile::TempDir;

/// All of a file.
#[derive(Debug, Default, PartialEq)]
pub struct Contents {
    pub version: u32,
    pub aux: BTreeMap<String, String>,
    pub functions: Vec<Vec<u8>>,
    pub keys: BTreeMap<(u64, String), (Key, Value)>,
    pub checksum: Option<u64>,
}

impl Contents {
    /// The value of a key of database 0.
    pub fn value(&self, key: &str) -> &Value {
        &self.keys[&(0, key.to_owned())].1
    }

    /// How the value of a key of database 0 is encoded.
    pub fn encoding(&self, key: &str) -> String {
        self.keys[&(0, key.to_owned())].0.encoding.to_string()
    }
}

/// A value whose members are in an order that no encoding decides.
pub fn ordered(value: &Value) -> Value {
    let mut value = value.clone();
    match &mut value {
        Value::Set(members) => members.sort(),
        Value::SortedSet(members) => members.sort_by(|a, b| a.0.cmp(&b.0)),
        Value::Hash(fields) => fields.sort_by(|a, b| a.name.cmp(&b.name)),
        Value::Stream(stream) => {
            stream.groups.sort_by(|a, b| a.head.name.cmp(&b.head.name));
            for group in &mut stream.groups {
                group.consumers.sort_by(|a, b| a.head.name.cmp(&b.head.name));
            }
        }
        Value::String(_) | Value::List(_) => (),
    }
    value
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// Reads a whole file.
pub fn contents(read: impl Read) -> Result<Contents, Error> {
    let (mut out, mut database) = (Contents::default(), 0);
    let mut reader = Reader::new(read);
    while let Some(event) = reader.next() {
        match event? {
            Event::Header { version, .. } => out.version = version,
            Event::Aux { name, value } => {
                out.aux.insert(text(&name), text(&value));
            }
            Event::SelectDb(number) => database = number,
            Event::ResizeDb { .. } => (),
            Event::Function(source) => out.functions.push(source),
            Event::Key(key) => {
                let value = reader.value(&key)?;
                let before = out.keys.insert((database, text(&key.name)), (key, value));
                assert!(before.is_none(), "a key is there twice");
            }
            Event::Element(_) | Event::KeyEnd => panic!("outside a value"),
            Event::End { checksum } => out.checksum = checksum,
        }
    }
    Ok(out)
}

/// A redis-server that has loaded a file.
pub struct Redis {
    process: Child,
    connection: BufReader<TcpStream>,
    folder: TempDir,
    _ports: Ports,
}

const FILE: &str = "dump.rdb";

impl Redis {
    /// Starts it on `file`; `None`, and a line that says so, where there is no redis-server.
    pub fn load(file: &[u8]) -> Option<Redis> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), file).unwrap();
        let ports = Ports::take(1).unwrap();
        let started = Command::new("redis-server")
            .args(["--port", &ports.first().to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--appendonly", "no", "--dbfilename", FILE, "--dir"])
            .arg(folder.path())
            .arg("--logfile")
            .arg(folder.path().join("log"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let Ok(process) = started else {
            eprintln!("SKIPPED: no redis-server on PATH (apt-get install redis-server)");
            return None;
        };
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut process = process;
        let connection = loop {
            match TcpStream::connect(("127.0.0.1", ports.first())) {
                Ok(connection) => break connection,
                Err(error) => {
                    let is_over = process.try_wait().unwrap().is_some();
                    if is_over || Instant::now() > deadline {
                        let _ = process.kill();
                        panic!("redis-server does not load: {error}\n{}", log(folder.path()));
                    }
                    sleep(Duration::from_millis(20));
                }
            }
        };
        connection.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Some(Redis { process, connection: BufReader::new(connection), folder, _ports: ports })
    }

    /// The first line of the reply.
    pub fn ask(&mut self, command: &str) -> String {
        let mut line = String::new();
        let sent = self.connection.get_mut().write_all(format!("{command}\r\n").as_bytes());
        if let Err(error) = sent.and_then(|()| self.connection.read_line(&mut line)) {
            panic!("redis-server does not load: {error}\n{}", log(self.folder.path()));
        }
        line.trim_end().to_owned()
    }

    /// The reply to a request of any bytes: its first line, and the string behind it if it is one.
    pub fn request(&mut self, words: &[&[u8]]) -> (String, Vec<u8>) {
        let mut out = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            out.extend_from_slice(word);
            out.extend_from_slice(b"\r\n");
        }
        self.connection.get_mut().write_all(&out).unwrap();
        let mut line = String::new();
        self.connection.read_line(&mut line).unwrap();
        let mut bytes = Vec::new();
        if let Some(length) = line.strip_prefix('$').and_then(|n| n.trim_end().parse().ok()) {
            bytes.resize(length, 0);
            self.connection.read_exact(&mut bytes).unwrap();
            self.connection.read_exact(&mut [0; 2]).unwrap();
        }
        (line.trim_end().to_owned(), bytes)
    }

    /// The file that it writes now.
    pub fn save(&mut self) -> Vec<u8> {
        while self.ask("PING") != "+PONG" {
            sleep(Duration::from_millis(20));
        }
        assert_eq!(self.ask("SAVE"), "+OK");
        std::fs::read(self.folder.path().join(FILE)).unwrap()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn log(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap_or_default()
}
