//! The real binary on a disk that fails on command; see `shim.c`.

use crate::live::{call, ok};
use ladon_crash::{Client, Launch, Server};
use ladon_resp::client::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server on a sick disk.
pub struct SickDisk {
    pub launch: Launch,
    dir: TempDir,
}

impl SickDisk {
    /// A data directory, and the shim compiled for it.
    pub fn new(arguments: &[&str]) -> SickDisk {
        let dir = tempfile::tempdir().expect("a directory");
        let shim = dir.path().join("shim.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/sick_disk/shim.c");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let status = Command::new(&compiler)
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([shim.as_path(), source.as_path()])
            .arg("-ldl")
            .status()
            .expect("a C compiler");
        assert!(status.success(), "{compiler:?} ends with {status}");
        let mut launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir.path(), arguments);
        let text = |path: &Path| path.to_str().expect("a name").to_owned();
        launch.environment = vec![
            ("LD_PRELOAD".to_owned(), text(&shim)),
            ("SICK_DISK_DIR".to_owned(), text(dir.path())),
        ];
        SickDisk { launch, dir }
    }

    pub fn start(&self) -> Server {
        self.launch.start().expect("starts")
    }

    /// Makes the disk do `what`.
    pub fn set(&self, what: &str) {
        fs::write(self.command(what), b"").expect("written");
    }

    /// Makes it stop that.
    pub fn unset(&self, what: &str) {
        fs::remove_file(self.command(what)).expect("removed");
    }

    /// Fills the disk, and waits until the log says so. Returns the client whose change waits for
    /// room.
    pub fn fill(&self, server: &Server, client: &mut Client) -> Client {
        let mut other = server.connect().expect("connects");
        self.set("full");
        other.request(&["SET", "pending", "v"]).expect("sent");
        until_writes_fail(client);
        other
    }

    /// The disk has room again; waits until the log takes changes.
    pub fn drain(&self, client: &mut Client) {
        self.unset("full");
        until(client, &["SET", "healed", "v"], |value| *value == ok());
    }

    fn command(&self, what: &str) -> PathBuf {
        self.dir.path().join(what)
    }
}

/// Long enough for a reply that is on its way, on a busy machine.
pub const SOON: Duration = Duration::from_secs(20);
/// Long enough to see that no reply comes.
pub const WHILE: Duration = Duration::from_millis(150);

/// Waits until the log says that a write has failed.
fn until_writes_fail(client: &mut Client) {
    until(client, &["INFO", "persistence"], |info| {
        let info = info.as_bytes().unwrap_or_default();
        String::from_utf8_lossy(info).contains("aof_last_write_status:err")
    });
}

/// Asks again until the reply is as wanted.
pub fn until(client: &mut Client, words: &[&str], wanted: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let value = call(client, words);
        if wanted(&value) {
            return value;
        }
        assert!(began.elapsed() < SOON, "{words:?} still answers {value:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
