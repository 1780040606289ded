//! What CLIENT LIST says about buffers, on the real binary.

use crate::live::{self, call, on_both_backends, pong};
use ladon_crash::{Client, Server};
use std::time::Duration;

fn connect(server: &Server) -> Client {
    server.connect().expect("connects")
}

/// A field of the line of the client with this number.
fn field(list: &[u8], id: i64, name: &str) -> String {
    let list = String::from_utf8_lossy(list);
    let line = list.lines().find(|line| line.starts_with(&format!("id={id} ")));
    let line = line.unwrap_or_else(|| panic!("{id} in {list}"));
    let found = line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("{name} in {line}")).to_owned()
}

fn id(client: &mut Client) -> i64 {
    match call(client, &["CLIENT", "ID"]) {
        ladon_resp::client::Value::Integer(id) => id,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_callers_own_replies_count_and_what_has_left_does_not() {
    on_both_backends(&["--io-threads", "1"], |server| {
        let (mut one, mut two) = (connect(server), connect(server));
        let (id, idle) = (id(&mut one), id(&mut two));
        assert_eq!(
            call(&mut two, &["ECHO", &"x".repeat(1000)]).as_bytes().map(<[u8]>::len),
            Some(1000)
        );
        // In one packet, therefore in one batch.
        one.send(b"PING\r\nCLIENT INFO\r\nCLIENT LIST\r\n").expect("sent");
        assert_eq!(one.reply().expect("a reply"), pong());
        let info = one.reply().expect("a reply");
        let info = info.as_bytes().expect("a text");
        assert_eq!(field(info, id, "obl"), "7", "+PONG is still here");
        assert_eq!(field(info, id, "events"), "r", "but nothing waits for the socket");
        one.reply().expect("a reply");
        // What the kernel has taken is gone as soon as the thread has heard of it.
        std::thread::sleep(Duration::from_millis(50));
        let list = call(&mut one, &["CLIENT", "LIST"]);
        let list = list.as_bytes().expect("a text");
        for (name, wanted) in [("obl", "0"), ("oll", "0"), ("omem", "0"), ("events", "r")] {
            assert_eq!(field(list, idle, name), wanted, "{name} of an idle client");
            assert_eq!(field(list, id, name), wanted, "{name} of the caller");
        }
        assert_eq!(field(list, idle, "resp"), "2");
        let peak: usize = field(list, idle, "rbp").parse().expect("a number");
        assert!((1000..2000).contains(&peak), "{peak}");
    });
}

#[test]
fn who_does_not_read_is_seen_to_keep_replies_waiting() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let (mut one, mut deaf) = (connect(server), connect(server));
        let deaf_id = id(&mut deaf);
        call(&mut one, &["SET", "big", &"v".repeat(1 << 20)]);
        deaf.send(&b"GET big\r\n".repeat(40)).expect("sent");
        let began = std::time::Instant::now();
        loop {
            let list = call(&mut one, &["CLIENT", "LIST"]);
            let list = list.as_bytes().expect("a text");
            let waiting: u64 = field(list, deaf_id, "omem").parse().expect("a number");
            if waiting > 10 << 20 {
                assert_eq!(field(list, deaf_id, "events"), "rw");
                assert_ne!(field(list, deaf_id, "oll"), "0");
                return;
            }
            assert!(began.elapsed().as_secs() < 20, "40 MB of replies, {waiting} waiting");
            std::thread::sleep(Duration::from_millis(10));
        }
    });
}

/// A client that a pause holds back counts as blocked all the time, whichever thread looks.
#[test]
fn a_paused_client_stays_blocked_until_the_pause_ends() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let mut control = connect(server);
        let mut others: Vec<Client> = (0..3).map(|_| connect(server)).collect();
        for words in [["CLIENT", "PAUSE", "60000", "WRITE"], ["CLIENT", "PAUSE", "10", "WRITE"]] {
            assert_eq!(call(&mut control, &words), live::ok());
        }
        for (turn, other) in others.iter_mut().enumerate() {
            other.request(&["SET", "key", &turn.to_string()]).expect("sent");
        }
        let blocked = |client: &mut Client| live::info_number(client, "clients", "blocked_clients");
        let began = std::time::Instant::now();
        while blocked(&mut control) != 3 {
            assert!(began.elapsed() < Duration::from_secs(20), "they are held back");
        }
        for _ in 0..200 {
            assert_eq!(blocked(&mut control), 3);
        }
        // Ended and begun anew at once, then ended for good.
        control.send(b"CLIENT UNPAUSE\r\nCLIENT PAUSE 60000 WRITE\r\n").expect("sent");
        for _ in 0..2 {
            assert_eq!(control.reply().expect("a reply"), live::ok());
        }
        call(&mut control, &["CLIENT", "UNPAUSE"]);
        for other in &mut others {
            assert_eq!(other.reply().expect("a reply"), live::ok());
        }
        while blocked(&mut control) != 0 {
            assert!(began.elapsed() < Duration::from_secs(20), "they go on");
        }
    });
}
