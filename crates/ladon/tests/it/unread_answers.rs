//! What a program makes for clients that do not read is bounded, and nobody else waits for them.

use crate::iproto::client::{Iproto, array, int};
use crate::program::{Serving, number};
use ladon_iproto::Request;
use ladon_iproto::request::Call;
use std::time::Duration;

/// As many as a connection may have under way.
const CALLS: u64 = 128;
const CLIENTS: usize = 8;
const SETTINGS: [&str; 4] = ["--client-reply-backlog", "4mb", "--io-threads", "2"];

fn tell_all(client: &mut Iproto, name: &[u8]) {
    for at in 0..CALLS {
        let arguments = array(&[int(at)]);
        client.tell(&Request::Call(Call { name, arguments: &arguments }));
    }
}

/// What `state` returns, once it is the same twice with some time between.
fn settled(client: &mut Iproto) -> (u64, u64) {
    let mut before = (0, 0);
    loop {
        let state = client.call("state", &[0x90]).expect("another client is answered");
        let now = (number(&state[0]), number(&state[1]));
        if now == before && now != (0, 0) {
            return now;
        }
        before = now;
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn calls_of_clients_that_do_not_read_are_begun_as_they_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let serving = Serving::start_program(dir.path(), &SETTINGS, "large.lua");
    let mut other = serving.client();
    let mut clients: Vec<Iproto> = (0..CLIENTS).map(|_| serving.client()).collect();
    for client in &mut clients {
        tell_all(client, b"large");
    }
    let (begun, _) = settled(&mut other);
    // Of each connection a few, and what the kernel's buffers take.
    assert!(begun < CLIENTS as u64 * 30, "{begun} answers of a megabyte were made");
    // Each gets all of its answers.
    for client in &mut clients {
        let last = client.last_sync();
        for at in 0..CALLS {
            let answer = client.receive_of(last + 1 - CALLS + at).expect("is there");
            let answer = answer.expect("an answer");
            assert_eq!((number(&answer[0]), answer[1].len()), (at, (1 << 20) + 5));
        }
    }
    assert_eq!(settled(&mut other).0, CLIENTS as u64 * CALLS);
}

/// They were all begun before the first answer was made. What finds no room is an error.
#[test]
fn answers_that_are_made_at_once_have_a_common_bound() {
    let dir = tempfile::tempdir().expect("a directory");
    let serving = Serving::start_program(dir.path(), &SETTINGS, "large.lua");
    let mut client = serving.client();
    tell_all(&mut client, b"large_later");
    // It reads once all of them were made.
    std::thread::sleep(Duration::from_secs(2));
    let last = client.last_sync();
    let mut made = 0;
    for at in 0..CALLS {
        match client.receive_of(last + 1 - CALLS + at).expect("is there") {
            Ok(_) => made += 1,
            Err((code, said)) => assert!(code == 2 && said.contains("not taken"), "{code} {said}"),
        }
    }
    // 256 MB of 512 at once.
    assert!((60..100).contains(&made), "{made}");
}

#[test]
fn a_client_is_pushed_as_much_as_it_reads() {
    const PUSHED: u64 = 200;
    let dir = tempfile::tempdir().expect("a directory");
    let serving = Serving::start_program(dir.path(), &[], "large.lua");
    let mut other = serving.client();
    let mut client = serving.client();
    let arguments = array(&[int(PUSHED)]);
    client.tell(&Request::Call(Call { name: b"pushes", arguments: &arguments }));
    let (_, pushed) = settled(&mut other);
    assert!(pushed < 30, "{pushed} values of a megabyte were pushed");
    let answer = client.receive().expect("is there").expect("an answer");
    assert_eq!((number(&answer[0]), client.pushed), (PUSHED, PUSHED));
    assert_eq!(settled(&mut other).1, PUSHED);
}
