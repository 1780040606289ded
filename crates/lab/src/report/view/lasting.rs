//! How many rounds a run had, and how long its measurements were: works differ in both.

use super::number::digits;
use crate::results::Results;
use crate::results::merge::most_rounds;

/// `7 to 12 interleaved rounds, measurements of 0.5 to 2 s`.
#[must_use]
pub fn lasting(run: &Results) -> String {
    let all = run.works.iter().map(most_rounds).filter(|&rounds| rounds > 0);
    let least = all.min().unwrap_or(run.rounds);
    let rounds = if least < run.rounds {
        format!("{least} to {} interleaved rounds", run.rounds)
    } else if run.rounds == 1 {
        "1 round".to_owned()
    } else {
        format!("{} interleaved rounds", run.rounds)
    };
    let of_budget = run.budget.as_ref().map_or(0.0, |budget| budget.seconds_max);
    let longest = run.seconds_max.max(of_budget);
    let seconds = if longest > run.seconds {
        format!("{} to {}", digits(run.seconds), digits(longest))
    } else {
        digits(run.seconds)
    };
    format!("{rounds}, measurements of {seconds} s")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Outcome, PartResult, Round, WorkResult};

    #[test]
    fn works_differ_in_rounds_and_seconds() {
        let work = |rounds: usize| {
            let cell = Cell {
                outcome: Outcome::Measured { rounds: vec![Round::default(); rounds] },
                system: String::new(),
                setting: String::new(),
                x: None,
            };
            let part = PartResult { cells: vec![cell], ..PartResult::default() };
            WorkResult { parts: vec![part], ..WorkResult::default() }
        };
        let run = |works: &[usize], seconds_max| Results {
            works: works.iter().map(|&rounds| work(rounds)).collect(),
            rounds: *works.iter().max().unwrap() as u32,
            seconds: 0.5,
            seconds_max,
            ..Results::default()
        };
        assert_eq!(
            lasting(&run(&[7, 12, 0], 2.0)),
            "7 to 12 interleaved rounds, measurements of 0.50 to 2 s"
        );
        assert_eq!(lasting(&run(&[1], 0.5)), "1 round, measurements of 0.50 s");
    }
}
