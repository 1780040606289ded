//! `ladon tarantool`: programs print what they print under Tarantool, what clients call is wholly
//! there after a crash or not at all, and a program that never ends is nobody else's burden.

use crate::iproto::client::{Iproto, array, int, text};
use crate::tls::certificates::Authority;
use ladon_iproto::Request;
use ladon_iproto::request::{Begin, Call, Put, SpaceRef};
use ladon_msgpack::read_uint;
use ladon_testkit::Ports;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const LADON: &str = env!("CARGO_BIN_EXE_ladon");

pub fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/program").join(name)
}

/// Runs a program to its end in a folder of its own, with a port as its argument.
fn run(command: &mut Command, name: &str) -> Output {
    let dir = tempfile::tempdir().expect("a directory");
    let ports = Ports::take(2).expect("ports");
    let command = command.arg(program(name)).arg(ports.first().to_string());
    command.current_dir(dir.path()).stdin(Stdio::null()).output().expect("runs")
}

pub fn has_tarantool() -> bool {
    let version = Command::new("tarantool").arg("--version").output();
    let said = version.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
    // Ladon may have the name as well.
    said.is_ok_and(|said| said.contains("Tarantool 2.6") && !said.contains("Ladon"))
}

/// A program prints what was recorded, here and under Tarantool.
#[track_caller]
fn check_transcript(name: &str) {
    let recorded = check_own_transcript(name);
    if has_tarantool() {
        let theirs = run(&mut Command::new("tarantool"), &format!("{name}.lua"));
        assert_eq!(String::from_utf8_lossy(&theirs.stdout), recorded, "recorded of Tarantool");
    }
}

/// A program prints what was recorded. Returns that.
#[track_caller]
fn check_own_transcript(name: &str) -> String {
    let recorded = std::fs::read_to_string(program(&format!("{name}.txt"))).expect("a transcript");
    let script = format!("{name}.lua");
    let ran = run(Command::new(LADON).arg("tarantool"), &script);
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(printed, recorded, "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success());
    recorded
}

#[test]
fn spaces_are_those_of_tarantool() {
    check_transcript("spaces");
}

#[test]
fn fibers_are_those_of_tarantool() {
    check_transcript("fibers");
}

#[test]
fn transactions_are_those_of_tarantool() {
    check_transcript("transactions");
}

#[test]
fn triggers_of_spaces_are_those_of_tarantool() {
    check_transcript("triggers");
}

#[test]
fn foreign_keys_name_spaces() {
    check_own_transcript("foreign_keys");
}

#[test]
fn functions_are_called_by_those_who_may() {
    check_transcript("functions_rights");
}

#[test]
fn errors_know_where_they_were_made() {
    check_transcript("error_places");
}

#[test]
fn a_client_is_told_where_an_error_was_made_and_what_it_came_of() {
    let dir = tempfile::tempdir().expect("a directory");
    let serving = Serving::start_program(dir.path(), &[], "keyed.lua");
    let mut client = serving.client();
    let mut raised = |text: &str| {
        let call = Call { name: text.as_bytes(), arguments: &[0x90] };
        client.ask(&Request::Eval(call)).expect_err("an error");
        client.raised.clone()
    };
    let entry = |class: &str, line, text: &str| (class.to_owned(), line, text.to_owned());
    assert_eq!(
        raised(
            "local one = box.error.new(0)\nlocal two = box.error.new(78)\ntwo:set_prev(one)\nerror(two)"
        ),
        [entry("ClientError", 2, "Timeout exceeded"), entry("ClientError", 1, "Unknown error")]
    );
    let wrong = "eval:2: unexpected symbol near 'not'";
    assert_eq!(raised("\nnot Lua"), [entry("LuajitError", 2, wrong)]);
    assert_eq!(raised("error({message = 'x'})"), [entry("LuajitError", 0, "x")]);
    let long = "local last for at = 1, 100 do local one = box.error.new(at) one:set_prev(last) last = one end error(last)";
    assert_eq!(raised(long).len(), 16);
}

#[test]
fn sessions_are_those_of_tarantool() {
    check_transcript("sessions");
}

#[test]
fn net_box_and_sockets_are_those_of_tarantool() {
    check_transcript("client");
}

#[test]
fn lines_of_sockets_are_those_of_tarantool() {
    check_transcript("lines");
}

#[test]
fn modules_that_wait_are_those_of_tarantool() {
    check_transcript("modules");
}

/// 2.6 has neither.
#[test]
fn moments_and_intervals_are_values() {
    check_own_transcript("datetime");
}

#[test]
fn consoles_connect_to_others() {
    check_transcript("remote_console");
}

/// Tarantool's http.server is a rock, which is not installed.
#[test]
fn web_pages_come_from_templates_and_files_and_are_fetched() {
    check_own_transcript("web_files");
}

#[test]
fn sql_from_lua_is_that_of_tarantool() {
    check_transcript("sql");
}

#[test]
fn prepared_statements_are_those_of_tarantool() {
    check_transcript("prepared");
}

#[test]
fn a_client_does_not_become_another_user() {
    check_own_transcript("become");
}

#[test]
fn options_of_box_cfg_are_those_of_tarantool() {
    check_transcript("configuration");
}

#[test]
fn errors_as_values_are_those_of_tarantool() {
    check_transcript("marshaling");
}

#[test]
fn a_dropped_user_has_no_rights_whoever_gets_its_number() {
    check_own_transcript("dropped");
}

#[test]
fn a_read_only_instance_is_that_of_tarantool() {
    check_transcript("read_only");
}

#[test]
fn denials_and_switched_off_triggers_are_those_of_tarantool() {
    check_transcript("denials");
}

#[test]
fn the_log_before_and_behind_box_cfg_is_that_of_tarantool() {
    check_transcript("logs");
}

/// Tarantool has them since 2.10.
#[test]
fn what_is_broadcast_is_seen_here_and_by_clients() {
    check_own_transcript("watch");
}

#[test]
fn persistent_functions_are_those_of_tarantool() {
    check_transcript("persistent");
}

#[test]
fn a_program_runs_commands_of_redis() {
    check_own_transcript("keys");
}

#[test]
fn commands_of_redis_are_parts_of_transactions() {
    check_own_transcript("joint");
}

/// As curl would have it, which Tarantool's client is.
#[test]
fn a_program_asks_by_https() {
    let (authority, dir) = (Authority::new(), tempfile::tempdir().expect("a directory"));
    let identity = authority.server("server");
    let ports = Ports::take(2).expect("ports");
    let [tls, plain] = [0, 1].map(|at| (ports.first() + at).to_string());
    let [tls_address, address] = [&tls, &plain].map(|port| format!("127.0.0.1:{port}"));
    let mut command = Command::new(LADON);
    command.args(["tarantool", "--http-tls", &tls_address, "--http", &address]);
    command.arg("--tls-cert-file").arg(&identity.cert_file);
    command.arg("--tls-key-file").arg(&identity.key_file);
    command.args(["--tls-auth-clients", "no"]);
    command.arg(program("https.lua")).args([&tls, &plain]).arg(authority.ca_file());
    let ran = command.current_dir(dir.path()).stdin(Stdio::null()).output().expect("runs");
    let recorded = std::fs::read_to_string(program("https.txt")).expect("a transcript");
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(printed, recorded, "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn functional_indexes_are_those_of_tarantool() {
    check_transcript("functional");
}

#[test]
fn checks_of_spaces_are_those_of_tarantool() {
    check_transcript("checks");
}

#[test]
fn what_runs_before_the_end_is_that_of_tarantool() {
    check_transcript("at_end");
    check_transcript("at_exit");
}

/// A program that serves clients; killed when dropped.
pub struct Serving {
    process: Child,
    ports: Ports,
}

impl Serving {
    fn start(dir: &Path, arguments: &[&str]) -> Serving {
        Serving::start_program(dir, arguments, "transfers.lua")
    }

    pub fn start_program(dir: &Path, arguments: &[&str], name: &str) -> Serving {
        let ports = Ports::take(2).expect("ports");
        let mut command = Command::new(LADON);
        command.arg("tarantool").args(arguments).arg(program(name));
        command.arg(ports.first().to_string()).current_dir(dir);
        let process = command.stdin(Stdio::null()).spawn().expect("starts");
        let serving = Serving { process, ports };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", serving.ports.first())).is_err() {
            assert!(began.elapsed() < Duration::from_secs(30), "it does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        serving
    }

    /// As a crash would.
    pub fn kill(&mut self) {
        kill(pid(&self.process), Signal::SIGKILL).expect("killed");
        let _ = self.process.wait();
    }

    /// A client, once the program's functions are there.
    pub fn client(&self) -> Iproto {
        let mut client = Iproto::connect(self.ports.first());
        let began = Instant::now();
        while client.call("state", &[0x90]).is_err() {
            assert!(began.elapsed() < Duration::from_secs(30), "its functions are not there");
            std::thread::sleep(Duration::from_millis(10));
        }
        client
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn pid(process: &Child) -> Pid {
    Pid::from_raw(process.id().cast_signed())
}

pub fn number(value: &[u8]) -> u64 {
    read_uint(&mut &*value).expect("a number")
}

#[test]
fn a_procedure_is_wholly_there_after_a_crash_or_not_at_all() {
    const ROUNDS: u64 = 3;
    const TOTAL: u64 = 10_000;
    let dir = tempfile::tempdir().expect("a directory");
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let mut serving = Serving::start(dir.path(), &[]);
        let mut client = serving.client();
        let state = client.call("state", &[0x90]).expect("a state");
        let (sum, journal) = (number(&state[0]), number(&state[1]));
        assert_eq!(sum, TOTAL);
        assert!(journal >= acknowledged, "{journal} of {acknowledged} acknowledged transfers");
        assert!(journal <= acknowledged + 1, "{journal}: one at most was in flight");
        acknowledged = journal;
        let killer = {
            let id = pid(&serving.process);
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(150 + 40 * round));
                kill(id, Signal::SIGKILL).expect("killed");
            })
        };
        for at in 0.. {
            let arguments = array(&[int(at % 10 + 1), int((at + 3) % 10 + 1), int(1)]);
            let call = Call { name: b"transfer", arguments: &arguments };
            match client.try_ask(&Request::Call(call)) {
                Some(done) => done.expect("a transfer"),
                None => break,
            };
            acknowledged += 1;
        }
        killer.join().expect("kills");
        let _ = serving.process.wait();
    }
    assert!(acknowledged > ROUNDS, "there was something to lose");
}

#[test]
fn a_function_that_never_ends_holds_up_nobody_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let redis = Ports::take(1).expect("a port");
    let address = format!("127.0.0.1:{}", redis.first());
    let mut serving = Serving::start(dir.path(), &["--resp", &address]);
    let mut client = serving.client();
    let nothing = [0x90];
    client.tell(&Request::Call(Call { name: b"endless", arguments: &nothing }));
    // Another client of the program waits, but what needs no Lua goes on, and so do others.
    let mut other = Iproto::connect(serving.ports.first());
    let key = array(&[array(&[int(1)])]);
    other.call("box.space.accounts:get", &key).expect("a tuple");
    let mut resp = TcpStream::connect(&address).expect("connects");
    resp.write_all(b"PING\r\n").expect("sends");
    let mut pong = [0; 7];
    resp.read_exact(&mut pong).expect("an answer");
    assert_eq!(&pong, b"+PONG\r\n");
    assert!(!client.has_reply_within(Duration::from_millis(100)));
    // It stops all the same, and its log is complete.
    kill(pid(&serving.process), Signal::SIGTERM).expect("told");
    let status = serving.process.wait().expect("it ends");
    assert!(status.success(), "{status}");
    let again = Serving::start(dir.path(), &[]);
    again.client();
}

/// One that catches errors and one in a transaction as well; and one that waits.
#[test]
fn a_function_that_never_ends_after_a_change_holds_up_no_writer() {
    let dir = tempfile::tempdir().expect("a directory");
    let redis = Ports::take(1).expect("a port");
    let address = format!("127.0.0.1:{}", redis.first());
    let serving = Serving::start(dir.path(), &["--resp", &address, "--gate", "write"]);
    let mut client = serving.client();
    let mut other = serving.client();
    client.tell(&Request::Call(Call { name: b"stays", arguments: &[0x90] }));
    assert!(!client.has_reply_within(Duration::from_millis(300)), "it stays");
    // Records behind its own become durable.
    for at in 0..20 {
        assert_eq!(ask_text(&address, &format!("SET k{at} v\r\n")), "+OK\r\n");
        let insert =
            Put { space: SpaceRef::Name(b"accounts"), tuple: &array(&[int(100 + at), int(0)]) };
        other.tell(&Request::Insert(insert));
        assert!(other.has_reply_within(Duration::from_secs(10)), "it waits for the function");
        other.receive().expect("a reply").expect("a tuple");
    }
}

#[test]
fn a_fiber_that_never_waits_is_ended_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let redis = Ports::take(1).expect("a port");
    let address = format!("127.0.0.1:{}", redis.first());
    let serving = Serving::start(dir.path(), &["--resp", &address]);
    let mut client = serving.client();
    let ask = |command: &str| {
        let mut stream = TcpStream::connect(&address).expect("connects");
        stream.write_all(format!("{command}\r\n").as_bytes()).expect("sends");
        stream.shutdown(std::net::Shutdown::Write).expect("ends");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        reply
    };
    let nothing = [0x90];
    for name in [&b"endless"[..], b"stubborn", b"stuck"] {
        client.tell(&Request::Call(Call { name, arguments: &nothing }));
        let began = Instant::now();
        let fiber = loop {
            let running = ask("LADON.FIBER RUNNING");
            let numbers: Vec<u64> = running
                .split("\r\n")
                .filter_map(|line| line.strip_prefix(':')?.parse().ok())
                .collect();
            if let [fiber, milliseconds] = numbers[..]
                && milliseconds > 100
            {
                break fiber;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{running}");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(ask(&format!("LADON.FIBER KILL {fiber}")), "+OK\r\n");
        assert!(client.has_reply_within(Duration::from_secs(20)), "it goes on");
        let (_, said) = client.receive().expect("a reply").expect_err("it was ended");
        assert!(said.ends_with("fiber is cancelled"), "{said}");
        // The others go on, and nothing of it is there.
        let state = client.call("state", &nothing).expect("a state");
        assert_eq!(number(&state[0]), 10_000);
    }
    let sleep = b"sleeper = require('fiber').id() require('fiber').sleep(100)";
    client.tell(&Request::Eval(Call { name: sleep, arguments: &nothing }));
    let mut other = serving.client();
    // Requests of two connections may come in any order.
    let id = b"while not sleeper do require('fiber').sleep(0.01) end return sleeper";
    let id = other.ask(&Request::Eval(Call { name: id, arguments: &nothing })).expect("a number");
    // The one that runs meanwhile is not ended in its place.
    other.tell(&Request::Call(Call { name: b"busy", arguments: &array(&[int(2)]) }));
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(ask(&format!("LADON.FIBER KILL {}", number(&id[0]))), "+OK\r\n");
    let seven = other.receive().expect("a reply").expect("it is not ended");
    assert_eq!(number(&seven[0]), 7);
    assert!(client.has_reply_within(Duration::from_secs(20)), "it waits on");
    client.receive().expect("a reply").expect_err("it was ended");
}

fn ask_text(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.write_all(request.as_bytes()).expect("sends");
    stream.shutdown(std::net::Shutdown::Write).expect("ends");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a reply");
    reply
}

/// Whoever writes, the keys that a function makes are those of the tuples, and a check holds: also in
/// what is recovered from the log, and from a checkpoint.
#[test]
fn functional_indexes_and_checks_hold_for_every_writer() {
    let dir = tempfile::tempdir().expect("a directory");
    let port = Ports::take(1).expect("a port");
    let redis = format!("127.0.0.1:{}", port.first());
    let mut serving = Serving::start_program(dir.path(), &["--resp", &redis], "keyed.lua");
    let mut client = serving.client();
    let space = SpaceRef::Name(b"people");
    let row = |id: u64, mails: &str| array(&[int(id), text(mails)]);
    let mails = |client: &mut Iproto| {
        let found = client.call("mails", &[0x90]).expect("the index is as the tuples");
        (found[0].clone(), number(&found[1]))
    };
    assert_eq!(ask_text(&redis, "HSET person:1 mails A@x,b@x\r\n"), ":1\r\n");
    client.ask(&Request::Insert(Put { space, tuple: &row(2, "c@x") })).expect("an insertion");
    let taken = client.ask(&Request::Insert(Put { space, tuple: &row(3, "d@x,a@X") }));
    assert_eq!(taken.expect_err("a duplicate").0, 3);
    let execute = |client: &mut Iproto, statement: &str| {
        let arguments = array(&[text(statement)]);
        let name = b"local done, err = box.execute(...) return done ~= nil, tostring(err)";
        client.ask(&Request::Eval(Call { name, arguments: &arguments })).expect("evaluates")
    };
    let done = execute(&mut client, "INSERT INTO \"people\" VALUES (4, 'e@x,f@x', 7)");
    assert_eq!(done[0], [0xc3], "{done:?}");
    let refused = execute(&mut client, "INSERT INTO \"people\" VALUES (5, 'f@x', 7)");
    assert_eq!(refused[0], [0xc2], "{refused:?}");
    assert!(ask_text(&redis, "HSET person:6 mails C@x\r\n").starts_with("-ERR Duplicate key"));
    let too_old = ask_text(&redis, "HSET person:1 age 200\r\n");
    assert!(too_old.contains("Check constraint failed 'young'"), "{too_old}");
    assert_eq!(mails(&mut client), (text("1 1 2 4 4"), 5));

    assert_eq!(ask_text(&redis, "HSET person:1 mails g@x\r\n"), ":0\r\n");
    assert_eq!(
        ask_text(&redis, "MULTI\r\nDEL person:2\r\nEXEC\r\n"),
        "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n"
    );
    execute(&mut client, "UPDATE \"people\" SET \"mails\" = 'f@x' WHERE \"id\" = 4");
    let mut stream = Iproto::connect(serving.ports.first());
    stream.stream_id = 1;
    stream.ask(&Request::Begin(Begin::default())).expect("begins");
    stream.ask(&Request::Replace(Put { space, tuple: &row(7, "h@x,i@x") })).expect("replaces");
    stream.ask(&Request::Commit(None)).expect("commits");
    assert_eq!(mails(&mut client), (text("1 4 7 7"), 4));

    for makes_checkpoint in [false, true] {
        if makes_checkpoint {
            client.call("snapshot", &[0x90]).expect("a checkpoint");
        }
        kill(pid(&serving.process), Signal::SIGKILL).expect("killed");
        let _ = serving.process.wait();
        serving = Serving::start_program(dir.path(), &["--resp", &redis], "keyed.lua");
        client = serving.client();
        assert_eq!(mails(&mut client), (text("1 4 7 7"), 4), "{makes_checkpoint}");
        let taken = client.ask(&Request::Insert(Put { space, tuple: &row(8, "I@x") }));
        assert_eq!(taken.expect_err("a duplicate").0, 3);
    }
}

/// Whoever writes a space with triggers has them called, or is refused.
#[test]
fn no_client_writes_past_triggers() {
    let dir = tempfile::tempdir().expect("a directory");
    let ports = Ports::take(2).expect("ports");
    let address = |at: usize| format!("127.0.0.1:{}", ports.first() + at as u16);
    let (redis, http) = (address(0), address(1));
    let arguments = ["--resp", &redis, "--http", &http];
    let serving = Serving::start_program(dir.path(), &arguments, "guarded.lua");
    let mut client = serving.client();
    let changed = |client: &mut Iproto| {
        let state = client.call("state", &[0x90]).expect("a state");
        (number(&state[0]), number(&state[1]))
    };
    assert_eq!(ask_text(&redis, "HSET order:1 who ann\r\n"), ":1\r\n");
    client.call("watch", &[0x90]).expect("triggers");
    let space = SpaceRef::Name(b"orders");
    let row = |id: u64, who: &str| array(&[int(id), text(who)]);
    let (ann, bob, nobody) = (row(1, "eve"), row(2, "bob"), row(3, "nobody"));
    client.ask(&Request::Replace(Put { space, tuple: &ann })).expect("a replacement");
    client.ask(&Request::Insert(Put { space, tuple: &bob })).expect("an insertion");
    let refused = client.ask(&Request::Insert(Put { space, tuple: &nobody })).expect_err("raised");
    assert!(refused.1.ends_with("nobody orders nothing"), "{refused:?}");
    let arguments = array(&[row(4, "call")]);
    client.call("box.space.orders:insert", &arguments).expect("an insertion");
    assert_eq!(changed(&mut client), (4, 3));

    let is_refused = |said: &str| assert!(said.contains("has triggers of a program"), "{said}");
    for command in
        ["HSET order:1 who x", "HSET order:9 who x", "DEL order:1", "HINCRBY order:1 count 1"]
    {
        is_refused(&ask_text(&redis, &format!("{command}\r\n")));
    }
    is_refused(&ask_text(&redis, "MULTI\r\nHSET order:1 who x\r\nEXEC\r\n"));
    let body = "[1,\"x\"]";
    let length = body.len();
    is_refused(&ask_text(
        &http,
        &format!(
            "PUT /v1/spaces/orders/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        ),
    ));
    let sql = array(&[text("UPDATE \"orders\" SET \"count\" = 7")]);
    let changes = Request::Eval(Call { name: b"return box.execute(...)", arguments: &sql });
    let raised = client.ask(&changes).expect("nil and an error");
    is_refused(&String::from_utf8_lossy(&raised[1]));
    let mut stream = Iproto::connect(serving.ports.first());
    stream.stream_id = 1;
    stream.ask(&Request::Begin(Begin::default())).expect("begins");
    is_refused(&stream.ask(&Request::Replace(Put { space, tuple: &bob })).expect_err("no").1);
    assert_eq!(changed(&mut client), (4, 3), "nobody has changed anything");

    client.call("unwatch", &[0x90]).expect("none");
    assert_eq!(ask_text(&redis, "HSET order:9 who x\r\n"), ":1\r\n");
    assert_eq!(changed(&mut client), (4, 4));
}

#[test]
fn what_is_asked_of_a_program_is_bounded_and_answered_in_turn() {
    let dir = tempfile::tempdir().expect("a directory");
    let serving = Serving::start(dir.path(), &[]);
    let mut client = serving.client();
    let expression = b"require('fiber').sleep(0.02) return ...";
    let all: Vec<Vec<u8>> = (0..2_000).map(|at| array(&[int(at)])).collect();
    let requests: Vec<Request<'_>> =
        all.iter().map(|arguments| Request::Eval(Call { name: expression, arguments })).collect();
    let answers = client.ask_all(&requests);
    for (at, answer) in answers.iter().enumerate() {
        let values = answer.as_ref().expect("an answer");
        assert_eq!(number(&values[0]), at as u64);
    }
}

/// What `state` of `unread.lua` says once it has stood still for a while.
fn at_rest(client: &mut Iproto, at: usize) -> u64 {
    let (mut seen, mut since) = (0, Instant::now());
    while since.elapsed() < Duration::from_millis(500) {
        let state = client.call("state", &[0x90]).expect("a state");
        if number(&state[at]) != seen {
            (seen, since) = (number(&state[at]), Instant::now());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    seen
}

#[test]
fn answers_that_nobody_reads_are_made_in_bounds_and_all_come_in_the_end() {
    /// Answers of 100 kB, of which the system's buffers take some dozens.
    const CALLS: u64 = 1_000;
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--client-reply-backlog", "1mb"];
    let serving = Serving::start_program(dir.path(), &arguments, "unread.lua");
    let (mut client, mut other) = (serving.client(), serving.client());
    for at in 0..CALLS {
        client.tell(&Request::Call(Call { name: b"long", arguments: &array(&[int(at)]) }));
    }
    let begun = at_rest(&mut other, 0);
    assert!((1..CALLS / 2).contains(&begun), "{begun} were begun");
    for before in (0..CALLS).rev() {
        let answer = client.receive_earlier(before).expect("an answer").expect("no error");
        assert_eq!((number(&answer[0]), answer[1].len()), (CALLS - 1 - before, 100_005));
    }
    assert_eq!(at_rest(&mut other, 0), CALLS, "each has run once");

    client.tell(&Request::Call(Call { name: b"pushes", arguments: &array(&[int(CALLS)]) }));
    let pushed = at_rest(&mut other, 1);
    assert!((1..CALLS / 2).contains(&pushed), "{pushed} were pushed");
}

#[test]
fn an_http_handler_next_to_the_data_answers_and_refuses() {
    let dir = tempfile::tempdir().expect("a directory");
    let serving = Serving::start_program(dir.path(), &[], "web.lua");
    let ask = |request: &str| {
        let mut stream =
            TcpStream::connect(("127.0.0.1", serving.ports.first())).expect("connects");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream.write_all(request.as_bytes()).expect("sends");
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).expect("a reply, and the connection's end");
        String::from_utf8(reply).expect("text")
    };
    let close = "Host: x\r\nConnection: close\r\n";
    for (request, status, said) in [
        (format!("POST /put/k HTTP/1.1\r\n{close}Content-Length: 7\r\n\r\n{{\"x\":1}}"), 200, "\"key\":\"k\""),
        (format!("GET /get/k HTTP/1.1\r\n{close}\r\n"), 200, "{\"x\":1}"),
        (format!("HEAD /get/k HTTP/1.1\r\n{close}\r\n"), 200, "content-length: 7"),
        (format!("GET /get/%6Bx HTTP/1.1\r\n{close}\r\n"), 404, "no such key"),
        (format!("GET /nosuch HTTP/1.1\r\n{close}\r\n"), 404, ""),
        (format!("DELETE /put/k HTTP/1.1\r\n{close}\r\n"), 405, ""),
        (format!("GET /fail HTTP/1.1\r\n{close}\r\n"), 500, "on purpose"),
        (format!("GET /stream HTTP/1.1\r\n{close}\r\n"), 200, "6\r\npart2\n\r\n0\r\n\r\n"),
        (
            format!("POST /echo HTTP/1.1\r\n{close}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
            200,
            "\"body\":\"abcde\"",
        ),
        // Two requests in one piece.
        (format!("GET /count HTTP/1.1\r\nHost: x\r\n\r\nGET /get/k HTTP/1.1\r\n{close}\r\n"), 200, "{\"x\":1}"),
        ("GET /count HTTP/1.0\r\n\r\n".to_owned(), 200, "1"),
        // What could be read in two ways, and what is too much.
        ("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(), 400, ""),
        ("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".to_owned(), 400, ""),
        ("GET /count HTTP/1.1\nHost: x\n\n".to_owned(), 400, ""),
        ("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n".to_owned(), 413, ""),
        (format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(5000)), 431, ""),
        ("nonsense\r\n\r\n".to_owned(), 400, ""),
    ] {
        let reply = ask(&request);
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {reply}");
        assert!(reply.contains(said), "{request}: {reply}");
    }
    drop(serving);
    let again = Serving::start_program(dir.path(), &[], "web.lua");
    let mut stream = TcpStream::connect(("127.0.0.1", again.ports.first())).expect("connects");
    stream.write_all(format!("GET /get/k HTTP/1.1\r\n{close}\r\n").as_bytes()).expect("sends");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a reply");
    assert!(reply.ends_with("{\"x\":1}"), "what was answered is there after kill -9: {reply}");
}

#[test]
fn a_program_that_fails_says_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("init.lua");
    for (text, code, said) in [
        ("error('boo')", 1, "boo"),
        ("this is no Lua", 1, "init.lua:1:"),
        ("os.exit(7)", 7, ""),
        ("print('done')", 0, ""),
        ("box.cfg{nosuch = 1}", 1, "unexpected option"),
        ("box.cfg{background = true}", 1, "background"),
        ("box.space.x:get(1)", 1, "Please call box.cfg{} first"),
        ("box.cfg{} box.ctl.promote()", 1, "box.ctl.promote"),
    ] {
        std::fs::write(&file, text).expect("writes");
        let mut command = Command::new(LADON);
        command.arg("tarantool").arg(&file).current_dir(dir.path());
        let ran = command.output().expect("runs");
        let told = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(code), "{text}: {told}");
        assert!(told.contains(said), "{text}: {told}");
    }
}
