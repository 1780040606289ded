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

/// What declares that it writes nothing runs while writes are paused, also queued; what declares
/// nothing, or may write, waits.
#[test]
fn scripts_that_write_nothing_do_not_wait() {
    on_both_backends(&["--io-threads", "2"], |server| {
        let (mut client, mut admin) =
            (server.connect().expect("connects"), server.connect().expect("connects"));
        let reads = "#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1])";
        let may_write = "#!lua flags=allow-oom\nreturn redis.call('GET', KEYS[1])";
        let undeclared = "return redis.call('GET', KEYS[1])";
        let library = "#!lua name=l\nlocal function get(keys) return redis.call('GET', keys[1]) end\n\
            redis.register_function('may_write', get)\n\
            redis.register_function{function_name='reads', callback=get, flags={'no-writes'}}";
        call(&mut client, &["SET", "k", "v"]);
        call(&mut client, &["FUNCTION", "LOAD", "REPLACE", library]);
        let digest = |client: &mut Client, script| {
            let reply = call(client, &["SCRIPT", "LOAD", script]);
            String::from_utf8_lossy(reply.as_bytes().expect("a digest")).into_owned()
        };
        let (sha_reads, sha_may) = (digest(&mut client, reads), digest(&mut client, may_write));
        let value = Value::Bulk(b"v".to_vec());
        let pass: [&[&str]; 5] = [
            &["EVAL", reads, "1", "k"],
            &["EVALSHA", &sha_reads, "1", "k"],
            &["FCALL", "reads", "1", "k"],
            &["FCALL", "READS", "1", "k"],
            &["EVAL_RO", undeclared, "1", "k"],
        ];
        let wait: [&[&str]; 4] = [
            &["EVAL", undeclared, "1", "k"],
            &["EVAL", may_write, "1", "k"],
            &["EVALSHA", &sha_may, "1", "k"],
            &["FCALL", "may_write", "1", "k"],
        ];
        // What may write waits before it is queued, too: these are queued before the pause.
        let mut waiting: Vec<Client> = Vec::new();
        for words in wait {
            let mut client = server.connect().expect("connects");
            assert_eq!(call(&mut client, &["MULTI"]), ok());
            call(&mut client, words);
            waiting.push(client);
        }
        assert_eq!(call(&mut admin, &["CLIENT", "PAUSE", "100000", "WRITE"]), ok());
        for words in pass {
            assert_eq!(call(&mut client, words), value, "{words:?}");
            assert_eq!(call(&mut client, &["MULTI"]), ok());
            call(&mut client, words);
            let replies = Value::Array(vec![value.clone()]);
            assert_eq!(call(&mut client, &["EXEC"]), replies, "{words:?}");
        }
        for client in &mut waiting {
            client.request(&["EXEC"]).expect("sent");
        }
        for words in wait {
            let mut client = server.connect().expect("connects");
            client.request(words).expect("sent");
            waiting.push(client);
        }
        for client in &mut waiting {
            let has_reply = client.has_reply_within(std::time::Duration::from_millis(30));
            assert!(!has_reply.expect("open"), "writes are paused");
        }
        assert_eq!(call(&mut admin, &["CLIENT", "UNPAUSE"]), ok());
        for (at, client) in waiting.iter_mut().enumerate() {
            let reply = client.reply().expect("a reply");
            match at < wait.len() {
                true => assert_eq!(reply, Value::Array(vec![value.clone()])),
                false => assert_eq!(reply, value),
            }
        }
    });
}
