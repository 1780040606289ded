//! `ladon-sim [COUNT [FIRST]]`: runs seeds until one fails; the soak.

use ladon_sim::{Canary, Report, run_seed};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (count, first) = match (numbers.next(), numbers.next()) {
        (None, _) => (1_000_000, 0),
        (Some(Ok(count)), None) => (count, 0),
        (Some(Ok(count)), Some(Ok(first))) => (count, first),
        _ => {
            eprintln!("usage: ladon-sim [COUNT [FIRST SEED]]");
            return ExitCode::from(2);
        }
    };
    let begin = Instant::now();
    let mut total = Report::default();
    for seed in first..first.saturating_add(count) {
        match run_seed(seed, Canary::None) {
            Ok(report) => {
                total.add(&report);
                if report.undecided > 0 {
                    println!("seed {seed}: undecided");
                }
            }
            Err(trouble) => {
                eprintln!("{trouble}\nrepeat it with: ladon-sim 1 {seed}");
                return ExitCode::FAILURE;
            }
        }
        if (seed - first) % 10_000 == 9_999 {
            println!(
                "{} seeds in {:.0} s: {total:?}",
                seed - first + 1,
                begin.elapsed().as_secs_f64()
            );
        }
    }
    println!("{count} seeds, no trouble: {total:?}");
    ExitCode::SUCCESS
}
