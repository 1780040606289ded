//! The Java programs around systems' own clients, against the real servers: they answer as a model
//! does, notice every kind of wrong answer, and a server that is gone. Skips, and says so, what is
//! not installed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::common::start;
use crate::plain_store::{Model, any_bytes, operation};
use ladon_lab::load::random::Random;
use ladon_lab::operation::{Answer, Operation};
use ladon_lab::systems::instance::Instance;
use ladon_lab::systems::registry::Found;
use serde_json::{Value, json};

struct Client {
    child: Child,
    commands: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Client {
    fn start(found: &Found, instance: &Instance) -> Self {
        let process = found.system.helper(&found.program, instance.address(), 1).unwrap();
        let mut child = Command::new(&process.command_line[0])
            .args(&process.command_line[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let commands = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self { child, commands, lines };
        assert!(client.hear()["ready"].is_string());
        client
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("said {line:?}"))
    }

    fn tell(&mut self, command: &Value) {
        writeln!(self.commands, "{command}").unwrap();
    }

    fn ask(&mut self, operation: &Operation) -> Answer {
        self.tell(&json!({ "ask": asked(operation) }));
        let said = self.hear();
        answer(&said["answer"]).unwrap_or_else(|| panic!("{operation:?}: {said}"))
    }

    fn prepare(&mut self, asked: &Value) -> Value {
        self.tell(&json!({ "prepare": asked, "users": 2, "depth": 8 }));
        self.hear()
    }

    /// The last line that it says of a measurement of `users` users.
    fn measure(&mut self, asked: &Value, users: u32, milliseconds: u64) -> Value {
        self.tell(&json!({ "measure": asked, "users": users, "depth": 1, "warm_up_ns": 1_000_000,
                           "measured_ns": milliseconds * 1_000_000, "interval_ns": 0 }));
        loop {
            let said = self.hear();
            if said.get("measuring").is_none() && said.get("measured").is_none() {
                return said;
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Both fail only when it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &Value) -> Option<Vec<u8>> {
    let hex = hex.as_str()?;
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
}

fn asked(operation: &Operation) -> Value {
    match operation {
        Operation::Set { key, value } => json!({"set":{"key":text(key),"value":hex(value)}}),
        Operation::Get { key } => json!({"get":{"key":text(key)}}),
        Operation::Delete { key } => json!({"delete":{"key":text(key)}}),
        Operation::Add { key, by } => json!({"add":{"key":text(key),"by":by}}),
        Operation::AddMember { set, member } => {
            json!({"add_member":{"set":text(set),"member":text(member)}})
        }
        Operation::Members { set } => json!({"members":{"set":text(set)}}),
        Operation::SetMany { pairs } => {
            let pair =
                |(key, value): &(Vec<u8>, Vec<u8>)| json!({"key":text(key),"value":hex(value)});
            json!({"set_many":{"pairs":pairs.iter().map(pair).collect::<Vec<_>>()}})
        }
        Operation::InsertRow { id, group, value } => {
            json!({"insert_row":{"id":id,"group":group,"value":hex(value)}})
        }
        Operation::FindByGroup { group } => json!({"find_by_group":{"group":group}}),
        Operation::Ping | Operation::GetByCall { .. } | Operation::InsertTuple { .. } => {
            unreachable!("no client of the makers' is asked")
        }
        Operation::ScanFrom { key, count } => json!({"scan_from":{"key":text(key),"count":count}}),
    }
}

fn answer(said: &Value) -> Option<Answer> {
    if said == "done" {
        return Some(Answer::Done);
    }
    let (kind, what) = said.as_object()?.iter().next()?;
    let items = || what.as_array().into_iter().flatten();
    Some(match kind.as_str() {
        "value" if what.is_null() => Answer::Value(None),
        "value" => Answer::Value(Some(bytes(what)?)),
        "existed" => Answer::Existed(what.as_bool()?),
        "integer" => Answer::Integer(what.as_i64()?),
        "values" => Answer::Members(items().map(bytes).collect::<Option<_>>()?),
        "members" => {
            let member = |member: &Value| Some(member.as_str()?.as_bytes().to_vec());
            Answer::Members(items().map(member).collect::<Option<_>>()?)
        }
        "rows" => {
            let row = |row: &Value| Some((row[0].as_u64()?, bytes(&row[1])?));
            Answer::Rows(items().map(row).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// Of any bytes; mostly short ones, as all go through the pipe in hexadecimal.
fn value(random: &mut Random) -> Vec<u8> {
    let mut value = any_bytes(random);
    if random.below(20) > 0 {
        value.truncate(300);
    }
    value
}

fn agrees_with_the_model(name: &str) {
    let Some((found, instance)) = start(name) else { return };
    let mut client = Client::start(&found, &instance);
    let (mut model, mut random) = (Model::default(), Random::new(7));
    let mut number = 0;
    while number < 4000 {
        number += 1;
        let operation = operation(&mut random, number, &value);
        if found.system.can_do(operation.kind()).is_err() {
            continue;
        }
        let (answer, expected) = (client.ask(&operation), model.answer(&operation));
        assert!(
            answer.means_the_same(&expected, &operation),
            "{operation:?}: {answer:?} instead of {expected:?}"
        );
    }
}

/// What one client is told about things that another one changed behind its back is wrong.
fn wrong_answers_are_noticed(name: &str) {
    let Some((found, instance)) = start(name) else { return };
    let mut one = Client::start(&found, &instance);
    let mut other = Client::start(&found, &instance);
    let done = json!({ "done": {} });
    let is_wrong = |said: &Value, about: &str| {
        let text = said["wrong"].as_str().unwrap_or_else(|| panic!("{about}: {said}"));
        assert!(text.contains("expected"), "{text}");
    };

    // The same keys hold values of another length.
    let fill = |bytes: u32| json!({"fill":{"space":"k","keys":100,"value_bytes":bytes}});
    assert_eq!(one.prepare(&fill(64)), done);
    assert_eq!(one.prepare(&json!({"read_all":{"space":"k"}})), done);
    assert_eq!(other.prepare(&fill(32)), done);
    is_wrong(&one.prepare(&json!({"read_all":{"space":"k"}})), "values");

    // Older versions of the right length are lost writes.
    let writes = json!({"keyed":{"space":"k","mix":[[1,"write"]],"distribution":"uniform"}});
    assert_eq!(one.prepare(&fill(64)), done);
    assert!(one.measure(&writes, 2, 300)["seen"]["replies"].as_u64().unwrap() > 0);
    assert_eq!(one.prepare(&json!({"read_all":{"space":"k"}})), done);
    assert_eq!(other.prepare(&fill(64)), done);
    is_wrong(&one.prepare(&json!({"read_all":{"space":"k"}})), "lost writes");

    // Counters that both add to at once; the one of all as well as each user's own.
    for all in [false, true] {
        let count = json!({"counters":{"space":format!("c{all}"),"one":all}});
        let second = std::thread::scope(|scope| {
            let second = scope.spawn(|| other.measure(&count, 3, 1000));
            let first = one.measure(&count, 3, 1000);
            if first.get("wrong").is_some() { first } else { second.join().unwrap() }
        });
        is_wrong(&second, "counters");
    }

    // A member that is there already, and members that are too many.
    let sets =
        |read: bool, members: u32| json!({"sets":{"space":"s","read":read,"members":members}});
    assert!(one.measure(&sets(false, 3), 1, 300).get("seen").is_some());
    assert!(one.measure(&sets(true, 3), 1, 300).get("seen").is_some());
    is_wrong(&other.measure(&sets(false, 3), 1, 300), "members");
    is_wrong(&one.measure(&sets(true, 2), 1, 300), "too many members");

    // Rows whose values somebody changed.
    let rows =
        |read: bool, bytes: u32| json!({"rows":{"read":read,"members":3,"value_bytes":bytes}});
    assert!(one.measure(&rows(false, 64), 1, 300).get("seen").is_some());
    assert!(one.measure(&rows(true, 64), 1, 300).get("seen").is_some());
    assert!(other.measure(&rows(false, 32), 1, 500).get("seen").is_some());
    is_wrong(&one.measure(&rows(true, 64), 1, 500), "rows");

    // Deleted by somebody else; read again and deleted again.
    let deed = |deed: &str| json!({"iterations":{"space":"i","deed":deed,"value_bytes":64}});
    assert!(one.measure(&deed("set"), 1, 300).get("seen").is_some());
    assert!(one.measure(&deed("get"), 1, 300).get("seen").is_some());
    assert!(other.measure(&deed("set"), 1, 50).get("seen").is_some());
    assert!(other.measure(&deed("delete"), 1, 1000).get("seen").is_some());
    is_wrong(&one.measure(&deed("delete"), 1, 1000), "deleted keys");

    // What it was not written for is refused and nothing else.
    assert!(one.prepare(&json!({"dance":{"space":"x"}}))["cannot"].is_string());
    assert_eq!(one.prepare(&fill(64)), done);
}

fn a_server_that_is_gone_is_no_figure(name: &str) {
    let Some((found, mut instance)) = start(name) else { return };
    let mut client = Client::start(&found, &instance);
    let set = json!({"iterations":{"space":"i","deed":"set","value_bytes":64}});
    client.tell(&json!({ "measure": set, "users": 10, "depth": 1, "warm_up_ns": 1_000_000,
                         "measured_ns": 60_000_000_000u64, "interval_ns": 0 }));
    assert!(client.hear().get("measuring").is_some());
    instance.kill();
    let said = client.hear();
    assert!(said["broken"].is_string(), "{said}");
}

/// Latency counts from when a request was due, and as many are sent as were asked for.
fn an_open_loop_sends_at_its_rate(name: &str) {
    let Some((found, instance)) = start(name) else { return };
    let mut client = Client::start(&found, &instance);
    let set = json!({"iterations":{"space":"i","deed":"set","value_bytes":64}});
    assert!(client.measure(&set, 10, 500).get("seen").is_some());
    // Ten users, each every 20 ms: 500 a second.
    client.tell(&json!({ "measure": set, "users": 10, "depth": 1, "warm_up_ns": 100_000_000,
                         "measured_ns": 2_000_000_000u64, "interval_ns": 20_000_000 }));
    client.hear();
    client.hear();
    let seen = client.hear();
    let replies = seen["seen"]["replies"].as_f64().unwrap();
    assert!((900.0..1200.0).contains(&replies), "{seen}");
}

macro_rules! of {
    ($system:ident: $name:literal) => {
        mod $system {
            #[test]
            fn answers_as_a_model_does() {
                super::agrees_with_the_model($name);
            }

            #[test]
            fn wrong_answers_are_noticed() {
                super::wrong_answers_are_noticed($name);
            }

            #[test]
            fn a_server_that_is_gone_is_no_figure() {
                super::a_server_that_is_gone_is_no_figure($name);
            }

            #[test]
            fn an_open_loop_sends_at_its_rate() {
                super::an_open_loop_sends_at_its_rate($name);
            }
        }
    };
}

of!(hazelcast: "hazelcast");
of!(voltdb: "voltdb");
