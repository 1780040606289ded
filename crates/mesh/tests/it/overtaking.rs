//! Large messages do not keep small ones waiting.

use crate::common::{ECHO, LONG, PATIENCE, identity, mesh, node, run};
use ladon_mesh::Mesh;
use std::cell::Cell;

const LONG_BYTES: u32 = 100 << 20;
/// A message of 100 MiB has 1,600 frames; a heartbeat waits for what the sockets hold, and then for
/// one frame at a time.
const HEARTBEATS_MIN: u32 = 20;

/// Asks small questions, one after the other, until it is dropped.
async fn heartbeats(mesh: &Mesh, address: &str, count: &Cell<u32>) {
    loop {
        let answer = mesh.ask(address, Some(1), ECHO, 0, b"there?".to_vec(), PATIENCE).await;
        assert_eq!(answer.expect("an answer"), "there?");
        count.set(count.get() + 1);
    }
}

#[test]
fn heartbeats_pass_long_answers() {
    run(async {
        let node = node(1);
        let other = mesh(identity(2));
        let count = Cell::new(0);
        let long = async {
            let wanted = LONG_BYTES.to_le_bytes().to_vec();
            let answer = other.ask(&node.address, Some(1), LONG, 0, wanted, PATIENCE).await;
            let answer = answer.expect("an answer");
            assert_eq!(answer.len(), LONG_BYTES as usize);
            assert!(answer.chunks(251).all(|part| part[0] == 0), "as it was sent");
        };
        tokio::select! {
            () = long => {}
            () = heartbeats(&other, &node.address, &count) => {}
        }
        println!("{} heartbeats", count.get());
        assert!(count.get() >= HEARTBEATS_MIN, "{}", count.get());
    });
}

#[test]
fn heartbeats_pass_long_questions() {
    run(async {
        let node = node(1);
        let other = mesh(identity(2));
        let count = Cell::new(0);
        let body: Vec<u8> = (0..LONG_BYTES).map(|at| (at % 253) as u8).collect();
        let long = async {
            let asked = other.ask(&node.address, Some(1), ECHO, 0, body.clone(), PATIENCE).await;
            assert!(asked.expect("an answer") == body);
        };
        let seen = node.service.seen.lock().len();
        tokio::select! {
            () = long => {}
            () = heartbeats(&other, &node.address, &count) => {}
        }
        println!("{} heartbeats", count.get());
        let seen = node.service.seen.lock().split_off(seen);
        let long = seen.iter().position(|(_, bytes)| *bytes == LONG_BYTES as usize);
        // Before the question itself is complete.
        assert!(long.expect("it was asked") >= HEARTBEATS_MIN as usize);
    });
}

/// Several of them share a link, and an answer of a few frames does not wait for theirs.
#[test]
fn long_messages_take_turns() {
    run(async {
        let node = node(1);
        let other = mesh(identity(2));
        let order = std::cell::RefCell::new(Vec::new());
        let ask = async |bytes: u32| {
            let wanted = bytes.to_le_bytes().to_vec();
            let answer = other.ask(&node.address, None, LONG, 0, wanted, PATIENCE).await;
            assert_eq!(answer.expect("an answer").len(), bytes as usize);
            order.borrow_mut().push(bytes);
        };
        // The link is there before they begin.
        ask(1).await;
        tokio::join!(ask(30 << 20), ask(20 << 20), ask(1 << 20), ask(10 << 20));
        assert_eq!(*order.borrow(), [1, 1 << 20, 10 << 20, 20 << 20, 30 << 20]);
    });
}

#[test]
fn a_long_answer_that_is_given_up_leaves_the_link_usable() {
    run(async {
        let node = node(1);
        let other = mesh(identity(2));
        let echo = || other.ask(&node.address, None, ECHO, 0, b"x".to_vec(), PATIENCE);
        assert_eq!(echo().await.expect("an answer"), "x");
        let wanted = (50_u32 << 20).to_le_bytes().to_vec();
        for _ in 0..20 {
            let long = other.ask(&node.address, None, LONG, 0, wanted.clone(), PATIENCE);
            // Some frames of it are here by then.
            let small = async {
                for _ in 0..3 {
                    assert_eq!(echo().await.expect("an answer"), "x");
                }
            };
            tokio::select! {
                biased;
                _ = long => panic!("it is long"),
                () = small => {}
            }
        }
        let answer = other.ask(&node.address, None, LONG, 0, wanted, PATIENCE).await;
        assert_eq!(answer.expect("an answer").len(), 50 << 20);
    });
}
