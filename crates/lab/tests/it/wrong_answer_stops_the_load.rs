//! A server that lies must never get a figure. The fakes here answer as a server would, but for one
//! reply, and each lie must be caught.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use ladon_lab::load::data::Data;
use ladon_lab::load::driver::{Driver, LoadError, Waiting};
use ladon_lab::load::sample::Sample;
use ladon_lab::load::workload::{Mix, Strings};

/// A server for one connection that sends `replies` for the first bytes it gets, some at a time,
/// and then keeps silent until the client goes.
fn fake_server(replies: Vec<u8>, piece_bytes: usize) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        let mut buffer = [0; 65536];
        let _ = stream.read(&mut buffer);
        for piece in replies.chunks(piece_bytes) {
            if stream.write_all(piece).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
    });
    address
}

const DEPTH: usize = 4;

/// Four GETs of the only key, answered by `replies`.
fn four_gets(replies: Vec<u8>, piece_bytes: usize) -> Result<Sample, LoadError> {
    let mut data = Data::new(1, 16, 64);
    let gets = Strings::new(&mut data, Mix::Get, DEPTH, 1);
    let mut driver =
        Driver::connect(fake_server(replies, piece_bytes), 1, Waiting::Sleep, gets).unwrap();
    driver.run(Duration::from_millis(200))?;
    Ok(Sample::empty().unwrap())
}

/// What the only key's GET must answer.
fn right() -> Vec<u8> {
    let value = Data::new(1, 16, 64).value_of(0);
    [b"$64\r\n".as_slice(), &value, b"\r\n"].concat()
}

fn caught(replies: Vec<u8>) {
    for piece_bytes in [1, 7, 100_000] {
        let result = four_gets(replies.clone(), piece_bytes);
        assert!(
            matches!(result, Err(LoadError::Wrong { .. })),
            "in pieces of {piece_bytes}: {result:?}"
        );
    }
}

#[test]
fn right_answers_pass_in_any_pieces() {
    for piece_bytes in [1, 7, 71, 100_000] {
        four_gets(right().repeat(DEPTH), piece_bytes).unwrap();
    }
}

#[test]
fn a_flipped_bit_in_the_last_value() {
    let mut replies = right().repeat(DEPTH);
    let last = replies.len() - 10;
    replies[last] ^= 1;
    caught(replies);
}

#[test]
fn a_missing_key() {
    let mut replies = right().repeat(DEPTH - 1);
    replies.extend_from_slice(b"$-1\r\n");
    caught(replies);
}

#[test]
fn an_error_reply() {
    caught(b"-LOADING dataset in memory\r\n".to_vec());
}

#[test]
fn a_value_of_another_length() {
    let mut shorter = right();
    shorter[1..3].copy_from_slice(b"63");
    shorter.remove(10);
    caught(shorter);
}

#[test]
fn one_reply_too_many() {
    let result = four_gets(right().repeat(DEPTH + 1), 100_000);
    assert!(matches!(result, Err(LoadError::Wrong { .. })), "{result:?}");
}

#[test]
fn a_closed_connection() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || drop(listener.accept().unwrap()));
    let mut data = Data::new(1, 16, 64);
    let gets = Strings::new(&mut data, Mix::Get, 1, 1);
    let mut driver = Driver::connect(address, 1, Waiting::Sleep, gets).unwrap();
    let result = driver.run(Duration::from_secs(5));
    assert!(matches!(result, Err(LoadError::Closed(0) | LoadError::Io(_))), "{result:?}");
}
