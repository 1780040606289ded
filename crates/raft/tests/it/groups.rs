//! What a group has committed stays, whatever happens to fewer than half of its members, and also
//! if all of them lose their power.
//!
//! Oracle: whatever one member has applied at an index, every other member applies there, too:
//! the same entry with the same records; and when all is well again, all come to agree and go on.
//! `LADON_SEED=n` replays one story, `LADON_SEEDS=n` sets how many. The harness works: bugs that
//! are planted are caught.

use crate::world::World;
use ladon_raft::Planted;

fn live(seed: u64, planted: Planted) -> Result<(usize, usize), String> {
    let mut world = World::new(seed, [3, 3, 5, 1, 2][seed as usize % 5], planted);
    for _ in 0..3_000 {
        world.step()?;
    }
    world.settle()?;
    Ok((world.agreed(), world.reigns()))
}

fn seeds(otherwise: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
    match number("LADON_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LADON_SEEDS").unwrap_or(otherwise),
    }
}

#[test]
fn what_is_committed_stays() {
    let (mut entries, mut reigns) = (0, 0);
    for seed in seeds(60) {
        let told =
            live(seed, Planted::Nothing).map_err(|trouble| format!("LADON_SEED={seed}: {trouble}"));
        let told = told.unwrap();
        (entries, reigns) = (entries + told.0, reigns + told.1);
    }
    println!("{entries} entries of {reigns} reigns");
    assert!(entries > 0 && reigns > 0);
}

#[test]
fn the_same_seed_tells_the_same_story() {
    assert_eq!(live(7, Planted::Nothing), live(7, Planted::Nothing));
}

#[test]
fn planted_bugs_are_caught() {
    for planted in [Planted::AckBeforeSync, Planted::VoteNotSaved] {
        let caught = (0..400).find_map(|seed| live(seed, planted).err().map(|told| (seed, told)));
        println!("{planted:?}: {caught:?}");
        assert!(caught.is_some(), "{planted:?} was not noticed");
    }
}
