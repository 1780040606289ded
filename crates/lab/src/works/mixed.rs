//! The core workloads of the Yahoo! Cloud Serving Benchmark, A to F.

use super::figures::usual;
use crate::topology::Topology;
use crate::traffic::Asked;
use crate::traffic::keyed::Deed;
use crate::traffic::pick::Distribution;
use crate::work::{Part, Phase, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "mixed",
    title: "YCSB A to F",
    repeats: "the core workloads of YCSB (Cooper et al., SoCC 2010)",
    what: "Reads, updates, inserts, scans and read-modify-writes in YCSB's shares, keys by Zipf's law.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 9, seconds: 0.5 },
    plan,
};

/// YCSB's record: ten fields of a hundred bytes.
const VALUE_BYTES: usize = 1000;

fn plan(scale: &Scale) -> Plan {
    let users = scale.clients_or(&[100]).first().copied().unwrap_or(100);
    let value_bytes = scale.value_bytes_first(VALUE_BYTES);
    let zipf = scale.distribution.unwrap_or(Distribution::Zipf);
    let letters = [
        ("a", "half reads, half updates", vec![(50, Deed::Read), (50, Deed::Write)], zipf),
        ("b", "95 % reads, 5 % updates", vec![(95, Deed::Read), (5, Deed::Write)], zipf),
        ("c", "reads", vec![(100, Deed::Read)], zipf),
        (
            "f",
            "half reads, half read-modify-writes",
            vec![(50, Deed::Read), (50, Deed::ReadThenWrite)],
            zipf,
        ),
        (
            "d",
            "95 % reads of the latest, 5 % inserts",
            vec![(95, Deed::Read), (5, Deed::Insert)],
            Distribution::Latest,
        ),
        (
            "e",
            "95 % scans of up to 100, 5 % inserts",
            vec![(95, Deed::Scan { keys: 100 }), (5, Deed::Insert)],
            zipf,
        ),
    ];
    let (mut parts, mut steps) = (Vec::new(), Vec::new());
    steps.push(Step::Prepare(Asked::Fill {
        space: "ycsb",
        keys: scale.keys_or(100_000),
        value_bytes,
    }));
    for (letter, title, mix, distribution) in letters {
        parts.push(Part::new(
            letter,
            format!("{}: {title}, {users} users", letter.to_uppercase()),
            usual(),
        ));
        let asked = Asked::Keyed { space: "ycsb", mix, distribution };
        steps.push(Step::Measure(Phase::new(letter, users, asked)));
    }
    parts.sort_by(|left, right| left.name.cmp(&right.name));
    Plan { parts, steps }
}
