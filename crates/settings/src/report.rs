//! The effective settings, for a person: each value with its origin.

use crate::kind::Kind;
use crate::origin::Origin;
use crate::rewrite::toml_file;
use crate::settings::Settings;
use crate::table::TABLE;

/// One setting as `ladon config` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// Ladon's name.
    pub name: &'static str,
    /// As `CONFIG GET` answers; `None` for a secret that is set.
    pub value: Option<String>,
    /// Where it came from.
    pub origin: Origin,
}

impl Settings {
    /// Every setting with its origin, in the order of the documents.
    pub fn effective(&self) -> Vec<Effective> {
        let draft = self.draft();
        let effective = TABLE.iter().map(|setting| {
            let value = draft.text(setting);
            let hidden = setting.sensitive && !value.is_empty();
            Effective {
                name: setting.name,
                value: (!hidden).then_some(value),
                origin: draft.entry(setting.id).origin.clone(),
            }
        });
        effective.collect()
    }

    /// A setting's value for a line of the log: cut if it is long, and `None` if it is a secret.
    pub fn for_log(&self, name: &str) -> Option<String> {
        /// Characters that are shown.
        const SHOWN_MAX: usize = 200;
        let setting = TABLE.iter().find(|setting| setting.name == name)?;
        let value = self.draft().shared_text(setting);
        let is_hidden = setting.sensitive && !value.is_empty();
        (!is_hidden).then(|| value.chars().take(SHOWN_MAX).collect())
    }

    /// The effective settings as a TOML file that would set them, each with its origin in a
    /// comment. Secrets, settings that another one includes and fixed ones are comments.
    pub fn to_toml(&self) -> String {
        let draft = self.draft();
        let mut out = String::new();
        let mut section = "";
        for setting in TABLE {
            if setting.section != section {
                section = setting.section;
                out.push_str(&format!("\n# {section}\n"));
            }
            let origin = &draft.entry(setting.id).origin;
            let name = setting.name;
            let text = draft.text(setting);
            let line = match (setting.kind, setting.part_of) {
                _ if setting.sensitive && !text.is_empty() => {
                    format!("# {name} is set, and not shown ({origin})")
                }
                (Kind::Fixed { .. }, _) => format!("# {name} = {text:?} is fixed"),
                (_, Some(whole)) => format!("# {name} = {text:?} is a part of {whole} ({origin})"),
                _ => format!("{name} = {} # {origin}", toml_file::value(setting, &draft)),
            };
            out.push_str(&line);
            out.push('\n');
        }
        out.trim_start().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Loader;

    #[test]
    fn the_report_is_a_file_that_gives_the_same_settings() {
        let settings = Settings::new();
        let pairs = [("gate", "write"), ("save", "60 1"), ("requirepass", "hunter2")];
        settings.set_many(&pairs).unwrap();
        let report = settings.to_toml();
        assert!(report.contains("gate = \"write\" # CONFIG SET\n"), "{report}");
        assert!(!report.contains("hunter2"));
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("ladon.toml");
        std::fs::write(&path, report).unwrap();
        let mut loader = Loader::new();
        loader.toml_file(&path);
        let loaded = loader.finish().unwrap().0;
        loaded.set_many(&pairs[2..]).unwrap();
        assert_eq!(loaded.get(&["*"]), settings.get(&["*"]));
    }

    #[test]
    fn secrets_are_hidden_and_only_when_there_is_one() {
        let settings = Settings::new();
        let find = |settings: &Settings| {
            let all = settings.effective();
            all.into_iter().find(|one| one.name == "requirepass").unwrap().value
        };
        assert_eq!(find(&settings).as_deref(), Some(""));
        settings.set_many(&[("requirepass", "x")]).unwrap();
        assert_eq!(find(&settings), None);
    }
}
