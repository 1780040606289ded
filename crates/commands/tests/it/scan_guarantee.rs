//! SCAN's guarantee: a key that is there from the scan's start to its end is listed, and none is
//! that never was, while other keys come and go and the table splits and shrinks.

use crate::common::{TestClient, TestNode};
use ladon_engine::{PARTITIONS, partition_of};
use ladon_resp::client::{Decoder, Value};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Keys of a few partitions, so that a few thousand of them fill many segments.
static KEYS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let node = TestNode::new();
    let crowded = [0, 1, PARTITIONS / 2, PARTITIONS - 1];
    let names = (0u32..).map(|number| format!("key:{number}").into_bytes());
    names
        .filter(|name| crowded.contains(&partition_of(node.node.keyspace.hash(name))))
        .take(6000)
        .collect()
});

/// What happens between two calls of SCAN: passing keys up to this many exist afterwards.
type Churn = Vec<usize>;

fn scan(node: &TestNode, client: &mut TestClient, cursor: &[u8], count: usize) -> Vec<Vec<u8>> {
    let count = count.to_string();
    let (reply, _) = node.request(client, &[b"SCAN", cursor, b"COUNT", count.as_bytes()]);
    let reply = Decoder::decode_all(&reply).unwrap().unwrap();
    let [Value::Bulk(next), Value::Array(keys)] = reply.as_slice().unwrap() else {
        panic!("{reply:?}")
    };
    let mut answer = vec![next.clone()];
    answer.extend(keys.iter().map(|key| key.as_bytes().unwrap().to_vec()));
    answer
}

fn check(stable: usize, churn: &Churn, count: usize) {
    let node = TestNode::new();
    let mut client = node.client();
    let (stable, passing) = KEYS.split_at(stable);
    for key in stable {
        node.request(&mut client, &[b"SET", key, b"1"]);
    }
    let mut present = 0;
    let mut churn = churn.iter().cycle();
    let mut listed = BTreeSet::new();
    let mut cursor = b"0".to_vec();
    for call in 0.. {
        let wanted = (*churn.next().unwrap()).min(passing.len());
        for key in &passing[present.min(wanted)..present.max(wanted)] {
            match wanted > present {
                true => node.request(&mut client, &[b"SET", key, b"1"]),
                false => node.request(&mut client, &[b"DEL", key]),
            };
        }
        present = wanted;
        let mut answer = scan(&node, &mut client, &cursor, count);
        cursor = answer.remove(0);
        listed.extend(answer);
        if cursor == b"0" {
            break;
        }
        assert!(call < 100_000, "the scan does not end");
    }
    for key in stable {
        assert!(listed.contains(key), "{} was left out", key.escape_ascii());
    }
    let known: BTreeSet<_> = KEYS.iter().cloned().collect();
    assert!(listed.is_subset(&known));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_key_that_stays_is_listed(
        stable in 0usize..1000,
        churn in prop::collection::vec(prop_oneof![Just(0), 0usize..200, 0usize..5000], 1..12),
        count in prop_oneof![Just(1usize), 2usize..50, 50usize..3000],
    ) {
        check(stable, &churn, count);
    }
}

#[test]
fn each_key_is_listed_once_where_nothing_changes() {
    for (keys, count) in [(10, 10), (1000, 10), (6000, 7), (6000, 1000)] {
        let node = TestNode::new();
        let mut client = node.client();
        for key in &KEYS[..keys] {
            node.request(&mut client, &[b"SET", key, b"1"]);
        }
        let (mut cursor, mut listed, mut calls) = (b"0".to_vec(), Vec::new(), 0);
        loop {
            let mut answer = scan(&node, &mut client, &cursor, count);
            cursor = answer.remove(0);
            assert!(answer.len() < count + 520, "about as many as asked for");
            listed.extend(answer);
            calls += 1;
            if cursor == b"0" {
                break;
            }
        }
        listed.sort();
        let mut expected = KEYS[..keys].to_vec();
        expected.sort();
        assert_eq!(listed, expected);
        assert!(calls <= 2 * keys / count + 2, "{calls} calls for {keys} keys, {count} each");
    }
}
