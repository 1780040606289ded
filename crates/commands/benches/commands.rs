//! Nanoseconds per command from looked-up name to reply, without parser, sockets and log file:
//! `cargo bench -p ladon-commands`. Runs tiny under `cargo test`.

#[path = "../tests/it/common/mod.rs"]
mod common;

use common::TestNode;
use ladon_engine::partition_of;
use ladon_kernel::command::command_id::CommandId;
use ladon_kernel::request::execute::{Request, execute};
use ladon_kernel::thread_parts::ThreadParts;
use ladon_record::{KeyHash, Lsn};

/// Keys in use, of few partitions: the processor's caches hold them all, so that code is
/// measured, not memory.
const KEYS: usize = 1024;
const PARTITIONS: usize = 4;

/// A command's words for a key.
type Words<'a> = &'a dyn Fn(&str) -> Vec<String>;

fn main() {
    let rounds = if std::env::args().any(|arg| arg == "--bench") { 2200 } else { 1 };
    let value = "v".repeat(64);
    let fresh = |words: &[&str]| -> Vec<String> { words.iter().map(|&w| w.to_owned()).collect() };
    let eight = |name: &str, key: &str, value: Option<&str>| -> Vec<String> {
        let mut words = vec![name.to_owned()];
        for n in 0..8 {
            words.push(format!("{key}:{n}"));
            words.extend(value.map(str::to_owned));
        }
        words
    };
    let commands: [(&str, Words<'_>); 14] = [
        ("PING", &|_| fresh(&["PING"])),
        ("INCR", &|key| fresh(&["INCR", key])),
        ("SET 64 bytes", &|key| fresh(&["SET", key, &value])),
        ("GET 64 bytes", &|key| fresh(&["GET", key])),
        ("GET missing", &|key| fresh(&["GET", &format!("{key}:none")])),
        ("EXISTS", &|key| fresh(&["EXISTS", key])),
        ("SET EX", &|key| fresh(&["SET", key, &value, "EX", "1000"])),
        ("EXPIRE", &|key| fresh(&["EXPIRE", key, "1000"])),
        ("TTL", &|key| fresh(&["TTL", key])),
        ("MSET of 8 far keys", &|key| eight("MSET", key, Some("v"))),
        ("MGET of 8 far keys", &|key| eight("MGET", key, None)),
        ("RENAME", &|key| fresh(&["RENAME", key, key])),
        ("SETNX taken", &|key| fresh(&["SETNX", key, "v"])),
        ("DEL", &|key| fresh(&["DEL", key])),
    ];
    let mut log_end = 0;
    let node = TestNode::new();
    let near = |key: &String| partition_of(node.node.keyspace.hash(key.as_bytes())) < PARTITIONS;
    let keys: Vec<String> = (0..).map(|n| format!("key:{n:012}")).filter(near).take(KEYS).collect();
    for (name, words) in commands {
        let requests: Vec<Vec<String>> = keys.iter().map(|key| words(key)).collect();
        measure(&node, &mut log_end, name, rounds, &requests);
    }
}

/// Prints the median of eleven parts; `DEL` finds its keys in the first of them only.
fn measure(
    node: &TestNode,
    log_end: &mut u64,
    name: &str,
    rounds: usize,
    requests: &[Vec<String>],
) {
    type Prepared<'a> = (Option<CommandId>, Vec<&'a [u8]>, Option<KeyHash>);
    let prepared: Vec<Prepared<'_>> = requests
        .iter()
        .map(|words| {
            let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            let id = node.node.table.find(args[0]);
            let spec = id.map(|id| node.node.table.spec(id));
            let at = spec.and_then(|spec| spec.keys.positions(&args).next());
            let hash = at.map(|at| node.node.keyspace.hash(args[at]));
            (id, args, hash)
        })
        .collect();
    let mut client = node.client();
    let mut out = Vec::with_capacity(1 << 20);
    let part = (rounds / 11).max(1);
    let mut times: Vec<f64> = (0..11)
        .map(|_| {
            let start = cpu_nanoseconds();
            for _ in 0..part {
                out.clear();
                for (id, args, first_key) in &prepared {
                    let request = Request { id: *id, args, first_key: *first_key };
                    let mut thread = ThreadParts {
                        node: &node.node,
                        local: &mut client.local,
                        scratch: &mut client.scratch,
                        now_ms: common::START_MS,
                        append: &mut |record| {
                            *log_end += record.changes().len() as u64;
                            Lsn(*log_end)
                        },
                        pump: None,
                    };
                    execute(&mut thread, &mut client.session, request, &mut out);
                }
            }
            (cpu_nanoseconds() - start) / (part * prepared.len()) as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name}: {:.1} ns", times[5]);
}

/// This thread's time on a processor: others on the machine do not count.
fn cpu_nanoseconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}
