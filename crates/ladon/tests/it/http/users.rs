//! Who may do what, and whose pages may ask.

use super::{Node, stop};
use crate::live::{call, ok};

#[test]
fn each_request_is_its_own_users() {
    let node = Node::new(&[]);
    let server = node.start();
    let mut redis = server.connect().expect("connects");
    assert_eq!(call(&mut redis, &["CONFIG", "SET", "requirepass", "top"]), ok());
    let rules = ["ACL", "SETUSER", "alice", "on", ">a:b", "~a*", "+get", "+set"];
    assert_eq!(call(&mut redis, &rules), ok());
    let mut client = node.connect();
    let set = r#"["SET","abc","1"]"#;
    assert_eq!(client.ask("POST /", set).status, 401);
    assert_eq!(client.ask("POST /\nAuthorization: Bearer top", set).status, 200);
    assert_eq!(client.ask("POST /\nAuthorization: Bearer alice:a:b", set).status, 200);
    // Not even on the same connection does one have another's rights.
    assert_eq!(client.ask("POST /\nAuthorization: Bearer alice:a:b", r#"["GET","x"]"#).status, 403);
    assert_eq!(client.ask("GET /v1/keys/abc\nAuthorization: Bearer alice:a:b", "").status, 403);
    let basic = "Authorization: Basic ZGVmYXVsdDp0b3A=";
    assert_eq!(client.ask(&format!("POST /\n{basic}"), r#"["GET","x"]"#).status, 200);
    assert_eq!(client.ask("GET /get/x?_token=top", "").status, 200);
    assert_eq!(client.ask("POST /", set).status, 401);
    let wrong = client.ask("POST /\nAuthorization: Bearer nono", set);
    assert_eq!((wrong.status, wrong.header("connection")), (401, Some("close")));
    assert!(wrong.header("www-authenticate").is_some());
    // A long body of a stranger is not even read.
    let mut stranger = node.connect();
    stranger.send("PUT /v1/keys/k HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n");
    assert_eq!(stranger.response(false).status, 401);
    stop(server);
}

#[test]
fn pages_of_other_sites_may_not_ask() {
    let node = Node::new(&["--http-cors-origins", "https://shop.example"]);
    let server = node.start();
    let ask = |headers: &str| node.connect().ask(&format!("POST /\n{headers}"), r#"["PING"]"#);
    assert_eq!(ask("Origin: https://evil.example").status, 403);
    assert_eq!(ask("Sec-Fetch-Site: cross-site").status, 403);
    let allowed = ask("Origin: https://shop.example\nSec-Fetch-Site: cross-site");
    assert_eq!(allowed.status, 200);
    assert_eq!(allowed.header("access-control-allow-origin"), Some("https://shop.example"));
    let mut client = node.connect();
    let asked = "OPTIONS /\nOrigin: https://shop.example\nAccess-Control-Request-Method: POST\n\
                 Access-Control-Request-Headers: upstash-telemetry-sdk";
    let preflight = client.ask(asked, "");
    assert_eq!(preflight.status, 204);
    let headers = preflight.header("access-control-allow-headers").expect("headers");
    assert!(headers.contains("Authorization") && headers.contains("upstash-telemetry-sdk"));
    assert_eq!(client.ask("OPTIONS /\nOrigin: https://evil.example", "").status, 403);
    // A page whose name has got this server's address.
    let mut rebound = node.connect();
    rebound.send("GET /flushall HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!(rebound.response(false).status, 403);
    stop(server);
}
