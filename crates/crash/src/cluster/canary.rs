//! Proof that the check sees what it is for: clients that ask for less than `quorum` must be caught.

use super::clients::Work;
use super::nodes::{Nodes, Shape};
use std::thread::sleep;
use std::time::Duration;

/// Clients read and write at the gate `none`, and leaders stand still until others lead. Returns what
/// the judgement says of the first history that no order explains.
///
/// # Errors
/// All histories of so many rounds can be explained, or the cluster does not work.
pub fn canary(shape: &Shape, rounds: u64, clients: u64) -> Result<String, String> {
    let nodes = Nodes::start(shape)?;
    for round in 0..rounds {
        let name = format!("canary {round}");
        let work = Work::new(&nodes, &name, "none");
        work.during(clients, round, || {
            sleep(Duration::from_millis(300));
            let leader = nodes.leader()?;
            // It collects writes that nobody else gets to know.
            nodes.others(leader).iter().for_each(|&node| nodes.stand_still(node));
            sleep(nodes.failover() / 2);
            nodes.stand_still(leader);
            nodes.others(leader).iter().for_each(|&node| nodes.go_on(node));
            nodes.leader_among(&nodes.others(leader))?;
            nodes.go_on(leader);
            sleep(Duration::from_millis(300));
            Ok(())
        })?;
        work.read_all()?;
        if let Err(told) = work.judge() {
            return Ok(told);
        }
    }
    Err(format!("{rounds} rounds at the gate none, and nothing was lost"))
}
