//! Clients while the data is being loaded: greeted, told so, and served on afterwards.

use super::client::Iproto;
use super::{ADMIN_PASSWORD, SickNode, array, int, make_space, row};
use crate::sick_disk::SOON;
use ladon_iproto::Request;
use ladon_iproto::request::{Put, SpaceRef};
use std::io::Read as _;
use std::time::{Duration, Instant};

/// `ER_LOADING`.
const LOADING: u32 = 116;

fn connect(node: &SickNode) -> Iproto {
    let began = Instant::now();
    // The one before may still take connections, which it then resets.
    let greets = || {
        let stream = std::net::TcpStream::connect(("127.0.0.1", node.ports.first()));
        stream.is_ok_and(|mut stream| stream.read_exact(&mut [0]).is_ok())
    };
    while !greets() {
        assert!(began.elapsed() < SOON, "nobody can connect");
        std::thread::sleep(Duration::from_millis(5));
    }
    node.guest()
}

#[test]
fn who_came_early_is_told_and_served_on() {
    let node = SickNode::new("everysec");
    let mut server = node.disk.start();
    let mut admin = node.admin();
    make_space(&mut admin, 600, "rows");
    admin.insert(600, &row(1, "ada"));
    // One that is killed may keep its port for a moment: its ring outlives it.
    assert!(server.terminate().expect("ends").success());
    node.disk.set("hold-read");
    let _server = node.disk.launch.spawn().expect("starts");

    let mut clients: Vec<Iproto> = (0..3).map(|_| connect(&node)).collect();
    let replace = row(2, "bob");
    let replace = Request::Replace(Put { space: SpaceRef::Id(600), tuple: &replace });
    for client in &mut clients {
        client.ask(&Request::Ping).expect("an answer");
        let (code, message) = client.ask(&replace).expect_err("there is no data");
        assert_eq!((code, message.as_str()), (LOADING, "Instance bootstrap hasn't finished yet"));
        let (code, _) = client.log_in("admin", ADMIN_PASSWORD).expect_err("nor are there users");
        assert_eq!(code, LOADING);
    }
    node.disk.unset("hold-read");
    let began = Instant::now();
    for client in &mut clients {
        while let Err(refused) = client.log_in("admin", ADMIN_PASSWORD) {
            assert!(refused.0 == LOADING && began.elapsed() < SOON, "{refused:?}");
        }
        assert_eq!(client.select(600, 0, &array(&[int(1)])), [row(1, "ada")]);
        client.ask(&replace).expect("it takes changes");
    }
}
