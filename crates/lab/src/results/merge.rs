//! Several runs as one: of the same machine and the same programs their rounds add up, of different
//! ones they stay apart, each with its own systems, machine and winners.
//!
//! **Invariant:** rounds are only ever compared with rounds of the same run. Where runs add up, a
//! cell that one of them lacks gets absent rounds, so that an index still means one moment in time.

use super::schema::{Cell, Outcome, PartResult, Results, Round, SystemRecord, WorkResult};

/// Merges what belongs together, in the order given.
#[must_use]
pub fn merge(runs: Vec<Results>) -> Vec<Results> {
    let mut merged: Vec<Results> = Vec::new();
    for run in runs {
        match merged.iter_mut().find(|earlier| comparable(earlier, &run)) {
            Some(earlier) => add(earlier, run),
            None => merged.push(run),
        }
    }
    merged
}

/// Whether figures of the two may be in one table: one machine, one layout, one lab, and no program
/// or setting that differs under the same name.
fn comparable(a: &Results, b: &Results) -> bool {
    let machine = |results: &Results| {
        let machine = &results.machine;
        (machine.cpu_model.clone(), machine.cores, machine.memory_bytes, machine.kernel.clone())
    };
    machine(a) == machine(b)
        && a.cores == b.cores
        // A budget fills stores with fewer keys.
        && a.budget.is_some() == b.budget.is_some()
        // Other users, keys or tools are another load.
        && a.load == b.load
        && a.lab_version == b.lab_version
        && a.price_per_hour == b.price_per_hour
        && b.systems.iter().all(|system| {
            let other = a.systems.iter().find(|other| other.name == system.name);
            other.is_none_or(|other| same_program(other, system))
        })
}

fn same_program(a: &SystemRecord, b: &SystemRecord) -> bool {
    if a.missing.is_some() || b.missing.is_some() {
        return true;
    }
    a.version == b.version
        && b.settings.iter().all(|setting| {
            let other = a.settings.iter().find(|other| other.name == setting.name);
            other.is_none_or(|other| other.promise == setting.promise)
        })
}

fn add(to: &mut Results, from: Results) {
    to.started_unix = to.started_unix.min(from.started_unix);
    to.finished_unix = to.finished_unix.max(from.finished_unix);
    to.partial |= from.partial;
    let (least, most) = (to.seconds.min(from.seconds), longest(to).max(longest(&from)));
    // Results of before both were kept had one length.
    (to.seconds, to.seconds_max) = (least, if most > least { most } else { to.seconds_max });
    to.command_line.push("+".to_owned());
    to.command_line.extend(from.command_line);
    for system in from.systems {
        match to.systems.iter_mut().find(|mine| mine.name == system.name) {
            Some(mine) if mine.missing.is_some() => *mine = system,
            Some(mine) => {
                for setting in system.settings {
                    if !mine.settings.iter().any(|known| known.name == setting.name) {
                        mine.settings.push(setting);
                    }
                }
            }
            None => to.systems.push(system),
        }
    }
    for work in from.works {
        match to.works.iter_mut().find(|mine| mine.work == work.work) {
            Some(mine) => add_parts(mine, work),
            None => to.works.push(work),
        }
    }
    to.rounds = to.works.iter().map(most_rounds).max().unwrap_or(0);
}

fn longest(run: &Results) -> f64 {
    run.seconds_max.max(run.seconds)
}

/// The rounds of the part that had most.
#[must_use]
pub fn most_rounds(work: &WorkResult) -> u32 {
    let cells = work.parts.iter().flat_map(|part| &part.cells);
    let most = cells.map(|cell| cell.rounds().len()).max().unwrap_or(0);
    u32::try_from(most).unwrap_or(u32::MAX)
}

fn add_parts(to: &mut WorkResult, from: WorkResult) {
    for part in from.parts {
        match to.parts.iter_mut().find(|mine| mine.part == part.part) {
            Some(mine) => add_cells(mine, part),
            None => to.parts.push(part),
        }
    }
}

fn add_cells(to: &mut PartResult, from: PartResult) {
    let longest = |part: &PartResult| part.cells.iter().map(|cell| cell.rounds().len()).max();
    let (mine, theirs) = (longest(to).unwrap_or(0), longest(&from).unwrap_or(0));
    for cell in &mut to.cells {
        pad(cell, mine);
    }
    for mut cell in from.cells {
        pad(&mut cell, theirs);
        let same = |known: &&mut Cell| {
            known.system == cell.system && known.setting == cell.setting && known.x == cell.x
        };
        match to.cells.iter_mut().find(same) {
            Some(known) => match (&mut known.outcome, cell.outcome) {
                (Outcome::Measured { rounds }, Outcome::Measured { rounds: more }) => {
                    rounds.extend(more);
                }
                (known @ Outcome::Empty { .. }, Outcome::Measured { rounds: more }) => {
                    *known = Outcome::Measured { rounds: absent(mine).chain(more).collect() };
                }
                (_, Outcome::Empty { .. }) => {}
            },
            None => {
                if let Outcome::Measured { rounds } = &mut cell.outcome {
                    rounds.splice(0..0, absent(mine));
                }
                to.cells.push(cell);
            }
        }
    }
    for figure in from.figures {
        if !to.figures.iter().any(|known| known.key == figure.key) {
            to.figures.push(figure);
        }
    }
}

fn pad(cell: &mut Cell, count: usize) {
    if let Outcome::Measured { rounds } = &mut cell.outcome {
        let lacking = count.saturating_sub(rounds.len());
        rounds.extend(absent(lacking));
    }
}

/// Rounds without figures.
fn absent(count: usize) -> impl Iterator<Item = Round> {
    std::iter::repeat_with(|| Round::new(f64::NAN, 0)).take(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(system: &str, figures: &[f64]) -> Cell {
        let round = |&per_second: &f64| Round { per_second, ..Round::default() };
        Cell {
            system: system.to_owned(),
            setting: "none".to_owned(),
            x: None,
            outcome: Outcome::Measured { rounds: figures.iter().map(round).collect() },
        }
    }

    fn run(work: &str, version: &str, cells: Vec<Cell>) -> Results {
        let system = |name: &str| SystemRecord {
            name: name.to_owned(),
            version: Some(version.to_owned()),
            ..SystemRecord::default()
        };
        let part = PartResult { part: "get".to_owned(), cells, ..PartResult::default() };
        Results {
            systems: vec![system("a"), system("b")],
            works: vec![WorkResult {
                work: work.to_owned(),
                parts: vec![part],
                ..WorkResult::default()
            }],
            ..Results::default()
        }
    }

    fn figures(results: &Results, system: &str) -> Vec<Option<f64>> {
        let cells = &results.works[0].parts[0].cells;
        let cell = cells.iter().find(|cell| cell.system == system).unwrap();
        cell.rounds().iter().map(|round| round.figure("per_second")).collect()
    }

    #[test]
    fn rounds_of_equal_runs_add_up() {
        let merged = merge(vec![
            run("kv", "1", vec![cell("a", &[1.0, 2.0])]),
            run("kv", "1", vec![cell("a", &[3.0])]),
        ]);
        assert_eq!(merged.len(), 1);
        assert_eq!(figures(&merged[0], "a"), [Some(1.0), Some(2.0), Some(3.0)]);
    }

    /// System b was not in the first run: its rounds must not be compared with that run's.
    #[test]
    fn an_index_still_means_one_moment() {
        let merged = merge(vec![
            run("kv", "1", vec![cell("a", &[1.0, 2.0])]),
            run("kv", "1", vec![cell("b", &[30.0]), cell("a", &[3.0])]),
            run("kv", "1", vec![cell("b", &[40.0])]),
        ]);
        assert_eq!(figures(&merged[0], "a"), [Some(1.0), Some(2.0), Some(3.0)]);
        assert_eq!(figures(&merged[0], "b"), [None, None, Some(30.0), Some(40.0)]);
    }

    #[test]
    fn other_works_stand_side_by_side() {
        let merged = merge(vec![run("kv", "1", vec![]), run("sets", "1", vec![])]);
        assert_eq!(merged.len(), 1);
        let works: Vec<&str> = merged[0].works.iter().map(|work| work.work.as_str()).collect();
        assert_eq!(works, ["kv", "sets"]);
    }

    #[test]
    fn what_differs_stays_apart() {
        let mut elsewhere = run("kv", "1", vec![cell("a", &[5.0])]);
        elsewhere.machine.cpu_model = "another".to_owned();
        let mut fewer_keys = run("kv", "1", vec![cell("a", &[6.0])]);
        fewer_keys.load.insert("--keys".to_owned(), "1000".to_owned());
        let merged = merge(vec![
            run("kv", "1", vec![cell("a", &[1.0])]),
            run("kv", "2", vec![cell("a", &[2.0])]),
            elsewhere,
            fewer_keys,
        ]);
        assert_eq!(merged.len(), 4);
        assert_eq!(figures(&merged[1], "a"), [Some(2.0)]);
    }

    #[test]
    fn a_system_found_later_replaces_its_absence() {
        let mut first = run("kv", "1", vec![]);
        first.systems[1] = SystemRecord {
            name: "b".to_owned(),
            missing: Some(super::super::MissingRecord::default()),
            ..SystemRecord::default()
        };
        first.works[0].parts[0].cells.push(Cell {
            outcome: Outcome::Empty { reason: "not installed".to_owned() },
            ..cell("b", &[])
        });
        let merged = merge(vec![first, run("kv", "1", vec![cell("b", &[4.0])])]);
        assert_eq!(merged.len(), 1);
        assert!(merged[0].systems[1].missing.is_none());
        assert_eq!(figures(&merged[0], "b"), [Some(4.0)]);
    }
}
