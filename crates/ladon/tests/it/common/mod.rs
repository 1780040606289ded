//! Running the program, and data directories for it.

use ladon_log::reader::Batch;
use ladon_log::{BlockHeader, DataDir, LogOptions, RecoverySink};
use ladon_platform::{SystemClock, SystemDisk};
use ladon_record::{Change, ChangeBuffer, FunctionFacts, LibraryBody, Lsn, ValueKind};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// What a run of the program gave.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Longer than any command takes on a busy machine. One that never ends fails its test with what it
/// said, instead of holding up all tests.
const RUN_LIMIT: Duration = Duration::from_secs(300);

/// Within this, several servers come to whatever they come to, on a busy machine too.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until it is so.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: not in {PATIENCE:?}");
        thread::sleep(Duration::from_millis(30));
    }
}

/// Runs `ladon` to its end.
pub fn ladon(arguments: &[&str]) -> Run {
    let child = Command::new(env!("CARGO_BIN_EXE_ladon"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ladon runs");
    let pid = Pid::from_raw(child.id() as i32);
    let (ended, end) = mpsc::channel();
    let waiting = thread::spawn(move || drop(ended.send(child.wait_with_output())));
    let in_time = end.recv_timeout(RUN_LIMIT);
    let is_late = in_time.is_err();
    let output = in_time.unwrap_or_else(|_| {
        kill(pid, Signal::SIGKILL).expect("it runs");
        end.recv().expect("it ends")
    });
    waiting.join().expect("it waited");
    let output = output.expect("ladon was waited for");
    assert!(!is_late, "{arguments:?} did not end in {RUN_LIMIT:?}: {output:?}");
    let Output { status, stdout, stderr } = output;
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Run { code: status.code().unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) }
}

/// A sink that only has to accept.
pub struct Nowhere;

impl RecoverySink for Nowhere {
    fn block(&self, _: &BlockHeader, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
    fn meta(&self, _: Lsn, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
    fn records(&self, _: usize, _: &Batch) -> Result<(), (Lsn, String)> {
        Ok(())
    }
}

/// Writes a directory with a checkpoint of one key and three records after it.
pub fn write_data(dir: &Path) {
    let open =
        DataDir::open(Arc::new(SystemDisk), Arc::new(SystemClock), dir, LogOptions::default(), 7);
    let (log, _) = open.expect("opens").recover(&Nowhere, 1, &|_| ()).expect("recovers");
    let mut appender = log.appender();
    let mut append = |changes: &[Change<'_>]| {
        let mut buffer = ChangeBuffer::new();
        changes.iter().for_each(|change| buffer.push(*change));
        appender.append(buffer.as_bytes(), 1_700_000_000_123);
        appender.publish();
        log.write_published().expect("writes");
    };
    let put = Change::Put {
        db: 0,
        key: b"greeting",
        expire_at: 0,
        kind: ValueKind::String,
        body: b"hello",
    };
    append(&[put]);

    let mut checkpoint = log.begin_checkpoint().expect("begins");
    let mut buffer = ChangeBuffer::new();
    buffer.push(put);
    let lsn = log.reserved();
    let block = BlockHeader { db: 0, hash_first: 0, hash_last: u64::MAX, lsn, keys: 1 };
    checkpoint.block(&block, buffer.as_bytes()).expect("a block");
    // The map of SELECT: its size, then which database each number is.
    let map: Vec<u8> = [16].into_iter().chain(0..16).collect();
    checkpoint.finish(lsn, &map).expect("finishes");

    let members = b"\x01a\x02\xff\xfe";
    append(&[
        Change::Put {
            db: 3,
            key: b"tags",
            expire_at: 1_700_000_009_000,
            kind: ValueKind::Set,
            body: members,
        },
        Change::Update { db: 3, key: b"tags", kind: ValueKind::Set, op: b"\x02\x01a" },
    ]);
    append(&[Change::Delete { db: 0, key: b"greeting" }]);
    append(&[Change::FlushDb { db: 3 }, Change::SwapDb { first: 0, second: 3 }]);
    let function = FunctionFacts { name: b"double".to_vec(), description: None, flags: 1 };
    let code = b"#!lua name=numbers\n".to_vec();
    let mut library = Vec::new();
    LibraryBody { code, functions: vec![function] }.encode(&mut library);
    append(&[
        Change::Library { name: b"numbers", body: &library },
        Change::DeleteLibrary { name: b"numbers" },
        Change::FlushLibraries,
    ]);
    drop(appender);
    log.close().expect("closes");
}
