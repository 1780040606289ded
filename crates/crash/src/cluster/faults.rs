//! What happens to a cluster while clients work.

use super::nodes::Nodes;
use ladon_testkit::Random;
use std::fs;
use std::io::Write as _;
use std::thread::sleep;
use std::time::Duration;

/// A fault. Each begins, lasts a while, and is over at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `kill -9` of the leader, again and again.
    KillLeader,
    /// `kill -9` of a follower.
    KillFollower,
    /// `kill -9` of so many that no majority is left.
    KillMost,
    /// `kill -9` of all at once.
    KillAll,
    /// SIGSTOP of the leader, often for longer than its lease; then SIGCONT.
    StopLeader,
    StopFollower,
    /// SIGSTOP of all followers: nothing can be committed.
    StopFollowers,
    /// SIGSTOP of all, one after the other.
    StopAll,
    /// SIGTERM of the leader, which hands over first.
    EndLeader,
    /// `ladon cluster failover`.
    HandOver,
    /// Checkpoints of all members, and the death of one meanwhile.
    Checkpoint,
    /// A follower loses its directory, and is replaced.
    Wipe,
    /// The leader neither hears the others nor is heard by them; clients reach all.
    CutLeader,
    /// The leader is not heard by the others.
    MuteLeader,
    /// The leader does not hear the others.
    DeafLeader,
    CutFollower,
    /// Each node hears only some.
    CutSome,
    /// The leader's links are slow.
    Slow,
    /// The disk of the leader or a follower is full.
    FullDisk,
    /// Two or three of the others, one upon the other.
    Several,
}

use Fault::*;

const LOCAL: [Fault; 12] = [
    KillLeader,
    KillFollower,
    KillMost,
    KillAll,
    StopLeader,
    StopFollower,
    StopFollowers,
    StopAll,
    EndLeader,
    HandOver,
    Checkpoint,
    Wipe,
];
const OF_LINKS: [Fault; 7] =
    [CutLeader, MuteLeader, DeafLeader, CutFollower, CutSome, Slow, FullDisk];

/// Those that are possible.
pub(crate) fn possible(has_links: bool) -> Vec<Fault> {
    let links = if has_links { &OF_LINKS[..] } else { &[] };
    LOCAL.iter().chain(links).chain(&[Several]).copied().collect()
}

impl Fault {
    /// As the command line has it: `kill-leader`.
    pub(crate) fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.extend(letter.to_lowercase());
        }
        name
    }
}

fn pause(random: &mut Random, from_ms: u64, to_ms: u64) {
    sleep(Duration::from_millis(from_ms + random.below(to_ms - from_ms)));
}

/// A pause that is shorter than a failover, about as long, or longer.
fn while_away(nodes: &Nodes, random: &mut Random) {
    let failover = nodes.failover().as_millis() as u64;
    match random.below(3) {
        0 => pause(random, 1, failover),
        1 => pause(random, failover, 2 * failover),
        _ => pause(random, 2 * failover, 6 * failover),
    }
}

/// Begins it, lets it last, and ends it but for what [`heal`] does.
pub(crate) fn happen(fault: Fault, nodes: &Nodes, random: &mut Random) -> Result<(), String> {
    let leader = nodes.leader()?;
    let others = nodes.others(leader);
    let follower = random.pick(&others);
    match fault {
        KillLeader | KillFollower | KillMost | KillAll => die(fault, nodes, leader, random)?,
        StopLeader | StopFollower | StopFollowers | StopAll => {
            let who = match fault {
                StopLeader => vec![leader],
                StopFollower => vec![follower],
                StopFollowers => others,
                _ => (0..nodes.count()).collect(),
            };
            for &node in &who {
                nodes.stand_still(node);
                if random.chance(1, 3) {
                    pause(random, 1, 400);
                }
            }
            while_away(nodes, random);
            for &node in &who {
                nodes.go_on(node);
                if random.chance(1, 3) {
                    pause(random, 1, 800);
                }
            }
        }
        EndLeader => {
            nodes.terminate(leader)?;
            while_away(nodes, random);
            nodes.launch(leader)?;
        }
        HandOver => {
            for _ in 0..1 + random.below(3) {
                // On a busy machine it may not be possible now.
                let asked = nodes.address(follower).to_string();
                let _ = nodes.cluster(&["failover", &asked, "--timeout", "10"]);
                pause(random, 50, 500);
            }
        }
        Checkpoint => {
            for node in 0..nodes.count() {
                if let Ok(mut client) = nodes.client(node, "none") {
                    // One may be under way.
                    let _ = client.call(&["BGSAVE"]);
                }
            }
            pause(random, 1, 300);
            nodes.kill(random.pick(&[leader, follower]));
            pause(random, 100, 500);
            nodes.restore()?;
        }
        Wipe => nodes.replace(follower)?,
        CutLeader | MuteLeader | DeafLeader | CutFollower | CutSome => {
            cut(fault, nodes, leader, random)?;
            while_away(nodes, random);
            pause(random, 1, 1500);
            nodes.network.heal()?;
        }
        Slow => {
            nodes.network.slow(leader)?;
            pause(random, 500, 3000);
            nodes.network.heal()?;
        }
        FullDisk => {
            let node = random.pick(&[leader, follower]);
            fill(nodes, node)?;
            pause(random, 500, 3000);
            empty(nodes, node)?;
        }
        Several => several(nodes, random)?,
    }
    Ok(())
}

fn die(fault: Fault, nodes: &Nodes, leader: usize, random: &mut Random) -> Result<(), String> {
    let mut others = nodes.others(leader);
    match fault {
        KillLeader => {
            for _ in 0..1 + random.below(3) {
                let leader = nodes.leader()?;
                nodes.kill(leader);
                while_away(nodes, random);
                nodes.launch(leader)?;
            }
            return Ok(());
        }
        KillFollower => others.truncate(1),
        KillMost => others.truncate(nodes.count() / 2 + 1),
        _ => others.push(leader),
    }
    others.iter().for_each(|&node| nodes.kill(node));
    while_away(nodes, random);
    if random.chance(1, 2) {
        others.reverse();
    }
    for node in others {
        nodes.launch(node)?;
        if random.chance(1, 3) {
            pause(random, 1, 1000);
        }
    }
    Ok(())
}

fn cut(fault: Fault, nodes: &Nodes, leader: usize, random: &mut Random) -> Result<(), String> {
    let others = nodes.others(leader);
    let network = &nodes.network;
    let away = if fault == CutFollower { random.pick(&others) } else { leader };
    match fault {
        CutSome => {
            for from in 0..nodes.count() {
                for to in nodes.others(from) {
                    if random.chance(1, 3) {
                        network.cut(from, to)?;
                    }
                }
            }
        }
        _ => {
            for other in nodes.others(away) {
                if fault != DeafLeader {
                    network.cut(away, other)?;
                }
                if fault != MuteLeader {
                    network.cut(other, away)?;
                }
            }
        }
    }
    Ok(())
}

/// Two or three at once: some do not end before the next one begins.
fn several(nodes: &Nodes, random: &mut Random) -> Result<(), String> {
    for _ in 0..2 + random.below(2) {
        let Some(leader) = nodes.leader_now() else {
            pause(random, 1, 300);
            continue;
        };
        let other = random.below(nodes.count() as u64) as usize;
        let node = random.pick(&[leader, other]);
        match random.below(6) {
            0 | 1 => nodes.kill(node),
            2 => nodes.stand_still(node),
            3 if nodes.network.has_links() => cut(CutSome, nodes, leader, random)?,
            4 if nodes.network.has_links() => cut(CutLeader, nodes, leader, random)?,
            _ => drop(nodes.cluster(&[
                "failover",
                &nodes.address(leader).to_string(),
                "--timeout",
                "1",
            ])),
        }
        pause(random, 1, 1200);
        if random.chance(1, 2) {
            nodes.restore()?;
        }
        if random.chance(1, 2) {
            nodes.network.heal()?;
        }
    }
    Ok(())
}

/// Everything runs again, and hears each other.
pub(crate) fn heal(nodes: &Nodes) -> Result<(), String> {
    nodes.network.heal()?;
    for node in 0..nodes.count() {
        empty(nodes, node)?;
    }
    nodes.restore()
}

fn filler(nodes: &Nodes, node: usize) -> std::path::PathBuf {
    nodes.disk(node).join("filler")
}

/// Takes all that is left of a node's own disk.
pub(crate) fn fill(nodes: &Nodes, node: usize) -> Result<(), String> {
    if !nodes.network.has_links() {
        return Err("only a node with a disk of its own can have a full one".to_owned());
    }
    nodes.may_end(node);
    let mut file = fs::File::create(filler(nodes, node)).map_err(|error| error.to_string())?;
    let block = vec![1_u8; 1 << 20];
    while file.write_all(&block).is_ok() {}
    while file.write_all(&block[..512]).is_ok() {}
    Ok(())
}

/// The disk has room again.
pub(crate) fn empty(nodes: &Nodes, node: usize) -> Result<(), String> {
    match fs::remove_file(filler(nodes, node)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.to_string()),
        _ => Ok(()),
    }
}
