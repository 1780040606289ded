//! `ladon backup` of a server that is written to, killed, out of disk; `ladon restore` of what is
//! whole, interrupted, damaged.

use crate::common::{Run, ladon};
use crate::live::{bulk, call, error, ok};
use crate::sick_disk::{SickDisk, until};
use ladon_crash::{Client, Launch, Server, ladon_check};
use ladon_resp::client::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

fn launch(dir: &Path, arguments: &[&str]) -> Launch {
    let all = [&["--io-threads", "2"], arguments].concat();
    Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir, &all)
}

fn name(path: &Path) -> &str {
    path.to_str().expect("a name in UTF-8")
}

fn address(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port)
}

fn back_up(server: &Server, to: &Path, arguments: &[&str]) -> Run {
    let from = address(server);
    ladon(&[&["backup", name(to), "--from", &from], arguments].concat())
}

fn restore(from: &Path, to: &Path) -> Run {
    ladon(&["restore", name(from), "--to", name(to)])
}

/// A server on what a backup is restored to.
fn restored(backup: &Path, dir: &Path, arguments: &[&str]) -> Server {
    let launch = launch(dir, arguments);
    let ran = restore(backup, &launch.data);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let (code, report) = ladon_check(&launch.program, &launch.data).expect("checks");
    assert_eq!(code, Some(0), "{report}");
    launch.start().expect("starts")
}

fn number(value: &Value) -> u64 {
    let text = String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned();
    text.parse().unwrap_or(0)
}

/// Writes until it is told to stop: `first` before `second`, and two keys at once. Returns how
/// often.
fn write(server: &Server, writer: usize, stop: &AtomicBool) -> u64 {
    let mut client = server.connect().expect("connects");
    let mut count = 0;
    while !stop.load(Relaxed) {
        count += 1;
        let (n, [first, second, left, right, list]) = (count.to_string(), keys(writer));
        assert_eq!(call(&mut client, &["SET", &first, &n]), ok());
        assert_eq!(call(&mut client, &["SET", &second, &n]), ok());
        assert_eq!(call(&mut client, &["MSET", &left, &n, &right, &n]), ok());
        call(&mut client, &["RPUSH", &list, &n]);
    }
    count
}

fn keys(writer: usize) -> [String; 5] {
    ["first", "second", "left", "right", "list"].map(|key| format!("{key}:{writer}"))
}

/// What one writer had written at the moment of the backup: all of it, and nothing by halves.
fn check_one_moment(client: &mut Client, writer: usize, acknowledged: u64) {
    let mut get = |words: &[&str]| call(client, words);
    let [first, second, left, right, list] = keys(writer);
    let [first, second, left, right] =
        [&first, &second, &left, &right].map(|key| number(&get(&["GET", key])));
    let Value::Integer(pushed) = get(&["LLEN", &list]) else { panic!("no length") };
    assert!(pushed as u64 >= acknowledged, "{pushed} of {acknowledged} acknowledged");
    assert!(left == right, "{left} and {right} were written at once");
    let order = [first, second, left, pushed as u64];
    let is_one_moment = order.is_sorted_by(|a, b| a >= b) && order[3] + 1 >= order[0];
    assert!(is_one_moment, "{order:?} were written one after the other");
    assert_eq!(get(&["LRANGE", &list, "-1", "-1"]), Value::Array(vec![bulk(&pushed.to_string())]));
}

#[test]
fn a_backup_is_one_moment_and_has_all_that_was_acknowledged() {
    const WRITERS: usize = 3;
    let dir = tempfile::tempdir().expect("a directory");
    // Small segments and checkpoints all the time: files are replaced while they are copied.
    let arguments = ["--log-segment-bytes", "1mb", "--checkpoint-log-bytes", "2mb"];
    let launch = launch(dir.path(), &arguments);
    let server = launch.start().expect("starts");
    let stop = AtomicBool::new(false);
    thread::scope(|threads| {
        let (server, stop) = (&server, &stop);
        for writer in 0..WRITERS {
            threads.spawn(move || write(server, writer, stop));
        }
        let mut client = server.connect().expect("connects");
        let large = "v".repeat(3 << 20);
        for round in 0..6 {
            // More log than a segment, and a file that takes several pieces.
            assert_eq!(call(&mut client, &["SET", &format!("large:{round}"), &large]), ok());
            let acknowledged: Vec<u64> = (0..WRITERS)
                .map(|writer| match call(&mut client, &["LLEN", &keys(writer)[4]]) {
                    Value::Integer(pushed) => pushed as u64,
                    other => panic!("{other:?}"),
                })
                .collect();
            let backup = dir.path().join(format!("backup{round}"));
            let arguments: &[&str] = if round % 2 == 0 { &[] } else { &["--checkpoint"] };
            let ran = back_up(server, &backup, arguments);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            let place = dir.path().join(format!("restored{round}"));
            fs::create_dir(&place).expect("made");
            let mut copy = restored(&backup, &place, &[]);
            let mut client = copy.connect().expect("connects");
            for (writer, &acknowledged) in acknowledged.iter().enumerate() {
                check_one_moment(&mut client, writer, acknowledged);
            }
            for round in 0..=round {
                let length = call(&mut client, &["STRLEN", &format!("large:{round}")]);
                assert_eq!(length, Value::Integer(3 << 20));
            }
            assert!(copy.terminate().expect("ends").success());
        }
        stop.store(true, Relaxed);
    });
}

#[test]
fn users_functions_spaces_and_times_are_in_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let users = dir.path().join("all-users.acl");
    fs::write(&users, "user default on nopass ~* &* +@all\nuser ada on >secret ~a* +get\n")
        .expect("written");
    let ports = ladon_testkit::Ports::take(2).expect("ports");
    let iproto = |at: usize| format!("--iproto=127.0.0.1:{}", ports.numbers()[at]);
    let password = "--iproto-admin-password=secret";
    let arguments = ["--aclfile", name(&users), &iproto(0), password];
    let launch = launch(dir.path(), &arguments);
    let mut server = launch.start().expect("starts");
    let mut client = server.connect().expect("connects");
    let library = "#!lua name=mine\nredis.register_function('f', function() return 7 end)";
    assert_eq!(call(&mut client, &["FUNCTION", "LOAD", library]), bulk("mine"));
    assert_eq!(call(&mut client, &["SET", "a", "b", "PXAT", "4000000000123"]), ok());
    assert_eq!(call(&mut client, &["SELECT", "7"]), ok());
    call(&mut client, &["XADD", "stream", "1-1", "field", "value"]);
    let space = |at: usize, words: &[&str]| {
        let place = format!("--iproto=127.0.0.1:{}", ports.numbers()[at]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_ladon"));
        command.args(["space", &place]).args(words).env("LADON_IPROTO_PASSWORD", "secret");
        let output = command.output().expect("runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    space(0, &["create", "people", "--field", "id:unsigned"]);
    space(0, &["index", "people", "pk", "--part", "id:unsigned"]);
    let backup = dir.path().join("backup");
    let ran = back_up(&server, &backup, &["--checkpoint"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(server.terminate().expect("ends").success());

    let place = dir.path().join("restored");
    fs::create_dir(&place).expect("made");
    let restored_users = place.join("data/users.acl");
    let mut copy =
        restored(&backup, &place, &["--aclfile", name(&restored_users), &iproto(1), password]);
    let mut client = copy.connect().expect("connects");
    assert_eq!(call(&mut client, &["PEXPIRETIME", "a"]), Value::Integer(4_000_000_000_123));
    assert_eq!(call(&mut client, &["FCALL", "f", "0"]), Value::Integer(7));
    assert_eq!(call(&mut client, &["SELECT", "7"]), ok());
    assert_eq!(call(&mut client, &["XLEN", "stream"]), Value::Integer(1));
    assert_eq!(call(&mut client, &["AUTH", "ada", "secret"]), ok());
    let refused = call(&mut client, &["SET", "a", "c"]);
    assert!(matches!(&refused, Value::Error(text) if text.starts_with(b"NOPERM")), "{refused:?}");
    let listed = space(1, &["list"]);
    assert!(listed.contains("people") && listed.contains("pk"), "{listed}");
    assert!(copy.terminate().expect("ends").success());
}

/// A client of its own fetches a file to its end although two newer checkpoints have come since.
#[test]
fn files_stay_while_they_are_fetched_and_not_for_ever() {
    let dir = tempfile::tempdir().expect("a directory");
    let launch = launch(dir.path(), &[]);
    let mut server = launch.start().expect("starts");
    let mut client = server.connect().expect("connects");
    assert_eq!(call(&mut client, &["SET", "k", &"v".repeat(1000)]), ok());
    assert_eq!(call(&mut client, &["SAVE"]), ok());
    let Value::Array(begun) = call(&mut client, &["LADON.BACKUP", "BEGIN"]) else {
        panic!("no backup")
    };
    let (Value::Bulk(id), Value::Array(files)) = (&begun[0], &begun[2]) else {
        panic!("{begun:?}")
    };
    let id = String::from_utf8(id.clone()).expect("digits");
    let checkpoint = launch.data.join(file_name(&files[1]));
    let expected = fs::read(&checkpoint).expect("it is there");
    for n in 0..2 {
        assert_eq!(call(&mut client, &["SET", "n", &n.to_string()]), ok());
        assert_eq!(call(&mut client, &["SAVE"]), ok());
    }
    assert!(!checkpoint.exists(), "a newer one replaces it");
    let mut read = |words: &[&str]| {
        let all = [&["LADON.BACKUP", "READ", &id], words].concat();
        call(&mut client, &all)
    };
    assert_eq!(read(&["1", "0", "1048576"]), Value::Bulk(expected.clone()));
    assert_eq!(read(&["1", "9", "1"]), Value::Bulk(expected[9..10].to_vec()));
    assert_eq!(read(&["1", "1000000", "9"]), bulk(""));
    for wrong in [&["9", "0", "1"][..], &["0", "0", "1048577"], &["0", "-1", "1"], &["x", "0", "1"]]
    {
        let reply = read(wrong);
        assert!(matches!(reply, Value::Error(_)), "{wrong:?}: {reply:?}");
    }
    assert_eq!(call(&mut client, &["LADON.BACKUP", "END", &id]), ok());
    let gone = "ERR there is no such backup: it has ended, because nothing was read of it for a \
                minute, the disk was full, or the server was restarted";
    assert_eq!(call(&mut client, &["LADON.BACKUP", "END", &id]), error(gone));
    assert_eq!(call(&mut client, &["LADON.BACKUP", "READ", &id, "0", "0", "1"]), error(gone));
    assert_eq!(
        call(&mut client, &["LADON.BACKUP", "END", "x"]),
        error("ERR invalid backup number")
    );
    for _ in 0..4 {
        let begun = call(&mut client, &["LADON.BACKUP", "BEGIN"]);
        assert!(matches!(begun, Value::Array(_)), "{begun:?}");
    }
    let fifth = call(&mut client, &["LADON.BACKUP", "BEGIN"]);
    assert!(
        matches!(&fifth, Value::Error(text) if text.starts_with(b"ERR 4 backups")),
        "{fifth:?}"
    );
    assert_eq!(call(&mut client, &["MULTI"]), ok());
    let queued = call(&mut client, &["LADON.BACKUP", "BEGIN"]);
    assert!(matches!(queued, Value::Error(_)), "{queued:?}");
    assert!(server.terminate().expect("ends").success());
}

fn file_name(file: &Value) -> String {
    let Value::Array(parts) = file else { panic!("{file:?}") };
    String::from_utf8(parts[0].as_bytes().expect("a name").to_vec()).expect("text")
}

/// The command line's process, in the middle of a backup: the server's disk does not answer.
struct Held {
    disk: SickDisk,
    server: Server,
    command: Option<Child>,
    backup: PathBuf,
    dir: tempfile::TempDir,
}

impl Held {
    fn begin() -> Held {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = SickDisk::new(&["--io-threads", "1"]);
        let server = disk.start();
        let mut client = server.connect().expect("connects");
        assert_eq!(call(&mut client, &["SET", "k", &"v".repeat(100_000)]), ok());
        let backup = dir.path().join("backup");
        disk.set("hold-read");
        let command = Command::new(env!("CARGO_BIN_EXE_ladon"))
            .args(["backup", name(&backup), "--from", &address(&server)])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let began = Instant::now();
        while !backup.join("meta").exists() {
            assert!(began.elapsed() < Duration::from_secs(60), "nothing is copied");
            thread::sleep(Duration::from_millis(5));
        }
        // No IO thread waits for that disk.
        for n in 0..100 {
            assert_eq!(call(&mut client, &["SET", "n", &n.to_string()]), ok());
        }
        Held { disk, server, command: Some(command.expect("starts")), backup, dir }
    }

    fn command(&mut self) -> Child {
        self.command.take().expect("once")
    }

    /// The folder is named as a part, and refused; another attempt begins there anew.
    fn check_unfinished(&self) {
        let target = self.dir.path().join("target");
        let ran = restore(&self.backup, &target);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("is a part of a backup only: a backup of"), "{}", ran.stderr);
        assert!(!target.exists());
        let ran = ladon(&["serve", "--port", "1", "--data", name(&self.backup)]);
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        assert!(ran.stderr.contains("was not finished"), "{}", ran.stderr);
    }
}

#[test]
fn a_killed_command_leaves_a_part_that_is_refused() {
    let mut held = Held::begin();
    let mut command = held.command();
    command.kill().expect("killed");
    command.wait().expect("ends");
    held.disk.unset("hold-read");
    held.check_unfinished();
    // The server is none the worse, and the next attempt begins anew.
    let ran = back_up(&held.server, &held.backup, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let place = held.dir.path().join("restored");
    fs::create_dir(&place).expect("made");
    let mut copy = restored(&held.backup, &place, &[]);
    let mut client = copy.connect().expect("connects");
    assert_eq!(call(&mut client, &["GET", "n"]), bulk("99"));
    assert!(copy.terminate().expect("ends").success());
}

#[test]
fn a_killed_server_leaves_a_part_that_is_refused() {
    let mut held = Held::begin();
    held.server.kill().expect("killed");
    let output = held.command().wait_with_output().expect("ends");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("the server at 127.0.0.1"), "{text}");
    held.check_unfinished();
}

/// The disk that the backup goes to is full: a message, a part that is refused, and then a backup.
#[test]
fn a_full_disk_is_survived() {
    let dir = tempfile::tempdir().expect("a directory");
    let launch = launch(dir.path(), &[]);
    let mut server = launch.start().expect("starts");
    let mut client = server.connect().expect("connects");
    assert_eq!(call(&mut client, &["SET", "k", "v"]), ok());
    let sick = SickDisk::new(&[]);
    sick.set("full");
    let backup = dir.path().join("backup");
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ladon"));
        command.args(["backup", name(&backup), "--from", &address(&server)]);
        command.envs(sick.launch.environment.clone()).output().expect("runs")
    };
    let output = run();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("No space left on device"), "{text}");
    assert_eq!(call(&mut client, &["GET", "k"]), bulk("v"));
    sick.unset("full");
    assert_ne!(restore(&backup, &dir.path().join("target")).code, 0);
    let output = run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(restore(&backup, &dir.path().join("target")).code, 0);
    assert!(server.terminate().expect("ends").success());
}

/// Where the server's own disk is full, backups end: what they hold is needed.
#[test]
fn a_backup_gives_way_where_the_servers_disk_is_full() {
    let disk = SickDisk::new(&["--io-threads", "1"]);
    let mut server = disk.start();
    let mut client = server.connect().expect("connects");
    assert_eq!(call(&mut client, &["SET", "k", "v"]), ok());
    let Value::Array(begun) = call(&mut client, &["LADON.BACKUP", "BEGIN"]) else {
        panic!("no backup")
    };
    let id = String::from_utf8(begun[0].as_bytes().expect("digits").to_vec()).expect("digits");
    let read = ["LADON.BACKUP", "READ", &id, "0", "0", "64"];
    assert_eq!(call(&mut client, &read).as_bytes().map(<[u8]>::len), Some(64));
    let _waiting = disk.fill(&server, &mut client);
    until(
        &mut client,
        &read,
        |reply| matches!(reply, Value::Error(text) if text.starts_with(b"ERR there is no such backup")),
    );
    disk.drain(&mut client);
    assert!(server.terminate().expect("ends").success());
}

#[test]
fn a_damaged_backup_is_named_and_not_restored() {
    let dir = tempfile::tempdir().expect("a directory");
    let users = dir.path().join("all.acl");
    fs::write(&users, "user default on nopass ~* &* +@all\n").expect("written");
    let launch = launch(dir.path(), &["--aclfile", name(&users)]);
    let mut server = launch.start().expect("starts");
    let mut client = server.connect().expect("connects");
    assert_eq!(call(&mut client, &["SET", "k", "v"]), ok());
    assert_eq!(call(&mut client, &["SAVE"]), ok());
    assert_eq!(call(&mut client, &["SET", "l", "w"]), ok());
    let backup = dir.path().join("backup");
    assert_eq!(back_up(&server, &backup, &[]).code, 0);
    assert!(server.terminate().expect("ends").success());
    let entries = fs::read_dir(&backup).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert_eq!(files.len(), 6, "{files:?}");
    let target = dir.path().join("target");
    let check = |path: &Path, what: &str, with_offset: bool| {
        let ran = restore(&backup, &target);
        assert_eq!(ran.code, 1, "{what} {}: {}", path.display(), ran.stderr);
        assert!(ran.stderr.contains(name(path)), "{what} {}: {}", path.display(), ran.stderr);
        let names_offset = ran.stderr.contains("at byte ") || ran.stderr.contains("at offset ");
        assert!(names_offset || !with_offset, "{what} {}: {}", path.display(), ran.stderr);
        let is_begun = target.join("meta").exists() && !target.join("unfinished").exists();
        assert!(!is_begun, "{what} {}", path.display());
    };
    for path in &files {
        let whole = fs::read(path).expect("read");
        let is_list = path.ends_with("backup");
        // What is behind the notes of `log-end` means nothing.
        let at = if path.ends_with("log-end") { 5 } else { whole.len() / 2 };
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        fs::write(path, &changed).expect("written");
        check(path, "changed:", !path.ends_with("users.acl"));
        if !path.ends_with("log-end") {
            fs::write(path, &whole[..whole.len() - 2]).expect("written");
            check(path, "cut:", is_list);
            fs::remove_file(path).expect("removed");
            let ran = restore(&backup, &target);
            assert!(matches!(ran.code, 1 | 3), "{}: {}", path.display(), ran.stderr);
        }
        fs::write(path, &whole).expect("written");
    }
    // A part of the target may be there from `users.acl`, which is compared when it is copied.
    let ran = restore(&backup, &target);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = restore(&backup, &target);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("is not empty"), "{}", ran.stderr);
}

#[test]
fn what_is_no_backup_and_what_is_no_server_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let ran = restore(dir.path(), &dir.path().join("target"));
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("is no backup"), "{}", ran.stderr);
    let backup = dir.path().join("backup");
    let ran = ladon(&["backup", name(&backup), "--from", "127.0.0.1:1"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot connect"), "{}", ran.stderr);
    assert!(!backup.exists(), "nothing was begun");
    let launch = launch(dir.path(), &[]);
    let mut server = launch.start().expect("starts");
    let mut client = server.connect().expect("connects");
    assert_eq!(call(&mut client, &["CONFIG", "SET", "requirepass", "secret"]), ok());
    let ran = back_up(&server, &backup, &[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("NOAUTH"), "{}", ran.stderr);
    // The server's own settings name it, and have its password.
    let port = server.port.to_string();
    let ran = ladon(&["backup", name(&backup), "--port", &port, "--requirepass", "secret"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = ladon(&["serve", "--port", "1", "--data", name(&backup)]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("is a backup"), "{}", ran.stderr);
    assert!(server.terminate().expect("ends").success());
}
