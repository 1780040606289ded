//! Round after round until something differs.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::time::Duration;

use super::duel::{Difference, Duel};
use super::generate::Round;
use super::grammar::Family;
use super::shrink::shrink;

/// How long a printed line may be, in characters.
const LINE_MAX: usize = 700;

/// What to look for, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Hunt {
    /// The first round's seed; the others have those that follow.
    pub seed: u64,
    /// How many requests to send, at least.
    pub commands: usize,
    /// How many requests a round has.
    pub length: usize,
    /// Ends after so many different differences.
    pub differences: usize,
}

/// A difference, with the least that shows it.
#[derive(Clone, Debug)]
pub struct Found {
    seed: u64,
    length: usize,
    round: Round,
    difference: Difference,
}

/// What a hunt was.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Requests that were sent, without those that shrank a round.
    pub requests: usize,
    /// Rounds played.
    pub rounds: usize,
    /// Different differences.
    pub differences: usize,
}

impl Hunt {
    /// Plays; tells `found` each kind of difference once.
    ///
    /// # Errors
    /// If a server cannot be reached.
    pub fn run(
        self,
        duel: &mut Duel,
        families: &[Family],
        mut found: impl FnMut(Found),
    ) -> io::Result<Sum> {
        let mut seen = BTreeSet::new();
        self.rounds(|seed| {
            let round = Round::new(seed, self.length, families);
            let requests = round.requests.len();
            let Some(difference) = duel.play(&round)? else { return Ok((requests, false)) };
            let (round, difference) = shrink(duel, &round, difference)?;
            let is_new = seen.insert(difference.kind());
            if is_new {
                found(Found { seed, length: self.length, round, difference });
            }
            Ok((requests, is_new))
        })
    }

    /// Round after round: `round` plays the one of a seed, and returns how many requests it had
    /// and whether a new difference came of it.
    ///
    /// # Errors
    /// Those of `round`.
    pub fn rounds(
        self,
        mut round: impl FnMut(u64) -> io::Result<(usize, bool)>,
    ) -> io::Result<Sum> {
        let mut sum = Sum::default();
        while sum.requests < self.commands && sum.differences < self.differences {
            let (requests, is_new) = round(self.seed.wrapping_add(sum.rounds as u64))?;
            sum.requests += requests;
            sum.rounds += 1;
            sum.differences += usize::from(is_new);
        }
        Ok(sum)
    }
}

impl Sum {
    /// What a hunt from `seed` was, in a line.
    pub fn show(&self, seed: u64, took: Duration) -> String {
        let Sum { requests, rounds, differences } = self;
        let seconds = took.as_secs_f64();
        format!(
            "{requests} requests in {rounds} rounds from seed {seed}, {differences} different \
             differences, {seconds:.0} s"
        )
    }
}

impl Found {
    /// How many requests it takes.
    pub fn requests(&self) -> usize {
        self.round.requests.len()
    }
}

impl Difference {
    /// Distinguishes kinds of differences, roughly.
    fn kind(&self) -> (String, String, String) {
        let start = |text: String| text.chars().take(12).collect();
        let command = self.request.trim_start_matches("at the end: ").split(' ').next();
        let command = command.unwrap_or_default().to_ascii_uppercase();
        (command, start(self.wanted.show()), start(self.got.show()))
    }
}

/// A script of this crate, with what is not part of it as comments.
impl fmt::Display for Found {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { seed, length, round, difference } = self;
        write!(out, "# --seed {seed} --commands 1 --length {length}")?;
        writeln!(out, " (RESP{}, pipelines of {})", round.protocol, round.pipeline)?;
        for (name, value) in &round.settings {
            writeln!(out, "config set {name} {value}")?;
        }
        let mut connection = 0;
        for request in &round.requests {
            if request.connection != connection {
                connection = request.connection;
                writeln!(out, "@conn {connection}")?;
            }
            writeln!(out, "{}", cut(&request.line()))?;
        }
        writeln!(out, "#   request {}", cut(&difference.request))?;
        writeln!(out, "#   wanted  {}", cut(&difference.wanted.show()))?;
        write!(out, "#   got     {}", cut(&difference.got.show()))
    }
}

/// A line that is not too long to read.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(LINE_MAX) {
        None => text.into(),
        Some((end, _)) => format!("{} ...", &text[..end]),
    }
}
