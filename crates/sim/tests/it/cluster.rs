//! Clusters: seeds without trouble, and bugs that are put in and found.

use ladon_sim::{ClusterCanary, ClusterReport, run_cluster_seed};

/// Few, so that this takes seconds: `ladon-sim cluster` runs as many as one likes.
const SEEDS: u64 = 18;

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
    let caught =
        (0..SEEDS).find_map(|seed| run_cluster_seed(seed, ClusterCanary::EarlyQuorum).err());
    let trouble = caught.expect("an early quorum loses what was acknowledged");
    assert!(trouble.what.contains("lost") || trouble.what.contains("taken back"), "{trouble}");
}
