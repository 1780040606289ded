//! The gate on the real binary, across threads and connections: no reply shows what the disk does
//! not have yet, and no reply waits for longer than its own keys need.

use crate::live::{bulk, call, ok};
use crate::sick_disk::{SOON, SickDisk, WHILE};
use ladon_crash::{Client, Server};
use ladon_resp::client::Value;

fn both_backends(test: impl Fn(&SickDisk, &Server)) {
    for backend in ["auto", "mio"] {
        let arguments = ["--gate", "fsync", "--io-threads", "2", "--io-backend", backend];
        let disk = SickDisk::new(&arguments);
        let server = disk.start();
        test(&disk, &server);
    }
}

/// One connection on each of the two IO threads.
fn on_two_threads(server: &Server) -> (Client, Client) {
    // A new connection goes to the thread that has fewest, so two in a row go to different ones.
    (server.connect().expect("connects"), server.connect().expect("connects"))
}

fn sends(client: &mut Client, words: &[&str]) {
    client.request(words).expect("sent");
}

fn waits(client: &mut Client) -> bool {
    !client.has_reply_within(WHILE).expect("open")
}

#[test]
fn a_reader_elsewhere_waits_for_what_it_would_show_and_for_nothing_else() {
    both_backends(|disk, server| {
        let (mut writer, mut reader) = on_two_threads(server);
        let mut other = server.connect().expect("connects");
        assert_eq!(call(&mut writer, &["MSET", "hot", "old", "cold", "calm"]), ok());

        disk.set("hold-sync");
        sends(&mut writer, &["SET", "hot", "new"]);
        assert!(waits(&mut writer), "the write waits for the disk");
        sends(&mut reader, &["GET", "hot"]);
        assert!(waits(&mut reader), "a read of its value on another connection waits too");
        assert_eq!(
            call(&mut other, &["GET", "cold"]),
            bulk("calm"),
            "a read of another key does not"
        );
        sends(&mut other, &["EXISTS", "hot"]);
        assert!(waits(&mut other), "that there is something is shown no sooner");
        assert!(waits(&mut writer) && waits(&mut reader), "and all go on waiting");

        disk.unset("hold-sync");
        assert!(writer.has_reply_within(SOON).expect("open"));
        assert_eq!(writer.reply().expect("a reply"), ok());
        assert_eq!(reader.reply().expect("a reply"), bulk("new"));
        assert_eq!(other.reply().expect("a reply"), Value::Integer(1));
    });
}

#[test]
fn absence_is_gated_like_presence() {
    both_backends(|disk, server| {
        let (mut writer, mut reader) = on_two_threads(server);
        assert_eq!(call(&mut writer, &["SET", "k", "v"]), ok());
        disk.set("hold-sync");
        sends(&mut writer, &["DEL", "k"]);
        assert!(waits(&mut writer));
        sends(&mut reader, &["GET", "k"]);
        assert!(waits(&mut reader), "that it is gone is not shown before it is safe");
        disk.unset("hold-sync");
        assert_eq!(writer.reply().expect("a reply"), Value::Integer(1));
        assert_eq!(reader.reply().expect("a reply"), Value::Null);
    });
}

#[test]
fn replies_of_one_connection_keep_their_order() {
    both_backends(|disk, server| {
        let mut client = server.connect().expect("connects");
        assert_eq!(call(&mut client, &["SET", "cold", "calm"]), ok());
        disk.set("hold-sync");
        client.send(b"SET hot new\r\nGET cold\r\nPING\r\n").expect("sent");
        assert!(waits(&mut client), "PING does not overtake the SET before it");
        disk.unset("hold-sync");
        assert_eq!(client.reply().expect("a reply"), ok());
        assert_eq!(client.reply().expect("a reply"), bulk("calm"));
        assert_eq!(client.reply().expect("a reply"), Value::Simple(b"PONG".to_vec()));
    });
}

#[test]
fn a_connection_may_ask_for_a_laxer_gate() {
    both_backends(|disk, server| {
        let (mut lax, mut strict) = on_two_threads(server);
        for gate in ["none", "write"] {
            assert_eq!(call(&mut lax, &["CLIENT", "GATE", gate]), ok());
            disk.set("hold-sync");
            assert_eq!(call(&mut lax, &["SET", "k", gate]), ok(), "it does not wait for the disk");
            sends(&mut strict, &["GET", "k"]);
            assert!(waits(&mut strict), "the others wait for its change nevertheless");
            disk.unset("hold-sync");
            assert_eq!(strict.reply().expect("a reply"), bulk(gate));
        }
    });
}

#[test]
fn a_connection_may_ask_for_a_stricter_gate() {
    for backend in ["auto", "mio"] {
        let arguments = ["--gate", "none", "--io-threads", "2", "--io-backend", backend];
        let disk = SickDisk::new(&arguments);
        let server = disk.start();
        let (mut lax, mut strict) = on_two_threads(&server);
        assert_eq!(call(&mut strict, &["CLIENT", "GATE", "fsync"]), ok());
        disk.set("hold-sync");
        assert_eq!(call(&mut lax, &["SET", "k", "v"]), ok());
        sends(&mut strict, &["GET", "k"]);
        assert!(waits(&mut strict));
        assert_eq!(call(&mut lax, &["GET", "k"]), bulk("v"));
        disk.unset("hold-sync");
        assert_eq!(strict.reply().expect("a reply"), bulk("v"));
    }
}

/// What was asked under the old gate is answered under it, even if the new one comes in the same
/// packet.
#[test]
fn a_laxer_gate_holds_from_the_next_command_on() {
    both_backends(|disk, server| {
        let mut client = server.connect().expect("connects");
        disk.set("hold-sync");
        client.send(b"SET k v\r\nCLIENT GATE none\r\nSET l w\r\n").expect("sent");
        assert!(waits(&mut client), "the first SET was asked for at fsync");
        disk.unset("hold-sync");
        for _ in 0..3 {
            assert_eq!(client.reply().expect("a reply"), ok());
        }
        disk.set("hold-sync");
        assert_eq!(call(&mut client, &["SET", "l", "x"]), ok());
        disk.unset("hold-sync");
    });
}

#[test]
fn the_default_gate_changes_without_a_hole() {
    both_backends(|disk, server| {
        let (mut admin, mut client) = on_two_threads(server);
        assert_eq!(call(&mut admin, &["CONFIG", "SET", "gate", "none"]), ok());
        disk.set("hold-sync");
        assert_eq!(call(&mut client, &["SET", "k", "v"]), ok());
        // When the stricter gate is confirmed, it holds for all that was acknowledged before.
        sends(&mut admin, &["CONFIG", "SET", "gate", "fsync"]);
        assert!(waits(&mut admin), "what `none` had acknowledged is not on the disk yet");
        sends(&mut client, &["GET", "k"]);
        assert!(waits(&mut client));
        disk.unset("hold-sync");
        assert_eq!(admin.reply().expect("a reply"), ok());
        assert_eq!(client.reply().expect("a reply"), bulk("v"));

        // A laxer one lets nothing out that was asked for before it.
        disk.set("hold-sync");
        client.send(b"SET k w\r\nCONFIG SET gate none\r\n").expect("sent");
        assert!(waits(&mut client));
        disk.unset("hold-sync");
        assert_eq!(client.reply().expect("a reply"), ok());
        assert_eq!(client.reply().expect("a reply"), ok());
    });
}

#[test]
fn a_laxer_gate_in_the_same_pipeline_does_not_reach_back() {
    both_backends(|disk, server| {
        let mut client = server.connect().expect("connects");
        assert_eq!(call(&mut client, &["SET", "k", "old"]), ok());
        disk.set("hold-sync");
        client.send(b"SET k new\r\nCLIENT GATE none\r\nPING\r\n").expect("sent");
        assert!(waits(&mut client), "the SET was sent at the gate fsync");
        disk.unset("hold-sync");
        assert_eq!(client.reply().expect("a reply"), ok());
        assert_eq!(client.reply().expect("a reply"), ok());
        assert_eq!(client.reply().expect("a reply"), Value::Simple(b"PONG".to_vec()));
    });
}

/// It once kept its IO thread in a loop: what it waits for in the log is reached at once, but not
/// the replica that there is not.
#[test]
fn a_wait_for_replicas_that_do_not_exist_holds_up_nobody() {
    both_backends(|_, server| {
        // As many as there are threads, so that each has one.
        let (mut one, mut two) = on_two_threads(server);
        for client in [&mut one, &mut two] {
            sends(client, &["WAIT", "1", "0"]);
            assert!(waits(client));
        }
        let (mut three, mut four) = on_two_threads(server);
        for client in [&mut three, &mut four] {
            assert_eq!(call(client, &["SET", "k", "v"]), ok());
        }
    });
}

/// Up to where the log is on the disk.
fn durable(client: &mut Client) -> u64 {
    let info = call(client, &["INFO", "ladon"]);
    let info = String::from_utf8_lossy(info.as_bytes().unwrap_or_default()).into_owned();
    let line = info.lines().find_map(|line| line.strip_prefix("log_durable_lsn:"));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{info}"))
}

/// It once was not, where the server's default had no clock.
#[test]
fn what_left_at_everysec_is_synced_whatever_the_default_gate() {
    for default in ["none", "write"] {
        let disk = SickDisk::new(&["--gate", default, "--io-threads", "2"]);
        let server = disk.start();
        let (mut lax, mut client) = on_two_threads(&server);
        assert_eq!(call(&mut client, &["CLIENT", "GATE", "everysec"]), ok());
        for round in 0..3 {
            // A read of what somebody else has written without a promise, and a change.
            assert_eq!(call(&mut lax, &["INCRBY", "k", "1"]), Value::Integer(2 * round + 1));
            let before = durable(&mut lax);
            if round == 1 {
                sends(&mut client, &["GET", "k"]);
                client.reply().expect("a reply");
                call(&mut lax, &["INCR", "k"]);
            } else {
                assert_eq!(call(&mut client, &["INCR", "k"]), Value::Integer(2 * round + 2));
            }
            until_durable(&mut lax, before);
        }
    }
}

/// It once was not: the clock stopped with the default that it belonged to.
#[test]
fn what_was_acknowledged_before_the_default_became_laxer_is_synced() {
    let disk = SickDisk::new(&["--gate", "everysec", "--io-threads", "2"]);
    let server = disk.start();
    let (mut admin, mut client) = on_two_threads(&server);
    for gate in ["none", "write"] {
        assert_eq!(call(&mut admin, &["CONFIG", "SET", "gate", "everysec"]), ok());
        let before = durable(&mut admin);
        // The first sync comes at once, if the last was long ago; it is the second that waits.
        assert_eq!(call(&mut client, &["SET", "k", gate]), ok());
        until_durable(&mut admin, before);
        let before = durable(&mut admin);
        assert_eq!(call(&mut client, &["SET", "l", gate]), ok());
        assert_eq!(call(&mut admin, &["CONFIG", "SET", "gate", gate]), ok());
        until_durable(&mut admin, before);
    }
}

fn until_durable(client: &mut Client, beyond: u64) {
    let began = std::time::Instant::now();
    while durable(client) <= beyond {
        assert!(began.elapsed() < SOON, "nothing was synced beyond {beyond}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// What shows data without reading a key waits as a read does.
#[test]
fn counts_and_what_was_executed_are_shown_no_sooner_than_the_data() {
    both_backends(|disk, server| {
        let (mut writer, mut reader) = on_two_threads(server);
        for words in [
            &["INFO", "keyspace"] as &[&str],
            &["INFO"],
            &["MEMORY", "STATS"],
            &["DBSIZE"],
            &["RANDOMKEY"],
            &["SCAN", "0"],
            &["SLOWLOG", "GET"],
        ] {
            call(&mut writer, &["FLUSHALL"]);
            disk.set("hold-sync");
            sends(&mut writer, &["SET", "k", "v"]);
            assert!(waits(&mut writer), "the write waits for the disk");
            sends(&mut reader, words);
            assert!(waits(&mut reader), "{words:?} shows what a crash could take back");
            disk.unset("hold-sync");
            assert_eq!(writer.reply().expect("a reply"), ok());
            reader.reply().expect("a reply");
        }
    });
}

#[test]
fn a_monitor_shows_what_is_as_safe_as_its_gate_asks() {
    both_backends(|disk, server| {
        let (mut writer, mut monitor) = on_two_threads(server);
        let mut lax = server.connect().expect("connects");
        assert_eq!(call(&mut lax, &["CLIENT", "GATE", "none"]), ok());
        for watcher in [&mut monitor, &mut lax] {
            assert_eq!(call(watcher, &["MONITOR"]), ok());
        }
        let shows = |watcher: &mut Client, part: &str| {
            let line = watcher.reply().expect("a line");
            let Value::Simple(line) = line else { panic!("{line:?}") };
            let line = String::from_utf8_lossy(&line).into_owned();
            assert!(line.contains(part), "{line}");
        };
        for transaction in [false, true] {
            if transaction {
                assert_eq!(call(&mut writer, &["MULTI"]), ok());
                for watcher in [&mut monitor, &mut lax] {
                    shows(watcher, "\"MULTI\"");
                }
            }
            disk.set("hold-sync");
            if transaction {
                writer.send(b"SET k v\r\nEXEC\r\n").expect("sent");
            } else {
                sends(&mut writer, &["SET", "k", "v"]);
            }
            shows(&mut lax, "\"SET\" \"k\" \"v\"");
            assert!(waits(&mut monitor), "a crash could take it back");
            disk.unset("hold-sync");
            shows(&mut monitor, "\"SET\" \"k\" \"v\"");
            for _ in 0..if transaction { 2 } else { 1 } {
                writer.reply().expect("a reply");
            }
            if transaction {
                for watcher in [&mut monitor, &mut lax] {
                    shows(watcher, "\"EXEC\"");
                }
            }
        }
    });
}
