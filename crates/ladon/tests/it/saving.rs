//! Checkpoints on demand, and what a start makes of them.

use crate::live::{self, bulk, call, info_number, ok, on_both_backends, pong};
use ladon_crash::{Client, Launch};
use ladon_resp::client::Value;
use std::path::Path;
use std::time::{Duration, Instant};

fn is_saving(client: &mut Client) -> bool {
    info_number(client, "persistence", "rdb_bgsave_in_progress") == 1
}

#[test]
fn a_slow_save_holds_up_nobody_and_hurries_when_told() {
    on_both_backends(&["--io-threads", "1"], |server| {
        let (mut one, mut two) =
            (server.connect().expect("connects"), server.connect().expect("connects"));
        call(&mut one, &["MSET", "a", "1", "b", "2", "c", "3"]);
        // Ten minutes a key.
        call(&mut one, &["CONFIG", "SET", "rdb-key-save-delay", "600000000"]);
        assert_eq!(
            call(&mut one, &["BGSAVE"]),
            Value::Simple(b"Background saving started".to_vec())
        );
        assert!(is_saving(&mut one));
        let began = Instant::now();
        assert_eq!(call(&mut two, &["PING"]), pong());
        assert_eq!(call(&mut two, &["SET", "a", "4"]), ok());
        let killed = call(&mut two, &["CLIENT", "KILL", "SKIPME", "yes"]);
        assert!(matches!(killed, Value::Integer(n) if n >= 1), "{killed:?}");
        assert!(live::closed_within(&mut one, 5), "a save keeps nobody in");
        assert!(began.elapsed() < Duration::from_secs(5));
        assert!(is_saving(&mut two), "it goes on");
        call(&mut two, &["CONFIG", "SET", "rdb-key-save-delay", "0"]);
        while is_saving(&mut two) {
            assert!(began.elapsed() < Duration::from_secs(20), "it does not hurry");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(info_number(&mut two, "persistence", "rdb_saves"), 1);
        // One in the making keeps no server from stopping.
        call(&mut two, &["CONFIG", "SET", "rdb-key-save-delay", "600000000"]);
        call(&mut two, &["BGSAVE"]);
    });
}

#[test]
fn how_collections_are_kept_is_settled_before_they_are_loaded() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = Path::new(env!("CARGO_BIN_EXE_ladon"));
    let members: Vec<String> = (0..300).map(|number| format!("m{number}")).collect();
    let add = |key: &str| {
        let mut words = vec!["SADD".to_owned(), key.to_owned()];
        words.extend(members.iter().cloned());
        words
    };
    let encoding = |client: &mut Client, key: &str| call(client, &["OBJECT", "ENCODING", key]);
    let wide = Launch::new(program, dir.path(), &["--set-max-listpack-entries", "1000"]);
    {
        let mut server = wide.start().expect("starts");
        let mut client = server.connect().expect("connects");
        client.call(&add("saved")).expect("a reply");
        assert_eq!(call(&mut client, &["SAVE"]), ok());
        client.call(&add("logged")).expect("a reply");
        assert_eq!(encoding(&mut client, "saved"), bulk("listpack"));
        server.terminate().expect("ends");
    }
    {
        let mut server = wide.start().expect("starts");
        let mut client = server.connect().expect("connects");
        for key in ["saved", "logged"] {
            assert_eq!(encoding(&mut client, key), bulk("listpack"), "{key}");
        }
        server.terminate().expect("ends");
    }
    let server = Launch::new(program, dir.path(), &[]).start().expect("starts");
    let mut client = server.connect().expect("connects");
    for key in ["saved", "logged"] {
        assert_eq!(encoding(&mut client, key), bulk("hashtable"), "{key}: as is the default");
        assert_eq!(call(&mut client, &["SCARD", key]), Value::Integer(300));
    }
}
