//! `kill -9` in the middle of an import and of an export: nothing looks like all of it, and the next
//! attempt succeeds.

use crate::common::ladon;
use crate::live::{call, ok};
use crate::sick_disk::SickDisk;
use ladon_resp::client::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn name(path: &Path) -> &str {
    path.to_str().expect("a name in UTF-8")
}

fn begin(sick: Option<&SickDisk>, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ladon"));
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.envs(sick.into_iter().flat_map(|sick| sick.launch.environment.clone()));
    command.spawn().expect("starts")
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} does not come");
        thread::sleep(Duration::from_millis(5));
    }
}

fn kill(mut process: Child) {
    process.kill().expect("killed");
    process.wait().expect("ends");
}

/// A file of RDB with strings, of some megabytes.
fn strings_file(dir: &Path, count: usize) -> std::path::PathBuf {
    let path = dir.join("strings.rdb");
    let mut writer = ladon_rdb::Writer::new(Vec::new(), ladon_rdb::Version::Redis10).unwrap();
    for n in 0..count {
        let value = ladon_rdb::Value::String(format!("value {n:0900}").into_bytes());
        let facts = ladon_rdb::KeyFacts::default();
        writer.key(format!("key {n}").as_bytes(), &facts, &value).unwrap();
    }
    fs::write(&path, writer.finish().unwrap()).unwrap();
    path
}

#[test]
fn a_killed_import_is_refused_and_begins_anew() {
    const KEYS: usize = 5000;
    let dir = tempfile::tempdir().expect("a directory");
    let sick = SickDisk::new(&["--io-threads", "1"]);
    let (file, data) = (strings_file(dir.path(), KEYS), sick.launch.data.clone());
    let import = ["import", name(&file), "--data", name(&data)];
    sick.set("hold-checkpoint");
    let process = begin(Some(&sick), &import);
    let is_checkpoint = |entry: fs::DirEntry| {
        let name = entry.file_name();
        name.to_string_lossy().ends_with(".checkpoint.tmp")
    };
    until("the checkpoint", || {
        fs::read_dir(&data).is_ok_and(|mut dir| dir.any(|entry| entry.is_ok_and(is_checkpoint)))
    });
    kill(process);
    sick.unset("hold-checkpoint");
    let ran = ladon(&["serve", "--port", "1", "--data", name(&data)]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("an import of"), "{}", ran.stderr);
    assert!(ran.stderr.contains("was not finished"), "{}", ran.stderr);
    let ran = ladon(&import);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut server = sick.start();
    let mut client = server.connect().expect("connects");
    assert_eq!(call(&mut client, &["DBSIZE"]), Value::Integer(KEYS as i64));
    assert!(server.terminate().expect("ends").success());
}

#[test]
fn a_killed_export_leaves_no_file_and_no_harm() {
    let dir = tempfile::tempdir().expect("a directory");
    let sick = SickDisk::new(&["--io-threads", "1"]);
    let out = dir.path().join("out.rdb");
    let mut server = sick.start();
    let mut client = server.connect().expect("connects");
    for n in 0..100 {
        assert_eq!(call(&mut client, &["SET", &format!("key {n}"), "v"]), ok());
    }
    // Of the running server: its disk does not answer.
    sick.set("hold-read");
    let from = format!("127.0.0.1:{}", server.port);
    let export = ["export", name(&out), "--from", &from];
    let process = begin(None, &export);
    let fetched = dir.path().join("out.rdb.data");
    until("a file", || fetched.join("meta").exists());
    kill(process);
    sick.unset("hold-read");
    assert!(!out.exists() && fetched.join("unfinished").exists());
    let ran = ladon(&export);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("exported 100 keys"), "{}", ran.stderr);
    assert!(!fetched.exists());
    assert!(server.terminate().expect("ends").success());

    // Of a directory: the export is killed while it loads.
    fs::remove_file(&out).expect("it is there");
    let data = sick.launch.data.clone();
    let export = ["export", name(&out), "--data", name(&data)];
    sick.set("hold-read");
    let process = begin(Some(&sick), &export);
    thread::sleep(Duration::from_millis(200));
    kill(process);
    sick.unset("hold-read");
    assert!(!out.exists());
    let ran = ladon(&export);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("exported 100 keys"), "{}", ran.stderr);
    let mut server = sick.start();
    let mut client = server.connect().expect("connects");
    assert_eq!(call(&mut client, &["DBSIZE"]), Value::Integer(100));
    assert!(server.terminate().expect("ends").success());
}
