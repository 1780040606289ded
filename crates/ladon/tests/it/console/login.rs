//! Who gets in, and for how long.

use super::{Node, request};
use crate::live::{call, ok};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_user_logs_in_and_out() {
    let node = Node::with_password(&[], "s3cret");
    assert_eq!(node.get("api/session", "").status, 401);
    let answer = node.try_log_in("default", "s3cret");
    assert_eq!(answer.status, 200, "{answer:?}");
    let line = answer.head.lines().find(|line| line.starts_with("set-cookie: "));
    let line = line.expect("a cookie");
    for part in ["; path=/console/", "; httponly", "; samesite=strict"] {
        assert!(line.contains(part), "{line}");
    }
    let cookie = answer.cookie();
    let token = cookie.split_once('=').expect("a value").1;
    assert!(token.len() == 64 && token.bytes().all(|digit| digit.is_ascii_hexdigit()), "{token}");
    let session = node.get("api/session", &cookie).json();
    assert_eq!(session["user"], "default");
    assert!(session["rights"].as_array().expect("rights").contains(&json!("set")), "{session}");
    // Not by a part of the secret, nor by another one.
    for wrong in [&cookie[..cookie.len() - 1], &format!("{cookie}0"), &cookie.replace('=', "x=")] {
        assert_eq!(node.get("api/session", wrong).status, 401, "{wrong}");
    }
    assert_eq!(node.post("api/logout", &cookie, &json!({})).status, 200);
    assert_eq!(node.get("api/session", &cookie).status, 401);
    assert_eq!(node.post("api/command", &cookie, &json!({"commands": [["PING"]]})).status, 401);
}

#[test]
fn a_wrong_password_takes_its_time_and_is_written_down() {
    let node = Node::with_password(&[], "s3cret");
    let began = Instant::now();
    let answer = node.try_log_in("default", "guess1");
    assert_eq!(answer.status, 401, "{answer:?}");
    assert!(answer.body.contains("WRONGPASS"), "{answer:?}");
    assert!(began.elapsed() >= Duration::from_millis(500));
    assert_eq!(node.try_log_in("nobody", "s3cret").status, 401);
    let output = node.server.output();
    assert!(output.contains("a login failed: user 'default'"), "{output}");
    assert!(!output.contains("guess1"), "{output}");
    let cookie = node.log_in("default", "s3cret");
    let log = node.one(&cookie, &["ACL", "LOG", "10"]).to_string();
    assert!(log.contains("auth") && log.contains("nobody"), "{log}");
}

/// Eight guesses at a time, whether anybody waits for the answers or not.
#[test]
fn who_hangs_up_does_not_guess_faster() {
    let node = Node::with_password(&[], "s3cret");
    let body = json!({ "name": "default", "password": "guess" }).to_string();
    let headers = "Content-Type: application/json\r\n";
    let bytes = request("POST", "api/login", headers, &body);
    for _ in 0..24 {
        let mut stream = std::os::unix::net::UnixStream::connect(&node.socket).expect("connects");
        std::io::Write::write_all(&mut stream, bytes.as_bytes()).expect("sent");
        std::thread::sleep(Duration::from_millis(5));
    }
    let began = Instant::now();
    assert_eq!(node.try_log_in("default", "guess").status, 401);
    assert!(began.elapsed() >= Duration::from_millis(1000), "{:?}", began.elapsed());
}

#[test]
fn a_session_ends_with_its_user() {
    let node = Node::with_password(&[], "s3cret");
    let root = node.log_in("default", "s3cret");
    let set = |rules: &[&str]| {
        let words: Vec<&str> = ["ACL", "SETUSER", "ann"].iter().chain(rules).copied().collect();
        assert_eq!(node.one(&root, &words), json!({"status": "OK"}), "{rules:?}");
    };
    set(&["on", ">one", ">two", "~*", "+@all"]);
    let (first, second) = (node.log_in("ann", "one"), node.log_in("ann", "two"));
    let status = |cookie: &str| node.get("api/session", cookie).status;
    assert_eq!((status(&first), status(&second)), (200, 200));
    set(&["<one"]);
    assert_eq!((status(&first), status(&second)), (401, 200));
    set(&["off"]);
    assert_eq!(status(&second), 401);
    set(&["on"]);
    assert_eq!(status(&second), 401, "it does not come back");
    let third = node.log_in("ann", "two");
    assert_eq!(node.one(&root, &["ACL", "DELUSER", "ann"]), json!(1));
    set(&["on", ">two", "+@all"]);
    assert_eq!(status(&third), 401, "another user of that name is another one");
}

/// A page that has let its own name point to this machine.
#[test]
fn without_a_password_only_a_plain_host_lets_in() {
    let node = Node::new(&[]);
    let body = json!({ "name": "default", "password": "" }).to_string();
    let status = |host: &str| {
        let headers = "Content-Type: application/json\r\n";
        let bytes = request("POST", "api/login", headers, &body);
        node.exchange(bytes.replace("localhost", host).as_bytes()).status
    };
    for host in ["localhost", "127.0.0.1:9121", "[::1]:9121"] {
        assert_eq!(status(host), 200, "{host}");
    }
    for host in ["evil.example", "evil.example:9121", "127.0.0.1.evil.example"] {
        assert_eq!(status(host), 403, "{host}");
    }
    let mut client = node.server.connect().expect("connects");
    assert_eq!(call(&mut client, &["CONFIG", "SET", "requirepass", "s3cret"]), ok());
    assert_eq!(status("evil.example"), 401, "a password is needed, and wrong");
}

#[test]
fn pages_of_other_sites_and_forms_are_refused() {
    let node = Node::new(&[]);
    let cookie = node.log_in("default", "");
    let body = json!({"commands": [["SET", "k", "v"]]}).to_string();
    let json_type = "Content-Type: application/json\r\n";
    for (headers, expected) in [
        ("Origin: http://evil.example\r\nContent-Type: application/json\r\n", 403),
        ("Origin: null\r\nContent-Type: application/json\r\n", 403),
        ("Sec-Fetch-Site: cross-site\r\nContent-Type: application/json\r\n", 403),
        ("Sec-Fetch-Site: same-site\r\nContent-Type: application/json\r\n", 403),
        ("Content-Type: text/plain\r\n", 415),
        ("Content-Type: application/x-www-form-urlencoded\r\n", 415),
        ("", 415),
    ] {
        let headers = format!("Cookie: {cookie}\r\n{headers}");
        let answer = node.exchange(request("POST", "api/command", &headers, &body).as_bytes());
        assert_eq!(answer.status, expected, "{headers}: {answer:?}");
    }
    assert_eq!(node.one(&cookie, &["EXISTS", "k"]), json!(0));
    let own = format!("Cookie: {cookie}\r\nOrigin: http://localhost\r\n{json_type}");
    assert_eq!(node.exchange(request("POST", "api/command", &own, &body).as_bytes()).status, 200);
    // Reading is refused to other sites, too.
    let foreign = format!("Cookie: {cookie}\r\nSec-Fetch-Site: cross-site\r\n");
    assert_eq!(node.exchange(request("GET", "api/history", &foreign, "").as_bytes()).status, 403);
    assert_eq!(node.get("api/login", &cookie).status, 405);
    assert_eq!(node.post("api/history", &cookie, &json!({})).status, 405);
    assert_eq!(node.get("api/nosuch", &cookie).status, 404);
}

#[test]
fn pages_are_protected_and_known_again() {
    let node = Node::new(&[]);
    let gzip = "Accept-Encoding: gzip\r\n";
    let page = node.exchange(request("GET", "", gzip, "").as_bytes());
    assert_eq!(page.status, 200, "{}", page.head);
    for line in [
        "content-type: text/html; charset=utf-8",
        "content-encoding: gzip",
        "x-content-type-options: nosniff",
        "x-frame-options: deny",
    ] {
        assert!(page.head.contains(line), "{}", page.head);
    }
    assert!(page.head.contains("default-src 'none'; script-src 'self'"), "{}", page.head);
    assert!(!page.head.contains("unsafe"), "{}", page.head);
    let etag = page.head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("an etag");
    let again = format!("{gzip}If-None-Match: {etag}\r\n");
    assert_eq!(node.exchange(request("GET", "", &again, "").as_bytes()).status, 304);
    assert_eq!(node.exchange(request("GET", "nosuch.js", gzip, "").as_bytes()).status, 404);
    assert_eq!(node.exchange(request("POST", "", gzip, "").as_bytes()).status, 405);
    let bare = node.exchange(b"GET /console HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(bare.status == 308 && bare.head.contains("location: /console/"), "{bare:?}");
}
