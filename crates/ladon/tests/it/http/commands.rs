//! Commands as JSON and as paths, events.

use super::{Node, stop};
use crate::live::{bulk, call, ok};
use ladon_resp::client::Value;

#[test]
fn what_is_acknowledged_is_there_after_a_kill() {
    let node = Node::new(&[]);
    let mut server = node.start();
    let mut client = node.connect();
    assert_eq!(client.run(r#"["SET","k","v"]"#), r#"{"result":"OK"}"#);
    let both = client.ask("POST /multi-exec", r#"[["INCR","n"],["RPUSH","l","a","b"]]"#);
    assert_eq!(both.text(), r#"[{"result":1},{"result":2}]"#);
    assert_eq!(client.ask("PUT /v1/keys/doc", "bytes").status, 204);
    server.kill().expect("killed");
    let server = node.start();
    let mut client = node.connect();
    let all = client.ask("POST /pipeline", r#"[["GET","k"],["GET","n"],["LRANGE","l",0,-1]]"#);
    assert_eq!(all.text(), r#"[{"result":"v"},{"result":"1"},{"result":["a","b"]}]"#);
    assert_eq!(client.ask("GET /v1/keys/doc", "").text(), "bytes");
    stop(server);
}

#[test]
fn the_same_data_as_over_redis_protocol() {
    let node = Node::new(&["--io-threads", "2"]);
    let server = node.start();
    let mut redis = server.connect().expect("connects");
    let mut client = node.connect();
    assert_eq!(call(&mut redis, &["SET", "k", "é\"\n"]), ok());
    assert_eq!(client.run(r#"["GET","k"]"#), "{\"result\":\"é\\\"\\n\"}");
    assert_eq!(client.ask("GET /append/k/more%20", "").text(), r#"{"result":9}"#);
    assert_eq!(call(&mut redis, &["GET", "k"]), bulk("é\"\nmore "));
    // Who waits for a key is served by whom it may be, in either direction.
    client.send(
        "GET /blpop/queue/0 HTTP/1.1\r\nHost: x\r\n\r\nGET /ping HTTP/1.1\r\nHost: x\r\n\r\n",
    );
    while call(&mut redis, &["RPUSH", "queue", "job"]) != Value::Integer(1) {}
    assert_eq!(client.response(false).text(), r#"{"result":["queue","job"]}"#);
    assert_eq!(client.response(false).text(), r#"{"result":"PONG"}"#);
    let list = call(&mut redis, &["CLIENT", "LIST"]);
    let Value::Bulk(list) = list else { panic!("{list:?}") };
    let list = String::from_utf8(list).expect("text");
    assert!(list.contains("lib-name=http"), "{list}");
    stop(server);
}

#[test]
fn long_values_come_and_go_in_pieces() {
    let node = Node::new(&["--http-max-body", "1mb"]);
    let server = node.start();
    let mut client = node.connect();
    let long: Vec<u8> = (0..5_000_000_u32).map(|at| (at % 251) as u8).collect();
    let put = client.ask("PUT /v1/keys/long", &long);
    assert_eq!((put.status, put.header("etag")), (204, None));
    assert!(client.ask("GET /v1/keys/long", "").body == long, "another value");
    let in_base64 = client.ask("GET /get/long\nUpstash-Encoding: base64", "");
    assert_eq!(in_base64.body.len(), (long.len().div_ceil(3) * 4) + r#"{"result":""}"#.len());
    let refused = client.ask("POST /", format!("[\"SET\",\"k\",\"{}\"]", "x".repeat(1 << 20)));
    assert_eq!(refused.status, 413);
    assert_eq!(client.rest(), "");
    // A setting may change while clients are there.
    let mut redis = server.connect().expect("connects");
    assert_eq!(call(&mut redis, &["CONFIG", "SET", "http-max-body", "2mb"]), ok());
    let mut client = node.connect();
    let accepted = client.ask("POST /", format!("[\"SET\",\"k\",\"{}\"]", "x".repeat(1 << 20)));
    assert_eq!(accepted.status, 200);
    stop(server);
}

#[test]
fn messages_come_as_events() {
    let node = Node::new(&[]);
    let server = node.start();
    let mut client = node.connect();
    client.send("POST /subscribe/news HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    let begin = client.until(b"data: subscribe,news,1\n\n");
    assert!(String::from_utf8_lossy(&begin).contains("Content-Type: text/event-stream"));
    assert_eq!(node.connect().run(r#"["PUBLISH","news","one\ntwo"]"#), r#"{"result":1}"#);
    client.until(b"data: message,news,one\ndata: two\n\n");
    let mut monitor = node.connect();
    monitor.send("GET /monitor HTTP/1.1\r\nHost: x\r\n\r\n");
    monitor.until(b"data: OK\n\n");
    node.connect().run(r#"["ECHO","hello"]"#);
    monitor.until(b"\"ECHO\" \"hello\"\n\n");
    // A stream that its client has left costs nothing any more.
    drop(client);
    let mut other = node.connect();
    while other.run(r#"["PUBSUB","NUMSUB","news"]"#) != r#"{"result":["news",0]}"# {}
    stop(server);
}

#[test]
fn a_client_that_waits_to_continue_is_told_to() {
    let node = Node::new(&[]);
    let server = node.start();
    let mut client = node.connect();
    client.send(
        "PUT /v1/keys/k HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
    );
    assert_eq!(client.response(false).status, 100);
    client.send("hello");
    assert_eq!(client.response(false).status, 204);
    // HTTP/1.0, and a client that closes its side when it has asked.
    client.send("GET /v1/keys/k HTTP/1.0\r\n\r\n");
    client.0.shutdown(std::net::Shutdown::Write).expect("a socket");
    let rest = client.rest();
    assert!(rest.contains("Connection: close\r\n") && rest.ends_with("\r\n\r\nhello"), "{rest}");
    stop(server);
}
