//! Keys as resources.

use super::{Node, stop};

#[test]
fn strings_are_their_bytes_with_conditions() {
    let node = Node::new(&[]);
    let server = node.start();
    let mut client = node.connect();
    assert_eq!(client.ask("GET /v1/keys/k", "").status, 404);
    let put = client.ask("PUT /v1/keys/k\nIf-None-Match: *\nLadon-TTL: 100", b"\x00\xff bytes");
    let etag = put.header("etag").expect("a digest").to_owned();
    assert_eq!(put.status, 204);
    assert_eq!(client.ask("PUT /v1/keys/k\nIf-None-Match: *", "x").status, 412);
    let found = client.ask("GET /v1/keys/k", "");
    assert_eq!((found.status, &found.body[..]), (200, &b"\x00\xff bytes"[..]));
    assert_eq!(found.header("etag"), Some(etag.as_str()));
    assert_eq!(found.header("ladon-type"), Some("string"));
    let ttl: f64 = found.header("ladon-ttl").expect("a time to live").parse().expect("a number");
    assert!((0.0..=100.0).contains(&ttl));
    let known = client.ask(&format!("GET /v1/keys/k\nIf-None-Match: {etag}"), "");
    assert_eq!((known.status, known.body.len()), (304, 0));
    // Compare and set: one of two who have read the same.
    let head = format!("PUT /v1/keys/k\nIf-Match: {etag}\nLadon-TTL: keep");
    let first = client.ask(&head, "first");
    assert_eq!((first.status, client.ask(&head, "second").status), (204, 412));
    let found = client.ask("GET /v1/keys/k", "");
    assert!(found.text() == "first" && found.header("ladon-ttl").is_some(), "{found:?}");
    let head = client.ask("HEAD /v1/keys/k", "");
    assert_eq!((head.status, head.header("content-length")), (200, Some("5")));
    assert_eq!(client.ask(&format!("DELETE /v1/keys/k\nIf-Match: {etag}"), "").status, 412);
    assert_eq!(client.ask("DELETE /v1/keys/k", "").status, 204);
    assert_eq!(client.ask("DELETE /v1/keys/k", "").status, 404);
    for wrong in ["If-Match: x", "If-Match: W/\"0123456789abcdef\"", "Ladon-TTL: 0"] {
        assert_eq!(client.ask(&format!("PUT /v1/keys/k\n{wrong}"), "x").status, 400, "{wrong}");
    }
    stop(server);
}

#[test]
fn other_types_are_json() {
    let node = Node::new(&[]);
    let server = node.start();
    let mut client = node.connect();
    for (kind, put, found) in [
        ("hash", r#"{"a":"x\"","b":2}"#, r#"{"a":"x\"","b":"2"}"#),
        ("list", r#"["a",1]"#, r#"["a","1"]"#),
        ("set", r#"["a"]"#, r#"["a"]"#),
        ("zset", r#"[["a",1.5],["b","inf"]]"#, r#"[["a",1.5],["b",null]]"#),
        ("string", "text", "\"text\""),
    ] {
        let key = format!("/v1/keys/a%2F{kind}");
        assert_eq!(client.ask(&format!("PUT {key}?type={kind}"), put).status, 204, "{kind}");
        let got = client.ask(&format!("GET {key}\nAccept: application/json"), "");
        let expected = format!(r#"{{"type":"{kind}","ttl":null,"value":{found}}}"#);
        assert_eq!(got.text(), expected);
    }
    let patch =
        client.ask("PATCH /v1/keys/a%2Fhash", r#"{"set":{"c":"3"},"unset":["a"],"ttl":50}"#);
    assert_eq!(patch.text(), r#"[{"result":1},{"result":1},{"result":1}]"#);
    let got = client.ask("GET /v1/keys/a%2Fhash", "");
    assert!(got.text().ends_with(r#""value":{"b":"2","c":"3"}}"#), "{}", got.text());
    client.run(r#"["XADD","stream","1-1","f","v"]"#);
    let got = client.ask("GET /v1/keys/stream", "");
    assert!(got.text().ends_with(r#""value":[["1-1",["f","v"]]]}"#), "{}", got.text());
    assert_eq!(client.ask("PUT /v1/keys/k?type=tree", "x").status, 400);
    assert_eq!(client.ask("GET /v1/keys/k?typ=hash", "").status, 400);
    let some = client.ask("GET /v1/keys?match=a/*&count=1000", "");
    assert_eq!(some.text().matches("a/").count(), 5, "{}", some.text());
    stop(server);
}

/// Readers of a key whose type changes all the time see one of its values.
#[test]
fn a_key_that_changes_its_type_is_read_as_a_whole() {
    let node = Node::new(&["--io-threads", "2", "--gate", "none"]);
    let server = node.start();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut client = node.connect();
            for _ in 0..500 {
                client.ask("PUT /v1/keys/k?type=hash", r#"{"f":"v"}"#);
                client.ask("PUT /v1/keys/k", "plain");
            }
        });
        let mut reader = node.connect();
        while !writer.is_finished() {
            let found = reader.ask("GET /v1/keys/k", "");
            match (found.status, found.text()) {
                (200, "plain") | (404 | 503, _) => {}
                (200, r#"{"type":"hash","ttl":null,"value":{"f":"v"}}"#) => {}
                other => panic!("{other:?}"),
            }
        }
    });
    stop(server);
}
