//! `ladon import` and `ladon export`, and what a directory says in which an import was interrupted.

use crate::common::{Run, ladon};
use ladon_crash::{Launch, ladon_check};
use ladon_resp::client::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// What a redis-server 7.0.15 wrote.
fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../rdb/tests/it/fixtures/redis-7.0.rdb")
}

fn launch(dir: &Path) -> Launch {
    Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir, &["--io-threads", "1"])
}

fn name(path: &Path) -> &str {
    path.to_str().expect("a name in UTF-8")
}

fn import(file: &Path, data: &Path) -> Run {
    ladon(&["import", name(file), "--data", name(data)])
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

/// A file of RDB with so many strings.
fn strings_file(dir: &Path, count: usize) -> PathBuf {
    let path = dir.join("strings.rdb");
    let mut writer = ladon_rdb::Writer::new(Vec::new(), ladon_rdb::Version::Redis10).unwrap();
    for n in 0..count {
        let value = ladon_rdb::Value::String(format!("value {n}").into_bytes());
        let facts = ladon_rdb::KeyFacts::default();
        writer.key(format!("key {n}").as_bytes(), &facts, &value).unwrap();
    }
    fs::write(&path, writer.finish().unwrap()).unwrap();
    path
}

#[test]
fn a_file_of_redis_is_served_and_comes_out_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let launch = launch(dir.path());
    let ran = import(&fixture(), &launch.data);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("imported 24 keys, 1 libraries"), "{}", ran.stderr);
    let (code, report) = ladon_check(&launch.program, &launch.data).expect("checks");
    assert_eq!(code, Some(0), "{report}");
    assert!(report.contains("sound; closed in good order"), "{report}");
    let again = import(&fixture(), &launch.data);
    assert_eq!(again.code, 3, "{}", again.stderr);
    assert!(again.stderr.contains("has data already"), "{}", again.stderr);

    let mut server = launch.start().expect("starts");
    let mut client = server.connect().expect("connects");
    assert_eq!(client.call(&["GET", "string:raw"]).expect("a reply"), bulk("a few bytes"));
    assert_eq!(
        client.call(&["PEXPIRETIME", "expiring"]).expect("a reply"),
        Value::Integer(4_000_000_000_123)
    );
    assert!(server.terminate().expect("ends").success());

    let out = dir.path().join("out.rdb");
    let ran = ladon(&["export", name(&out), "--data", name(&launch.data)]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("exported 24 keys, 1 libraries"), "{}", ran.stderr);
    let second = dir.path().join("second");
    assert_eq!(import(&out, &second).code, 0);
    let ran = ladon(&["export", name(&out), "--data", name(&second)]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("is there already"), "{}", ran.stderr);
}

#[test]
fn an_interrupted_import_is_named_and_begins_anew() {
    let dir = tempfile::tempdir().expect("a directory");
    let launch = launch(dir.path());
    let file = strings_file(dir.path(), 100);
    let whole = fs::read(&file).expect("it was written");
    fs::write(&file, &whole[..whole.len() / 2]).expect("written");
    let ran = import(&file, &launch.data);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("the data ends in the middle"), "{}", ran.stderr);
    // As after a kill: a server refuses a part of the data.
    let served = ladon(&["serve", "--port", "1", "--data", name(&launch.data)]);
    assert_eq!(served.code, 3, "{}", served.stderr);
    assert!(served.stderr.contains("an import of"), "{}", served.stderr);
    assert!(served.stderr.contains("was not finished"), "{}", served.stderr);
    let (code, report) = ladon_check(&launch.program, &launch.data).expect("checks");
    assert_eq!(code, Some(1), "{report}");
    assert!(report.contains("was not finished"), "{report}");
    fs::write(&file, &whole).expect("written");
    let ran = import(&file, &launch.data);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut server = launch.start().expect("starts");
    let mut client = server.connect().expect("connects");
    assert_eq!(client.call(&["DBSIZE"]).expect("a reply"), Value::Integer(100));
    assert!(server.terminate().expect("ends").success());
    // The last step of the import is missing: its checkpoint is there, and so is the note.
    fs::write(launch.data.join("unfinished"), "an import of a test").expect("written");
    assert_eq!(import(&fixture(), &launch.data).code, 0);
    let mut server = launch.start().expect("starts");
    let mut client = server.connect().expect("connects");
    assert_eq!(client.call(&["EXISTS", "key 1"]).expect("a reply"), Value::Integer(0));
    assert!(server.terminate().expect("ends").success());
}

#[test]
fn append_only_files_are_replayed_up_to_a_cut() {
    let dir = tempfile::tempdir().expect("a directory");
    let launch = launch(dir.path());
    let folder = dir.path().join("appendonlydir");
    fs::create_dir(&folder).expect("made");
    let manifest = "file a.base.rdb seq 1 type b\nfile a.incr.aof seq 1 type i\n";
    fs::write(folder.join("a.manifest"), manifest).expect("written");
    fs::rename(strings_file(dir.path(), 3), folder.join("a.base.rdb")).expect("moved");
    let command = |words: &[&str]| {
        let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        format!("*{}\r\n{}", words.len(), words.collect::<String>())
    };
    let commands = [
        command(&["SELECT", "0"]),
        command(&["RPUSH", "list", "a", "b"]),
        command(&["MULTI"]),
        command(&["INCR", "count"]),
        command(&["DEL", "key 1"]),
        command(&["EXEC"]),
        command(&["MULTI"]),
        command(&["INCR", "count"]),
    ];
    let cut = format!("{}*2\r\n$4\r\nIN", commands.concat());
    fs::write(folder.join("a.incr.aof"), cut).expect("written");
    let ran = import(&folder, &launch.data);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("are a part of a command"), "{}", ran.stderr);
    let mut server = launch.start().expect("starts");
    let mut client = server.connect().expect("connects");
    assert_eq!(client.call(&["DBSIZE"]).expect("a reply"), Value::Integer(4));
    assert_eq!(client.call(&["GET", "count"]).expect("a reply"), bulk("1"));
    assert!(server.terminate().expect("ends").success());

    fs::write(folder.join("a.incr.aof"), command(&["NOSUCH", "x"])).expect("written");
    let ran = import(&folder, &dir.path().join("other"));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("NOSUCH was refused"), "{}", ran.stderr);
}

#[test]
fn what_cannot_be_taken_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut file = b"REDIS0010\xfe\0\x07\x06module\x81".to_vec();
    file.extend_from_slice(&0x1234_5678_9abc_de00_u64.to_be_bytes());
    let path = dir.path().join("module.rdb");
    fs::write(&path, file).expect("written");
    let ran = import(&path, &dir.path().join("data"));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the key 'module' has a value of the module type"),
        "{}",
        ran.stderr
    );
    let twice = [&b"REDIS0010\xfe\0"[..], b"\0\x01k\x01a", b"\0\x01k\x01b", &[0xff; 1], &[0; 8]];
    fs::write(&path, twice.concat()).expect("written");
    let ran = import(&path, &dir.path().join("twice"));
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("key 'k' of type string"), "{}", ran.stderr);
    let far = [&b"REDIS0010\xfe\x20"[..], b"\0\x01k\x01a", &[0xff; 1], &[0; 8]].concat();
    fs::write(&path, far).expect("written");
    let ran = import(&path, &dir.path().join("far"));
    assert!(ran.stderr.contains("raise 'databases'"), "{}", ran.stderr);
    let ran = ladon(&[
        "import",
        name(&path),
        "--data",
        name(&dir.path().join("far")),
        "--databases",
        "64",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_running_server_is_filled_and_exported() {
    let dir = tempfile::tempdir().expect("a directory");
    let launch = launch(dir.path());
    let mut server = launch.start().expect("starts");
    let mut client = server.connect().expect("connects");
    let into = format!("127.0.0.1:{}", server.port);
    let file = name(&fixture()).to_owned();
    let ran = ladon(&["import", &file, "--into", &into]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = ladon(&["import", &file, "--into", &into]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(ladon(&["import", &file, "--into", &into, "--replace"]).code, 0);
    assert_eq!(client.call(&["GET", "string:raw"]).expect("a reply"), bulk("a few bytes"));
    let out = dir.path().join("out.rdb");
    for how in ["snapshot", "scan"] {
        let ran = ladon(&["export", name(&out), "--from", &into, "--online", how]);
        assert!(ran.stderr.contains("exported 24 keys, 1 libraries"), "{}", ran.stderr);
        assert!(!dir.path().join("out.rdb.data").exists());
        fs::remove_file(&out).expect("it is there");
    }
    client.call(&["SADDEX", "times", "EX", "1000", "MEMBERS", "1", "m"]).expect("a reply");
    for how in ["snapshot", "scan"] {
        let out = dir.path().join("no.rdb");
        let ran = ladon(&["export", name(&out), "--from", &into, "--online", how]);
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        assert!(ran.stderr.contains("key 'times'"), "{}", ran.stderr);
        assert!(!dir.path().join("no.rdb.data").exists());
    }
    assert!(server.terminate().expect("ends").success());
}
