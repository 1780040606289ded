//! Scripts, as far as one client cannot see it: what is kept of them.

use crate::common::TestNode;

/// A source of some 200 kB, of which a machine makes more than a megabyte.
fn large(number: usize) -> String {
    let words: Vec<String> = (0..16_000).map(|word| format!("'{number}_{word}'")).collect();
    format!("local t = {{{}}} return #t", words.join(","))
}

/// Scripts that are loaded stay for good, but not compiled on each thread that ran them.
#[test]
fn a_thread_keeps_few_bytes_of_scripts_compiled() {
    const LOADED: usize = 100;
    let node = TestNode::new();
    let mut client = node.client();
    let mut digests = Vec::new();
    let used = node.node.used_memory();
    for number in 0..LOADED {
        let (reply, _) = node.request(&mut client, &[b"SCRIPT", b"LOAD", large(number).as_bytes()]);
        digests.push(reply[5..45].to_vec());
    }
    let sources = node.node.scripts.cache.bytes();
    assert!(sources > LOADED * 150_000, "{sources}");
    assert!(node.node.used_memory() >= used + sources as u64);
    let compiled = node.node.scripts.vm_bytes();
    assert!(compiled < 80 << 20, "{compiled} bytes in the machine");
    for digest in &digests {
        let (reply, _) = node.request(&mut client, &[b"EVALSHA", digest, b"0"]);
        assert_eq!(reply, b":16000\r\n");
    }
    let compiled = node.node.scripts.vm_bytes();
    assert!(compiled < 80 << 20, "{compiled} bytes in the machine");
    node.request(&mut client, &[b"SCRIPT", b"FLUSH"]);
    assert_eq!((node.node.scripts.cache.bytes(), node.node.used_memory()), (0, used));
    let (reply, _) = node.request(&mut client, &[b"EVALSHA", &digests[0], b"0"]);
    assert!(reply.starts_with(b"-NOSCRIPT"));
    node.end(client);
}

/// What a script has replaced is kept until its end, and takes long to drop then.
#[test]
fn large_values_are_left_to_those_who_have_time() {
    for body in [
        "return redis.call('set', KEYS[1], 'x')",
        "return redis.call('del', KEYS[1])",
        "return redis.call('rename', KEYS[2], KEYS[1])",
        "return redis.call('flushdb')",
        "redis.call('sadd', KEYS[1], 'more') return redis.call('set', KEYS[1], 'x')",
    ] {
        let node = TestNode::new().without_rehearsals();
        let mut client = node.client();
        let members: Vec<String> = (0..2000).map(|number| format!("member{number}")).collect();
        node.run(&mut client, &format!("SADD large {}", members.join(" ")));
        node.run(&mut client, "SET small x");
        node.request(&mut client, &[b"EVAL", body.as_bytes(), b"2", b"large", b"small"]);
        let bytes: usize = client.scratch.garbage.iter().map(|garbage| garbage.bytes()).sum();
        assert!(bytes > 20_000, "{body}: {bytes}");
    }
}
