//! Round after round until something differs.

use std::collections::BTreeSet;
use std::fmt;
use std::io;

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
        let mut sum = Sum::default();
        let mut seen = BTreeSet::new();
        while sum.requests < self.commands && seen.len() < self.differences {
            let seed = self.seed.wrapping_add(sum.rounds as u64);
            let round = Round::new(seed, self.length, families);
            sum.requests += round.requests.len();
            sum.rounds += 1;
            let Some(difference) = duel.play(&round)? else { continue };
            let (round, difference) = shrink(duel, &round, difference)?;
            if seen.insert(difference.kind()) {
                found(Found { seed, length: self.length, round, difference });
            }
        }
        sum.differences = seen.len();
        Ok(sum)
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

fn cut(text: &str) -> String {
    match text.char_indices().nth(LINE_MAX) {
        None => text.into(),
        Some((end, _)) => format!("{} ...", &text[..end]),
    }
}
