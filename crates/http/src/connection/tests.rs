use super::*;

const DATE: &str = "Thu, 01 Jan 1970 00:00:00 GMT";

/// A connection with what a backend does for it.
struct Wire {
    connection: Connection,
    input: Vec<u8>,
    rules: Rules,
    seconds: u64,
    at_once: usize,
}

impl Wire {
    fn new(at_once: usize) -> Wire {
        let rules = Rules { sites: Sites::default(), body_bytes_max: 1 << 20 };
        Wire { connection: Connection::default(), input: Vec::new(), rules, seconds: 0, at_once }
    }

    fn now<'a>(rules: &'a Rules, seconds: u64) -> Now<'a> {
        Now { rules, date: DATE, seconds }
    }

    /// What the server is asked when the client sends these bytes.
    fn send(&mut self, bytes: &[u8]) -> String {
        let mut requests = Vec::new();
        for part in bytes.chunks(self.at_once) {
            self.input.extend_from_slice(part);
            requests.extend(self.go_on());
        }
        String::from_utf8_lossy(&requests).into_owned()
    }

    fn go_on(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let mut requests = Vec::new();
            let now = Wire::now(&self.rules, self.seconds);
            let (taken, step) = self.connection.step(&self.input, &mut requests, &now);
            self.input.drain(..taken);
            all.extend(requests);
            if step == Step::Wait {
                return all;
            }
        }
    }

    /// What the client gets, and what the server is asked next, when the server sends these bytes.
    fn reply(&mut self, bytes: &[u8]) -> (String, String) {
        let (mut out, mut requests) = (Vec::new(), Vec::new());
        for mut part in bytes.chunks(self.at_once) {
            while !part.is_empty() {
                let now = Wire::now(&self.rules, self.seconds);
                let taken = self.connection.replied(part, &now);
                part = &part[taken..];
                out.extend(self.connection.take_out(Vec::new()));
                requests.extend(self.go_on());
            }
        }
        out.extend(self.connection.take_out(Vec::new()));
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (text(out), text(requests))
    }

    fn out(&mut self) -> String {
        String::from_utf8_lossy(&self.connection.take_out(Vec::new())).into_owned()
    }
}

fn resp(words: &str) -> String {
    let mut out = Vec::new();
    for command in words.split("; ") {
        write_request(&mut out, &command.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    }
    String::from_utf8(out).expect("text")
}

fn request(line: &str, headers: &str, body: &str) -> String {
    let length =
        if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    format!("{line} HTTP/1.1\r\nHost: here\r\n{headers}{length}\r\n{body}")
}

/// Status and body of responses with a length, or in chunks.
fn responses(mut text: &str) -> Vec<(u16, String)> {
    let mut all = Vec::new();
    while !text.is_empty() {
        let (head, rest) = text.split_once("\r\n\r\n").expect(text);
        let status = head[9..12].parse().expect("a status");
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let (body, after) = match length.map(|text| text.parse::<usize>().expect("a length")) {
            Some(length) => (rest[..length].to_owned(), &rest[length..]),
            None if head.contains("Transfer-Encoding: chunked") => {
                let (mut body, mut rest) = (String::new(), rest);
                loop {
                    let (length, after) = rest.split_once("\r\n").expect("a chunk");
                    let length = usize::from_str_radix(length, 16).expect("its length");
                    body.push_str(&after[..length]);
                    rest = &after[length + 2..];
                    if length == 0 {
                        break (body, rest);
                    }
                }
            }
            None => (String::new(), rest),
        };
        all.push((status, body));
        text = after;
    }
    all
}

#[track_caller]
fn check(sent: &str, asked: &str, replies: &[u8], answers: &[(u16, &str)]) {
    for at_once in [1, 2, 7, 100_000] {
        let mut wire = Wire::new(at_once);
        assert_eq!(wire.send(sent.as_bytes()), asked, "asked, by {at_once}");
        let direct = wire.out();
        let (out, more) = wire.reply(replies);
        assert_eq!(more, "", "asked later, by {at_once}");
        let expected: Vec<(u16, String)> =
            answers.iter().map(|&(status, body)| (status, body.to_owned())).collect();
        assert_eq!(responses(&(direct + &out)), expected, "by {at_once}");
    }
}

#[test]
fn commands_of_a_body_are_run_and_their_replies_are_json() {
    check(
        &request("POST /", "", r#"["SET","k",1]"#),
        &resp("SET k 1"),
        b"+OK\r\n",
        &[(200, r#"{"result":"OK"}"#)],
    );
    check(
        &request("POST /", "", r#"["GET","k"]"#),
        &resp("GET k"),
        b"-WRONGTYPE no \"string\"\r\n",
        &[(409, r#"{"error":"WRONGTYPE no \"string\""}"#)],
    );
    check(
        &request("POST /pipeline", "", r#"[["GET","k"],["LRANGE","l",0,-1],["X"]]"#),
        &resp("GET k; LRANGE l 0 -1; X"),
        b"$-1\r\n*2\r\n$1\r\na\r\n*1\r\n:7\r\n-ERR x\r\n",
        &[(200, r#"[{"result":null},{"result":["a",[7]]},{"error":"ERR x"}]"#)],
    );
    check(
        &request("POST /multi-exec", "", r#"[["INCR","k"],["INCR","l"]]"#),
        &resp("MULTI; INCR k; INCR l; EXEC"),
        b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n-ERR l\r\n",
        &[(200, r#"[{"result":1},{"error":"ERR l"}]"#)],
    );
    check(
        &request("POST /multi-exec", "", r#"[["INCR"]]"#),
        &resp("MULTI; INCR; EXEC"),
        b"+OK\r\n-ERR arguments\r\n-EXECABORT discarded\r\n",
        &[(400, r#"{"error":"ERR arguments"}"#)],
    );
    check(&request("POST /pipeline", "", "[]"), "", b"", &[(200, "[]")]);
}

#[test]
fn requests_are_pipelined_and_answered_in_order() {
    let sent = request("GET /get/a", "", "")
        + &request("GET /nosuch/", "Content-Length: 0\r\n", "")
        + &request("DELETE /get/b", "", "")
        + &request("GET /get/c", "", "");
    check(
        &sent,
        &(resp("get a") + "*2\r\n$6\r\nnosuch\r\n$0\r\n\r\n" + &resp("get c")),
        b"$1\r\n1\r\n-ERR unknown\r\n$1\r\n3\r\n",
        &[
            (200, r#"{"result":"1"}"#),
            (400, r#"{"error":"ERR unknown"}"#),
            (405, r#"{"error":"the methods here are GET, HEAD, POST, PUT, OPTIONS"}"#),
            (200, r#"{"result":"3"}"#),
        ],
    );
}

#[test]
fn a_path_is_a_command_with_body_and_query_behind() {
    check(
        &request("POST /set/k?EX=10&NX", "", "a value"),
        "*6\r\n$3\r\nset\r\n$1\r\nk\r\n$7\r\na value\r\n$2\r\nEX\r\n$2\r\n10\r\n$2\r\nNX\r\n",
        b"+OK\r\n",
        &[(200, r#"{"result":"OK"}"#)],
    );
    check(
        &request("GET /echo/%7B%22a%22%7D", "Upstash-Encoding: base64\r\n", ""),
        &resp("echo {\"a\"}"),
        b"$5\r\n{\"a\"}\r\n",
        &[(200, r#"{"result":"eyJhIn0="}"#)],
    );
}

#[test]
fn a_long_reply_leaves_in_chunks() {
    let long = "x".repeat(200_000);
    for at_once in [999, 4096, 1 << 20] {
        let mut wire = Wire::new(at_once);
        wire.send(request("GET /get/k", "", "").as_bytes());
        let (out, _) = wire.reply(format!("$200000\r\n{long}\r\n").as_bytes());
        assert!(out.contains("Transfer-Encoding: chunked"));
        assert_eq!(responses(&out), [(200, format!("{{\"result\":\"{long}\"}}"))], "{at_once}");
    }
}

#[test]
fn a_key_is_read_by_its_type() {
    let ask = |headers: &str| request("GET /v1/keys/k", headers, "");
    for (headers, reply, status, body) in [
        ("", &b"*3\r\n+none\r\n:-2\r\n$-1\r\n"[..], 404, r#"{"error":"there is no such key"}"#),
        ("", b"*3\r\n+string\r\n:1500\r\n$2\r\nhi\r\n", 200, "hi"),
        (
            "Accept: application/json\r\n",
            b"*3\r\n+string\r\n:1500\r\n$2\r\nhi\r\n",
            200,
            r#"{"type":"string","ttl":1.5,"value":"hi"}"#,
        ),
        (
            "",
            b"*3\r\n+hash\r\n:-1\r\n*4\r\n$1\r\na\r\n$1\r\n\"\r\n$1\r\nb\r\n$0\r\n\r\n",
            200,
            r#"{"type":"hash","ttl":null,"value":{"a":"\"","b":""}}"#,
        ),
        (
            "",
            b"*3\r\n+zset\r\n:-1\r\n*4\r\n$1\r\na\r\n$3\r\n1.5\r\n$1\r\nb\r\n$3\r\ninf\r\n",
            200,
            r#"{"type":"zset","ttl":null,"value":[["a",1.5],["b",null]]}"#,
        ),
        (
            "",
            b"*3\r\n+stream\r\n:-1\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n",
            200,
            r#"{"type":"stream","ttl":null,"value":[["1-1",["f","v"]]]}"#,
        ),
        ("", b"*3\r\n+x\r\n:-1\r\n-ERR x\r\n", 400, r#"{"error":"ERR x"}"#),
        ("", b"-NOPERM no\r\n", 403, r#"{"error":"NOPERM no"}"#),
    ] {
        check(&ask(headers), &resp("LADON.READ k"), reply, &[(status, body)]);
    }
}

#[test]
fn a_value_is_passed_on_as_it_comes() {
    let mut wire = Wire::new(10);
    let head = "PUT /v1/keys/k HTTP/1.1\r\nHost: here\r\nIf-Match: \"0123456789abcdef\"\r\n\
                Ladon-TTL: 2\r\nContent-Length: 12\r\n\r\n";
    let start = "*7\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\n";
    assert_eq!(wire.send(head.as_bytes()), start);
    assert_eq!(wire.send(b"hello "), "hello ");
    let end = "\r\n$2\r\nPX\r\n$4\r\n2000\r\n$5\r\nIFDEQ\r\n$16\r\n0123456789abcdef\r\n";
    assert_eq!(wire.send(b"world!"), format!("world!{end}"));
    let (out, _) = wire.reply(b"+OK\r\n");
    let digest = crate::route::keys::digest(b"hello world!");
    assert!(out.starts_with("HTTP/1.1 204") && out.contains(&digest), "{out}");
    check(
        &request("PUT /v1/keys/k", "If-None-Match: *\r\n", "x"),
        &resp("SET k x NX"),
        b"$-1\r\n",
        &[(412, r#"{"error":"the condition does not hold"}"#)],
    );
}

#[test]
fn credentials_are_tried_before_a_request_is_passed_on() {
    for at_once in [1, 100_000] {
        let mut wire = Wire::new(at_once);
        let as_alice = "Authorization: Bearer alice:secret\r\n";
        let one = request("GET /get/a", as_alice, "");
        assert_eq!(wire.send(one.as_bytes()), resp("AUTH alice secret"));
        let (out, next) = wire.reply(b"+OK\r\n");
        assert_eq!((out.as_str(), next), ("", resp("get a")));
        wire.reply(b"$-1\r\n");
        // The same again is let in already; nobody in particular is not alice any more.
        assert_eq!(wire.send(one.as_bytes()), resp("get a"));
        wire.reply(b"$-1\r\n");
        assert_eq!(wire.send(request("GET /get/b", "", "").as_bytes()), resp("RESET"));
        let (_, next) = wire.reply(b"+RESET\r\n");
        assert_eq!(next, resp("get b"));
        let (out, _) = wire.reply(b"-NOAUTH Authentication required.\r\n");
        assert_eq!(responses(&out)[0].0, 401);
        // Who is refused is not read any further.
        assert_eq!(
            wire.send(request("GET /get/a", "Authorization: Bearer x\r\n", "").as_bytes()),
            resp("AUTH x")
        );
        let (out, next) = wire.reply(b"-WRONGPASS no\r\n");
        assert_eq!((responses(&out)[0].0, next.as_str()), (401, ""));
        assert!(wire.connection.ends() && out.contains("Connection: close"));
        assert_eq!(wire.send(one.as_bytes()), "");
    }
}

/// Sends requests of several users over one connection. Returns which of them was passed on as
/// another user's, if any.
fn first_as_somebody_else(canary: bool) -> Option<usize> {
    let mut wire = Wire::new(100_000);
    wire.connection.kept_login_canary = canary;
    let (mut as_user, mut random) = ("", 7u64);
    for at in 0..200 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let user = ["", "alice", "bob"][(random >> 33) as usize % 3];
        let header = match user {
            "" => String::new(),
            user => format!("Authorization: Bearer {user}:secret\r\n"),
        };
        let mut asked = wire.send(request("GET /get/k", &header, "").as_bytes());
        while asked != resp("get k") {
            let known = ["", "alice", "bob"].into_iter().find(|user| match *user {
                "" => asked == resp("RESET"),
                user => asked == resp(&format!("AUTH {user} secret")),
            });
            as_user = known.unwrap_or_else(|| panic!("{asked:?}"));
            asked = wire.reply(if as_user.is_empty() { b"+RESET\r\n" } else { b"+OK\r\n" }).1;
        }
        if as_user != user {
            return Some(at);
        }
        wire.reply(b"$-1\r\n");
    }
    None
}

#[test]
fn each_request_is_its_own_users() {
    assert_eq!(first_as_somebody_else(false), None);
    assert!(first_as_somebody_else(true).is_some(), "the check does not see a login that stays");
}

#[test]
fn a_stranger_with_a_long_body_is_asked_first() {
    let mut wire = Wire::new(100_000);
    let body = format!("[\"SET\",\"k\",\"{}\"]", "x".repeat(10_000));
    assert_eq!(wire.send(request("POST /", "", &body).as_bytes()), resp("PING"));
    let (out, next) = wire.reply(b"-NOAUTH Authentication required.\r\n");
    assert_eq!((responses(&out)[0].0, next.as_str()), (401, ""));
    let mut wire = Wire::new(100_000);
    wire.send(request("POST /", "", &body).as_bytes());
    // Who has no right to PING is let in.
    let (out, next) = wire.reply(b"-NOPERM ping\r\n");
    assert!(out.is_empty() && next.starts_with("*3\r\n$3\r\nSET"), "{out} {next}");
    wire.reply(b"+OK\r\n");
    assert!(wire.send(request("POST /", "", &body).as_bytes()).starts_with("*3"), "asked once");
}

#[test]
fn what_cannot_be_read_ends_the_connection_with_an_answer() {
    let mut wire = Wire::new(100_000);
    let good = request("GET /get/a", "", "");
    let asked = wire.send((good.clone() + "GET / HTTP/1.1\nx\r\n\r\n" + &good).as_bytes());
    assert_eq!(asked, resp("get a"));
    assert_eq!(wire.out(), "");
    let (out, _) = wire.reply(b"$1\r\n1\r\n");
    let statuses: Vec<u16> = responses(&out).iter().map(|it| it.0).collect();
    assert_eq!(statuses, [200, 400]);
    assert!(wire.connection.ends() && wire.connection.was_refused());
}

#[test]
fn a_body_that_is_wrong_leaves_the_connection_open() {
    let wrong = request("POST /", "", r#"["MULTI"]"#) + &request("POST /", "", r#"["GET",{}]"#);
    for at_once in [1, 100_000] {
        let mut wire = Wire::new(at_once);
        assert_eq!(wire.send(wrong.as_bytes()), "");
        let statuses: Vec<u16> = responses(&wire.out()).iter().map(|it| it.0).collect();
        assert_eq!(statuses, [400, 400]);
        assert_eq!(wire.send(request("GET /ping", "", "").as_bytes()), resp("ping"));
    }
}

#[test]
fn bodies_have_a_longest_length() {
    let long = format!("POST / HTTP/1.1\r\nHost: here\r\nContent-Length: {}\r\n\r\n", 2 << 20);
    for sent in [
        long.clone(),
        long.replace("POST /", "PATCH /v1/keys/k"),
        long.replace("POST /", "GET /get/k"),
    ] {
        let mut wire = Wire::new(100_000);
        wire.send(sent.as_bytes());
        // Nobody asks a stranger for more than that.
        wire.reply(b"+PONG\r\n");
        wire.go_on();
        assert!(wire.connection.ends(), "{sent}");
    }
    // Of chunks, the length is not known before.
    let mut wire = Wire::new(100_000);
    wire.send(b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n");
    wire.reply(b"+PONG\r\n");
    let chunk = format!("8000\r\n{}\r\n", "[\"x".to_owned() + &"x".repeat(0x8000 - 3));
    wire.send(chunk.as_bytes());
    for _ in 0..40 {
        wire.send(format!("8000\r\n{}\r\n", "x".repeat(0x8000)).as_bytes());
    }
    assert_eq!(
        responses(&wire.out()),
        [(413, "{\"error\":\"the body is longer than this request may have\"}".to_owned())]
    );
}

#[test]
fn messages_are_events() {
    for at_once in [1, 100_000] {
        let mut wire = Wire::new(at_once);
        let sent = request("GET /subscribe/a/b", "", "") + &request("GET /ping", "", "");
        assert_eq!(wire.send(sent.as_bytes()), resp("SUBSCRIBE a b"));
        let (out, next) = wire.reply(
            b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n\
              $8\r\nx\r\ny\nz,\r\r\n",
        );
        let events = responses(&(out + "0\r\n\r\n")).remove(0).1;
        assert_eq!(
            events,
            "data: subscribe,a,1\n\ndata: message,a,x\ndata: y\ndata: z,\ndata: \n\n"
        );
        // Nothing else is asked on such a connection.
        assert_eq!(next, "");
    }
}

#[test]
fn a_slow_request_is_noticed_only_while_the_client_is_waited_for() {
    let mut wire = Wire::new(100_000);
    assert_eq!(wire.connection.incomplete_since(), None);
    wire.seconds = 5;
    wire.send(b"GET /get/a HT");
    assert_eq!(wire.connection.incomplete_since(), Some((5, 13)));
    wire.seconds = 6;
    wire.send(b"TP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(wire.connection.incomplete_since(), None);
    wire.reply(b"$-1\r\n");
    wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n[");
    assert_eq!(wire.connection.incomplete_since(), Some((6, 1)));
    let now = Wire::now(&wire.rules, 100);
    wire.connection.is_too_slow(&now);
    assert_eq!(responses(&wire.out())[0].0, 408);
    assert!(wire.connection.ends());
}

#[test]
fn the_servers_own_words_end_the_connection() {
    let mut wire = Wire::new(100_000);
    let (out, _) = wire.reply(b"-ERR max number of clients reached\r\n");
    assert_eq!(responses(&out)[0].0, 503);
    assert!(wire.connection.ends());
}

#[test]
fn random_bytes_and_cuts_change_nothing_but_what_they_have_to() {
    // Whatever comes, the same requests are asked and the same is answered, however it is cut.
    let pieces = [
        request("GET /get/a", "", ""),
        request("POST /", "", r#"["SET","k","v\u00e9\n"]"#),
        request("POST /pipeline", "", r#"[["A"],["B",1.5]]"#),
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
        "3\r\n[\"G\r\n5\r\nET\",\"\r\n3\r\nk\"]\r\n0\r\n\r\n".to_owned(),
        request("PUT /v1/keys/a%20b", "", "value"),
        "GET / HTTP/1.1\r\n".to_owned(),
        "\r\n".to_owned(),
        "X".to_owned(),
    ];
    let mut seed = 1_u64;
    for _ in 0..300 {
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        let sent: String = (0..1 + next(6)).map(|_| pieces[next(pieces.len())].as_str()).collect();
        let mut whole = Wire::new(1 << 20);
        let asked = whole.send(sent.as_bytes());
        let mut cut = Wire::new(1 + next(9));
        assert_eq!(cut.send(sent.as_bytes()), asked, "{sent:?}");
        assert_eq!(cut.out(), whole.out(), "{sent:?}");
        assert_eq!(cut.connection.ends(), whole.connection.ends(), "{sent:?}");
    }
}
