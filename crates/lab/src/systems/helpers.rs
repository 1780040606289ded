//! Programs that the lab builds by itself: written in the languages whose clients are measured,
//! kept as sources within this program, built once per user with the language's own tools.
//!
//! **Invariant:** a built helper was built from these very sources: its folder is named by their
//! hash, and gets its name only once it is complete.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use super::program_paths::{ProgramPaths, on_path};

/// A file of a helper: its name and its text.
pub type Source = (&'static str, &'static str);

/// A command of a build, in the folder of the sources.
pub type Step = Vec<String>;

/// The Go program that puts a store behind HTTP.
pub const WEB: &[Source] = &[
    ("main.go", include_str!("../../helpers/web/main.go")),
    ("leveldb.go", include_str!("../../helpers/web/leveldb.go")),
    ("resp.go", include_str!("../../helpers/web/resp.go")),
    ("tarantool.go", include_str!("../../helpers/web/tarantool.go")),
    ("go.mod", include_str!("../../helpers/web/go.mod")),
    ("go.sum", include_str!("../../helpers/web/go.sum")),
];

macro_rules! java {
    ($folder:literal: $($class:literal),* $(,)?) => {
        &[$((concat!($class, ".java"),
             include_str!(concat!("../../helpers/", $folder, "/", $class, ".java")))),*]
    };
}

/// What the Java programs around systems' own clients have in common.
pub const JAVA: &[Source] = java![
    "java":
    "Callers",
    "Counters",
    "Groups",
    "Helper",
    "Iterations",
    "Json",
    "Keyed",
    "Ledger",
    "Load",
    "Operation",
    "Pick",
    "Progress",
    "Random",
    "Rows",
    "Sets",
    "Single",
    "Store",
    "Traffic",
    "Value",
    "World",
];

/// What loads Hazelcast.
pub const HAZELCAST: &[Source] = java!["hazelcast": "Add", "Hazelcast", "Main", "Row"];

/// What loads VoltDB.
pub const VOLTDB: &[Source] = java!["voltdb": "Main", "VoltDb"];

/// What runs within VoltDB.
pub const VOLTDB_PROCEDURES: &[Source] = java!["voltdb/procedures": "Add", "AddMember", "SetMany"];

/// What VoltDB's server names and nobody calls.
pub const VOLTDB_PLACEHOLDERS: &[Source] = java![
    "voltdb/placeholders":
    "CachedSchemaRegistryClient",
    "RestClientException",
    "SchemaRegistryClient",
];

/// Two threads of one process must not build the same helper at once; two processes may, and the
/// later one's result takes the place of the earlier one's.
static BUILDING: Mutex<()> = Mutex::new(());

/// The folder with the built helper: the one of an earlier build, or a new one made by `steps`.
///
/// # Errors
/// What a step said, shortened; in words.
pub fn built(
    places: &ProgramPaths,
    name: &str,
    sources: &[Source],
    steps: &[Step],
) -> Result<PathBuf, String> {
    let _one = BUILDING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((sources, steps));
    let done = places.helpers().join(format!("{name}-{hash:016x}"));
    if done.is_dir() {
        return Ok(done);
    }
    let failed = |error: std::io::Error| format!("{}: {error}", places.helpers().display());
    std::fs::create_dir_all(places.helpers()).map_err(failed)?;
    let building = tempfile::Builder::new()
        .prefix("building-")
        .tempdir_in(places.helpers())
        .map_err(failed)?;
    for (file, text) in sources {
        std::fs::write(building.path().join(file), text).map_err(failed)?;
    }
    for step in steps {
        run(step, building.path())?;
    }
    match std::fs::rename(building.keep(), &done) {
        // Somebody else was faster.
        Err(_) if done.is_dir() => Ok(done),
        other => other.map(|()| done.clone()).map_err(failed),
    }
}

fn run(step: &Step, folder: &Path) -> Result<(), String> {
    let output = Command::new(&step[0])
        .args(&step[1..])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`{}`: {error}", step.join(" ")))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let end = lines[lines.len().saturating_sub(4)..].join(" | ");
    Err(format!("`{}` failed: {end}", step.join(" ")))
}

/// The `go` of this machine: on the path, or where its makers put it.
#[must_use]
pub fn go() -> Option<PathBuf> {
    let mut candidates = on_path("go");
    candidates.push("/usr/local/go/bin/go".into());
    candidates.into_iter().find(|path| path.is_file())
}

/// The web program.
///
/// # Errors
/// What is missing, in words.
pub fn web(places: &ProgramPaths) -> Result<PathBuf, String> {
    let go = go().ok_or("no Go to build the web program with")?.display().to_string();
    let build = [&go, "build", "-o", "web", "."].map(str::to_owned).into();
    Ok(built(places, "web", WEB, &[build])?.join("web"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(words: &[&str]) -> Step {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn a_helper_is_built_once_and_again_when_its_sources_change() {
        let folder = tempfile::tempdir().unwrap();
        let places =
            ProgramPaths { helpers: Some(folder.path().into()), ..ProgramPaths::default() };
        let steps = [step(&["sh", "-c", "cat a b >c; date +%N >when"])];
        let one = built(&places, "x", &[("a", "1"), ("b", "2")], &steps).unwrap();
        assert_eq!(std::fs::read_to_string(one.join("c")).unwrap(), "12");
        let when = std::fs::read(one.join("when")).unwrap();
        let again = built(&places, "x", &[("a", "1"), ("b", "2")], &steps).unwrap();
        assert_eq!((&again, &std::fs::read(again.join("when")).unwrap()), (&one, &when));
        let other = built(&places, "x", &[("a", "1"), ("b", "3")], &steps).unwrap();
        assert_ne!(other, one);
    }

    #[test]
    fn what_a_build_says_is_the_reason_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let places =
            ProgramPaths { helpers: Some(folder.path().into()), ..ProgramPaths::default() };
        let steps = [step(&["sh", "-c", "echo no such module >&2; exit 1"])];
        let reason = built(&places, "x", &[], &steps).unwrap_err();
        assert!(reason.ends_with("failed: no such module"), "{reason}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
