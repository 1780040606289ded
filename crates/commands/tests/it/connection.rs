//! The connection's own commands.

use crate::common::{self, TestClient, TestNode, check, check_on};
use ladon_kernel::client::session::{Blocked, BlockedKind};
use ladon_kernel::message::Message;
use ladon_kernel::request::outcome::Flow;
use ladon_record::{Gate, Lsn};
use std::sync::atomic::Ordering::Relaxed;

#[test]
fn greetings_and_databases() {
    check(
        r#"
        PING                    => +PONG
        PING "a b"              => "a b"
        PING a b                => -ERR wrong number of arguments for 'ping' command
        ECHO hello              => "hello"
        SELECT 9                => +OK
        SET a 1                 => +OK
        SELECT 0                => +OK
        GET a                   => nil
        SELECT x                => -ERR value is not an integer or out of range
        SELECT 16               => -ERR DB index is out of range
        SELECT -1               => -ERR DB index is out of range
        SELECT 99999999999      => -ERR value is out of range, value must between -2147483648 and 2147483647
        CLIENT                  => -ERR wrong number of arguments for 'client' command
        CLIENT NOSUCH           => -ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.
        CLIENT SETNAME          => -ERR wrong number of arguments for 'client|setname' command
        CLIENT GETREDIR         => :-1
        RESET now               => -ERR wrong number of arguments for 'reset' command
        "#,
    );
}

#[test]
fn hello_chooses_the_protocol() {
    check(
        r#"
        HELLO x                 => -ERR Protocol version is not an integer or out of range
        HELLO 1                 => -NOPROTO unsupported protocol version
        HELLO 4                 => -NOPROTO unsupported protocol version
        HELLO 3 NOSUCH          => -ERR Syntax error in HELLO option 'NOSUCH'
        HELLO 3 AUTH a          => -ERR Syntax error in HELLO option 'AUTH'
        HELLO 3 SETNAME         => -ERR Syntax error in HELLO option 'SETNAME'
        HELLO 3 SETNAME "a b"   => -ERR Client names cannot contain spaces, newlines or special characters.
        HELLO 3 AUTH other x    => -WRONGPASS invalid username-password pair or user is disabled.
        GET missing             => nil
        CLIENT GETNAME          => nil
        MULTI                   => +OK
        HELLO 3 SETNAME me      => +QUEUED
        CLIENT GETNAME          => +QUEUED
        EXEC                    => *
        SMEMBERS missing        => ~[]
        CLIENT GETNAME          => "me"
        RESET                   => +RESET
        SMEMBERS missing        => []
        CLIENT GETNAME          => nil
        "#,
    );
    check_on(
        &TestNode::new(),
        r#"
        HELLO 2 => ["server" "redis" "version" "7.2.4" "proto" :2 "id" :1 "mode" "standalone" "role" "master" "modules" []]
        HELLO 3 AUTH default any SETNAME x => {"server": "redis", "version": "7.2.4", "proto": :3, "id": :1, "mode": "standalone", "role": "master", "modules": []}
        "#,
    );
}

#[test]
fn nobody_gets_in_without_the_password() {
    let node = TestNode::new();
    let mut client = node.client();
    client.session.authenticated = false;
    let mut run = |line: &str| node.run(&mut client, line);
    assert_eq!(
        run("AUTH x"),
        "-ERR AUTH <password> called without any password configured for the default user. Are \
         you sure your configuration is correct?"
    );
    assert_eq!(run("AUTH default anything"), "+OK");
    assert_eq!(run("CONFIG SET requirepass secret"), "+OK");
    assert_eq!(run("PING"), "+PONG");
    assert_eq!(run("RESET"), "+RESET");
    const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.";
    for (line, expected) in [
        ("PING", "-NOAUTH Authentication required."),
        ("CLIENT ID", "-NOAUTH Authentication required."),
        ("MULTI", "-NOAUTH Authentication required."),
        ("AUTH secre", WRONG),
        ("AUTH secrett", WRONG),
        ("AUTH default x", WRONG),
        ("AUTH other secret", WRONG),
        ("AUTH a b c", "-ERR syntax error"),
        (
            "HELLO 3",
            "-NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        ),
        ("HELLO 3 AUTH default x", WRONG),
        ("PING", "-NOAUTH Authentication required."),
        ("AUTH secret", "+OK"),
        ("PING", "+PONG"),
        ("RESET", "+RESET"),
        ("PING", "-NOAUTH Authentication required."),
        ("HELLO 2 AUTH default secret", "*"),
        ("PING", "+PONG"),
    ] {
        let reply = run(line);
        assert!(expected == "*" || reply == expected, "{line}: {reply}");
    }
}

#[test]
fn names_and_libraries() {
    check(
        r#"
        CLIENT GETNAME          => nil
        CLIENT SETNAME me       => +OK
        CLIENT GETNAME          => "me"
        CLIENT SETNAME "a b"    => -ERR Client names cannot contain spaces, newlines or special characters.
        CLIENT SETNAME "a\n"    => -ERR Client names cannot contain spaces, newlines or special characters.
        CLIENT GETNAME          => "me"
        CLIENT SETNAME ""       => +OK
        CLIENT GETNAME          => nil
        CLIENT SETINFO lib-name redis-py =>> +OK
        CLIENT SETINFO LIB-VER 1.2.3 =>> +OK
        CLIENT SETINFO lib-name "a b" =>> -ERR lib-name cannot contain spaces, newlines or special characters.
        CLIENT SETINFO color red =>> -ERR Unrecognized option 'color'
        "#,
    );
}

#[test]
fn replies_can_be_turned_off() {
    check_on(
        &TestNode::new(),
        r#"
        CLIENT REPLY x          => -ERR syntax error
        CLIENT REPLY SKIP       => (none)
        SET a 1                 => (none)
        GET a                   => "1"
        CLIENT REPLY OFF        => (none)
        SET a 2                 => (none)
        NOSUCH                  => (none)
        CLIENT REPLY SKIP       => (none)
        CLIENT REPLY ON         => +OK
        GET a                   => "2"
        CLIENT REPLY SKIP       => (none)
        CLIENT REPLY ON         => +OK
        CLIENT REPLY OFF        => (none)
        RESET                   => +RESET
        PING                    => +PONG
        CLIENT REPLY SKIP       => (none)
        RESET                   => (none)
        PING                    => +PONG
        "#,
    );
}

#[test]
fn wrong_uses_of_client_are_refused() {
    check(
        r#"
        CLIENT LIST nosuch      => -ERR syntax error
        CLIENT LIST TYPE nosuch => -ERR Unknown client type 'nosuch'
        CLIENT LIST TYPE replica => ""
        CLIENT LIST ID          => -ERR syntax error
        CLIENT LIST ID x        => -ERR Invalid client ID
        CLIENT LIST ID 1000000 -5 => ""
        CLIENT INFO x           => -ERR wrong number of arguments for 'client|info' command
        CLIENT KILL             => -ERR wrong number of arguments for 'client|kill' command
        CLIENT KILL 1.2.3.4:5   => -ERR No such client
        CLIENT KILL ID 0        => -ERR client-id should be greater than 0
        CLIENT KILL ID x        => -ERR client-id should be greater than 0
        CLIENT KILL TYPE x      => -ERR Unknown client type 'x'
        CLIENT KILL USER x      => -ERR No such user 'x'
        CLIENT KILL SKIPME x    => -ERR syntax error
        CLIENT KILL ID 1 ADDR   => -ERR syntax error
        CLIENT KILL NOSUCH 1    => -ERR syntax error
        CLIENT KILL MAXAGE 0    => -ERR maxage should be greater than 0
        CLIENT KILL MAXAGE x    => -ERR maxage is not an integer or out of range
        CLIENT KILL ID 1000000  => :0
        CLIENT KILL TYPE pubsub SKIPME no => :0
        CLIENT NO-EVICT x       => -ERR syntax error
        CLIENT NO-EVICT on      => +OK
        CLIENT NO-TOUCH x       =>> -ERR syntax error
        CLIENT NO-TOUCH on      =>> +OK
        CLIENT PAUSE x          => -ERR timeout is not an integer or out of range
        CLIENT PAUSE -1         => -ERR timeout is negative
        CLIENT PAUSE 1 x        => -ERR CLIENT PAUSE mode must be WRITE or ALL
        CLIENT PAUSE 1 ALL x    => -ERR unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT HELP.
        CLIENT PAUSE 0          => +OK
        CLIENT UNPAUSE          => +OK
        "#,
    );
}

fn run(node: &TestNode, client: &mut TestClient, line: &str) -> String {
    node.run(client, line)
}

#[test]
fn lines_of_clients_are_redis_lines() {
    let node = TestNode::new();
    let (mut one, mut two) = (node.client(), node.client());
    for line in [
        "CLIENT SETNAME me",
        "CLIENT SETINFO lib-name lib",
        "CLIENT SETINFO lib-ver 2",
        "CLIENT NO-EVICT on",
        "CLIENT NO-TOUCH on",
        "SELECT 3",
        "WATCH k",
    ] {
        run(&node, &mut one, line);
    }
    node.clock.advance(5000);
    let line = run(&node, &mut one, "CLIENT INFO");
    let fields: Vec<&str> = line
        .trim_matches('"')
        .trim_end_matches("\\n")
        .split(' ')
        .map(|f| f.split_once('=').unwrap().0)
        .collect();
    assert_eq!(
        fields.join(" "),
        "id addr laddr fd name age idle flags db sub psub ssub multi qbuf qbuf-free argv-mem \
         multi-mem rbs rbp obl oll omem tot-mem events cmd user redir resp lib-name lib-ver"
    );
    for part in [
        "\"id=1 addr=127.0.0.1:1 ",
        " name=me ",
        " idle=0 flags=eT db=3 sub=0 psub=0 ssub=0 multi=-1 qbuf=26 ",
        " argv-mem=10 multi-mem=0 ",
        " obl=0 oll=0 omem=0 ",
        " events=r cmd=client|info user=default redir=-1 resp=2 lib-name=lib lib-ver=2\\n\"",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    run(&node, &mut two, "SELECT 3");
    run(&node, &mut two, "SET k v");
    run(&node, &mut one, "MULTI");
    assert_eq!(run(&node, &mut one, "CLIENT INFO"), "+QUEUED");
    let list = run(&node, &mut two, "CLIENT LIST");
    assert_eq!(list.matches("\\n").count(), 2);
    assert!(list.contains(" flags=deT "), "a watched key was touched: {list}");
    assert!(list.contains("id=2 ") && list.contains(" cmd=client|list "));
    let list = run(&node, &mut two, "CLIENT LIST ID 2 7 2");
    assert_eq!(list.matches("id=2 ").count(), 2, "{list}");
    assert_eq!(run(&node, &mut two, "CLIENT LIST TYPE normal").matches("\\n").count(), 2);
    common::speak_resp3(&mut two);
    assert!(run(&node, &mut two, "CLIENT LIST").starts_with("=txt:id=1 "));
}

#[test]
fn killing_takes_who_fits() {
    let node = TestNode::new();
    let (mut one, mut two, mut three) = (node.client(), node.client(), node.client());
    assert_eq!(run(&node, &mut one, "CLIENT KILL 127.0.0.1:2"), "+OK");
    let messages = node.node.threads[0].take();
    assert!(matches!(messages[..], [Message::Kill]));
    assert!(two.session.info.killed.load(Relaxed));
    assert_eq!(run(&node, &mut one, "CLIENT LIST ID 2"), "\"\"");
    // Killed, it runs nothing more, even before its thread has seen that.
    let (reply, outcome) = node.request(&mut two, &[b"SET", b"k", b"v"]);
    assert!(reply.is_empty() && matches!(outcome.flow, Flow::Drop));
    assert_eq!(run(&node, &mut one, "GET k"), "nil");
    for (line, expected) in [
        ("CLIENT KILL ID 2", ":0"),
        ("CLIENT KILL ID 1", ":0"),
        ("CLIENT KILL ADDR 127.0.0.1:3 ID 1", ":0"),
        ("CLIENT KILL LADDR nowhere", ":0"),
        ("CLIENT KILL USER default TYPE normal", ":1"),
    ] {
        assert_eq!(run(&node, &mut one, line), expected, "{line}");
    }
    assert!(three.session.info.killed.load(Relaxed));
    let _ = &mut three;
    let (reply, outcome) =
        node.request(&mut one, &[b"CLIENT", b"KILL", b"ID", b"1", b"SKIPME", b"no"]);
    assert_eq!(reply, b":1\r\n");
    assert!(matches!(outcome.flow, Flow::Close));
    // Its thread may not have closed it yet, but nobody sees it any more.
    let mut four = node.client();
    assert_eq!(run(&node, &mut four, "CLIENT LIST ID 1"), "\"\"");
    assert_eq!(run(&node, &mut four, "CLIENT KILL TYPE normal"), ":0");
    assert!(one.session.info.killed.load(Relaxed), "it need not have read its reply first");
}

#[test]
fn killing_by_age_spares_the_young() {
    let node = TestNode::new();
    let (mut one, two) = (node.client(), node.client());
    node.clock.advance(10_000);
    let three = node.client();
    assert_eq!(run(&node, &mut one, "CLIENT KILL MAXAGE 11"), ":0");
    assert_eq!(run(&node, &mut one, "CLIENT KILL MAXAGE 10"), ":1");
    assert!(two.session.info.killed.load(Relaxed));
    assert!(!three.session.info.killed.load(Relaxed));
}

/// Its socket is closed only after its client has read the reply, and may have looked.
#[test]
fn who_has_quit_is_no_subscriber() {
    let node = TestNode::new();
    let (mut one, mut two) = (node.client(), node.client());
    node.request(&mut one, &[b"SUBSCRIBE", b"news", b"sport"]);
    assert_eq!(run(&node, &mut two, "PUBSUB NUMSUB news"), "[\"news\" :1]");
    assert!(matches!(node.request(&mut one, &[b"QUIT"]).1.flow, Flow::Close));
    assert_eq!(run(&node, &mut two, "PUBSUB CHANNELS"), "[]");
    assert_eq!(run(&node, &mut two, "PUBLISH news x"), ":0");
}

#[test]
fn pausing_holds_back_what_it_says() {
    let node = TestNode::new();
    let (mut one, mut two) = (node.client(), node.client());
    let paused = |client: &mut TestClient, line: &str| {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        matches!(node.request(client, &args).1.flow, Flow::Paused)
    };
    assert_eq!(run(&node, &mut two, "MULTI"), "+OK");
    assert_eq!(run(&node, &mut two, "GET a"), "+QUEUED");
    assert_eq!(run(&node, &mut two, "SET a 1"), "+QUEUED");
    assert_eq!(run(&node, &mut one, "CLIENT PAUSE 100 WRITE"), "+OK");
    assert!(!paused(&mut one, "GET a"));
    assert!(paused(&mut one, "SET a 1"));
    assert!(!paused(&mut two, "GET a"));
    assert!(paused(&mut two, "EXEC"));
    // The laxer pause does not take the place of the stricter one.
    assert_eq!(run(&node, &mut one, "CLIENT PAUSE 50 ALL"), "+OK");
    assert!(paused(&mut one, "GET a"));
    node.clock.advance(101);
    assert!(!paused(&mut one, "GET a"));
    assert_eq!(run(&node, &mut two, "EXEC"), "[nil +OK \"1\"]");
    // Not even expiry changes anything.
    run(&node, &mut one, "SET brief 1 PX 10");
    run(&node, &mut one, "CLIENT PAUSE 100000 WRITE");
    node.clock.advance(20);
    let records = node.log.records().len();
    assert_eq!(run(&node, &mut one, "GET brief"), "nil");
    assert_eq!(run(&node, &mut one, "DBSIZE"), ":2");
    assert_eq!(node.log.records().len(), records);
    assert!(paused(&mut two, "SET a 1"));
    assert_eq!(run(&node, &mut one, "CLIENT UNPAUSE"), "+OK");
    assert_eq!(run(&node, &mut one, "GET brief"), "nil");
    assert_eq!(node.log.records().len(), records + 1);
    assert!(!paused(&mut two, "SET a 1"));
}

#[test]
fn a_connection_chooses_its_gate() {
    let node = TestNode::new();
    let mut client = node.client();
    for (line, expected, gate) in [
        ("CLIENT GATE", "\"everysec\"", None),
        ("CLIENT GATE FSYNC", "+OK", Some(Gate::Fsync)),
        ("CLIENT GATE", "\"fsync\"", Some(Gate::Fsync)),
        (
            "CLIENT GATE x",
            "-ERR unknown gate 'x', use none, write, everysec, fsync, quorum or default",
            Some(Gate::Fsync),
        ),
        ("CLIENT GATE none none", "-ERR syntax error", Some(Gate::Fsync)),
        ("CLIENT GATE none", "+OK", Some(Gate::None)),
        ("CLIENT GATE default", "+OK", None),
        ("CLIENT GATE write", "+OK", Some(Gate::Write)),
        ("RESET", "+RESET", None),
    ] {
        assert_eq!(run(&node, &mut client, line), expected, "{line}");
        assert_eq!(client.session.gate, gate, "{line}");
    }
}

#[test]
fn waiting_answers_at_once_where_there_is_nothing_to_wait_for() {
    check(
        r#"
        SET a 1                 => +OK
        WAIT 0 0                => :0
        WAIT -1 0               => :0
        WAIT x 0                => -ERR value is not an integer or out of range
        WAIT 0 x                => -ERR timeout is not an integer or out of range
        WAIT 0 -1               => -ERR timeout is negative
        WAITAOF 2 0 0           =>> -ERR value is out of range, value must between 0 and 1
        WAITAOF 0 -1 0          =>> -ERR value is out of range, must be positive
        WAITAOF 0 0 x           =>> -ERR timeout is not an integer or out of range
        WAITAOF 1 0 0           =>> [:1 :0]
        MULTI                   => +OK
        SET a 2                 => +QUEUED
        WAIT 1 0                => +QUEUED
        EXEC                    => [+OK :0]
        MULTI                   => +OK
        WAITAOF 1 1 0           =>> +QUEUED
        EXEC                    =>> [[:1 :0]]
        "#,
    );
}

#[test]
fn waiting_says_what_for() {
    let node = TestNode::new();
    let mut client = node.client();
    run(&node, &mut client, "SET a 1");
    let written = client.session.last_write;
    assert_ne!(written, Lsn::ZERO);
    let mut blocked = |line: &str| {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        match node.request(&mut client, &args) {
            (reply, outcome) if reply.is_empty() => match outcome.flow {
                Flow::Block(Blocked::Log(wait)) => wait,
                flow => panic!("{line}: {flow:?}"),
            },
            (reply, _) => panic!("{line}: {}", reply.escape_ascii()),
        }
    };
    let wait = blocked("WAIT 2 100");
    assert_eq!((wait.replicas, wait.finish), (2, BlockedKind::Wait));
    assert_eq!(wait.deadline_ms, Some(common::START_MS + 100));
    let wait = blocked("WAITAOF 1 1 0");
    assert_eq!((wait.durable, wait.replicas, wait.deadline_ms), (written, 1, None));
    assert_eq!(wait.finish, BlockedKind::WaitAof);
}

/// Redis prints with C's means, which end at a zero byte.
#[test]
fn an_error_shows_what_comes_before_a_zero_byte() {
    check(
        r#"
        OBJECT "x\x00y"                 => -ERR unknown subcommand 'x'. Try OBJECT HELP.
        SET k v                         => +OK
        EXPIRE k 10 "x\x00y"            => -ERR Unsupported option x
        "#,
    );
}
