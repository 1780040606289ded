//! What those who only follow answer.

use super::{Told, away, back, long, may_lose, ok, roles, said, send_all, write};
use crate::client::Client;
use crate::cluster::clients::first_word;
use crate::cluster::nodes::Nodes;
use ladon_resp::client::Value;
use std::collections::BTreeMap;
use std::thread::sleep;

/// How a follower loses the others.
#[derive(Clone, Copy)]
enum Lost {
    StandsStill,
    /// Nothing passes, either way.
    CutOff,
    /// It hears the others, and they do not hear it.
    Mute,
    /// They hear it, and it does not hear them.
    Deaf,
}

impl Lost {
    fn of(turn: usize, nodes: &Nodes) -> Lost {
        match turn % 4 {
            _ if !nodes.network.has_links() => Lost::StandsStill,
            0 => Lost::CutOff,
            1 => Lost::StandsStill,
            2 => Lost::Mute,
            _ => Lost::Deaf,
        }
    }

    fn begin(self, nodes: &Nodes, node: usize) -> Result<(), String> {
        let others = nodes.others(node);
        match self {
            Lost::StandsStill => nodes.stand_still(node),
            Lost::CutOff => away(nodes, &[node])?,
            Lost::Mute => others.iter().try_for_each(|&other| nodes.network.cut(node, other))?,
            Lost::Deaf => others.iter().try_for_each(|&other| nodes.network.cut(other, node))?,
        }
        Ok(())
    }
}

/// A member that the others cannot reach answers reads by itself, with what was so before (VoltDB 6.3,
/// Jepsen 2016: stale reads, since reads were served by any copy).
pub(super) fn stale_local_read(nodes: &Nodes) -> Told {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for turn in 0..8 {
        let (old, new) = (format!("old {turn}"), format!("new {turn}"));
        write(nodes, "key", &old)?;
        let (_, others) = roles(nodes)?;
        let follower = others[turn % others.len()];
        let mut reader = nodes.client(follower, "quorum")?;
        reader.stream().set_read_timeout(Some(long(nodes))).map_err(may_lose)?;
        let lost = Lost::of(turn, nodes);
        lost.begin(nodes, follower)?;
        if turn >= 4 {
            // It knows by now; otherwise it may not.
            sleep(nodes.failover() * 2);
        }
        if !is_written(nodes, follower, &new)? {
            back(nodes)?;
            continue;
        }
        nodes.go_on(follower);
        let reply = said(&reader.call(&["GET", "key"]));
        back(nodes)?;
        if reply == old {
            return Err(format!(
                "node {follower} shows {reply:?} at quorum; {new:?} was acknowledged"
            ));
        }
        *seen.entry(first_word(&reply).to_owned()).or_default() += 1;
        nodes.are_equal()?;
    }
    Ok(format!("followers that had lost the others said {seen:?}"))
}

/// Writes at `quorum` without this one: whether it was acknowledged.
fn is_written(nodes: &Nodes, without: usize, value: &str) -> Result<bool, String> {
    let leader = nodes.leader_among(&nodes.others(without))?;
    let mut writer = nodes.client(leader, "quorum")?;
    Ok(matches!(writer.call(&["SET", "key", value]), Ok(reply) if reply == ok()))
}

/// A pipeline at a follower while leaders change: a reply belongs to another request (Redis-Raft
/// 1b3fbf6, Jepsen: with its proxy for followers, clients got replies to other requests).
pub(super) fn reply_to_another_request(nodes: &Nodes) -> Told {
    for key in 0..KEYS {
        write(nodes, &format!("key {key}"), &format!("value {key}"))?;
    }
    let mut got = Got::default();
    for turn in 0..6 {
        let (leader, others) = roles(nodes)?;
        let mut readers = others
            .iter()
            .map(|&node| nodes.client(node, "quorum"))
            .collect::<Result<Vec<Client>, String>>()?;
        let all: Vec<_> =
            (0..KEYS).map(|key| vec!["GET".to_owned(), format!("key {key}")]).collect();
        for burst in 0..BURSTS {
            readers.iter_mut().try_for_each(|reader| send_all(reader, &all))?;
            match (burst, turn % 2) {
                (8, 0) => nodes.kill(leader),
                (8, _) => nodes.stand_still(leader),
                _ => {}
            }
        }
        readers.iter_mut().try_for_each(|reader| got.take(reader))?;
        nodes.restore()?;
        nodes.are_equal()?;
    }
    match got.values {
        0 => Err(format!("no follower answered at quorum: {:?}", got.errors)),
        values => Ok(format!("{values} values, each that of its key, and errors {:?}", got.errors)),
    }
}

const KEYS: usize = 50;
/// So often all keys are asked for, in one pipeline.
const BURSTS: usize = 20;

#[derive(Default)]
struct Got {
    values: usize,
    /// How many began with that word.
    errors: BTreeMap<String, usize>,
}

impl Got {
    /// Takes the replies to all bursts, as far as they come.
    fn take(&mut self, reader: &mut Client) -> Result<(), String> {
        for key in (0..BURSTS).flat_map(|_| 0..KEYS) {
            match reader.reply() {
                Ok(Value::Bulk(text)) if text == format!("value {key}").as_bytes() => {
                    self.values += 1;
                }
                Ok(Value::Error(text)) => {
                    let text = String::from_utf8_lossy(&text);
                    let word = first_word(&text).to_owned();
                    *self.errors.entry(word).or_default() += 1;
                }
                Ok(other) => return Err(format!("GET of key {key} was answered {other:?}")),
                // Closed, or nothing for long: no reply is not a wrong one.
                Err(_) => break,
            }
        }
        Ok(())
    }
}
