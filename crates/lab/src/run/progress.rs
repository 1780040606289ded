//! Where a long run is: a bar on a terminal, a line per round elsewhere.

use std::cell::{Cell, RefCell};
use std::io::IsTerminal;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::work::Times;

/// See the module.
pub struct Progress {
    bar: ProgressBar,
    terminal: bool,
    round: RefCell<String>,
    seen: RefCell<Vec<String>>,
    began: Cell<Instant>,
}

impl Progress {
    /// The progress of so many rounds of all works.
    #[must_use]
    pub fn new(rounds: u64) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal { ProgressBar::new(rounds) } else { ProgressBar::hidden() };
        bar.set_length(rounds);
        let style = "{bar:30} {pos}/{len}, {eta} to go  {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        let began = Cell::new(Instant::now());
        Self { bar, terminal, round: RefCell::default(), seen: RefCell::default(), began }
    }

    /// A work begins that is to have these rounds; with it, `left` rounds are to go.
    pub fn work(&self, name: &str, times: Times, left: u64) {
        self.bar.set_length(self.bar.position() + left);
        name.clone_into(&mut self.round.borrow_mut());
        let Times { rounds, seconds } = times;
        self.bar.suspend(|| {
            eprintln!("{name}: {rounds} rounds are planned, measurements of {seconds:.2} s");
        });
    }

    /// A round begins.
    pub fn begin(&self, work: &str, round: u32, rounds: u32) {
        let text = format!("{work}: round {} of {rounds}", round + 1);
        self.bar.set_message(text.clone());
        self.bar.tick();
        *self.round.borrow_mut() = text;
        self.began.set(Instant::now());
        self.seen.borrow_mut().clear();
    }

    /// Something is being done.
    pub fn doing(&self, what: &str) {
        self.bar.set_message(format!("{}: {what}", self.round.borrow()));
        self.bar.tick();
    }

    /// Something came out.
    pub fn saw(&self, what: String) {
        self.seen.borrow_mut().push(what);
    }

    /// The round is over.
    pub fn end(&self) {
        self.bar.inc(1);
        if !self.terminal {
            let seen = self.seen.borrow().join(", ");
            let took = self.began.get().elapsed().as_secs_f64();
            eprintln!("{}, {took:.1} s: {seen}", self.round.borrow());
        }
    }

    /// All is over.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
