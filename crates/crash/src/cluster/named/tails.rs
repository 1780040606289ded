//! What a leader has written, and most others have not.

use super::{Told, ask, away, back, expect, long, ok, read, roles, said, write};
use crate::client::Client;
use crate::cluster::nodes::{Nodes, until};
use ladon_resp::client::Value;
use std::thread::sleep;
use std::time::Duration;

/// A leader with a tail that nobody else has, and the others, who do not hear it.
struct Tail {
    leader: usize,
    others: Vec<usize>,
}

/// These stand still. They may do so a little later than they are told to. What reaches their machine
/// meanwhile waits for them, so that a write at the leader may be kept or not.
fn still(nodes: &Nodes, who: &[usize]) {
    who.iter().for_each(|&node| nodes.stand_still(node));
    sleep(Duration::from_millis(50));
}

/// Writes `key` = `lost` at the leader alone, at a laxer gate.
fn lonely_write(nodes: &Nodes) -> Result<Tail, String> {
    write(nodes, "key", "before")?;
    let (leader, others) = roles(nodes)?;
    let mut loose = nodes.client(leader, "write")?;
    still(nodes, &others);
    let reply = loose.call(&["SET", "key", "lost"]);
    match &reply {
        Ok(reply) if *reply == ok() => Ok(Tail { leader, others }),
        _ => Err(format!("SET at gate write: {}", said(&reply))),
    }
}

/// The leader stands still and the others go on, until one of them leads; then the old one goes on.
fn others_lead(nodes: &Nodes, tail: &Tail) -> Result<usize, String> {
    nodes.stand_still(tail.leader);
    tail.others.iter().for_each(|&node| nodes.go_on(node));
    let next = nodes.leader_among(&tail.others)?;
    nodes.go_on(tail.leader);
    Ok(next)
}

fn starts(client: &mut Client, words: &[&str]) -> Result<(), String> {
    client.request(words).map_err(|error| error.to_string())
}

/// Nobody sees at `quorum` what is taken back later (Jepsen, Redis-Raft 1b3fbf6: aborted reads).
pub(super) fn aborted_read(nodes: &Nodes) -> Told {
    let tail = lonely_write(nodes)?;
    let mut reader = nodes.client(tail.leader, "quorum")?;
    starts(&mut reader, &["GET", "key"])?;
    sleep(nodes.failover() / 3);
    others_lead(nodes, &tail)?;
    let reply = reader.reply();
    let kept = read(nodes, "key")?;
    if said(&reply) == "lost" && kept.as_deref() != Some("lost") {
        return Err("a reader at quorum saw a write that was taken back".to_owned());
    }
    nodes.are_equal()?;
    expect(nodes, "key", kept.as_deref())?;
    Ok(format!("the reader was told: {}; kept: {kept:?}", said(&reply)))
}

/// A write is seen by a reader, then its leader dies with it (VoltDB 6.3, Jepsen 2016: dirty reads).
pub(super) fn dirty_read_then_lost(nodes: &Nodes) -> Told {
    write(nodes, "key", "before")?;
    let (leader, others) = roles(nodes)?;
    let (mut writer, mut reader) =
        (nodes.client(leader, "quorum")?, nodes.client(leader, "quorum")?);
    still(nodes, &others);
    starts(&mut writer, &["SET", "key", "dirty"])?;
    sleep(Duration::from_millis(20));
    let shown = ask(&mut reader, &["GET", "key"], nodes.failover() / 2);
    nodes.kill(leader);
    let written = writer.reply();
    others.iter().for_each(|&node| nodes.go_on(node));
    nodes.leader_among(&others)?;
    let kept = read(nodes, "key")?;
    if said(&shown) == "dirty" && kept.as_deref() != Some("dirty") {
        return Err(format!("a reader at quorum saw \"dirty\", and the key is {kept:?}"));
    }
    if matches!(&written, Ok(reply) if *reply == ok()) && kept.as_deref() != Some("dirty") {
        return Err(format!("the writer was told OK, and the key is {kept:?}"));
    }
    nodes.restore()?;
    nodes.are_equal()?;
    expect(nodes, "key", kept.as_deref())?;
    Ok(format!("the reader: {}; the writer: {}; kept: {kept:?}", said(&shown), said(&written)))
}

/// `WAIT` counts who has a write, and is no vote about it (Jepsen, "Redis", 2013; Redis' own
/// documentation). What it says at Ladon holds: on another member's disk is on most of three.
pub(super) fn wait_is_not_consensus(nodes: &Nodes) -> Told {
    let tail = lonely_write(nodes)?;
    let mut loose = nodes.client(tail.leader, "none")?;
    let alone = match loose.call(&["SET", "other", "lost"]) {
        Ok(reply) if reply == ok() => said(&loose.call(&["WAIT", "1", "100"])),
        reply => said(&reply),
    };
    if alone == "1" {
        return Err("WAIT counts a member that stands still".to_owned());
    }
    others_lead(nodes, &tail)?;
    nodes.are_equal()?;
    let mut counted = 0;
    for turn in 0..5 {
        let (leader, others) = roles(nodes)?;
        let mut loose = nodes.client(leader, "none")?;
        let value = turn.to_string();
        let set = loose.call(&["SET", "waited", &value]);
        let count = loose.call(&["WAIT", "1", "2000"]);
        nodes.kill(leader);
        nodes.leader_among(&others)?;
        if let (Ok(set), Ok(Value::Integer(1..))) = (&set, &count)
            && *set == ok()
        {
            expect(nodes, "waited", Some(&value))?;
            counted += 1;
        }
        nodes.launch(leader)?;
    }
    Ok(format!(
        "alone: WAIT said {alone}; of 5 writes, {counted} were counted, and none of those lost"
    ))
}

/// A leader that cannot reach most members must not confirm, also not after its own restart
/// (tarantool#9138).
pub(super) fn confirm_without_quorum(nodes: &Nodes) -> Told {
    write(nodes, "key", "before")?;
    let (leader, others) = roles(nodes)?;
    let mut writer = nodes.client(leader, "quorum")?;
    others.iter().for_each(|&node| nodes.kill(node));
    let first = ask(&mut writer, &["SET", "key", "unconfirmed"], long(nodes));
    nodes.kill(leader);
    nodes.launch(leader)?;
    let mut seen = said(&first);
    super::stays(long(nodes), || {
        let reply = nodes.ask_at_quorum(leader, &["GET", "key"], Duration::from_millis(300));
        seen = said(&reply);
        match reply {
            Ok(Value::Bulk(_) | Value::Null) => {
                Err(format!("a node alone answers at quorum after its restart: {seen}"))
            }
            _ => Ok(()),
        }
    })?;
    if matches!(&first, Ok(reply) if *reply == ok()) {
        return Err("a leader alone acknowledged a write at quorum".to_owned());
    }
    nodes.restore()?;
    let kept = read(nodes, "key")?;
    nodes.are_equal()?;
    Ok(format!("the writer: {}; after its restart: {seen}; kept: {kept:?}", said(&first)))
}

/// What was taken back at one member must not be confirmed at another, or to its writer
/// (tarantool#13085).
pub(super) fn rolled_back_and_confirmed(nodes: &Nodes) -> Told {
    write(nodes, "key", "before")?;
    let (leader, others) = roles(nodes)?;
    let mut writer = nodes.client(leader, "quorum")?;
    still(nodes, &others);
    starts(&mut writer, &["SET", "key", "undecided"])?;
    sleep(nodes.failover() / 3);
    others_lead(nodes, &Tail { leader, others })?;
    let reply = writer.reply();
    let kept = read(nodes, "key")?;
    nodes.are_equal()?;
    if matches!(&reply, Ok(reply) if *reply == ok()) && kept.as_deref() != Some("undecided") {
        return Err(format!("the writer was told OK, and the key is {kept:?}"));
    }
    sleep(long(nodes));
    expect(nodes, "key", kept.as_deref())?;
    Ok(format!("the writer: {}; kept: {kept:?}", said(&reply)))
}

/// An old leader with writes of its own comes back by itself, without an operator
/// (tarantool#10459: split brain, to be bootstrapped anew by hand).
pub(super) fn async_tail_breaks_rejoin(nodes: &Nodes) -> Told {
    let tail = lonely_write(nodes)?;
    others_lead(nodes, &tail)?;
    let is_kept = read(nodes, "key")?.as_deref() == Some("lost");
    write(nodes, "key", "after")?;
    nodes.are_equal()?;
    if !is_kept {
        until("the old leader to say what it took back", || {
            let status = nodes.status(tail.leader)?;
            (status.fact("rewinds") == "1").then_some(())
        })?;
    }
    // It can lead again.
    away(nodes, &[])?;
    let leader = nodes.leader()?;
    if leader != tail.leader {
        let (asked, to) =
            (nodes.address(leader).to_string(), nodes.address(tail.leader).to_string());
        nodes.cluster(&["failover", &asked, &to, "--timeout", "60"])?;
    }
    expect(nodes, "key", Some("after"))?;
    back(nodes)?;
    let tail = if is_kept { "found its tail kept" } else { "took back its tail" };
    Ok(format!("the old leader {tail}, followed, and led again"))
}

/// A leader with undecided writes restarts, and decides them otherwise than the others, or twice
/// (Tarantool: the owner of the limbo restarts).
pub(super) fn limbo_owner_restart(nodes: &Nodes) -> Told {
    const WRITES: usize = 5;
    let mut kept_lengths = Vec::new();
    for turn in 0..4 {
        let list = format!("list {turn}");
        write(nodes, "key", "before")?;
        let (leader, others) = roles(nodes)?;
        let mut writers = Vec::new();
        still(nodes, &others);
        for number in 0..WRITES {
            let mut writer = nodes.client(leader, "none")?;
            starts(&mut writer, &["CLIENT", "GATE", "quorum"])?;
            starts(&mut writer, &["RPUSH", &list, &number.to_string()])?;
            writers.push(writer);
            // The next one comes after it.
            sleep(Duration::from_millis(5));
        }
        nodes.kill(leader);
        if turn % 2 == 0 {
            others.iter().for_each(|&node| nodes.go_on(node));
            nodes.launch(leader)?;
        } else {
            // It is there first, and alone.
            nodes.launch(leader)?;
            let shown =
                nodes.ask_at_quorum(leader, &["LRANGE", &list, "0", "-1"], nodes.failover() * 2);
            if let Ok(Value::Array(_)) = shown {
                return Err(format!("alone after its restart, node {leader} shows {shown:?}"));
            }
            others.iter().for_each(|&node| nodes.go_on(node));
        }
        write(nodes, "key", "after")?;
        let kept = nodes.client(nodes.leader()?, "quorum")?.call(&["LRANGE", &list, "0", "-1"]);
        let Ok(Value::Array(kept)) = kept else {
            return Err(format!("LRANGE: {}", said(&kept)));
        };
        let wanted: Vec<Value> =
            (0..kept.len()).map(|number| Value::Bulk(number.to_string().into())).collect();
        if kept != wanted {
            return Err(format!("of writes 0 to {}, {kept:?} are kept", WRITES - 1));
        }
        for (number, writer) in writers.iter_mut().enumerate() {
            let told = writer.reply().and_then(|_| writer.reply());
            if matches!(told, Ok(Value::Integer(_))) && number >= kept.len() {
                return Err(format!(
                    "write {number} was acknowledged, and {} are kept",
                    kept.len()
                ));
            }
        }
        nodes.are_equal()?;
        kept_lengths.push(kept.len());
    }
    Ok(format!("of {WRITES} undecided writes, {kept_lengths:?} were kept, in their order"))
}
