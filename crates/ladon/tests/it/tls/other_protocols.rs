//! memcached's protocol and HTTP inside TLS.

use super::client::{BOTH, TlsClient, config};
use super::{Door, NO_CLIENTS};
use crate::live::bulk;

/// Reads so many bytes of text.
fn read(client: &mut TlsClient, length: usize) -> String {
    let mut all = vec![0; length];
    let mut read = 0;
    while read < length {
        match client.read(&mut all[read..]).expect("bytes") {
            0 => panic!("the end after {:?}", String::from_utf8_lossy(&all[..read])),
            more => read += more,
        }
    }
    String::from_utf8(all).expect("text")
}

/// Reads the head of a response of HTTP and its body.
fn response(client: &mut TlsClient) -> (String, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push_str(&read(client, 1));
    }
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let length = length.map_or(0, |length| length.parse().expect("a length"));
    (head, read(client, length))
}

#[test]
fn each_protocol_is_spoken_inside_tls() {
    let door = Door::new();
    let (memcached, http) = (door.port() + 2, door.port() + 3);
    let addresses = [memcached, http].map(|port| format!("127.0.0.1:{port}"));
    let [memcached_tls, http_tls] = &addresses;
    let mut arguments = NO_CLIENTS.to_vec();
    arguments.extend(["--memcached-tls", memcached_tls, "--http-tls", http_tls]);
    door.on_both(&arguments, |server| {
        let config = config(&door.authority, None, BOTH);
        let long = "x".repeat(200_000);
        let mut client = TlsClient::connect(memcached, &config);
        client.send(format!("set k 7 0 {}\r\n{long}\r\nget k\r\n", long.len()).as_bytes()).unwrap();
        let expected = format!("STORED\r\nVALUE k 7 {}\r\n{long}\r\nEND\r\n", long.len());
        assert!(read(&mut client, expected.len()) == expected);

        let mut client = TlsClient::connect(http, &config);
        client.send(b"GET /v1/keys/k HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        assert!(response(&mut client).1 == long);
        let put = format!(
            "PUT /v1/keys/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{long}y",
            long.len() + 1
        );
        client.send(put.as_bytes()).unwrap();
        assert!(response(&mut client).0.starts_with("HTTP/1.1 204"));
        let mut plain = server.connect().expect("connects");
        assert!(plain.call(&["GET", "k"]).expect("a reply") == bulk(&(long + "y")));
        // What is no request is answered inside TLS, and the end is said.
        client.send(b"nonsense\r\n\r\n").unwrap();
        assert!(response(&mut client).0.starts_with("HTTP/1.1 400"));
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
    });
}
