//! What clients see of each failure, at `quorum` and at a laxer gate, from real runs: the table of
//! docs/replication.md, filled by what happens.

use super::clients::{Work, first_word};
use super::faults;
use super::nodes::{Nodes, Shape, connect, until};
use ladon_resp::client::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Clients at `quorum` whose history is judged.
const CLIENTS: u64 = 4;
/// The laxer gate of the other client.
const LAXER: &str = "write";

/// A line: what happened, and what was seen.
#[derive(Clone, Debug)]
struct Line {
    failure: &'static str,
    at_quorum: String,
    at_laxer: String,
}

/// The whole table.
#[derive(Clone, Debug)]
pub struct Table(Vec<Line>);

impl fmt::Display for Table {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(to, "| failure | gate quorum | gate {LAXER} |\n|---|---|---|")?;
        for Line { failure, at_quorum, at_laxer } in &self.0 {
            writeln!(to, "| {failure} | {at_quorum} | {at_laxer} |")?;
        }
        Ok(())
    }
}

type Failure = (&'static str, bool, fn(&Nodes) -> Result<(), String>);

/// What fails, whether that needs links or disks of their own, and how.
const FAILURES: [Failure; 9] = [
    ("the leader dies", false, |nodes| {
        let leader = nodes.leader()?;
        nodes.kill(leader);
        nodes.leader_among(&nodes.others(leader)).map(drop)
    }),
    ("the leader is cut off", true, |nodes| {
        let leader = nodes.leader()?;
        for other in nodes.others(leader) {
            nodes.network.cut(leader, other)?;
            nodes.network.cut(other, leader)?;
        }
        nodes.leader_among(&nodes.others(leader))?;
        sleep(nodes.failover() * 4);
        Ok(())
    }),
    ("a follower dies", false, |nodes| {
        nodes.kill(nodes.others(nodes.leader()?)[0]);
        sleep(nodes.failover() * 4);
        Ok(())
    }),
    ("a follower is slow", true, |nodes| {
        nodes.network.slow(nodes.others(nodes.leader()?)[0])?;
        sleep(nodes.failover() * 4);
        Ok(())
    }),
    ("most members die", false, |nodes| {
        nodes.others(nodes.leader()?).into_iter().for_each(|node| nodes.kill(node));
        sleep(nodes.failover() * 6);
        Ok(())
    }),
    ("all are killed at once", false, |nodes| {
        (0..nodes.count()).for_each(|node| nodes.kill(node));
        Ok(())
    }),
    ("a follower's disk is full", true, |nodes| {
        faults::fill(nodes, nodes.others(nodes.leader()?)[0])?;
        sleep(nodes.failover() * 6);
        Ok(())
    }),
    ("the leader's disk is full", true, |nodes| {
        faults::fill(nodes, nodes.leader()?)?;
        sleep(nodes.failover() * 10);
        Ok(())
    }),
    ("the leader stands still for 10 s", false, |nodes| {
        let leader = nodes.leader()?;
        nodes.stand_still(leader);
        sleep(Duration::from_secs(10));
        nodes.go_on(leader);
        Ok(())
    }),
];

/// Runs all failures.
///
/// # Errors
/// A history at `quorum` that cannot be, or a cluster that does not come back.
pub fn table(shape: &Shape) -> Result<Table, String> {
    let nodes = Nodes::start(shape)?;
    let mut lines = Vec::new();
    for (at, (failure, needs_links, fail)) in FAILURES.into_iter().enumerate() {
        if needs_links && !nodes.network.has_links() {
            let none = "not possible on 127.0.0.1".to_owned();
            lines.push(Line { failure, at_quorum: none.clone(), at_laxer: none });
            continue;
        }
        let line = line(&nodes, at, failure, fail);
        lines.push(line.map_err(|error| format!("{failure}: {error}"))?);
    }
    Ok(Table(lines))
}

fn line(
    nodes: &Nodes,
    at: usize,
    failure: &'static str,
    fail: fn(&Nodes) -> Result<(), String>,
) -> Result<Line, String> {
    nodes.are_equal()?;
    let name = format!("line {at}");
    let (work, loose) = (Work::new(nodes, &name, "quorum"), Loose::new(nodes, at));
    scope(|threads| {
        for node in 0..nodes.count() {
            let loose = &loose;
            threads.spawn(move || loose.write(node));
        }
        let done = work.during(CLIENTS, at as u64, || {
            sleep(Duration::from_millis(500));
            fail(nodes)?;
            sleep(Duration::from_millis(300));
            faults::heal(nodes)?;
            nodes.leader()?;
            sleep(Duration::from_millis(500));
            Ok(())
        });
        loose.over.store(true, Relaxed);
        done
    })?;
    work.read_all()?;
    let tally = work.judge()?;
    nodes.are_equal()?;
    nodes.look_for_alarms()?;
    let at_quorum = format!(
        "{} answered, none lost or old; {} unknown; {:.1} s without an answer{}",
        tally.known,
        tally.unknown,
        tally.pause.as_secs_f64(),
        words(&tally.refusals)
    );
    Ok(Line { failure, at_quorum, at_laxer: loose.told()? })
}

fn words(refusals: &BTreeMap<String, u64>) -> String {
    let words: Vec<String> =
        refusals.iter().map(|(word, count)| format!("{word} {count}")).collect();
    if words.is_empty() { String::new() } else { format!("; {}", words.join(", ")) }
}

/// Clients that add to a set at the laxer gate, one at each node.
struct Loose<'a> {
    nodes: &'a Nodes,
    key: String,
    over: AtomicBool,
    began: Instant,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Of each node: what was acknowledged, in its order.
    acknowledged: BTreeMap<usize, Vec<String>>,
    refusals: BTreeMap<String, u64>,
    last: Duration,
    longest: Duration,
}

impl<'a> Loose<'a> {
    fn new(nodes: &'a Nodes, at: usize) -> Loose<'a> {
        let (over, began, seen) = (AtomicBool::new(false), Instant::now(), Mutex::default());
        Loose { nodes, key: format!("loose {at}"), over, began, seen }
    }

    fn write(&self, node: usize) {
        let mut count = 0;
        while !self.over.load(Relaxed) {
            let Ok(mut client) = connect(self.nodes.address(node), Duration::from_secs(3)) else {
                sleep(Duration::from_millis(20));
                continue;
            };
            if client.call(&["CLIENT", "GATE", LAXER]).is_err() {
                continue;
            }
            while !self.over.load(Relaxed) {
                count += 1;
                let value = format!("{node}:{count}");
                let reply = client.call(&["SADD", &self.key, &value]);
                let mut seen = self.seen.lock().unwrap_or_else(|it| it.into_inner());
                match reply {
                    Ok(Value::Integer(1)) => {
                        let now = self.began.elapsed();
                        if seen.last > Duration::ZERO {
                            seen.longest = seen.longest.max(now.saturating_sub(seen.last));
                        }
                        seen.last = now;
                        seen.acknowledged.entry(node).or_default().push(value);
                    }
                    Ok(reply) => {
                        let text = match &reply {
                            Value::Error(text) => String::from_utf8_lossy(text).into_owned(),
                            other => format!("{other:?}"),
                        };
                        let word = first_word(&text).to_owned();
                        *seen.refusals.entry(word).or_default() += 1;
                    }
                    Err(_) => {
                        *seen.refusals.entry("no reply".to_owned()).or_default() += 1;
                        break;
                    }
                }
                drop(seen);
                sleep(Duration::from_millis(3));
            }
        }
    }

    /// What was seen, and how much of it is there.
    fn told(&self) -> Result<String, String> {
        let kept = until("the members of the set", || {
            let mut client = self.nodes.client(self.nodes.leader_now()?, "quorum").ok()?;
            match client.call(&["SMEMBERS", &self.key]).ok()? {
                Value::Array(members) => Some(members),
                _ => None,
            }
        })?;
        let kept: Vec<String> = kept
            .iter()
            .filter_map(|member| String::from_utf8(member.as_bytes()?.to_vec()).ok())
            .collect();
        let kept: std::collections::BTreeSet<&String> = kept.iter().collect();
        let seen = self.seen.lock().unwrap_or_else(|it| it.into_inner());
        let (mut all, mut lost) = (0, 0);
        for acknowledged in seen.acknowledged.values() {
            all += acknowledged.len();
            lost += acknowledged.iter().filter(|value| !kept.contains(value)).count();
        }
        Ok(format!(
            "{all} answered, {lost} of these lost; {:.1} s without an answer{}",
            seen.longest.as_secs_f64(),
            words(&seen.refusals)
        ))
    }
}
