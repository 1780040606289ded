//! Which keys go when memory runs out, and when none do.

use crate::common::{TestClient, TestNode};
use ladon_engine::Interactive;
use ladon_space::Statement;
use std::collections::BTreeSet;

const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.";

struct Evicting {
    node: TestNode,
    client: TestClient,
}

impl Evicting {
    fn new(policy: &str) -> Evicting {
        let node = TestNode::new();
        let client = node.client();
        let mut evicting = Evicting { node, client };
        evicting.set("maxmemory-policy", policy);
        // Looking at many keys makes the choice nearly exact.
        evicting.set("maxmemory-samples", "64");
        evicting.set("maxmemory-eviction-tenacity", "100");
        evicting
    }

    fn set(&mut self, name: &str, value: &str) {
        assert_eq!(self.run(&format!("CONFIG SET {name} {value}")), "+OK");
    }

    fn run(&mut self, line: &str) -> String {
        self.node.run(&mut self.client, line)
    }

    fn used(&self) -> i64 {
        self.node.node.used_memory() as i64 + self.client.scratch.counters.bytes_delta
    }

    /// No more than this many bytes on top of what is there now.
    fn limit(&mut self, more: i64) {
        let limit = self.used() + more;
        self.set("maxmemory", &limit.to_string());
    }

    fn is_within_limit(&self) -> bool {
        // A command's worth may be too much, with what a table grew by for it.
        self.used() <= self.node.node.settings.maxmemory() as i64 + 10_000
    }

    fn keys(&mut self) -> BTreeSet<String> {
        self.node.dump().into_keys().map(|(_, key)| String::from_utf8(key).unwrap()).collect()
    }

    fn evicted(&self) -> u64 {
        self.client.scratch.counters.evicted
    }
}

/// So many that each partition has some: the first key of a partition brings a page with it.
const OLD: u32 = 8000;

/// Fills up to the limit with keys `old:N`, some of which are told to `use_some` of, then writes as
/// many keys `new:N`. Returns which of the old ones are left.
fn old_ones_left(
    evicting: &mut Evicting,
    suffix: &str,
    use_some: impl FnOnce(&mut Evicting),
) -> BTreeSet<u32> {
    let value = "v".repeat(200);
    for key in 0..OLD {
        assert_eq!(evicting.run(&format!("SET old:{key} {value} {suffix}")), "+OK");
    }
    evicting.node.clock.advance(100_000);
    use_some(evicting);
    evicting.node.clock.advance(100_000);
    evicting.limit(50_000);
    for key in 0..OLD / 2 {
        assert_eq!(evicting.run(&format!("SET new:{key} {value} {suffix}")), "+OK");
        assert!(evicting.is_within_limit(), "{} after {key}", evicting.used());
    }
    assert!(evicting.evicted() > 2000, "{}", evicting.evicted());
    assert_eq!(evicting.node.replayed(), evicting.node.dump(), "evictions are in the log");
    let keys = evicting.keys();
    (0..OLD).filter(|key| keys.contains(&format!("old:{key}"))).collect()
}

fn used_ones() -> impl Iterator<Item = u32> {
    (0..OLD).step_by(4)
}

fn share(left: &BTreeSet<u32>, of: impl Iterator<Item = u32>) -> f64 {
    let (mut kept, mut all) = (0, 0);
    for key in of {
        all += 1;
        kept += u32::from(left.contains(&key));
    }
    f64::from(kept) / f64::from(all)
}

#[test]
fn lru_keeps_what_was_read() {
    for (policy, suffix) in [("allkeys-lru", ""), ("volatile-lru", "EX 100000")] {
        let left = old_ones_left(&mut Evicting::new(policy), suffix, |evicting| {
            for key in used_ones() {
                evicting.run(&format!("GET old:{key}"));
            }
        });
        assert!(share(&left, used_ones()) > 0.99, "{policy}: {}", share(&left, used_ones()));
        assert!(share(&left, 0..OLD) < 0.8, "{policy}");
    }
}

#[test]
fn lrm_keeps_what_was_written_and_not_what_was_read() {
    for (policy, suffix) in [("allkeys-lrm", ""), ("volatile-lrm", "EX 100000")] {
        let left = old_ones_left(&mut Evicting::new(policy), suffix, |evicting| {
            for key in 0..OLD {
                match key % 4 {
                    0 => evicting.run(&format!("APPEND old:{key} x")),
                    1 => evicting.run(&format!("GET old:{key}")),
                    _ => String::new(),
                };
            }
        });
        let read = (0..OLD).filter(|key| key % 4 == 1);
        assert!(share(&left, used_ones()) > 0.99, "{policy}: {}", share(&left, used_ones()));
        assert!(share(&left, read) < 0.8, "{policy}");
    }
}

#[test]
fn lfu_keeps_what_is_read_often_even_if_others_were_read_later() {
    for (policy, suffix) in [("allkeys-lfu", ""), ("volatile-lfu", "EX 100000")] {
        let left = old_ones_left(&mut Evicting::new(policy), suffix, |evicting| {
            for _ in 0..100 {
                for key in used_ones() {
                    evicting.run(&format!("GET old:{key}"));
                }
            }
            for key in (0..OLD).filter(|key| key % 4 != 0) {
                evicting.run(&format!("GET old:{key}"));
            }
        });
        assert!(share(&left, used_ones()) > 0.97, "{policy}: {}", share(&left, used_ones()));
        assert!(share(&left, 0..OLD) < 0.85, "{policy}");
    }
}

#[test]
fn random_keeps_no_kind() {
    for (policy, suffix) in [("allkeys-random", ""), ("volatile-random", "EX 100000")] {
        let left = old_ones_left(&mut Evicting::new(policy), suffix, |evicting| {
            for key in used_ones() {
                evicting.run(&format!("GET old:{key}"));
            }
        });
        let (used, all) = (share(&left, used_ones()), share(&left, 0..OLD));
        assert!((used - all).abs() < 0.15, "{policy}: {used} of the used ones, {all} of all");
    }
}

#[test]
fn ttl_takes_what_would_go_first_anyway() {
    let mut evicting = Evicting::new("volatile-ttl");
    let left = old_ones_left(&mut evicting, "EX 100000", |evicting| {
        for key in used_ones() {
            evicting.run(&format!("EXPIRE old:{key} 200000"));
        }
    });
    assert!(share(&left, used_ones()) > 0.99, "{}", share(&left, used_ones()));
    assert!(share(&left, 0..OLD) < 0.8);
}

#[test]
fn volatile_policies_leave_other_keys_alone() {
    for policy in
        ["volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "volatile-lrm"]
    {
        let mut evicting = Evicting::new(policy);
        let value = "v".repeat(200);
        for key in 0..2000 {
            // Sparse among the others.
            let suffix = if key % 50 == 0 { "EX 1000" } else { "" };
            evicting.run(&format!("SET k:{key} {value} {suffix}"));
        }
        evicting.limit(0);
        let mut refused = 0;
        for key in 0..80 {
            match evicting.run(&format!("SET new:{key} {value}")).as_str() {
                "+OK" => {}
                reply => {
                    assert_eq!(reply, OOM);
                    refused += 1;
                }
            }
        }
        assert_eq!(evicting.evicted(), 40, "{policy}: all that expire are gone");
        assert!(refused > 30, "{policy}: then nothing can be evicted");
        assert_eq!(evicting.keys().iter().filter(|key| key.starts_with("k:")).count(), 1960);
        // Reading, deleting and what needs no memory goes on.
        assert_eq!(evicting.run("DEL k:1 k:2 k:3 k:4 k:5"), ":5", "{policy}");
        assert_eq!(evicting.run("SET new:0 x"), "+OK", "{policy}");
        assert_eq!(evicting.node.replayed(), evicting.node.dump());
    }
}

#[test]
fn noeviction_evicts_nothing() {
    let mut evicting = Evicting::new("noeviction");
    evicting.run("SET a 1");
    evicting.limit(-2000);
    assert_eq!(evicting.run("SET b 1"), OOM);
    assert_eq!(evicting.run("GET a"), "\"1\"");
    evicting.set("maxmemory-policy", "allkeys-lru");
    // The one key goes, and the memory of its table with it: that is room enough.
    assert_eq!(evicting.run("SET b 1"), "+OK");
    assert_eq!(evicting.run("EXISTS a"), ":0");
    assert_eq!(evicting.evicted(), 1);
}

#[test]
fn expired_keys_go_first() {
    let mut evicting = Evicting::new("allkeys-lru");
    let value = "v".repeat(200);
    for key in 0..3000 {
        evicting.run(&format!("SET k:{key} {value}"));
        evicting.run(&format!("SET e:{key} {value} PX 10"));
    }
    evicting.node.clock.advance(20);
    evicting.limit(0);
    for key in 0..200 {
        assert_eq!(evicting.run(&format!("SET new:{key} {value}")), "+OK");
    }
    assert_eq!(evicting.evicted(), 0);
    assert!(evicting.client.scratch.counters.expired > 100);
}

#[test]
fn an_evicted_key_was_changed_to_who_watches_it() {
    let mut evicting = Evicting::new("allkeys-lru");
    evicting.run("SET watched 1");
    let mut other = evicting.node.client();
    evicting.node.run(&mut other, "WATCH watched");
    evicting.limit(-1);
    evicting.run("SET b 1");
    assert_eq!(evicting.run("EXISTS watched"), ":0");
    assert_eq!(evicting.node.run(&mut other, "MULTI"), "+OK");
    assert_eq!(evicting.node.run(&mut other, "PING"), "+QUEUED");
    assert_eq!(evicting.node.run(&mut other, "EXEC"), "nil-array");
}

#[test]
fn a_transaction_that_needs_memory_makes_room_before_it_runs() {
    let mut evicting = Evicting::new("allkeys-random");
    let value = "v".repeat(200);
    for key in 0..100 {
        evicting.run(&format!("SET k:{key} {value}"));
    }
    evicting.run("MULTI");
    evicting.run("SET a 1");
    evicting.run("SET b 2");
    // MULTI lets nothing set the limit in between, so that another client does.
    let used = evicting.used() - 1000;
    let mut other = evicting.node.client();
    assert_eq!(evicting.node.run(&mut other, &format!("CONFIG SET maxmemory {used}")), "+OK");
    assert_eq!(evicting.run("EXEC"), "[+OK +OK]");
    assert!(evicting.evicted() >= 4);
}

#[test]
fn frequencies_are_counted_under_lfu_only() {
    let mut evicting = Evicting::new("allkeys-lru");
    evicting.run("SET a 1");
    evicting.node.clock.advance(5000);
    assert_eq!(evicting.run("OBJECT IDLETIME a"), ":5");
    assert!(evicting.run("OBJECT FREQ a").starts_with("-ERR An LFU maxmemory policy is not"));
    evicting.set("maxmemory-policy", "allkeys-lfu");
    assert!(evicting.run("OBJECT IDLETIME a").starts_with("-ERR An LFU maxmemory policy is sel"));
    evicting.run("SET b 1");
    assert_eq!(evicting.run("OBJECT FREQ b"), ":5");
    evicting.set("lfu-log-factor", "0");
    for _ in 0..20 {
        evicting.run("GET b");
    }
    assert_eq!(evicting.run("OBJECT FREQ b"), ":25", "each use counts without a factor");
    evicting.run("SET b 2");
    assert_eq!(evicting.run("OBJECT FREQ b"), ":26", "a new value is one more use");
    evicting.node.clock.advance(10 * 60_000);
    assert_eq!(evicting.run("OBJECT FREQ b"), ":16");
    evicting.set("lfu-decay-time", "5");
    assert_eq!(evicting.run("OBJECT FREQ b"), ":24");
    evicting.set("lfu-decay-time", "0");
    assert_eq!(evicting.run("OBJECT FREQ b"), ":26");
    assert_eq!(evicting.run("OBJECT FREQ missing"), "nil");
}

#[test]
fn time_over_the_limit_is_told() {
    let mut evicting = Evicting::new("noeviction");
    evicting.run("SET a 1");
    evicting.limit(-1);
    assert_eq!(evicting.run("SET b 1"), OOM);
    evicting.node.clock.advance(70);
    let info = evicting.run("INFO stats");
    assert!(info.contains("current_eviction_exceeded_time:70"), "{info}");
    evicting.set("maxmemory", "0");
    assert_eq!(evicting.run("SET b 1"), "+OK");
    evicting.node.clock.advance(70);
    let info = evicting.run("INFO stats");
    assert!(info.contains("total_eviction_exceeded_time:70"), "{info}");
    assert!(info.contains("current_eviction_exceeded_time:0"), "{info}");
}

/// The thread that frees large values gets no processor at all: what waits for it counts as used,
/// and a command that needs memory frees it instead of evicting what is left.
#[test]
fn large_values_that_nobody_frees_do_not_exceed_the_limit() {
    const BYTES: i64 = 5_000_000;
    for policy in ["allkeys-lru", "noeviction"] {
        let mut evicting = Evicting::new(policy);
        evicting.client.local.rehearses = false;
        assert_eq!(evicting.run("SET kept 1"), "+OK");
        evicting.limit(3 * BYTES);
        let limit = evicting.node.node.settings.maxmemory() as i64;
        for _ in 0..20 {
            assert_eq!(evicting.run(&format!("SETRANGE big {} x", BYTES - 1)), format!(":{BYTES}"));
            assert_eq!(evicting.run("SET big small"), "+OK");
            let before = evicting.used();
            let garbage = std::mem::take(&mut evicting.client.scratch.garbage);
            assert_eq!(garbage.len(), 1, "it is too large to be freed on the spot");
            evicting.node.node.lazy_free.add(garbage);
            assert!(evicting.used() >= before + BYTES, "what waits counts");
            assert!(evicting.used() <= limit + BYTES, "{policy}: {}", evicting.used());
        }
        assert_eq!(evicting.evicted(), 0, "{policy}");
        assert_eq!(evicting.run("GET kept"), "\"1\"");
    }
}

/// As above, of values that take long to free: these go in line once they are a large part.
#[test]
fn values_of_many_pieces_that_nobody_frees_do_not_exceed_the_limit() {
    let mut evicting = Evicting::new("noeviction");
    evicting.client.local.rehearses = false;
    let members: String = (0..4000).map(|member| format!(" member:{member}")).collect();
    assert_eq!(evicting.run(&format!("SADD many{members}")), ":4000");
    let bytes = evicting.used() - evicting.node.node.keyspace.fixed_bytes() as i64;
    evicting.limit(4 * bytes);
    let limit = evicting.node.node.settings.maxmemory() as i64;
    for _ in 0..20 {
        assert_eq!(evicting.run("SET many small"), "+OK");
        let garbage = std::mem::take(&mut evicting.client.scratch.garbage);
        assert_eq!(garbage.len(), 1);
        evicting.node.node.lazy_free.add(garbage);
        assert_eq!(evicting.run("DEL many"), ":1");
        assert_eq!(evicting.run(&format!("SADD many{members}")), ":4000");
        assert!(evicting.used() <= limit + bytes, "{}", evicting.used());
    }
}

/// Open transactions on spaces have limits of their own: nobody's writes are refused for them.
#[test]
fn uncommitted_tuples_leave_room_to_others() {
    /// The system space `_schema`.
    const SCHEMA: u32 = 272;
    let mut evicting = Evicting::new("noeviction");
    // The system spaces are made when they are first asked for.
    evicting.node.node.keyspace.spaces.catalog();
    evicting.limit(100_000);
    let used = evicting.used();
    let mut open = Interactive::new(&evicting.node.node.keyspace.spaces);
    for number in b'a'..=b'z' {
        let mut tuple = vec![0x92, 0xa1, number, 0xc5, 0x80, 0];
        tuple.resize(6 + 0x8000, b'x');
        open.write(&evicting.node.node.keyspace, SCHEMA, Statement::Replace(&tuple)).unwrap();
    }
    assert!(evicting.used() > used + 800_000, "it is counted");
    assert_eq!(evicting.run("SET key value"), "+OK");
    drop(open);
    let left = evicting.used() - used;
    assert!(left < 20_000, "{left} bytes are left");
}
