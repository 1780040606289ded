//! Clusters: seeds without trouble, and bugs that are put in and found.

use ladon_sim::{ClusterCanary, ClusterReport, run_cluster_seed};

/// Few, so that this takes seconds: `ladon-sim cluster` runs as many as one likes.
const SEEDS: u64 = 18;
/// A planted bug is found among so many.
const CANARY_SEEDS: u64 = 100;

#[test]
fn clusters_without_trouble() {
    let mut total = ClusterReport::default();
    for seed in 0..SEEDS {
        match run_cluster_seed(seed, ClusterCanary::None) {
            Ok(report) => total.add(&report),
            Err(trouble) => panic!("{trouble}"),
        }
    }
    // The schedule must be worth something.
    assert!(total.quorum_answers > SEEDS * 4, "{total:?}");
    assert!(total.reigns > SEEDS, "{total:?}");
    assert!(total.kills + total.power_cuts > SEEDS, "{total:?}");
    assert!(total.checkpoints > 0, "{total:?}");
}

#[test]
fn what_only_the_leader_has_is_not_committed() {
    // It may upset the library first, which ends otherwise.
    let is_it = |what: &str| what.contains("lost") || what.contains("taken back");
    let caught = (0..CANARY_SEEDS).find_map(|seed| {
        let trouble = run_cluster_seed(seed, ClusterCanary::EarlyQuorum).err()?;
        is_it(&trouble.what).then_some(trouble)
    });
    assert!(caught.is_some(), "an early quorum loses what was acknowledged");
}
