//! Users on the real binary: a change of rights reaches every connection, on whichever thread;
//! users come from files and survive a restart.

use crate::common::ladon;
use crate::live::{bulk, call, closed_within, error, info_number, ok, on_both_backends, pong};
use ladon_crash::{Client, Launch, Server};
use ladon_resp::client::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const FOUR_THREADS: &[&str] = &["--io-threads", "4"];

fn connect(server: &Server) -> Client {
    server.connect().expect("connects")
}

/// Connections of a user; the threads take turns in getting one.
fn log_in(server: &Server, count: usize, user: &str) -> Vec<Client> {
    let connect = |_| {
        let mut client = connect(server);
        assert_eq!(call(&mut client, &["AUTH", user, "pw"]), ok());
        client
    };
    (0..count).map(connect).collect()
}

fn set_user(control: &mut Client, words: &[&str]) {
    assert_eq!(call(control, &[&["ACL", "SETUSER"], words].concat()), ok());
}

fn until(control: &mut Client, field: &str, wanted: u64) {
    let began = Instant::now();
    while info_number(control, "clients", field) != wanted {
        assert!(began.elapsed() < Duration::from_secs(20), "{field} is not {wanted}");
        thread::sleep(Duration::from_millis(5));
    }
}

const NO_KEY: &str = "NOPERM No permissions to access a key";

#[test]
fn what_is_revoked_is_gone_with_the_reply() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        set_user(&mut control, &["bob", "on", ">pw", "~*", "&*", "+@all"]);
        let mut clients = log_in(server, 8, "bob");
        for round in 0..50 {
            for client in &mut clients {
                assert_eq!(call(client, &["SET", "key", "1"]), ok(), "round {round}");
            }
            set_user(&mut control, &["bob", "resetkeys", "~other"]);
            for client in &mut clients {
                assert_eq!(call(client, &["SET", "key", "1"]), error(NO_KEY), "round {round}");
            }
            set_user(&mut control, &["bob", "~*"]);
        }
        // The connections of a user who is deleted end, and the one that deletes itself is answered.
        let mut own = log_in(server, 1, "bob").pop().expect("one");
        assert_eq!(call(&mut own, &["ACL", "DELUSER", "bob"]), Value::Integer(1));
        assert!(closed_within(&mut own, 20));
        assert!(clients.iter_mut().all(|client| closed_within(client, 20)));
        until(&mut control, "connected_clients", 1);
    });
}

#[test]
fn waiting_clients_lose_what_they_wait_for() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        set_user(&mut control, &["bob", "on", ">pw", "~*", "&*", "+@all"]);
        let mut clients = log_in(server, 8, "bob");
        for client in &mut clients {
            client.request(&["BLPOP", "queue", "other", "0"]).expect("sent");
        }
        until(&mut control, "blocked_clients", 8);
        set_user(&mut control, &["bob", "resetkeys", "~queue"]);
        for client in &mut clients {
            assert_eq!(client.reply().expect("a reply"), error(NO_KEY));
        }
        until(&mut control, "blocked_clients", 0);
        assert_eq!(call(&mut control, &["RPUSH", "queue", "a"]), Value::Integer(1));
        // A wait that is still allowed goes on.
        let (first, rest) = clients.split_first_mut().expect("some");
        for client in rest {
            assert_eq!(call(client, &["LLEN", "queue"]), Value::Integer(1));
        }
        first.request(&["BLPOP", "queue", "0"]).expect("sent");
        let popped = Value::Array(vec![bulk("queue"), bulk("a")]);
        assert_eq!(first.reply().expect("a reply"), popped);
        first.request(&["BLPOP", "queue", "0"]).expect("sent");
        until(&mut control, "blocked_clients", 1);
        set_user(&mut control, &["bob", "-get"]);
        assert_eq!(call(&mut control, &["RPUSH", "queue", "b"]), Value::Integer(1));
        let popped = Value::Array(vec![bulk("queue"), bulk("b")]);
        assert_eq!(first.reply().expect("a reply"), popped);
    });
}

/// The push and the change race: whoever wins, nothing goes to a user who lost the key before.
#[test]
fn nothing_is_popped_for_a_user_who_lost_the_key() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        set_user(&mut control, &["bob", "on", ">pw", "+@all"]);
        let mut clients = log_in(server, 4, "bob");
        for round in 0..100 {
            set_user(&mut control, &["bob", "~queue"]);
            for client in &mut clients {
                client.request(&["BLPOP", "queue", "0"]).expect("sent");
            }
            until(&mut control, "blocked_clients", 4);
            // In one pipeline, so that no thread has read its messages in between.
            control.request(&["ACL", "SETUSER", "bob", "resetkeys"]).expect("sent");
            control.request(&["RPUSH", "queue", "a"]).expect("sent");
            assert_eq!(control.reply().expect("a reply"), ok());
            assert_eq!(control.reply().expect("a reply"), Value::Integer(1));
            for client in &mut clients {
                assert_eq!(client.reply().expect("a reply"), error(NO_KEY), "round {round}");
            }
            assert_eq!(call(&mut control, &["LPOP", "queue"]), bulk("a"), "round {round}");
        }
    });
}

#[test]
fn subscribers_and_trackers_end_with_their_rights() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        set_user(&mut control, &["bob", "on", ">pw", "~a*", "&news*", "+@all"]);
        let mut subscribed = log_in(server, 4, "bob");
        for client in &mut subscribed {
            call(client, &["SUBSCRIBE", "news1"]);
        }
        let mut patterns = log_in(server, 4, "bob");
        for client in &mut patterns {
            call(client, &["PSUBSCRIBE", "news*"]);
            let denied = error("NOPERM No permissions to access a channel");
            assert_eq!(call(client, &["PSUBSCRIBE", "*"]), denied);
        }
        let mut tracked = log_in(server, 4, "bob");
        for client in &mut tracked {
            call(client, &["HELLO", "3"]);
            assert_eq!(call(client, &["CLIENT", "TRACKING", "ON"]), ok());
            assert_eq!(call(client, &["GET", "a1"]), Value::Null);
        }
        set_user(&mut control, &["bob", "~b*"]);
        assert!(!subscribed.iter_mut().chain(&mut tracked).any(|it| closed_within(it, 0)));
        set_user(&mut control, &["bob", "resetchannels", "&news1"]);
        assert!(patterns.iter_mut().all(|client| closed_within(client, 20)));
        assert!(!subscribed.iter_mut().chain(&mut tracked).any(|it| closed_within(it, 0)));
        set_user(&mut control, &["bob", "resetkeys", "~a1"]);
        assert!(tracked.iter_mut().all(|client| closed_within(client, 20)));
        set_user(&mut control, &["bob", "resetchannels"]);
        assert!(subscribed.iter_mut().all(|client| closed_within(client, 20)));
        until(&mut control, "connected_clients", 1);
    });
}

/// Changes come while clients work: each request is answered by one of the two states.
#[test]
fn rights_change_while_clients_run() {
    on_both_backends(FOUR_THREADS, |server| {
        let mut control = connect(server);
        set_user(&mut control, &["bob", "on", ">pw", "~*", "+@all"]);
        let ends = AtomicBool::new(false);
        thread::scope(|scope| {
            for mut client in log_in(server, 16, "bob") {
                let ends = &ends;
                scope.spawn(move || {
                    let (mut allowed, mut denied) = (0, 0);
                    while !ends.load(Relaxed) {
                        match call(&mut client, &["SET", "key", "1"]) {
                            reply if reply == ok() => allowed += 1,
                            reply if reply == error(NO_KEY) => denied += 1,
                            other => panic!("{other:?}"),
                        }
                    }
                    assert!(allowed > 0 && denied > 0, "{allowed} allowed, {denied} denied");
                });
            }
            for _ in 0..200 {
                set_user(&mut control, &["bob", "resetkeys"]);
                thread::sleep(Duration::from_millis(1));
                set_user(&mut control, &["bob", "~*"]);
                thread::sleep(Duration::from_millis(1));
            }
            ends.store(true, Relaxed);
        });
    });
}

fn launch(dir: &Path, arguments: &[&str]) -> Launch {
    Launch::new(Path::new(env!("CARGO_BIN_EXE_ladon")), dir, arguments)
}

#[test]
fn users_are_saved_and_loaded() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("users.acl");
    std::fs::write(&file, "user default on nopass ~* &* +@all\nuser bob on >pw ~b* +@all\n")
        .expect("written");
    let path = file.to_str().expect("text");
    let launch = launch(dir.path(), &["--aclfile", path]);
    let server = launch.start().expect("starts");
    let mut control = connect(&server);
    let mut bob = log_in(&server, 1, "bob").pop().expect("one");
    assert_eq!(call(&mut bob, &["GET", "a"]), error(NO_KEY));
    set_user(&mut control, &["alice", "on", ">pw", "+ping"]);
    assert_eq!(call(&mut control, &["ACL", "SAVE"]), ok());
    // A wrong file changes nothing.
    let saved = std::fs::read(&file).expect("read");
    std::fs::write(&file, "user bob on >pw +nosuch\n").expect("written");
    let Value::Error(text) = call(&mut control, &["ACL", "LOAD"]) else { panic!("an error") };
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains("users.acl:1: Error in applying operation '+nosuch'"), "{text}");
    assert_eq!(call(&mut bob, &["GET", "b"]), Value::Null);
    std::fs::write(&file, saved).expect("written");
    server_again(server, &launch, |server| {
        let mut alice = log_in(server, 1, "alice").pop().expect("one");
        assert_eq!(call(&mut alice, &["PING"]), pong());
        // A user that the file does not have any more is gone, with its connections.
        std::fs::write(&file, "user bob on >pw ~* +@all\n").expect("written");
        let mut control = connect(server);
        assert_eq!(call(&mut control, &["ACL", "LOAD"]), ok());
        assert!(closed_within(&mut alice, 20));
    });
}

fn server_again(server: Server, launch: &Launch, test: impl FnOnce(&Server)) {
    assert!({ server }.terminate().expect("ends").success());
    let mut server = launch.start().expect("starts");
    test(&server);
    assert!(server.terminate().expect("ends").success());
}

#[test]
fn users_of_a_configuration_are_written_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let conf = dir.path().join("redis.conf");
    std::fs::write(&conf, "user bob on >pw ~a* (~b* +get) +@all -del\n").expect("written");
    let launch = launch(dir.path(), &["--redis-conf", conf.to_str().expect("text")]);
    let server = launch.start().expect("starts");
    let mut control = connect(&server);
    set_user(&mut control, &["alice", "on", ">pw", "~\"*", "+ping"]);
    let users = call(&mut control, &["ACL", "LIST"]);
    assert_eq!(call(&mut control, &["CONFIG", "REWRITE"]), ok());
    server_again(server, &launch, |server| {
        assert_eq!(call(&mut connect(server), &["ACL", "LIST"]), users);
        log_in(server, 1, "alice");
    });
}

#[test]
fn wrong_users_keep_a_server_from_starting() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    let refused = |text: &str, arguments: &[&str]| {
        std::fs::write(path("redis.conf"), text).expect("written");
        let (conf, data) = (path("redis.conf"), path("data"));
        let socket = format!("unix:{}", path("socket"));
        let common = ["serve", "--redis-conf", &conf, "--data", &data, "--resp", &socket];
        let run = ladon(&[&common, arguments].concat());
        assert_ne!(run.code, 0, "{text}");
        run.stderr
    };
    for (text, expected) in [
        ("user bob +@all\nuser bob on\n", "redis.conf:2: Error in user declaration 'bob'"),
        ("user bob on +nosuch\n", "Error loading ACL rule '+nosuch' for the user named 'bob'"),
        ("user bob ~a (~b\n", "redis.conf:1: Error in user declaration"),
        ("user\n", "redis.conf:1: user: a name is missing"),
    ] {
        let stderr = refused(text, &[]);
        assert!(stderr.contains(expected), "{text}: {stderr}");
    }
    let missing = path("missing.acl");
    let stderr = refused("", &["--aclfile", &missing]);
    assert!(stderr.contains("missing.acl' (aclfile) cannot be read"), "{stderr}");
    let stderr = refused("user bob on\n", &["--aclfile", &missing]);
    assert!(stderr.contains("redis.conf:1: users are declared here and 'aclfile'"), "{stderr}");
}
