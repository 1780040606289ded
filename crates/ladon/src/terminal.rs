//! Lines from the terminal, with a history that outlives the process.

use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Editor, Helper};
use std::path::PathBuf;

/// What a terminal has given.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text(String),
    /// Ctrl-C: what was typed is to be forgotten.
    Interrupted,
    End,
}

/// The terminal; `H` completes words.
pub struct Terminal<H: Helper = ()> {
    editor: Editor<H, DefaultHistory>,
    history: Option<PathBuf>,
}

impl<H: Helper> Terminal<H> {
    /// Opens it, with the history of that name.
    ///
    /// # Errors
    /// In words.
    pub fn open(history: &str, helper: Option<H>) -> Result<Terminal<H>, String> {
        let mut editor =
            Editor::new().map_err(|error| format!("cannot use the terminal: {error}"))?;
        editor.set_helper(helper);
        let history = state_folder().map(|folder| folder.join(history));
        if let Some(file) = &history {
            // There is none the first time.
            let _ = editor.load_history(file);
        }
        Ok(Terminal { editor, history })
    }

    /// The next line, without its end.
    ///
    /// # Errors
    /// In words.
    pub fn read_line(&mut self, prompt: &str) -> Result<Line, String> {
        match self.editor.readline(prompt) {
            Ok(line) => {
                if !line.trim().is_empty() {
                    let _ = self.editor.add_history_entry(&line);
                }
                Ok(Line::Text(line))
            }
            Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(error) => Err(format!("cannot read the terminal: {error}")),
        }
    }

    /// Writes the history.
    pub fn keep_history(&mut self) {
        let Some(file) = &self.history else { return };
        let folder = file.parent().map(std::fs::create_dir_all);
        if folder.is_some_and(|made| made.is_err()) || self.editor.save_history(file).is_err() {
            eprintln!("ladon: the history is not kept: cannot write {}", file.display());
        }
    }
}

/// Where lines are kept; none without a home.
fn state_folder() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    Some(state.or_else(home)?.join("ladon"))
}
