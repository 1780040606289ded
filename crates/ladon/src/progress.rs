//! How far a tool is, on the standard error output: one line that changes on a terminal, a line now
//! and then elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Where nobody watches, a line this often.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// A line of progress.
pub struct Line {
    is_terminal: bool,
    shown: Instant,
    /// Characters of the line that stands on the terminal.
    length: usize,
}

impl Default for Line {
    fn default() -> Line {
        Line { is_terminal: io::stderr().is_terminal(), shown: Instant::now(), length: 0 }
    }
}

impl Line {
    /// Shows a text in place of the one before.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        // A standard error output that is closed keeps nobody from working.
        if self.is_terminal {
            let text = text();
            let rest = " ".repeat(self.length.saturating_sub(text.len()));
            let _ = write!(io::stderr(), "\r{text}{rest}");
            self.length = text.len();
        } else if self.shown.elapsed() >= LINE_EVERY {
            let _ = writeln!(io::stderr(), "{}", text());
            self.shown = Instant::now();
        }
    }

    /// Takes the line away.
    pub fn end(&mut self) {
        if self.length > 0 {
            let _ = write!(io::stderr(), "\r{}\r", " ".repeat(self.length));
            self.length = 0;
        }
    }
}
