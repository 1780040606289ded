//! What other systems were found to do, as short stories of one cluster. Each says where it is from.
//!
//! A story returns what was seen, and an error where an acknowledged write is lost, something old or
//! undone was shown, or the cluster does not come back by itself.

mod followers;
mod leaders;
mod members;
mod tails;

use super::nodes::{Nodes, Shape, until};
use crate::client::Client;
use ladon_resp::client::{Value, write_request};
use std::time::{Duration, Instant};

/// What was seen, or what is wrong.
pub(super) type Told = Result<String, String>;

struct Story {
    name: &'static str,
    run: fn(&Nodes) -> Told,
}

macro_rules! stories {
    ($($module:ident: $($name:ident)*;)*) => {
        const STORIES: &[Story] =
            &[$($(Story { name: stringify!($name), run: $module::$name },)*)*];
    };
}

stories! {
    leaders: failover_loses_all stale_read_by_old_leader minority_master_acks
        restart_all_two_masters kip101_double_restart crash_loop_on_replay replay_twice;
    followers: stale_local_read reply_to_another_request;
    members: split_brain_by_removal snapshot_index_gap rejoin_under_old_identity
        bit_rot_on_a_minority;
    tails: aborted_read dirty_read_then_lost wait_is_not_consensus confirm_without_quorum
        rolled_back_and_confirmed async_tail_breaks_rejoin limbo_owner_restart;
}

/// Names of all stories.
#[must_use]
pub fn story_names() -> Vec<&'static str> {
    STORIES.iter().map(|story| story.name).collect()
}

/// Runs the story of this name on a new cluster.
///
/// # Errors
/// What is wrong; there is no such story.
pub fn story(shape: &Shape, name: &str) -> Told {
    let found = STORIES.iter().find(|story| story.name == name);
    let story = found.ok_or_else(|| format!("there is no story {name}"))?;
    for node in 0..shape.count {
        // Left by the story before.
        let _ = std::fs::remove_dir_all(shape.dir.join(format!("node-{node}")));
    }
    let nodes = Nodes::start(shape)?;
    let told = (story.run)(&nodes).map_err(|error| format!("{name}: {error}"))?;
    nodes.look_for_alarms().map_err(|error| format!("{name}: {error}"))?;
    Ok(told)
}

/// A leader and the others, who all have what was committed before.
fn roles(nodes: &Nodes) -> Result<(usize, Vec<usize>), String> {
    nodes.are_equal()?;
    let leader = nodes.leader()?;
    Ok((leader, nodes.others(leader)))
}

fn ok() -> Value {
    Value::Simple("OK".into())
}

fn told(value: &Value) -> String {
    match value {
        Value::Error(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Simple(text) | Value::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Integer(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// The reply, or why there is none, in words.
fn said(reply: &std::io::Result<Value>) -> String {
    match reply {
        Ok(value) => told(value),
        Err(error) => format!("no reply ({:?})", error.kind()),
    }
}

fn may_lose(error: std::io::Error) -> String {
    format!("a connection to a leader that nothing happens to: {error}")
}

/// Writes at `quorum` where nothing is in the way, following the leader.
fn write(nodes: &Nodes, key: &str, value: &str) -> Result<(), String> {
    until(&format!("SET {key} {value} to be acknowledged"), || {
        let leader = nodes.leader_now()?;
        let mut client = nodes.client(leader, "quorum").ok()?;
        client.call(&["SET", key, value]).ok().filter(|reply| *reply == ok()).map(drop)
    })
}

/// Reads at `quorum`, following the leader.
fn read(nodes: &Nodes, key: &str) -> Result<Option<String>, String> {
    until(&format!("GET {key} to be answered"), || {
        let mut client = nodes.client(nodes.leader_now()?, "quorum").ok()?;
        match client.call(&["GET", key]).ok()? {
            Value::Bulk(value) => Some(Some(String::from_utf8_lossy(&value).into_owned())),
            Value::Null => Some(None),
            _ => None,
        }
    })
}

fn expect(nodes: &Nodes, key: &str, value: Option<&str>) -> Result<(), String> {
    let found = read(nodes, key)?;
    match found.as_deref() == value {
        true => Ok(()),
        false => Err(format!("{key} is {found:?}, and should be {value:?}")),
    }
}

/// Sends these without waiting for a reply.
fn send_all<A: AsRef<[u8]>>(client: &mut Client, requests: &[Vec<A>]) -> Result<(), String> {
    let mut bytes = Vec::new();
    requests.iter().for_each(|words| write_request(&mut bytes, words));
    client.send(&bytes).map_err(may_lose)
}

/// Sends, and waits for a reply no longer than that.
fn ask(client: &mut Client, words: &[&str], patience: Duration) -> std::io::Result<Value> {
    client.stream().set_read_timeout(Some(patience))?;
    client.call(words)
}

/// Takes nodes away: their links to the others are cut, or where that cannot be, they stand still.
fn away(nodes: &Nodes, who: &[usize]) -> Result<(), String> {
    for &node in who {
        match nodes.network.has_links() {
            false => nodes.stand_still(node),
            true => {
                for other in (0..nodes.count()).filter(|other| !who.contains(other)) {
                    nodes.network.cut(node, other)?;
                    nodes.network.cut(other, node)?;
                }
            }
        }
    }
    Ok(())
}

/// All are there again.
fn back(nodes: &Nodes) -> Result<(), String> {
    nodes.network.heal()?;
    (0..nodes.count()).for_each(|node| nodes.go_on(node));
    Ok(())
}

/// Looks for so long that it stays so.
fn stays(time: Duration, mut is_so: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    let began = Instant::now();
    while began.elapsed() < time {
        is_so()?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Longer than any lease, and than an election that was begun.
fn long(nodes: &Nodes) -> Duration {
    nodes.failover() * 5
}
