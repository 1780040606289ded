//! The gate on the real binary, across threads and connections: no reply shows what the disk does
//! not have yet, and no reply waits for longer than its own keys need.

mod sick_disk;

use ladon_crash::{Client, Server};
use ladon_resp::client::Value;
use sick_disk::{SOON, SickDisk, WHILE, bulk, call, ok};

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
