//! What runs most on sets allocates nothing once buffers are warm. A test binary of its own: its
//! allocator counts for the whole process.

#[path = "it/common/mod.rs"]
mod common;

use common::{TestClient, TestNode};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: by the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: by the caller's contract.
        unsafe { System.dealloc(piece, layout) }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: by the caller's contract.
        unsafe { System.realloc(piece, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs a request into a warm buffer, past the test log, and counts.
fn allocations(
    node: &TestNode,
    client: &mut TestClient,
    args: &[&[u8]],
    out: &mut Vec<u8>,
) -> usize {
    let id = node.node.table.find(args[0]);
    let first_key = Some(node.node.keyspace.hash(args[1]));
    out.clear();
    let before = ALLOCATIONS.load(Relaxed);
    let mut thread = ladon_kernel::thread_parts::ThreadParts {
        node: &node.node,
        local: &mut client.local,
        scratch: &mut client.scratch,
        now_ms: common::START_MS,
        append: &mut |_| ladon_record::Lsn(u64::MAX),
        pump: None,
    };
    let request = ladon_kernel::request::execute::Request { id, args, first_key };
    ladon_kernel::request::execute::execute(&mut thread, &mut client.session, request, out);
    ALLOCATIONS.load(Relaxed) - before
}

#[test]
fn warm_sets_allocate_nothing() {
    for (kind, size) in [("", 100), ("m", 100), ("m", 2000)] {
        let node = TestNode::new().without_rehearsals();
        let mut client = node.client();
        let members: Vec<String> = (0..size).map(|n| format!("{kind}{n}")).collect();
        node.run(&mut client, &format!("SADD s {}", members.join(" ")));
        let member = members[size / 2].as_bytes();
        let mut out = Vec::with_capacity(1000);
        client.local.begin_batch(&node.node);
        for round in 0..4 {
            for args in [
                &[&b"SISMEMBER"[..], b"s", member][..],
                &[b"SISMEMBER", b"s", b"nobody"],
                &[b"SCARD", b"s"],
                &[b"SADD", b"s", member],
                &[b"SREM", b"s", member],
                &[b"SADD", b"s", member],
                &[b"SREM", b"s", b"nobody"],
                &[b"SRANDMEMBER", b"s"],
                &[b"SPOP", b"s"],
            ] {
                let count = allocations(&node, &mut client, args, &mut out);
                let command = String::from_utf8_lossy(args[0]);
                assert!(round < 3 || count == 0, "{command} of {kind}{size}: {count} allocations");
            }
        }
    }
}
