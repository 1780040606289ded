//! Ladon's own file: TOML, one key a setting, no sections.
//!
//! ```toml
//! resp = ["127.0.0.1:6379", "unix:/run/ladon.sock"]
//! gate = "fsync"
//! maxmemory = "2gb"
//! save = [[900, 1], [60, 10000]]
//! latency-tracking = false
//! users = ["alice on >secret ~cart:* +@read"]
//! ```

use super::Loader;
use crate::origin::Origin;
use crate::rewrite::{Format, Source};
use crate::users;
use crate::words;
use std::path::Path;
use toml_edit::{Document, Item, Value};

impl Loader {
    /// Reads the file at `path`; problems are kept for [`Loader::finish`].
    pub fn toml_file(&mut self, path: &Path) {
        let at = |line| Origin::File { path: path.to_owned(), line };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return self.problem(&at(0), format!("cannot be read: {error}")),
        };
        self.source = Some(Source { path: path.to_owned(), format: Format::Toml });
        let line_of = |offset: usize| text.bytes().take(offset).filter(|&b| b == b'\n').count() + 1;
        let document = match Document::parse(text.as_str()) {
            Ok(document) => document,
            Err(error) => {
                let line = error.span().map_or(0, |span| line_of(span.start));
                return self.problem(&at(line), format!("is not TOML: {}", error.message()));
            }
        };
        // In the order of the file, so that of two settings which say the same the later wins.
        if let Some(item) = document.get(users::TOML_NAME) {
            let origin = at(line_of(item.span().map_or(0, |span| span.start)));
            self.users(item, &origin);
        }
        let mut entries: Vec<(usize, &str, Option<String>)> = document
            .iter()
            .filter(|(name, _)| *name != users::TOML_NAME)
            .map(|(name, item)| {
                let start = item.span().map_or(0, |span| span.start);
                (start, name, item.as_value().and_then(as_text))
            })
            .collect();
        entries.sort_unstable();
        for (start, name, value) in entries {
            let origin = at(line_of(start));
            match value {
                Some(value) => self.set(name, &value, &origin),
                None => {
                    let text = "a setting is a word, a number, true, false or a list of them";
                    self.problem(&origin, format!("{name}: {text}; there are no sections"));
                }
            }
        }
    }
}

impl Loader {
    /// The users: each a text with a name and rules.
    fn users(&mut self, item: &Item, origin: &Origin) {
        let lines = item.as_array().map(|list| list.iter().map(|user| user.as_str()));
        let Some(lines) = lines else {
            let text = "users: a list of texts, each a name and rules";
            return self.problem(origin, text.to_owned());
        };
        for line in lines {
            match line.and_then(words::split) {
                Some(words) => self.user(&words, origin),
                None => {
                    let text = "users: each is a text, a name and rules, with balanced quotes";
                    self.problem(origin, text.to_owned());
                }
            }
        }
    }
}

/// A value as a setting's text; lists, also of lists, are flattened.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Float(number) => Some(number.value().to_string()),
        Value::Boolean(truth) => Some(crate::kind::yes_no(*truth.value()).to_owned()),
        Value::Array(values) => {
            let words: Option<Vec<String>> = values.iter().map(as_text).collect();
            words.map(|words| words.join(" "))
        }
        Value::Datetime(_) | Value::InlineTable(_) => None,
    }
}
