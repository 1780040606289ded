//! How long a cluster is without a leader when its leader dies.

use super::nodes::{Nodes, Shape, connect};
use ladon_resp::client::Value;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// Replies may take so long; another connection to another node waits beside.
const PATIENCE: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(2);

/// Times without a leader: from the last acknowledged write before a `kill -9` of the leader to the
/// first one after it.
#[derive(Clone, Debug)]
pub struct Failovers {
    /// The shortest first.
    pub times: Vec<Duration>,
    shape: Shape,
}

impl Failovers {
    /// The time below which so many of a thousand are.
    fn at(&self, of_thousand: usize) -> f64 {
        let last = self.times.len().saturating_sub(1);
        let at = (self.times.len() * of_thousand / 1000).min(last);
        self.times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    }
}

impl fmt::Display for Failovers {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { count, failover_ms, .. } = &self.shape;
        write!(
            to,
            "{} kills of the leader of {count} nodes at failover-timeout {failover_ms}: ms without an \
             acknowledged write: p50 {:.0}, p90 {:.0}, p99 {:.0}, most {:.0}, least {:.0}",
            self.times.len(),
            self.at(500),
            self.at(900),
            self.at(990),
            self.at(1000),
            self.at(0)
        )
    }
}

/// Kills so many leaders.
///
/// # Errors
/// A cluster that does not come back, or that has forgotten something.
pub fn failovers(shape: &Shape, kills: u64) -> Result<Failovers, String> {
    let nodes = Nodes::start(shape)?;
    let (over, began) = (AtomicBool::new(false), Instant::now());
    // Moment of each acknowledgement; the largest count that was acknowledged.
    let (acknowledged, highest) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    let work = |node| {
        while !over.load(Relaxed) {
            let counted = |count| {
                highest.fetch_max(count, Relaxed);
                let mut times = acknowledged.lock().unwrap_or_else(|it| it.into_inner());
                times.push(began.elapsed());
            };
            if write(&nodes, node, &over, counted).is_none() {
                sleep(RETRY);
            }
        }
    };
    let last = || acknowledged.lock().unwrap_or_else(|it| it.into_inner()).last().copied();
    let mut times = Vec::new();
    let run = |times: &mut Vec<Duration>| {
        for _ in 0..kills {
            let leader = nodes.leader()?;
            sleep(Duration::from_millis(300));
            acknowledged.lock().unwrap_or_else(|it| it.into_inner()).clear();
            let before = super::nodes::until("a write before", last)?;
            nodes.kill(leader);
            let killed = began.elapsed();
            let first = || {
                let seen = acknowledged.lock().unwrap_or_else(|it| it.into_inner());
                let next = seen.iter().position(|&at| at > killed)?;
                Some((next.checked_sub(1).map_or(before, |at| seen[at]), seen[next]))
            };
            let (last, next) = super::nodes::until("a write after", first)?;
            times.push(next - last);
            let least = highest.load(Relaxed);
            nodes.launch(leader)?;
            let leads = nodes.leader()?;
            let count = nodes.client(leads, "quorum")?.call(&["GET", "count"]);
            let count = count
                .ok()
                .and_then(|it| std::str::from_utf8(it.as_bytes()?).ok()?.parse::<u64>().ok());
            if count.is_some_and(|count| count < least) {
                return Err(format!("the count is {count:?}, and {least} was acknowledged"));
            }
            nodes.are_equal_but_for_writes()?;
        }
        nodes.look_for_alarms()
    };
    let done = thread::scope(|threads| {
        (0..nodes.count()).for_each(|node| drop(threads.spawn(move || work(node))));
        let done = run(&mut times);
        over.store(true, Relaxed);
        done
    });
    done?;
    times.sort_unstable();
    Ok(Failovers { times, shape: shape.clone() })
}

/// Counts at a node until it is over. `None`: the node does not go on.
fn write(
    nodes: &Nodes,
    node: usize,
    over: &AtomicBool,
    mut counted: impl FnMut(u64),
) -> Option<()> {
    let mut client = connect(nodes.address(node), PATIENCE).ok()?;
    client.call(&["CLIENT", "GATE", "quorum"]).ok()?;
    while !over.load(Relaxed) {
        match client.call(&["INCR", "count"]).ok()? {
            Value::Integer(count) => counted(count as u64),
            // It follows.
            Value::Error(_) => sleep(RETRY),
            _ => return None,
        }
    }
    Some(())
}
