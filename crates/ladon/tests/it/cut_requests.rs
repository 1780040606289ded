//! A request that has come in part, behind one that makes its connection wait: it is taken up where
//! it stands once the connection goes on, whatever was seen of it before.

use crate::live::large::{connect, fill, large_sets, wait_for_jobs};
use crate::live::{bulk, call, ok, on_both_backends};
use ladon_crash::{Client, Server};
use ladon_resp::client::Value;
use std::thread;
use std::time::Duration;

fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

/// Sends a request that waits, a short one and a third of which a part comes first, the rest after
/// `go_on`. The reply to the first.
fn cut_behind(server: &Server, waits: &[&str], at: usize, go_on: impl FnOnce()) -> Value {
    let mut client = connect(server);
    call(&mut client, &["DEL", "number", "a longer key"]);
    let third = request(&["SET", "a longer key", "value"]);
    let at = at.min(third.len());
    let first = [request(waits), request(&["INCRBY", "number", "7"]), third[..at].to_vec()];
    client.send(&first.concat()).expect("sent");
    // So that the part has been seen.
    thread::sleep(Duration::from_millis(10));
    go_on();
    client.send(&[&third[at..], &request(&["GET", "a longer key"])].concat()).expect("sent");
    let reply = client.reply().expect("the first reply");
    assert_eq!(client.reply().expect("the second"), Value::Integer(7), "{waits:?}, {at}");
    assert_eq!(client.reply().expect("the third"), ok(), "{waits:?}, {at}");
    assert_eq!(client.reply().expect("the last"), bulk("value"));
    reply
}

/// Where the third request is cut: in each of its parts.
const CUTS: [usize; 8] = [1, 3, 6, 12, 20, 31, 38, 42];

#[test]
fn behind_a_client_that_waits_for_a_key() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut other = connect(server);
        for at in CUTS {
            let push = || assert_eq!(call(&mut other, &["RPUSH", "k", "e"]), Value::Integer(1));
            let reply = cut_behind(server, &["BLPOP", "k", "0"], at, push);
            assert_eq!(reply, Value::Array(vec![bulk("k"), bulk("e")]));
        }
    });
}

#[test]
fn behind_a_pause() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut other = connect(server);
        for at in CUTS {
            call(&mut other, &["CLIENT", "PAUSE", "10000", "WRITE"]);
            let unpause = || assert_eq!(call(&mut other, &["CLIENT", "UNPAUSE"]), ok());
            assert_eq!(cut_behind_a_write(server, at, unpause), ok());
        }
    });
}

fn cut_behind_a_write(server: &Server, at: usize, go_on: impl FnOnce()) -> Value {
    // The keys that `cut_behind` would delete cannot be deleted in a pause.
    let mut client = connect(server);
    let third = request(&["GETSET", "a longer key", "value"]);
    let at = at.min(third.len());
    let first = [request(&["SET", "number", "7"]), request(&["PING", "x"]), third[..at].to_vec()];
    client.send(&first.concat()).expect("sent");
    thread::sleep(Duration::from_millis(10));
    go_on();
    client.send(&third[at..]).expect("sent");
    let reply = client.reply().expect("the first reply");
    assert_eq!(client.reply().expect("the second"), bulk("x"), "{at}");
    assert!(!matches!(client.reply().expect("the third"), Value::Error(_)), "{at}");
    reply
}

#[test]
fn behind_a_store_that_is_computed_aside() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut other = connect(server);
        large_sets(&mut other);
        for (round, at) in CUTS.into_iter().enumerate() {
            let begun = || wait_for_jobs(&mut other, round as u64 + 1);
            let reply = cut_behind(server, &["SUNIONSTORE", "all", "a", "b"], at, begun);
            assert_eq!(reply, Value::Integer(120_000));
        }
    });
}

#[test]
fn behind_a_long_reply() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut other: Client = connect(server);
        fill(&mut other, "RPUSH list", 0..60_000, |n| vec![format!("element {n}")]);
        for at in CUTS {
            let reply = cut_behind(server, &["LRANGE", "list", "0", "-1"], at, || ());
            assert!(matches!(reply, Value::Array(all) if all.len() == 60_000));
        }
    });
}

#[test]
fn a_request_in_part_behind_an_empty_line_is_taken_up_where_it_stands() {
    on_both_backends(&[], |server| {
        for (first, rest) in [
            ("PING\r\n\r\n*2\r\n$3\r\nGE", "T\r\n$7\r\nmissing\r\n"),
            ("PING\r\n*0\r\n\r\n*2", "\r\n$3\r\nGET\r\n$7\r\nmissing\r\n"),
        ] {
            let mut client = connect(server);
            client.send(first.as_bytes()).expect("sent");
            assert_eq!(client.reply().expect("the first"), Value::Simple(b"PONG".to_vec()));
            client.send(rest.as_bytes()).expect("sent");
            assert_eq!(client.reply().expect("the second"), Value::Null, "{first:?}");
        }
    });
}
