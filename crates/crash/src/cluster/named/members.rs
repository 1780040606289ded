//! Who belongs, and with which data.

use super::{Told, ask, away, back, expect, long, ok, read, roles, said, stays, write};
use crate::cluster::nodes::{Nodes, until};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// Of large values: more than members keep of the log for those who are behind.
const LARGE_BYTES: usize = 4 << 20;
const LARGE_COUNT: usize = 24;

/// A node that is neither of these.
fn third(nodes: &Nodes, one: usize, two: usize) -> usize {
    nodes.others(one).into_iter().find(|&node| node != two).unwrap_or(one)
}

/// A member that was removed while it was away must not vote with the others: Redis-Raft split into
/// two clusters (redisraft#17, #28, #44).
pub(super) fn split_brain_by_removal(nodes: &Nodes) -> Told {
    write(nodes, "key", "before")?;
    let (leader, others) = roles(nodes)?;
    let (removed, stays_there) = (others[0], others[1]);
    away(nodes, &[removed])?;
    let (asked, gone) = (nodes.address(leader).to_string(), nodes.address(removed).to_string());
    nodes.cluster(&["remove-node", &asked, &gone, "--timeout", "60"])?;
    // Of two members, one is no majority; with the removed one it would have been, before.
    let leader = until("a leader that is not the removed one", || {
        [leader, stays_there]
            .into_iter()
            .find(|&node| nodes.status(node).is_some_and(|status| status.fact("role") == "leader"))
    })?;
    let left = third(nodes, removed, leader);
    write(nodes, "key", "of two")?;
    nodes.kill(left);
    back(nodes)?;
    let mut last = String::new();
    stays(long(nodes) * 2, || {
        for node in [leader, removed] {
            let patience = Duration::from_millis(200);
            let reply = nodes.ask_at_quorum(node, &["SET", "key", "split"], patience);
            if matches!(&reply, Ok(reply) if *reply == ok()) {
                return Err(format!("node {node} acknowledges a write without the other member"));
            }
            last = said(&reply);
        }
        Ok(())
    })?;
    nodes.launch(left)?;
    write(nodes, "key", "again")?;
    let status = nodes.status(removed).unwrap_or_default();
    if status.fact("role") == "leader" {
        return Err(format!("the removed node {removed} leads"));
    }
    Ok(format!("a removed member does not vote; writes were told: {last}"))
}

/// A member gets a checkpoint and the log behind it, without a gap, and starts again from that
/// (redisraft#43: log entries behind a snapshot were missing).
pub(super) fn snapshot_index_gap(nodes: &Nodes) -> Told {
    let (leader, others) = roles(nodes)?;
    let behind = others[0];
    nodes.kill(behind);
    let large = "x".repeat(LARGE_BYTES);
    for turn in 0..LARGE_COUNT {
        write(nodes, &format!("large {}", turn % 3), &large)?;
        write(nodes, &format!("small {turn}"), "kept")?;
    }
    for node in nodes.others(behind) {
        let mut client = nodes.client(node, "none")?;
        // SAVE waits for its end.
        let reply = ask(&mut client, &["SAVE"], Duration::from_secs(60));
        if !matches!(&reply, Ok(reply) if *reply == ok()) {
            return Err(format!("SAVE: {}", said(&reply)));
        }
    }
    // What the checkpoint holds may go now.
    sleep(Duration::from_secs(3));
    write(nodes, "behind", "1")?;
    nodes.launch(behind)?;
    nodes.are_equal()?;
    let told = nodes.log_text(behind);
    for (turn, node) in [behind, leader, behind].into_iter().enumerate() {
        write(nodes, "behind", &format!("{turn} more"))?;
        nodes.kill(node);
        nodes.launch(node)?;
        nodes.are_equal()?;
    }
    nodes.replace(behind)?;
    nodes.are_equal()?;
    for turn in 0..LARGE_COUNT {
        expect(nodes, &format!("small {turn}"), Some("kept"))?;
    }
    let is_of_it = |line: &&str| line.contains("checkpoint") || line.contains("snapshot");
    let last = told.lines().rev().find(is_of_it).unwrap_or("nothing of a checkpoint");
    Ok(format!("a member was {} MB behind; it says: {last}", (LARGE_BYTES * LARGE_COUNT) >> 20))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    match copied {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("cp {}: {other:?}", from.display())),
    }
}

/// A member whose directory was lost, or is an older one, has forgotten what it promised: it must not
/// help to commit under its old number (VoltDB 6.3, Jepsen 2016).
pub(super) fn rejoin_under_old_identity(nodes: &Nodes) -> Told {
    write(nodes, "key", "before")?;
    let member = roles(nodes)?.1[0];
    nodes.kill(member);
    let (data, older) = (nodes.data(member), nodes.disk(member).join("older"));
    copy(&data, &older)?;
    nodes.launch(member)?;
    write(nodes, "key", "after")?;
    roles(nodes)?;
    let mut seen = Vec::new();
    for with in ["nothing", "an older directory"] {
        nodes.kill(member);
        fs::remove_dir_all(&data).map_err(|error| error.to_string())?;
        if with != "nothing" {
            copy(&older, &data)?;
        }
        // It may refuse to go on by itself.
        nodes.launch_or_end(member)?;
        let leader = nodes.leader()?;
        let other = third(nodes, member, leader);
        sleep(long(nodes));
        let mut client = nodes.client(leader, "quorum")?;
        nodes.stand_still(other);
        let reply = ask(&mut client, &["SET", "key", with], long(nodes));
        nodes.go_on(other);
        if matches!(&reply, Ok(reply) if *reply == ok()) {
            return Err(format!("a member with {with} helps to acknowledge a write"));
        }
        seen.push(format!("with {with}: {}", said(&reply)));
        read(nodes, "key")?;
    }
    nodes.replace(member)?;
    nodes.are_equal()?;
    Ok(seen.join("; "))
}

/// The largest file of the log.
fn segment(data: &Path) -> Result<PathBuf, String> {
    let mut found = Vec::new();
    let mut folders = vec![data.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| error.to_string())?.flatten() {
            let path = entry.path();
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => folders.push(path),
                Ok(meta) => found.push((meta.len(), path)),
                Err(_) => {}
            }
        }
    }
    found.retain(|(_, path)| path.to_string_lossy().contains("log"));
    found.sort();
    found.pop().map(|(_, path)| path).ok_or_else(|| "no file of a log".to_owned())
}

/// One member's disk has changed what was safe: that member must not go on as if nothing were, and
/// the others go on without it (NATS 2.12.1, Jepsen 2025: bit rot on a minority lost data).
pub(super) fn bit_rot_on_a_minority(nodes: &Nodes) -> Told {
    for key in 0..50 {
        write(nodes, &format!("key {key}"), &"value ".repeat(100))?;
    }
    let (_, others) = roles(nodes)?;
    let member = others[0];
    nodes.kill(member);
    let path = segment(&nodes.data(member))?;
    let mut bytes = fs::read(&path).map_err(|error| error.to_string())?;
    let needle = b"value value ";
    let at = bytes.windows(needle.len()).position(|window| window == needle);
    let at = at.ok_or_else(|| format!("{} has no value of a key", path.display()))?;
    bytes[at + 3] ^= 1;
    fs::write(&path, bytes).map_err(|error| error.to_string())?;
    let started = nodes.launch_or_end(member)?;
    write(nodes, "after", "1")?;
    for key in 0..50 {
        expect(nodes, &format!("key {key}"), Some(&"value ".repeat(100)))?;
    }
    if started && nodes.status(member).is_some_and(|status| status.fact("stopped").is_empty()) {
        return Err(format!("node {member} goes on with a damaged log: {}", path.display()));
    }
    let log = nodes.log_text(member);
    let last =
        log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
    nodes.replace(member)?;
    nodes.are_equal()?;
    Ok(format!("the member says: {last}; it was replaced"))
}
