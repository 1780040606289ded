//! A full disk, a failing sync, a failing checkpoint, on the real binary.

use crate::live::{bulk, call, ok};
use crate::sick_disk::SickDisk;
use ladon_crash::{Client, Launch, ladon_check};
use ladon_resp::client::Value;
use std::path::Path;
use std::time::{Duration, Instant};

fn is_error(value: &Value, prefix: &str, part: &str) -> bool {
    let Value::Error(text) = value else { return false };
    let text = String::from_utf8_lossy(text);
    text.starts_with(prefix) && text.contains(part)
}

fn says(info: &Value, part: &str) -> bool {
    String::from_utf8_lossy(info.as_bytes().unwrap_or_default()).contains(part)
}

/// Waits until the log has nothing left to write by itself, the mark behind a sync included: the
/// next write is the next request's.
fn quiet(client: &mut Client) {
    let synced = call(client, &["WAITAOF", "1", "0", "20000"]);
    assert_eq!(synced, Value::Array(vec![Value::Integer(1), Value::Integer(0)]));
    let (mut still, mut before) = (0, Vec::new());
    while still < 15 {
        let info = call(client, &["INFO", "ladon"]);
        let info = String::from_utf8_lossy(info.as_bytes().unwrap_or_default()).into_owned();
        let numbers: Vec<String> =
            info.lines().filter(|line| line.starts_with("log_")).map(str::to_owned).collect();
        assert!(numbers.len() >= 3, "{info}");
        still = if numbers == before { still + 1 } else { 0 };
        before = numbers;
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// What is written into files that nobody finds again is not acknowledged.
#[test]
fn files_that_are_taken_away_stop_writes() {
    for gate in ["none", "write", "everysec", "fsync"] {
        let dir = tempfile::tempdir().expect("a directory");
        let data = dir.path().join("data");
        std::fs::create_dir(&data).expect("made");
        let launch = Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), &data, &["--gate", gate]);
        let mut server = launch.start().expect("starts");
        let mut client = server.connect().expect("connects");
        assert_eq!(call(&mut client, &["SET", "k", "before"]), ok());
        std::fs::remove_dir_all(&data).expect("removed");
        let began = Instant::now();
        let refused = loop {
            let reply = call(&mut client, &["SET", "l", "lost"]);
            if reply != ok() {
                break reply;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{gate}: nobody notices");
            std::thread::sleep(Duration::from_millis(50));
        };
        assert!(is_error(&refused, "MISCONF ", "is gone"), "{gate}: {refused:?}");
        let mut client = server.connect().expect("connects");
        assert!(!matches!(call(&mut client, &["SAVE"]), Value::Simple(_)), "{gate}");
        let read = call(&mut client, &["GET", "k"]);
        assert!(gate == "fsync" || read == bulk("before"), "{gate}: {read:?}");
        server.kill().expect("killed");
    }
}

#[test]
fn a_full_disk_refuses_writes_serves_reads_and_heals_by_itself() {
    for gate in ["none", "write", "everysec", "fsync"] {
        let disk = SickDisk::new(&["--gate", gate, "--io-threads", "2"]);
        let mut server = disk.start();
        let mut client = server.connect().expect("connects");
        assert_eq!(call(&mut client, &["SET", "k", "before"]), ok());
        quiet(&mut client);

        // Who meets the full disk waits until it has the change, which is neither lost nor denied.
        let mut other = disk.fill(&server, &mut client);
        let refused = call(&mut client, &["SET", "k", "refused"]);
        assert!(is_error(&refused, "MISCONF ", "No space left"), "{gate}: {refused:?}");
        assert!(is_error(&refused, "MISCONF ", ".log"), "it names the file: {refused:?}");
        if gate != "none" {
            assert_eq!(call(&mut client, &["GET", "k"]), bulk("before"), "{gate}: reads go on");
        }
        let transaction = call(&mut client, &["MULTI"]);
        assert_eq!(transaction, ok());
        let queued = call(&mut client, &["SET", "k", "refused"]);
        assert!(is_error(&queued, "MISCONF ", ""), "{queued:?}");
        assert!(is_error(&call(&mut client, &["EXEC"]), "EXECABORT ", ""));

        disk.drain(&mut server.connect().expect("connects"));
        assert_eq!(other.reply().expect("a reply"), ok(), "{gate}");
        server.kill().expect("killed");
        let (code, report) = ladon_check(&disk.launch.program, &disk.launch.data).expect("runs");
        assert_eq!(code, Some(0), "{report}");
        let server = disk.start();
        let mut client = server.connect().expect("connects");
        if gate != "none" {
            assert_eq!(call(&mut client, &["GET", "pending"]), bulk("v"), "{gate}");
            assert_eq!(call(&mut client, &["GET", "healed"]), bulk("v"), "{gate}");
        }
    }
}

#[test]
fn a_failing_sync_refuses_writes_until_a_restart_and_loses_nothing() {
    let disk = SickDisk::new(&["--gate", "fsync", "--io-threads", "2"]);
    let mut server = disk.start();
    let mut client = server.connect().expect("connects");
    assert_eq!(call(&mut client, &["SET", "k", "v"]), ok());
    disk.set("fail-sync");
    let mut victim = server.connect().expect("connects");
    victim.request(&["SET", "uncertain", "v"]).expect("sent");
    let uncertain = victim.reply().expect("an error");
    assert!(is_error(&uncertain, "MISCONF ", "not known whether"), "{uncertain:?}");
    victim.reply().expect_err("and no more");
    let refused = call(&mut client, &["SET", "k", "refused"]);
    assert!(is_error(&refused, "MISCONF ", "restart"), "{refused:?}");
    assert_eq!(call(&mut client, &["GET", "k"]), bulk("v"), "reads of what is safe go on");
    let info = call(&mut client, &["INFO"]);
    assert!(says(&info, "aof_last_write_status:err"), "and a reader of it gets an answer");
    assert!(!says(&info, "db0:"), "without a count that is not safe: {info:?}");
    // A later success of the same file must not be believed.
    disk.unset("fail-sync");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(is_error(&call(&mut client, &["SET", "k", "x"]), "MISCONF ", "restart"));
    let status = server.terminate().expect("ends");
    assert!(!status.success(), "an end with a failed log is no clean end");
    assert!(server.output().contains("durable"), "{}", server.output());
    let server = disk.start();
    let mut client = server.connect().expect("connects");
    assert_eq!(call(&mut client, &["GET", "k"]), bulk("v"));
    assert_eq!(call(&mut client, &["SET", "k", "after"]), ok(), "a restart heals");
}

#[test]
fn a_failing_checkpoint_hurts_nobody() {
    let disk = SickDisk::new(&["--gate", "fsync", "--io-threads", "2"]);
    let mut server = disk.start();
    let mut client = server.connect().expect("connects");
    assert_eq!(call(&mut client, &["SET", "k", "v"]), ok());
    disk.set("full-checkpoint");
    let reply = call(&mut client, &["SAVE"]);
    assert!(is_error(&reply, "ERR", ""), "{reply:?}");
    assert_eq!(call(&mut client, &["SET", "k", "w"]), ok(), "writes go on");
    let info = call(&mut client, &["INFO", "persistence"]);
    assert!(says(&info, "rdb_last_bgsave_status:err"), "{info:?}");
    disk.unset("full-checkpoint");
    assert_eq!(call(&mut client, &["SAVE"]), ok(), "and the next one succeeds");
    server.kill().expect("killed");
    let (code, report) = ladon_check(&disk.launch.program, &disk.launch.data).expect("runs");
    assert_eq!(code, Some(0), "{report}");
    let server = disk.start();
    assert_eq!(call(&mut server.connect().expect("connects"), &["GET", "k"]), bulk("w"));
}

/// The second one was once interrupted after 64 segments, as the server was stopping.
#[test]
fn shutdown_save_force_tries_again_and_finishes() {
    let disk = SickDisk::new(&["--gate", "write", "--enable-debug-command", "yes"]);
    let mut server = disk.start();
    let mut client = server.connect().expect("connects");
    assert_eq!(call(&mut client, &["DEBUG", "POPULATE", "60000"]), ok());
    disk.set("full-checkpoint-once");
    client.request(&["SHUTDOWN", "SAVE", "FORCE"]).expect("sent");
    assert!(server.wait().expect("ends").success(), "{}", server.output());
    let (code, report) = ladon_check(&disk.launch.program, &disk.launch.data).expect("runs");
    assert_eq!(code, Some(0), "{report}");
    assert!(report.contains(" 60000 keys in "), "{report}\n{}", server.output());
}
