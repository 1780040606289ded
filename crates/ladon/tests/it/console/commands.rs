//! What a session's requests do: all that its user may do, and nothing else.

use super::Node;
use crate::live::{bulk, call, ok};
use ladon_resp::client::Value;
use serde_json::{Value as Json, json};
use std::time::{Duration, Instant};

#[test]
fn commands_run_as_for_any_client() {
    let node = Node::new(&[]);
    let cookie = node.log_in("default", "");
    let commands = json!([
        ["SET", "k", "v"],
        ["GET", "k"],
        ["INCR", "k"],
        ["HSET", "h", "f", "1"],
        ["HGETALL", "h"],
        ["SET", "b", {"bytes": "/wA="}],
        ["GET", "b"],
        ["GET", "nosuch"],
        ["ZADD", "z", "1.5", "m"],
        ["ZSCORE", "z", "m"]
    ]);
    let answer = node.run(&cookie, &commands);
    let expected = json!([
        {"status": "OK"},
        "v",
        {"error": "ERR value is not an integer or out of range"},
        1,
        {"map": [["f", "1"]]},
        {"status": "OK"},
        {"bytes": "/wA="},
        null,
        1,
        {"double": "1.5"}
    ]);
    assert_eq!(answer["replies"], expected);
    assert!(answer["ms"].is_number() && answer.get("cut").is_none(), "{answer}");
    // Another client sees it.
    let mut client = node.server.connect().expect("connects");
    assert_eq!(call(&mut client, &["GET", "k"]), bulk("v"));
    let list = node.one(&cookie, &["CLIENT", "LIST"]).to_string();
    assert!(list.contains("name=ladon-console") && list.contains("laddr=http-admin:0"), "{list}");
    // Nothing is left when the call is over.
    let began = Instant::now();
    loop {
        let Value::Bulk(list) = call(&mut client, &["CLIENT", "LIST"]) else { panic!("a list") };
        if !String::from_utf8_lossy(&list).contains("ladon-console") {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "the connection stays");
    }
}

#[test]
fn a_call_has_its_database_and_leaves_no_state() {
    let node = Node::new(&[]);
    let cookie = node.log_in("default", "");
    let body = json!({"db": 3, "commands": [["SET", "k", "three"], ["SELECT", "5"], ["MULTI"]]});
    assert_eq!(node.post("api/command", &cookie, &body).status, 200);
    assert_eq!(node.one(&cookie, &["GET", "k"]), Json::Null);
    let body = json!({"db": 3, "commands": [["GET", "k"]]});
    assert_eq!(node.post("api/command", &cookie, &body).json()["replies"], json!(["three"]));
    let body = json!({"db": 99, "commands": [["GET", "k"], ["GET", "k"]]});
    let replies = node.post("api/command", &cookie, &body).json()["replies"].clone();
    let out_of_range = json!({"error": "ERR DB index is out of range"});
    assert_eq!(replies, json!([out_of_range, out_of_range]));
    let transaction = json!([["MULTI"], ["SET", "k", "1"], ["EXEC"]]);
    let replies = node.run(&cookie, &transaction)["replies"].clone();
    assert_eq!(replies[2], json!([{"status": "OK"}]));
}

#[test]
fn a_user_may_do_here_what_it_may_do_elsewhere() {
    let node = Node::with_password(&[], "s3cret");
    let root = node.log_in("default", "s3cret");
    let rules = ["ACL", "SETUSER", "ann", "on", ">one", "~mine:*", "+@read", "+set", "-keys"];
    assert_eq!(node.one(&root, &rules), json!({"status": "OK"}));
    let ann = node.log_in("ann", "one");
    assert_eq!(node.one(&ann, &["SET", "mine:a", "1"]), json!({"status": "OK"}));
    let denied = |words: &[&str]| {
        let reply = node.one(&ann, words);
        let error = reply["error"].as_str().unwrap_or_else(|| panic!("{words:?}: {reply}"));
        assert!(error.starts_with("NOPERM"), "{error}");
    };
    denied(&["SET", "other", "1"]);
    denied(&["KEYS", "*"]);
    denied(&["FLUSHALL"]);
    denied(&["CONFIG", "GET", "*"]);
    let session = node.get("api/session", &ann).json();
    let rights = session["rights"].as_array().expect("rights");
    assert!(rights.contains(&json!("set")) && !rights.contains(&json!("del")), "{session}");
    // What INFO shows is for those who may run it, and settings for those who may read them.
    for path in ["api/history", "api/live", "api/spaces", "api/settings"] {
        assert_eq!(node.get(path, &ann).status, 403, "{path}");
    }
    assert_eq!(node.get("api/tail?channel=c", &ann).status, 403);
}

#[test]
fn settings_say_where_they_came_from_and_no_secrets() {
    let node = Node::with_password(&["--maxclients", "77"], "s3cret");
    let cookie = node.log_in("default", "s3cret");
    assert_eq!(node.one(&cookie, &["CONFIG", "SET", "timeout", "300"]), json!({"status": "OK"}));
    let answer = node.get("api/settings", &cookie);
    assert!(!answer.body.contains("s3cret"), "{}", answer.body);
    let settings = answer.json();
    let find = |name: &str| {
        let mut all = settings.as_array().expect("a list").iter();
        all.find(|setting| setting["name"] == name).expect("it is there").clone()
    };
    assert_eq!(
        (&find("maxclients")["value"], &find("maxclients")["origin"]),
        (&json!("77"), &json!("--maxclients"))
    );
    assert_eq!(find("timeout")["origin"], "CONFIG SET");
    assert_eq!(find("gate")["origin"], "default");
    assert_eq!(
        (&find("requirepass")["value"], &find("requirepass")["changed"]),
        (&Json::Null, &json!(true))
    );
    assert_eq!(find("http-admin")["live"], false);
}

#[test]
fn what_is_no_call_is_refused() {
    let node = Node::new(&[]);
    let cookie = node.log_in("default", "");
    for body in [
        json!([]),
        json!({}),
        json!({"commands": []}),
        json!({"commands": [[]]}),
        json!({"commands": [["GET", 1]]}),
        json!({"commands": [["GET", {"bytes": "?"}]]}),
        json!({"commands": [["PING"]], "db": -1}),
        json!({"commands": [["PING"]], "other": 1}),
        json!({"commands": vec![json!(["PING"]); 1001]}),
    ] {
        let answer = node.post("api/command", &cookie, &body);
        assert!(answer.status == 400 && answer.json()["error"].is_string(), "{body}: {answer:?}");
    }
    for words in [
        &["AUTH", "default", ""][..],
        &["hello", "3"],
        &["Reset"],
        &["SUBSCRIBE", "c"],
        &["MONITOR"],
        &["CLIENT", "REPLY", "OFF"],
        &["QUIT"],
        &["PSYNC", "?", "-1"],
    ] {
        let answer = node.run(&cookie, &json!([["PING"], words, ["PING"]]));
        let replies = &answer["replies"];
        let error = replies[1]["error"].as_str().unwrap_or_else(|| panic!("{words:?}: {answer}"));
        assert!(error.starts_with("ERR the console does not run"), "{error}");
        assert_eq!(
            (&replies[0], &replies[2]),
            (&json!({"status": "PONG"}), &json!({"status": "PONG"}))
        );
    }
}

#[test]
fn monitor_and_the_gate_are_those_of_all_clients() {
    let node = Node::new(&["--gate", "fsync"]);
    let mut monitor = node.server.connect().expect("connects");
    assert_eq!(call(&mut monitor, &["MONITOR"]), ok());
    let cookie = node.log_in("default", "");
    assert_eq!(node.one(&cookie, &["SET", "watched", "1"]), json!({"status": "OK"}));
    let seen = loop {
        let Value::Simple(line) = monitor.reply().expect("a line") else { panic!("a line") };
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains("watched") {
            break line;
        }
    };
    assert!(seen.contains("\"SET\" \"watched\" \"1\""), "{seen}");
    // The reply waited for the disk.
    let info = node.one(&cookie, &["INFO", "all"]).to_string();
    assert!(info.contains("gate"), "{info}");
}

#[test]
fn spaces_are_listed_with_their_sizes() {
    let ports = ladon_testkit::Ports::take(1).expect("a port");
    let iproto = format!("127.0.0.1:{}", ports.first());
    let node = Node::new(&["--iproto", &iproto, "--iproto-admin-password", "secret"]);
    let cookie = node.log_in("default", "");
    assert_eq!(node.get("api/spaces", &cookie).json(), json!([]));
    let mut tool = std::process::Command::new(env!("CARGO_BIN_EXE_ladon"));
    tool.args(["space", "--iproto", &iproto, "create", "a \"space\"", "--field", "id:unsigned"]);
    let run = tool.env("LADON_IPROTO_PASSWORD", "secret").output().expect("runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let began = Instant::now();
    // A census is a second old at most.
    let spaces = loop {
        let spaces = node.get("api/spaces", &cookie).json();
        if spaces != json!([]) {
            break spaces;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "it is not listed");
    };
    assert_eq!((&spaces[0]["name"], &spaces[0]["tuples"]), (&json!("a \"space\""), &json!(0)));
}
