//! Where a long run is: a bar on a terminal, a line per pass elsewhere.

use std::cell::{Cell, RefCell};
use std::io::IsTerminal;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use super::plan::{Plan, Times};

/// See the module.
pub struct Progress {
    bar: ProgressBar,
    terminal: bool,
    pass: RefCell<String>,
    seen: RefCell<Vec<String>>,
    began: Cell<Instant>,
}

impl Progress {
    /// Of so many passes.
    #[must_use]
    pub fn new(passes: u64) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal { ProgressBar::new(passes) } else { ProgressBar::hidden() };
        bar.set_length(passes);
        let style = "{bar:30} {pos}/{len}, {eta} to go  {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        let began = Cell::new(Instant::now());
        Self { bar, terminal, pass: RefCell::default(), seen: RefCell::default(), began }
    }

    /// The rounds from `round` on are to be so.
    pub fn plans(&self, plan: &Plan, round: u32, times: Times) {
        self.bar.set_length(plan.passes(times.rounds));
        let seconds = plan.seconds(round, times.rounds, times.seconds);
        self.bar.suspend(|| {
            eprintln!(
                "rounds {} to {}: measurements of {:.2} s, about {:.0} s to go",
                round + 1,
                times.rounds,
                times.seconds,
                seconds
            );
        });
    }

    /// A pass begins.
    pub fn begin(&self, work: &str, system: &str, setting: &str, round: u32, rounds: u32) {
        let text = format!("{work}: {system} ({setting}), round {} of {rounds}", round + 1);
        self.bar.set_message(text.clone());
        self.bar.tick();
        *self.pass.borrow_mut() = text;
        self.began.set(Instant::now());
        self.seen.borrow_mut().clear();
    }

    /// Something of the pass is being done.
    pub fn doing(&self, what: &str) {
        self.bar.set_message(format!("{}: {what}", self.pass.borrow()));
        self.bar.tick();
    }

    /// Something of the pass came out.
    pub fn saw(&self, what: String) {
        self.seen.borrow_mut().push(what);
    }

    /// The pass is over.
    pub fn end(&self) {
        self.bar.inc(1);
        if !self.terminal {
            let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
            let seen = self.seen.borrow().join(", ");
            let took = self.began.get().elapsed().as_secs_f64();
            eprintln!("[{done}/{all}] {}, {took:.1} s: {seen}", self.pass.borrow());
        }
    }

    /// All is over.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
