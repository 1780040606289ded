//! Replays the fuzz corpus that is kept for the target `http_requests`.

use crate::check;

#[test]
fn kept_corpus_holds() {
    ladon_testkit::corpus::replay("http_requests", check::check);
}

#[test]
fn a_request_is_answered() {
    let answer = check::answer(b"GET /metrics?names=redis HTTP/1.1\r\nHost: x\r\n\r\n");
    let text = String::from_utf8(answer).expect("text");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.contains("\nredis_up 1\n"), "{text}");
}
