//! Rounds on one cluster: clients work, something happens to the nodes, then all is judged.

use super::clients::{Tally, Work};
use super::faults::{self, Fault};
use super::nodes::{Nodes, Shape};
use ladon_testkit::Random;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Rounds of a cluster; then another one is made.
const ROUNDS_OF_A_CLUSTER: u64 = 25;

/// What to run.
#[derive(Clone, Debug)]
pub struct ClusterPlan {
    /// The cluster.
    pub shape: Shape,
    /// How many rounds at most.
    pub rounds: u64,
    /// No round begins after so long.
    pub time: Duration,
    /// Draws the faults, and what clients do.
    pub seed: u64,
    /// Clients at once.
    pub clients: u64,
    /// Only these faults, by their names; none: all.
    pub only: Vec<String>,
    /// Says what each round does.
    pub verbose: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct ClusterSummary {
    /// Rounds.
    pub rounds: u64,
    /// Of all rounds.
    pub tally: Tally,
}

/// Names of the faults that are possible.
#[must_use]
pub fn fault_names(in_namespaces: bool) -> Vec<String> {
    faults::possible(in_namespaces).into_iter().map(Fault::name).collect()
}

/// Runs rounds until one fails.
///
/// # Errors
/// What is wrong, with the round and its seed.
pub fn run_cluster(plan: &ClusterPlan) -> Result<ClusterSummary, String> {
    let possible = faults::possible(plan.shape.in_namespaces);
    let names = fault_names(plan.shape.in_namespaces);
    if let Some(unknown) = plan.only.iter().find(|only| !names.contains(only)) {
        return Err(format!("there is no fault {unknown} here (--list names them)"));
    }
    let is_wanted = |fault: &Fault| plan.only.is_empty() || plan.only.contains(&fault.name());
    let wanted: Vec<Fault> = possible.into_iter().filter(is_wanted).collect();
    let (began, mut summary) = (Instant::now(), ClusterSummary::default());
    let mut nodes = None;
    while summary.rounds < plan.rounds && began.elapsed() < plan.time {
        let round = summary.rounds;
        if round.is_multiple_of(ROUNDS_OF_A_CLUSTER) {
            drop(nodes.take());
            for node in 0..plan.shape.count {
                // Left by the cluster before.
                let _ = std::fs::remove_dir_all(plan.shape.dir.join(format!("node-{node}")));
            }
        }
        let cluster = match &nodes {
            Some(nodes) => nodes,
            None => nodes.insert(Nodes::start(&plan.shape)?),
        };
        let mut random = Random::stream(plan.seed, round);
        // Each in its turn, so that a short run has all.
        let at = (plan.seed.wrapping_add(round) % wanted.len() as u64) as usize;
        let fault = wanted[at];
        let told = |error| {
            let Shape { count, failover_ms, .. } = plan.shape;
            format!(
                "round {round} of seed {}, {count} nodes, failover-timeout {failover_ms}, fault {}: \
                 {error}",
                plan.seed,
                fault.name()
            )
        };
        let tally = one(cluster, plan, (round, fault), &mut random).map_err(told)?;
        if plan.verbose {
            println!(
                "round {round}: {}: {} known, {} of them by followers, {} unknown, {} undecided, \
                 pause {} ms, {:?}",
                fault.name(),
                tally.known,
                tally.by_followers,
                tally.unknown,
                tally.undecided,
                tally.pause.as_millis(),
                tally.refusals
            );
        }
        summary.rounds += 1;
        summary.tally.add(&tally);
    }
    Ok(summary)
}

fn one(
    nodes: &Nodes,
    plan: &ClusterPlan,
    (round, fault): (u64, Fault),
    random: &mut Random,
) -> Result<Tally, String> {
    let name = format!("round {round}");
    // Reads at followers are judged with all others.
    let work = Work::new(nodes, &name, "quorum").with_readers(plan.clients.div_ceil(3));
    let seed = random.next_u64();
    work.during(plan.clients, seed, || {
        sleep(Duration::from_millis(100 + random.below(400)));
        let happened = faults::happen(fault, nodes, random);
        let healed = faults::heal(nodes);
        happened.and(healed)?;
        nodes.leader()?;
        sleep(Duration::from_millis(100 + random.below(400)));
        Ok(())
    })?;
    work.read_all()?;
    let tally = work.judge()?;
    nodes.are_equal()?;
    nodes.look_for_alarms()?;
    Ok(tally)
}

impl Tally {
    /// Adds another one's numbers.
    pub(crate) fn add(&mut self, other: &Tally) {
        self.known += other.known;
        self.by_followers += other.by_followers;
        self.unknown += other.unknown;
        self.undecided += other.undecided;
        self.pause = self.pause.max(other.pause);
        for (word, count) in &other.refusals {
            *self.refusals.entry(word.clone()).or_default() += count;
        }
    }
}
