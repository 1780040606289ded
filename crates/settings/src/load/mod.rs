//! From defaults, files and flags to [`Settings`]: each layer wins over the ones before it.

mod environment;
mod redis_conf;
mod toml_file;

use crate::draft::Draft;
use crate::origin::Origin;
use crate::rewrite::Source;
use crate::settings::Settings;
use crate::table::lookup;
use crate::users::UserLine;
use std::fmt;
use std::path::PathBuf;

/// A message to the operator about a line or a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where it is.
    pub origin: Origin,
    /// What to say.
    pub text: String,
    /// The directive of a redis.conf that it is about, if it says that this has no effect here.
    pub without_effect: Option<String>,
}

/// The notes as lines for the log: all directives without effect share one, since a stock
/// redis.conf has dozens.
pub fn lines_for_log(notes: &[Note]) -> Vec<String> {
    let has_effect = notes.iter().filter(|note| note.without_effect.is_none());
    let mut lines: Vec<String> = has_effect.map(Note::to_string).collect();
    let names: Vec<&str> = notes.iter().filter_map(|note| note.without_effect.as_deref()).collect();
    if !names.is_empty() {
        lines.push(format!(
            "redis.conf: without effect here: {} (ladon config --redis-conf FILE says why)",
            names.join(", ")
        ));
    }
    lines
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.text)
    }
}

/// Everything that keeps the settings from being used, each with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// At least one.
    pub problems: Vec<Note>,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.problems.iter().map(Note::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for LoadError {}

/// Collects the layers; call in the order TOML file, redis.conf, environment, flags.
#[derive(Debug)]
pub struct Loader {
    draft: Draft,
    problems: Vec<Note>,
    warnings: Vec<Note>,
    source: Option<Source>,
    user_lines: Vec<UserLine>,
}

impl Loader {
    /// The defaults.
    pub fn new() -> Loader {
        Loader {
            draft: Draft::new(),
            problems: vec![],
            warnings: vec![],
            source: None,
            user_lines: vec![],
        }
    }

    /// One flag, without its dashes.
    pub fn flag(&mut self, name: &str, value: &str) {
        self.set(name, value, &Origin::Flag(name.to_owned()));
    }

    /// The settings, and notes for the operator that stop nothing. The error lists every problem of
    /// every layer.
    pub fn finish(mut self) -> Result<(Settings, Vec<Note>), LoadError> {
        self.look_for_redis_data();
        if let Some((id, reason)) = self.draft.contradiction() {
            let origin = self.draft.entry(id).origin.clone();
            self.problem(&origin, reason.to_owned());
        }
        if !self.problems.is_empty() {
            return Err(LoadError { problems: self.problems });
        }
        let mut settings = Settings::from_draft(self.draft, self.source);
        settings.user_lines = self.user_lines;
        Ok((settings, self.warnings))
    }

    fn set(&mut self, name: &str, value: &str, origin: &Origin) {
        let Some(setting) = lookup(name) else {
            return self.problem(origin, format!("there is no setting '{name}'"));
        };
        if let Err(reason) = self.draft.set(setting, value, origin) {
            let shown = if setting.sensitive { "..." } else { value };
            self.problem(origin, format!("{name} '{shown}': {reason}"));
        }
    }

    fn user(&mut self, words: &[String], origin: &Origin) {
        if words.is_empty() {
            return self.problem(origin, "user: a name is missing".to_owned());
        }
        let line = UserLine { origin: origin.clone(), words: words.to_vec() };
        self.user_lines.push(line);
    }

    fn problem(&mut self, origin: &Origin, text: String) {
        self.problems.push(Note { origin: origin.clone(), text, without_effect: None });
    }

    fn warn(&mut self, origin: &Origin, text: String) {
        self.warnings.push(Note { origin: origin.clone(), text, without_effect: None });
    }

    fn warn_without_effect(&mut self, name: &str, origin: &Origin, text: String) {
        let without_effect = Some(name.to_owned());
        self.warnings.push(Note { origin: origin.clone(), text, without_effect });
    }

    /// An operator who points Ladon at the directory of a Redis expects its data to be there.
    fn look_for_redis_data(&mut self) {
        let entry = self.draft.entry(crate::Id::data).clone();
        let data = PathBuf::from(self.draft.text(&crate::TABLE[crate::Id::data as usize]));
        for theirs in ["dump.rdb", "appendonlydir", "appendonly.aof"] {
            if entry.origin != Origin::Default && data.join(theirs).exists() {
                let text = format!(
                    "{} holds Redis' own {theirs}, which Ladon does not read: it starts from its \
                     own files in that directory; copy the data over the network \
                     (for instance with redis-cli) or choose another directory",
                    data.display()
                );
                self.warn(&entry.origin, text);
            }
        }
    }
}

impl Default for Loader {
    fn default() -> Loader {
        Loader::new()
    }
}

#[cfg(test)]
mod tests;
