//! Leaders that come and go.

use super::{Told, ask, away, back, expect, long, ok, read, roles, said, send_all, told, write};
use crate::cluster::clients::first_word;
use crate::cluster::nodes::Nodes;
use ladon_resp::client::Value;
use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

/// A failover must not lose what was acknowledged: a new leader of Redis-Raft had no data at all
/// (redisraft#14; Jepsen, Redis-Raft 1b3fbf6, 2020).
pub(super) fn failover_loses_all(nodes: &Nodes) -> Told {
    for turn in 0..6 {
        for key in 0..20 {
            write(nodes, &format!("{turn}:{key}"), "kept")?;
        }
        let leader = nodes.leader()?;
        match turn % 3 {
            0 => nodes.kill(leader),
            1 => nodes.terminate(leader)?,
            _ => nodes.stand_still(leader),
        }
        nodes.leader_among(&nodes.others(leader))?;
        for before in 0..=turn {
            for key in 0..20 {
                expect(nodes, &format!("{before}:{key}"), Some("kept"))?;
            }
        }
        nodes.restore()?;
        nodes.are_equal()?;
    }
    Ok("six failovers, 120 writes, none lost".to_owned())
}

/// A leader that does not know yet that another one leads must not answer reads at `quorum` (Jepsen,
/// Redis-Raft 1b3fbf6: stale reads; etcd before 3.4).
pub(super) fn stale_read_by_old_leader(nodes: &Nodes) -> Told {
    let mut seen = BTreeSet::new();
    for turn in 0..5 {
        write(nodes, "key", &format!("old {turn}"))?;
        let (leader, others) = roles(nodes)?;
        let mut client = nodes.client(leader, "quorum")?;
        // By the client's own socket, from before; nothing is asked of anybody else.
        if nodes.network.has_links() && turn % 2 == 0 {
            away(nodes, &[leader])?;
        } else {
            nodes.stand_still(leader);
        }
        let next = nodes.leader_among(&others)?;
        let mut writer = nodes.client(next, "quorum")?;
        let written = writer.call(&["SET", "key", &format!("new {turn}")]);
        if !matches!(&written, Ok(reply) if *reply == ok()) {
            back(nodes)?;
            continue;
        }
        nodes.go_on(leader);
        let reply = ask(&mut client, &["GET", "key"], Duration::from_secs(2));
        let text = said(&reply);
        back(nodes)?;
        if text == format!("old {turn}") {
            return Err(format!(
                "node {leader} shows {text:?} at quorum; node {next} has a newer one"
            ));
        }
        seen.insert(first_word(&text).to_owned());
        nodes.are_equal()?;
    }
    Ok(format!("old leaders said {seen:?}"))
}

/// A leader without most of the others must not acknowledge: Redis with Sentinel lost 56 % of the
/// acknowledged writes of a partition (Jepsen, "Redis", 2013).
pub(super) fn minority_master_acks(nodes: &Nodes) -> Told {
    write(nodes, "key", "before")?;
    let (leader, others) = roles(nodes)?;
    let mut quorum = nodes.client(leader, "quorum")?;
    let mut loose = nodes.client(leader, "write")?;
    away(nodes, &others)?;
    quorum.request(&["SET", "key", "at quorum"]).map_err(super::may_lose)?;
    let mut refused = None;
    let (mut count, until) = (0, std::time::Instant::now() + long(nodes));
    while refused.is_none() && std::time::Instant::now() < until {
        match loose.call(&["INCR", "loose"]) {
            Ok(Value::Integer(_)) => count += 1,
            Ok(Value::Error(text)) => refused = Some(String::from_utf8_lossy(&text).into_owned()),
            other => return Err(format!("INCR: {other:?}")),
        }
        sleep(Duration::from_millis(10));
    }
    let refused = refused.ok_or_else(|| {
        format!("a leader alone takes writes at a laxer gate for {:?}", long(nodes))
    })?;
    quorum.stream().set_read_timeout(Some(nodes.failover())).map_err(super::may_lose)?;
    let reply = quorum.reply();
    if matches!(&reply, Ok(reply) if *reply == ok()) {
        return Err("a leader alone acknowledges at quorum".to_owned());
    }
    back(nodes)?;
    write(nodes, "key", "after")?;
    nodes.are_equal()?;
    Ok(format!("at quorum: {}; at write: {count} taken, then {refused}", said(&reply)))
}

/// All start at once, and two call themselves masters and take writes (redis#13658, Sentinel).
pub(super) fn restart_all_two_masters(nodes: &Nodes) -> Told {
    let mut last = 0;
    for _ in 0..4 {
        (0..nodes.count()).for_each(|node| nodes.kill(node));
        nodes.restore()?;
        let mut counted = 0;
        let began = std::time::Instant::now();
        while counted < 20 {
            if began.elapsed() > crate::cluster::nodes::PATIENCE {
                return Err(format!("only {counted} writes after all have started"));
            }
            for node in 0..nodes.count() {
                if nodes.status(node).is_none_or(|status| status.fact("role") != "leader") {
                    continue;
                }
                let reply = nodes.client(node, "quorum")?.call(&["INCR", "count"]);
                if let Ok(Value::Integer(count)) = reply {
                    if count <= last {
                        return Err(format!("node {node} counts {count} after {last}"));
                    }
                    (last, counted) = (count, counted + 1);
                }
            }
        }
    }
    nodes.are_equal()?;
    Ok(format!("four restarts of all; the count rose to {last}"))
}

/// A follower, and then its leader, restart in quick succession: Kafka's replicas cut what was
/// committed, or diverged (KIP-101, KIP-279).
pub(super) fn kip101_double_restart(nodes: &Nodes) -> Told {
    for turn in 0..8 {
        let value = turn.to_string();
        write(nodes, "key", &value)?;
        let leader = nodes.leader()?;
        let others = nodes.others(leader);
        // What this one has is written, and not known to be committed there.
        nodes.kill(others[turn % others.len()]);
        write(nodes, "second", &value)?;
        nodes.kill(leader);
        nodes.launch(others[turn % others.len()])?;
        if turn % 2 == 0 {
            nodes.leader()?;
        }
        nodes.launch(leader)?;
        expect(nodes, "key", Some(&value))?;
        expect(nodes, "second", Some(&value))?;
        nodes.are_equal()?;
    }
    Ok("eight double restarts, nothing lost, all equal".to_owned())
}

/// A node whose log cannot be replayed ends at every start (redisraft: crash loops after snapshots;
/// Jepsen, Redis-Raft 1b3fbf6).
pub(super) fn crash_loop_on_replay(nodes: &Nodes) -> Told {
    for turn in 0..5 {
        let leader = nodes.leader()?;
        let mut client = nodes.client(leader, "quorum")?;
        for command in [
            &["SET", "key", "1", "EX", "1000"][..],
            &["EVAL", "redis.call('INCR', 'n') redis.call('RPUSH', 'list', 'x')", "0"],
            &["XADD", "stream", "*", "field", "value"],
            &["HSET", "hash", "a", "1", "b", "2"],
            &["HPEXPIRE", "hash", "100", "FIELDS", "1", "a"],
            &["ZADD", "zset", "1", "a"],
            &["FLUSHALL"],
            &["SETRANGE", "text", "5000", "x"],
        ] {
            let reply = client.call(command).map_err(super::may_lose)?;
            if reply.is_error() {
                return Err(format!("{command:?}: {}", told(&reply)));
            }
        }
        if turn % 2 == 1 {
            // One may be under way.
            let _ = client.call(&["BGSAVE"]);
        }
        (0..nodes.count()).for_each(|node| nodes.kill(node));
        for node in 0..nodes.count() {
            nodes.launch(node)?;
        }
        nodes.are_equal()?;
        read(nodes, "key")?;
    }
    Ok("all were killed and started five times, checkpoints between".to_owned())
}

/// All die while writes are under way; one of them is in the data twice after that, or half (VoltDB 6.3:
/// a command log whose commands could be replayed twice).
pub(super) fn replay_twice(nodes: &Nodes) -> Told {
    const BURST: usize = 200;
    const STEP: &str = "redis.call('RPUSH', 'list', redis.call('INCR', 'count'))";
    let (mut least, mut most) = (0, 0);
    for turn in 0..6 {
        let (leader, _) = roles(nodes)?;
        let mut client = nodes.client(leader, "quorum")?;
        send_all(&mut client, &vec![vec!["EVAL", STEP, "2", "list", "count"]; BURST])?;
        if turn % 2 == 1 {
            // A checkpoint between the two.
            let _ = nodes.client(leader, "none")?.call(&["BGSAVE"]);
        }
        let acknowledged = (0..BURST * (turn + 1) / 8)
            .take_while(|_| client.reply().is_ok_and(|it| !it.is_error()));
        least += acknowledged.count();
        most += BURST;
        (0..nodes.count()).for_each(|node| nodes.kill(node));
        nodes.restore()?;
        let count = read(nodes, "count")?.unwrap_or_default();
        let found: usize = count.parse().map_err(|_| format!("the count is {count:?}"))?;
        if !(least..=most).contains(&found) {
            return Err(format!("{found} were counted; {least} acknowledged, {most} asked for"));
        }
        (least, most) = (found, found);
        nodes.are_equal()?;
        let list = nodes.client(nodes.leader()?, "quorum")?.call(&["LRANGE", "list", "0", "-1"]);
        let wanted = (1..=found).map(|item| Value::Bulk(item.to_string().into())).collect();
        if !matches!(&list, Ok(list) if *list == Value::Array(wanted)) {
            return Err(format!("the list is not 1 to {found}: {}", said(&list)));
        }
    }
    Ok(format!("all died six times; {least} steps, each once and whole"))
}
