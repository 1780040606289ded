//! Settings by environment variables, for containers: `LADON_MAXMEMORY=2gb`.
//!
//! The name is the setting's, or Redis' for it, in capitals, with underscores. With `_FILE` behind
//! it, the variable names a file with the value, such as a mounted secret.

use super::Loader;
use crate::origin::Origin;
use crate::setting::Setting;
use crate::table::lookup;
use std::collections::BTreeMap;

/// What all of them begin with.
const PREFIX: &str = "LADON_";

/// Variables of other programs, of Ladon's tools, and of Kubernetes, which tells each pod about a
/// service `ladon` in this way. They are no mistakes.
const OTHERS: &[&str] =
    &["BIN", "IPROTO_PASSWORD", "SEED", "SEEDS", "UPDATE_DOCS", "VERSION", "SERVICE_", "TEST_"];

impl Loader {
    /// Reads the variables with their values; problems are kept for [`Loader::finish`].
    pub fn environment(&mut self, variables: impl IntoIterator<Item = (String, String)>) {
        let ours = variables.into_iter().filter_map(|(name, value)| {
            let name = name.strip_prefix(PREFIX)?.to_owned();
            Some((name, value))
        });
        let ours: BTreeMap<String, String> = ours.collect();
        for (name, value) in &ours {
            let variable = format!("{PREFIX}{name}");
            let origin = Origin::Environment(variable.clone());
            if let Some(setting) = setting_of(name) {
                if is_service_link(value) {
                    let text =
                        format!("'{value}' is not used: Kubernetes has set it for a service");
                    self.warn(&origin, text);
                } else {
                    self.set(setting.name, value, &origin);
                }
            } else if let Some(short) = name.strip_suffix("_FILE")
                && let Some(setting) = setting_of(short)
            {
                if ours.contains_key(short) {
                    self.problem(&origin, format!("{PREFIX}{short} is set as well"));
                } else {
                    self.set_from_file(setting, value, &origin);
                }
            } else if !is_of_others(name) {
                self.warn(&origin, "there is no setting of this name".to_owned());
            }
        }
    }

    fn set_from_file(&mut self, setting: &Setting, path: &str, origin: &Origin) {
        match std::fs::read_to_string(path) {
            // An editor ends the last line.
            Ok(text) => self.set(setting.name, text.trim_end_matches(['\r', '\n']), origin),
            Err(error) => self.problem(origin, format!("cannot read {path}: {error}")),
        }
    }
}

fn setting_of(name: &str) -> Option<&'static Setting> {
    let is_spelt_so =
        name.bytes().all(|byte| byte.is_ascii_uppercase() || b"_0123456789".contains(&byte));
    let dashed = name.to_ascii_lowercase().replace('_', "-");
    lookup(&dashed).filter(|_| is_spelt_so)
}

/// `LADON_PORT=tcp://10.0.0.1:6379`.
fn is_service_link(value: &str) -> bool {
    value.starts_with("tcp://") || value.starts_with("udp://")
}

fn is_of_others(name: &str) -> bool {
    let is_port_of_service = name.starts_with("PORT_");
    is_port_of_service
        || OTHERS.iter().any(|other| match other.ends_with('_') {
            true => name.starts_with(other),
            false => name == *other,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, TABLE};

    fn load(variables: &[(&str, &str)]) -> Result<(Settings, Vec<String>), String> {
        let mut loader = Loader::new();
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        loader.environment(variables.iter().map(owned));
        match loader.finish() {
            Ok((settings, notes)) => {
                Ok((settings, notes.iter().map(ToString::to_string).collect()))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    #[track_caller]
    fn check(variables: &[(&str, &str)], name: &str, expected: &str) {
        let (settings, notes) = load(variables).expect("good settings");
        assert_eq!(settings.get(&[name])[0].1, expected);
        assert_eq!(notes, [""; 0]);
    }

    #[test]
    fn every_setting_has_a_variable() {
        for setting in TABLE {
            let variable =
                format!("{PREFIX}{}", setting.name.to_ascii_uppercase().replace('-', "_"));
            let name = variable.strip_prefix(PREFIX).expect("the prefix");
            assert_eq!(setting_of(name).map(|it| it.id), Some(setting.id), "{variable}");
        }
    }

    #[test]
    fn variables_become_settings() {
        check(&[("LADON_MAXMEMORY", "2gb")], "maxmemory", "2147483648");
        check(&[("LADON_DIR", "/x"), ("HOME", "/y"), ("LADON", "z")], "data", "/x");
        check(&[("LADON_APPENDFSYNC", "always")], "gate", "fsync");
        check(
            &[("LADON_IPROTO_PASSWORD", "of the tool"), ("LADON_TEST_X", "1")],
            "gate",
            "everysec",
        );
        check(&[("LADON_SERVICE_HOST", "10.0.0.1"), ("LADON_PORT_6379_TCP", "x")], "port", "6379");
    }

    #[test]
    fn a_secret_comes_from_a_file() {
        let file = std::env::temp_dir().join(format!("ladon-secret-{}", std::process::id()));
        std::fs::write(&file, "s3cret \n").expect("a file");
        let path = file.to_str().expect("a path");
        check(&[("LADON_REQUIREPASS_FILE", path)], "requirepass", "s3cret ");
        let both = load(&[("LADON_REQUIREPASS_FILE", path), ("LADON_REQUIREPASS", "x")]);
        assert_eq!(
            both.err().as_deref(),
            Some("LADON_REQUIREPASS_FILE: LADON_REQUIREPASS is set as well")
        );
        std::fs::remove_file(&file).expect("removed");
        let gone = load(&[("LADON_REQUIREPASS_FILE", path)]).expect_err("no file");
        assert!(gone.starts_with("LADON_REQUIREPASS_FILE: cannot read "), "{gone}");
    }

    #[test]
    fn mistakes_are_named() {
        let error = load(&[("LADON_GATE", "loose")]).expect_err("no such gate");
        assert!(error.starts_with("LADON_GATE: gate 'loose': "), "{error}");
        let (_, notes) = load(&[("LADON_MAXMEMROY", "1")]).expect("a note only");
        assert_eq!(notes, ["LADON_MAXMEMROY: there is no setting of this name"]);
        let (settings, notes) =
            load(&[("LADON_PORT", "tcp://10.0.0.1:6379")]).expect("a note only");
        assert!(settings.port() == 6379 && notes.len() == 1, "{notes:?}");
    }
}
