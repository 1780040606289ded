//! Questions and answers.

use crate::common::{
    ECHO, FAIL, LONG, NEVER, PATIENCE, WHO, identity, mesh, node, node_with, run, secret,
};
use ladon_mesh::{Identity, Limits};
use std::time::Duration;

#[test]
fn a_question_is_answered_and_the_link_stays() {
    run(async {
        let node = node(1);
        let other = mesh(identity(2));
        for group in 0..3 {
            let answer = other.ask(&node.address, Some(1), WHO, group, vec![], PATIENCE).await;
            let expected = format!("member 2 at node-2:16379 asks group {group}");
            assert_eq!(answer.expect("an answer"), expected);
        }
        let failed = other.ask(&node.address, None, FAIL, 0, b"no disk".to_vec(), PATIENCE).await;
        assert_eq!(failed.unwrap_err().to_string(), format!("{}: no disk", node.address));
    });
}

#[test]
fn answers_come_in_any_order() {
    run(async {
        let node = node(1);
        let other = mesh(identity(2));
        let never = other.ask(&node.address, None, NEVER, 0, vec![], Duration::from_millis(300));
        let echoes = async {
            for byte in 0..100 {
                let body = vec![byte; usize::from(byte)];
                let answer = other.ask(&node.address, None, ECHO, 0, body.clone(), PATIENCE).await;
                assert_eq!(answer.expect("an answer"), body);
            }
        };
        let (never, ()) = tokio::join!(never, echoes);
        let expected = format!("{}: no answer in 300 ms", node.address);
        assert_eq!(never.unwrap_err().to_string(), expected);
    });
}

#[test]
fn long_messages_pass_both_ways() {
    run(async {
        let node = node(1);
        let other = mesh(identity(2));
        for length in [0, 1, 65_535, 65_536, 65_537, 131_072, 3_000_000_u32] {
            let body: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let echo = other.ask(&node.address, None, ECHO, 0, body.clone(), PATIENCE).await;
            assert!(echo.expect("an answer") == body, "{length}");
            let wanted = length.to_le_bytes().to_vec();
            let long = other.ask(&node.address, None, LONG, 0, wanted, PATIENCE).await;
            assert!(long.expect("an answer") == body, "{length}");
        }
    });
}

#[test]
fn what_a_node_can_do_is_known_from_its_link() {
    run(async {
        let able = Identity { features: 5, ..identity(1) };
        let (able, plain) = (node_with(able, secret(), Limits::default()), node(3));
        let other = mesh(identity(2));
        assert_eq!(other.features(&able.address, Some(1), PATIENCE).await.expect("a link"), 5);
        assert_eq!(other.features(&plain.address, Some(3), PATIENCE).await.expect("a link"), 0);
        let wrong = other.features(&able.address, Some(3), PATIENCE).await.unwrap_err();
        assert!(wrong.to_string().ends_with("member 1 is there, and not member 3"), "{wrong}");
    });
}
