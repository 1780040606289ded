//! `CLIENT PAUSE` on the real binary: its OK means that nothing is under way any more.

use crate::live::{call, info_number, ok, on_both_backends};
use ladon_crash::Client;
use ladon_resp::client::Value;

fn lists(client: &mut Client, part: &str) -> bool {
    let list = call(client, &["CLIENT", "LIST"]);
    String::from_utf8_lossy(list.as_bytes().unwrap_or_default()).contains(part)
}

/// It once came while a transaction that another thread had let in before was still to be
/// committed.
#[test]
fn ok_comes_after_what_another_thread_had_let_in() {
    for mode in ["WRITE", "ALL"] {
        let arguments = ["--io-threads", "2", "--enable-debug-command", "yes"];
        on_both_backends(&arguments, |server| {
            let (mut writer, mut admin) =
                (server.connect().expect("connects"), server.connect().expect("connects"));
            for words in [&["MULTI"] as &[&str], &["SET", "k", "v"], &["DEBUG", "SLEEP", "1"]] {
                call(&mut writer, words);
            }
            writer.request(&["EXEC"]).expect("sent");
            while !lists(&mut admin, "cmd=exec") {}
            assert_eq!(call(&mut admin, &["CLIENT", "PAUSE", "100000", mode]), ok());
            if mode == "WRITE" {
                let before = info_number(&mut admin, "replication", "master_repl_offset");
                writer.reply().expect("it was let in");
                assert_eq!(
                    info_number(&mut admin, "replication", "master_repl_offset"),
                    before,
                    "nothing was logged after OK"
                );
                assert_eq!(call(&mut admin, &["GET", "k"]), Value::Bulk(b"v".to_vec()));
            } else {
                assert!(writer.has_reply_within(std::time::Duration::from_secs(20)).expect("open"));
            }
        });
    }
}

/// Pauses from several connections at once end in several OKs.
#[test]
fn those_who_pause_do_not_wait_for_each_other() {
    on_both_backends(&["--io-threads", "3"], |server| {
        let mut clients: Vec<Client> =
            (0..9).map(|_| server.connect().expect("connects")).collect();
        for round in 0..20 {
            for client in &mut clients {
                let mode = if round % 2 == 0 { "WRITE" } else { "ALL" };
                client.request(&["CLIENT", "PAUSE", "30", mode]).expect("sent");
            }
            for client in &mut clients {
                assert_eq!(client.reply().expect("a reply"), ok());
            }
        }
    });
}
