//! Who is not let in, and what they read.

use crate::common::{ECHO, PATIENCE, WHO, identity, mesh, mesh_with, node, node_with, run, secret};
use crate::raw::{GREETING, HELLO, Raw, frame, greeting};
use ladon_mesh::{Identity, Limits, Mesh, Security};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// What a question to this address ends with, without the address.
async fn error(mesh: &Mesh, address: &str) -> (ErrorKind, String) {
    let answer = mesh.ask(address, None, ECHO, 0, vec![], PATIENCE).await;
    let error = answer.expect_err("it is refused");
    let text = error.to_string();
    let text = text.strip_prefix(&format!("{address}: ")).expect("the address comes first");
    (error.kind(), text.to_owned())
}

#[test]
fn a_node_without_the_secret_is_not_let_in() {
    run(async {
        let node = node(1);
        let stranger = mesh_with(identity(2), Security::Secret(b"guessed".to_vec()));
        let text = "the other side refuses: the other side does not prove that it knows the \
                    cluster's secret (cluster-secret)";
        let expected = (ErrorKind::ConnectionRefused, text.to_owned());
        assert_eq!(error(&stranger, &node.address).await, expected);
        assert_eq!(node.mesh.counts().not_let_in, 1);
        let empty = mesh_with(identity(2), Security::Secret(vec![]));
        assert_eq!(error(&empty, &node.address).await, expected);
        assert!(node.service.seen.lock().is_empty());
        let belongs = mesh(identity(2));
        let answer = belongs.ask(&node.address, None, ECHO, 0, b"x".to_vec(), PATIENCE).await;
        assert_eq!(answer.expect("an answer"), "x");
    });
}

#[test]
fn a_node_of_another_cluster_is_told_which() {
    run(async {
        let node = node(1);
        let other = mesh(Identity { cluster: [0xab; 16], ..identity(2) });
        let text = "the other side refuses: this node belongs to cluster \
                    07070707070707070707070707070707, the other one to cluster \
                    abababababababababababababababab";
        let expected = (ErrorKind::ConnectionRefused, text.to_owned());
        assert_eq!(error(&other, &node.address).await, expected);
        let new = mesh(Identity { cluster: [0; 16], node: 0, ..identity(3) });
        let answer = new.ask(&node.address, Some(1), WHO, 0, vec![], PATIENCE).await;
        assert_eq!(answer.expect("it may join"), "member 0 at node-3:16379 asks group 0");
    });
}

#[test]
fn one_member_is_not_there_twice() {
    run(async {
        let node = node(1);
        let twin = mesh(Identity { incarnation: 5, ..identity(1) });
        let text = "the other side refuses: both nodes say that they are member 1; a node's data \
                    directory may not be used for another one";
        let expected = (ErrorKind::ConnectionRefused, text.to_owned());
        assert_eq!(error(&twin, &node.address).await, expected);
        let text = "the other side refuses: the address leads back to this node (node-1:16379)";
        let expected = (ErrorKind::ConnectionRefused, text.to_owned());
        assert_eq!(error(&node.mesh, &node.address).await, expected);
    });
}

#[test]
fn another_member_than_expected_is_named() {
    run(async {
        let node = node(5);
        let other = mesh(identity(2));
        let answer = other.ask(&node.address, Some(3), ECHO, 0, vec![], PATIENCE).await;
        let error = answer.expect_err("it is another one");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let expected = format!("{}: member 5 is there, and not member 3", node.address);
        assert_eq!(error.to_string(), expected);
        assert!(node.service.seen.lock().is_empty());
    });
}

#[test]
fn an_unknown_version_of_the_protocol_is_named_to_both() {
    run(async {
        let node = node(1);
        let mut raw = Raw::connect(&node.address).await;
        raw.send(&frame(GREETING, 0, 0, &greeting(9))).await;
        let expected = "this node speaks version 1 of the nodes' protocol, the other one version 9";
        assert_eq!(raw.refusal().await, expected);

        let (address, _listener) = answering(|_| frame(GREETING, 0, 0, &greeting(9))).await;
        let expected = (ErrorKind::Unsupported, expected.to_owned());
        assert_eq!(error(&mesh(identity(2)), &address).await, expected);
    });
}

/// Answers each frame of whoever connects with what `answer` makes of it.
async fn answering(
    answer: impl Fn(&[u8]) -> Vec<u8> + Send + 'static,
) -> (String, tokio::task::AbortHandle) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut raw = Raw { stream };
            while let Some((head, body)) = raw.receive().await {
                let bytes = [&head.encode(), &body[..]].concat();
                let _ = raw.stream.write_all(&answer(&bytes)).await;
            }
        }
    });
    (address, task.abort_handle())
}

#[test]
fn a_false_node_learns_nothing_and_is_not_believed() {
    run(async {
        let no_proof = "the other side does not prove that it knows the cluster's secret \
                        (cluster-secret)";
        let expected = (ErrorKind::PermissionDenied, no_proof.to_owned());
        // It sends back what it gets: greeting, hello and proof.
        let (address, _mirror) = answering(<[u8]>::to_vec).await;
        assert_eq!(error(&mesh(identity(2)), &address).await, expected);
        let (address, _false_node) = answering(|bytes| match bytes[4] {
            GREETING => frame(GREETING, 0, 0, &greeting(1)),
            _ => frame(HELLO, 0, 0, &[identity(1).encode(), vec![0; 32]].concat()),
        })
        .await;
        assert_eq!(error(&mesh(identity(2)), &address).await, expected);
    });
}

#[test]
fn other_protocols_are_closed_without_a_word() {
    run(async {
        let node = node(1);
        for bytes in [
            &b"GET / HTTP/1.1\r\nHost: node\r\n\r\n"[..],
            b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n",
            &frame(GREETING, 0, 0, b"LADONMSX\x01\0\0\0"),
            &frame(GREETING, 0, 0, &greeting(1)[..43]),
            &frame(GREETING, 1, 0, &greeting(1)),
            &frame(HELLO, 0, 0, &identity(2).encode()),
            &frame(16, 0, 0, b"a question"),
            &[0xff; 100],
        ] {
            let mut raw = Raw::connect(&node.address).await;
            raw.send(bytes).await;
            let mut answer = Vec::new();
            // It may be reset, since not all was read.
            let _ = raw.stream.read_to_end(&mut answer).await;
            assert!(answer.is_empty(), "{answer:?}");
        }
        assert_eq!(node.mesh.counts().not_let_in, 8);
        let (address, _web) = answering(|_| b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()).await;
        let text = "the other side does not speak the protocol of Ladon's nodes".to_owned();
        let expected = (ErrorKind::InvalidData, text);
        assert_eq!(error(&mesh(identity(2)), &address).await, expected);
    });
}

#[test]
fn a_hello_that_does_not_come_is_not_waited_for() {
    run(async {
        let limits = Limits { hello_time: Duration::from_millis(50), ..Limits::default() };
        let node = node_with(identity(1), secret(), limits);
        let greeting = frame(GREETING, 0, 0, &greeting(1));
        for length in [0, 1, 20, greeting.len()] {
            let mut raw = Raw::connect(&node.address).await;
            raw.send(&greeting[..length]).await;
            while raw.receive().await.is_some() {}
        }
        assert_eq!((node.mesh.counts().not_let_in, node.mesh.counts().strangers), (4, 0));

        let (address, _deaf) = answering(|_| Vec::new()).await;
        let limits = Limits { connect_time: Duration::from_millis(50), ..Limits::default() };
        let mesh = crate::common::mesh_of(identity(2), secret(), limits);
        let text = "the other side did not introduce itself in time".to_owned();
        assert_eq!(error(&mesh, &address).await, (ErrorKind::TimedOut, text));
    });
}

#[test]
fn a_node_that_has_changed_is_judged_anew() {
    run(async {
        let node = node(1);
        let other = mesh_with(identity(2), secret());
        let ask = async |group| {
            let answer = other.ask(&node.address, None, WHO, group, vec![], PATIENCE).await;
            answer.map_err(|error| error.to_string())
        };
        assert!(ask(0).await.is_ok());
        node.identity.lock().cluster = [9; 16];
        let text = format!(
            "{}: the other side ends the link: this node belongs to cluster {}, the other one to \
             cluster {}",
            node.address,
            "09".repeat(16),
            "07".repeat(16)
        );
        assert_eq!(ask(1).await, Err(text));
        node.identity.lock().cluster = [7; 16];
        tokio::time::sleep(Limits::default().backoff).await;
        assert!(ask(2).await.is_ok());
    });
}

#[test]
fn what_this_node_says_of_itself_may_change() {
    run(async {
        let node = node(1);
        let asking = crate::common::node(0);
        let ask = async || {
            let asked = asking.mesh.ask(&node.address, None, WHO, 0, vec![], PATIENCE).await;
            String::from_utf8(asked.expect("an answer").to_vec()).expect("text")
        };
        assert_eq!(ask().await, "member 0 at node-0:16379 asks group 0");
        asking.identity.lock().node = 4;
        tokio::time::sleep(Limits::default().backoff).await;
        assert_eq!(ask().await, "member 4 at node-0:16379 asks group 0");
    });
}
