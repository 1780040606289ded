//! The programs that the probes measure: where they are and which versions they say they are.

use std::path::PathBuf;

use serde::Serialize;

use super::Kind;
pub use super::places::Places;
use super::system::Missing;

/// A program ready to be started.
#[derive(Clone, Debug, Serialize)]
pub struct Program {
    /// Whose it is.
    pub kind: Kind,
    /// Its name in tables: the kind, numbered where there are several of it.
    pub label: String,
    /// The words to start it with, before its own arguments.
    pub command: Vec<String>,
    /// The first line of what it says of its version.
    pub version: String,
}

/// Why a system cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// A name that `--systems` does not know.
    #[error("unknown system `{0}`; known: ladon, redis, valkey, redis8, each also as NAME@PROGRAM")]
    Unknown(String),
    /// The program is not there, or does not start.
    #[error(transparent)]
    Missing(#[from] Missing),
}

/// Finds the named systems (`redis`, or `ladon@PATH` for a certain program), in that order.
///
/// # Errors
/// The first that is unknown, missing or does not start.
pub fn named(names: &[String], places: &Places) -> Result<Vec<Program>, FindError> {
    let mut programs = Vec::new();
    for name in names {
        let (kind, path) = match name.split_once('@') {
            Some((kind, path)) => (kind, Some(PathBuf::from(path))),
            None => (name.as_str(), None),
        };
        let kind = Kind::ALL
            .into_iter()
            .find(|known| known.name() == kind)
            .ok_or_else(|| FindError::Unknown(name.clone()))?;
        programs.push(program(kind, path, places)?);
    }
    number_repeated(&mut programs);
    Ok(programs)
}

/// All systems found here, and for each other one why it was not.
#[must_use]
pub fn all(places: &Places) -> (Vec<Program>, Vec<FindError>) {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for kind in Kind::ALL {
        match program(kind, None, places) {
            Ok(program) => found.push(program),
            Err(error) => missing.push(error),
        }
    }
    (found, missing)
}

fn program(kind: Kind, path: Option<PathBuf>, places: &Places) -> Result<Program, FindError> {
    let places = Places { program: path, ..places.clone() };
    let found = kind.system().find(&places)?;
    Ok(Program { kind, label: found.label, command: found.command, version: found.version })
}

fn number_repeated(programs: &mut [Program]) {
    for index in 1..programs.len() {
        let earlier =
            programs[..index].iter().filter(|other| other.kind == programs[index].kind).count();
        if earlier > 0 {
            programs[index].label = format!("{}#{}", programs[index].kind.name(), earlier + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_missing_say_what_to_do() {
        let places = Places {
            ladon: Some("/nowhere/ladon".into()),
            peers: Some("/nowhere".into()),
            ..Places::default()
        };
        let error = named(&["keydb".to_owned()], &places).unwrap_err();
        assert!(error.to_string().contains("known: ladon"), "{error}");
        let error = named(&["ladon".to_owned()], &places).unwrap_err();
        assert!(error.to_string().contains("cargo build --release"), "{error}");
        let error = named(&["redis8".to_owned()], &places).unwrap_err();
        assert!(error.to_string().contains("install-systems.sh"), "{error}");
    }

    #[test]
    fn several_of_a_kind_are_numbered() {
        let one = |kind: Kind| Program {
            kind,
            label: kind.name().to_owned(),
            command: Vec::new(),
            version: String::new(),
        };
        let mut programs = vec![one(Kind::Redis), one(Kind::Ladon), one(Kind::Redis)];
        number_repeated(&mut programs);
        let labels: Vec<&str> = programs.iter().map(|program| program.label.as_str()).collect();
        assert_eq!(labels, ["redis", "ladon", "redis#2"]);
    }
}
