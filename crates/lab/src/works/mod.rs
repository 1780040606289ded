//! What the published comparisons measured, one small file each, as data; see [`crate::work`].

pub mod batch;
pub mod churn;
pub mod cluster;
pub mod connections;
pub mod counter;
pub mod durability;
pub mod eviction;
pub mod fairness;
pub mod figures;
pub mod growth;
pub mod handover;
pub mod index;
pub mod kv;
pub mod memory;
pub mod mixed;
pub mod pipeline;
pub mod publish;
pub mod replica;
pub mod scripts;
pub mod sets;
pub mod shared;
pub mod spaces;
pub mod sql;
pub mod stall;
pub mod types;
pub mod web;

use crate::work::Work;

/// All of them, in the order in which they are done.
pub static ALL: &[Work] = &[
    kv::WORK,
    counter::WORK,
    sets::WORK,
    durability::WORK,
    pipeline::WORK,
    batch::WORK,
    shared::WORK,
    connections::WORK,
    mixed::WORK,
    index::WORK,
    spaces::WORK,
    sql::WORK,
    replica::WORK,
    replica::BOTH_WAYS,
    cluster::WORK,
    web::WORK,
    types::WORK,
    scripts::WORK,
    publish::WORK,
    stall::WORK,
    fairness::WORK,
    handover::WORK,
    memory::WORK,
    stall::MORE,
    growth::WORK,
    eviction::WORK,
    churn::WORK,
];

/// Those that `all` leaves out: what they ask differs little from one version of a system to the
/// next, and they take long.
pub const BY_NAME_ONLY: [&str; 6] = ["spaces", "sql", "stall-more", "growth", "eviction", "churn"];

/// Those of `--quick`.
pub const QUICK: [&str; 4] = ["kv", "counter", "sets", "durability"];

/// The work of this name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Work> {
    ALL.iter().find(|work| work.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;
    use crate::work::{Phase, Scale, Step};

    #[test]
    fn every_step_has_its_part_and_every_part_its_step() {
        for small in [false, true] {
            let scale = Scale { small, connections_max: 10_000, ..Scale::default() };
            for work in ALL {
                let plan = (work.plan)(&scale);
                let mut shown: Vec<String> = Vec::new();
                for step in &plan.steps {
                    match step {
                        Step::Prepare(_) | Step::Load(_) => assert!(step.cells().is_empty()),
                        _ => shown.extend(step.cells().into_iter().map(|(part, _)| part)),
                    }
                }
                for part in &plan.parts {
                    assert!(shown.contains(&part.name), "{}: {} is empty", work.name, part.name);
                    assert!(!part.figures.is_empty(), "{}: {}", work.name, part.name);
                }
                for name in shown {
                    let known = plan.parts.iter().any(|part| part.name == name);
                    assert!(known, "{}: no part {name}", work.name);
                }
            }
        }
    }

    /// A slow-starting system is reused by the next work: what one wrote must not affect the other.
    #[test]
    fn works_on_single_nodes_have_keys_of_their_own() {
        let scale = Scale { connections_max: 10_000, ..Scale::default() };
        let mut seen = std::collections::BTreeMap::new();
        for work in ALL.iter().filter(|work| work.topology == Topology::Single) {
            for step in (work.plan)(&scale).steps {
                let (Step::Prepare(asked) | Step::Measure(Phase { asked, .. })) = step else {
                    continue;
                };
                let owner = *seen.entry(asked.space()).or_insert(work.name);
                assert_eq!(owner, work.name, "{}", asked.space());
            }
        }
        assert!(seen.len() > 8, "{seen:?}");
    }

    #[test]
    fn names_are_unique_and_the_quick_ones_exist() {
        for (index, work) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != work.name));
        }
        assert!(QUICK.iter().chain(&BY_NAME_ONLY).all(|name| by_name(name).is_some()));
    }

    #[test]
    fn nobody_is_asked_to_connect_more_than_can() {
        let scale = Scale { connections_max: 500, ..Scale::default() };
        assert_eq!(scale.clients_or(&[100, 3500]), [100]);
    }
}
