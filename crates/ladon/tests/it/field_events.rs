//! Notifications that name the fields of hashes, as in Redis 8.8.

use crate::live::{call, ok, on_both_backends};
use ladon_crash::{Client, Server};
use ladon_resp::client::Value;

const TWO_THREADS: &[&str] = &["--io-threads", "2"];

fn connect(server: &Server) -> Client {
    server.connect().expect("connects")
}

fn run(client: &mut Client, line: &str) -> Value {
    call(client, &line.split(' ').collect::<Vec<_>>())
}

fn notify(client: &mut Client, classes: &str) {
    assert_eq!(call(client, &["CONFIG", "SET", "notify-keyspace-events", classes]), ok());
}

/// A subscriber to everything.
struct Listener(Client);

impl Listener {
    fn new(server: &Server) -> Listener {
        let mut client = connect(server);
        call(&mut client, &["PSUBSCRIBE", "*"]);
        Listener(client)
    }

    /// The next message: what its channel's name has between `__` and `@0__:`, the rest of the
    /// name, and the message, with spaces between them.
    fn next(&mut self) -> String {
        let Ok(Value::Array(parts)) = self.0.reply() else { panic!("no message") };
        let text = |at: usize| {
            String::from_utf8_lossy(parts[at].as_bytes().unwrap_or_default()).into_owned()
        };
        let channel = text(2).replace("@0__:", " ");
        format!("{} {}", channel.trim_start_matches("__"), text(3))
    }

    /// Each request causes these messages and no others.
    fn hears(&mut self, control: &mut Client, requests: &[(&str, &[&str])]) {
        for (request, messages) in requests {
            run(control, request);
            for message in *messages {
                assert_eq!(self.next(), *message, "{request}");
            }
        }
        call(control, &["PUBLISH", "end", "last"]);
        assert_eq!(self.next(), "end last", "and nothing else");
    }
}

#[test]
fn every_channel_has_its_form() {
    on_both_backends(TWO_THREADS, |server| {
        let (mut control, mut listener) = (connect(server), Listener::new(server));
        notify(&mut control, "KESTIVh");
        let all: &[&str] = &[
            "keyspace h hset",
            "keyevent hset h",
            "subkeyspace h hset|1:a,6:bb:,|c",
            "subkeyevent hset 1:h|1:a,6:bb:,|c",
            "subkeyspaceitem h\na hset",
            "subkeyspaceitem h\nbb:,|c hset",
            "subkeyspaceevent hset|h 1:a,6:bb:,|c",
        ];
        listener.hears(&mut control, &[("HSET h a 1 bb:,|c 2", all), ("SET s 1", &[])]);
        // Without K and E, and of keys in which a line ends.
        notify(&mut control, "hSTIV");
        let key = "two\nlines";
        let messages: &[&str] = &[
            "subkeyspace two\nlines hset|1:a",
            "subkeyevent hset 9:two\nlines|1:a",
            "subkeyspaceevent hset|two\nlines 1:a",
        ];
        listener.hears(&mut control, &[(&format!("HSET {key} a 1"), messages)]);
        for (classes, message) in [
            ("hS", "subkeyspace h hset|1:a"),
            ("ATh", "subkeyevent hset 1:h|1:a"),
            ("AI", "subkeyspaceitem h\na hset"),
            ("Vh", "subkeyspaceevent hset|h 1:a"),
            ("h", ""),
            ("$STIV", ""),
        ] {
            notify(&mut control, classes);
            let messages: &[&str] = if message.is_empty() { &[] } else { &[message] };
            listener.hears(&mut control, &[("HSET h a 1", messages)]);
        }
    });
}

#[test]
fn the_fields_are_those_that_changed() {
    on_both_backends(TWO_THREADS, |server| {
        let (mut control, mut listener) = (connect(server), Listener::new(server));
        notify(&mut control, "ATg");
        let requests: &[(&str, &[&str])] = &[
            ("HSET h a 1 b 2 a 3", &["subkeyevent hset 1:h|1:a,1:b,1:a"]),
            ("HMSET h c 1", &["subkeyevent hset 1:h|1:c"]),
            ("HSETNX h c 1", &[]),
            ("HSETNX h d 1", &["subkeyevent hset 1:h|1:d"]),
            ("HINCRBY h n 1", &["subkeyevent hincrby 1:h|1:n"]),
            ("HINCRBYFLOAT h n 1.5", &["subkeyevent hincrbyfloat 1:h|1:n"]),
            ("HDEL h x c y n", &["subkeyevent hdel 1:h|1:c,1:n"]),
            ("HDEL h x", &[]),
            ("HEXPIRE h 1000 FIELDS 3 a x b", &["subkeyevent hexpire 1:h|1:a,1:b"]),
            ("HEXPIRE h 1000 NX FIELDS 2 a d", &["subkeyevent hexpire 1:h|1:d"]),
            ("HPERSIST h FIELDS 3 a x d", &["subkeyevent hpersist 1:h|1:a,1:d"]),
            ("HPERSIST h FIELDS 1 a", &[]),
            (
                "HSETEX h EX 100 FIELDS 2 e 1 f 2",
                &["subkeyevent hset 1:h|1:e,1:f", "subkeyevent hexpire 1:h|1:e,1:f"],
            ),
            ("HSETEX h FNX FIELDS 2 e 1 g 2", &[]),
            ("HGETEX h PERSIST FIELDS 3 a e x", &["subkeyevent hpersist 1:h|1:e"]),
            ("HGETEX h EX 100 FIELDS 2 e x", &["subkeyevent hexpire 1:h|1:e"]),
            ("HGETDEL h FIELDS 2 e x", &["subkeyevent hdel 1:h|1:e"]),
            ("HEXPIREAT h 1 FIELDS 2 f x", &["subkeyevent hdel 1:h|1:f"]),
            ("HGETEX h PXAT 1 FIELDS 1 d", &["subkeyevent hdel 1:h|1:d"]),
            (
                "HSETEX h PX 30 FIELDS 2 s 1 t 2",
                &[
                    "subkeyevent hset 1:h|1:s,1:t",
                    "subkeyevent hexpire 1:h|1:s,1:t",
                    "subkeyevent hexpired 1:h|1:s,1:t",
                ],
            ),
            // The last ones go with their key.
            (
                "HSETEX g PX 30 FIELDS 2 s 1 t 2",
                &[
                    "subkeyevent hset 1:g|1:s,1:t",
                    "subkeyevent hexpire 1:g|1:s,1:t",
                    "subkeyevent hexpired 1:g|1:s,1:t",
                ],
            ),
            ("SADD set a", &[]),
        ];
        listener.hears(&mut control, requests);
        // A script that fails half way keeps what it did, and its event.
        run(&mut control, "SET string x");
        let script =
            "redis.call('hset', KEYS[1], 'a', 1) return redis.call('hset', KEYS[2], 'b', 1)";
        call(&mut control, &["EVAL", script, "2", "h", "string"]);
        assert_eq!(listener.next(), "subkeyevent hset 1:h|1:a");
    });
}

/// So many that they expire in steps, also when a command looks at their key.
#[test]
fn every_one_of_many_fields_is_named_once_when_it_expires() {
    const FIELDS: usize = 5000;
    on_both_backends(TWO_THREADS, |server| {
        let (mut control, mut listener) = (connect(server), Listener::new(server));
        let words: Vec<String> = (0..FIELDS).map(|at| format!("f{at} v")).collect();
        run(&mut control, &format!("HSET h {}", words.join(" ")));
        notify(&mut control, "hS");
        let names: Vec<String> = (0..FIELDS).map(|at| format!("f{at}")).collect();
        run(&mut control, &format!("HPEXPIRE h 20 FIELDS {FIELDS} {}", names.join(" ")));
        listener.next();
        std::thread::sleep(std::time::Duration::from_millis(20));
        run(&mut control, "HLEN h");
        let mut left: std::collections::BTreeSet<String> = names.into_iter().collect();
        while !left.is_empty() {
            let message = listener.next();
            let fields = message.strip_prefix("subkeyspace h hexpired|").expect("of the hash");
            for field in fields.split(',') {
                let (_, name) = field.split_once(':').expect("a length");
                assert!(left.remove(name), "{name}");
            }
        }
    });
}
