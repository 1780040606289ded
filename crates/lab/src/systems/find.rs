//! Which systems can be measured here: where their programs are and which versions they say they are.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use super::Kind;

/// Where to look.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Ladon's binary; else the one beside this program, and beside it in the other profiles.
    pub ladon: Option<PathBuf>,
    /// The tree that `scripts/install-peers.sh` made; else [`PEER_TREES`].
    pub peers: Option<PathBuf>,
}

/// Where the script puts the peers unless told otherwise, and an older habit.
pub const PEER_TREES: [&str; 2] = ["/opt/ladon-peers", "/opt/peers"];

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
    /// The program is not there.
    #[error("{kind} not found at {looked}; {hint}")]
    Missing {
        /// The system.
        kind: &'static str,
        /// Where the lab looked.
        looked: String,
        /// How to get it.
        hint: &'static str,
    },
    /// It is there but does not start.
    #[error("{program} --version failed: {reason}")]
    Broken {
        /// The program.
        program: String,
        /// What went wrong.
        reason: String,
    },
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
    let candidates = path.map_or_else(|| candidates(kind, places), |path| vec![path]);
    let Some(path) = candidates.iter().find(|path| path.is_file()) else {
        let looked: Vec<String> =
            candidates.iter().map(|path| path.display().to_string()).collect();
        return Err(FindError::Missing {
            kind: kind.name(),
            looked: looked.join(", "),
            hint: hint(kind),
        });
    };
    let command = command(path);
    let version = version(&command)?;
    Ok(Program { kind, label: kind.name().to_owned(), command, version })
}

fn candidates(kind: Kind, places: &Places) -> Vec<PathBuf> {
    match kind {
        Kind::Ladon => places.ladon.clone().map_or_else(ladon_candidates, |path| vec![path]),
        Kind::Redis => on_path("redis-server"),
        Kind::Valkey => in_trees("usr/bin/valkey-server", places),
        Kind::Redis8 => in_trees("usr/bin/redis-server", places),
    }
}

/// Ladon lies beside this program when both were built in one go. A debug build is not a candidate:
/// its figures would say nothing.
fn ladon_candidates() -> Vec<PathBuf> {
    let Ok(this) = std::env::current_exe() else { return Vec::new() };
    let Some(folder) = this.parent() else { return Vec::new() };
    let mut candidates = Vec::new();
    if !folder.ends_with("debug") {
        candidates.push(folder.join("ladon"));
    }
    candidates.extend(folder.parent().map(|target| target.join("release/ladon")));
    candidates.dedup();
    candidates
}

fn on_path(program: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).collect()
}

fn in_trees(program: &str, places: &Places) -> Vec<PathBuf> {
    let trees = places
        .peers
        .clone()
        .map_or_else(|| PEER_TREES.map(PathBuf::from).to_vec(), |tree| vec![tree]);
    trees.iter().map(|tree| tree.join(program)).collect()
}

const fn hint(kind: Kind) -> &'static str {
    match kind {
        Kind::Ladon => "build it: cargo build --release -p ladon-bin (or give --ladon PATH)",
        Kind::Redis => "install it: apt-get install redis-server",
        Kind::Valkey | Kind::Redis8 => "install it: scripts/install-peers.sh (or give --peers DIR)",
    }
}

/// A program out of another system's tree needs that tree's libraries, so it is started through the
/// tree's dynamic loader: no chroot, hence no root, and data directories stay where they are.
fn command(program: &Path) -> Vec<String> {
    let text = |path: &Path| path.display().to_string();
    let tree = program.parent().and_then(Path::parent).and_then(Path::parent);
    let Some(tree) = tree.filter(|tree| *tree != Path::new("/")) else {
        return vec![text(program)];
    };
    let loaders = [
        ("lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu"),
        ("lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu"),
    ];
    for (loader, triple) in loaders {
        let loader = tree.join(loader);
        if loader.exists() {
            let libraries = format!("{0}/usr/lib/{triple}:{0}/lib/{triple}", tree.display());
            return vec![text(&loader), "--library-path".into(), libraries, text(program)];
        }
    }
    vec![text(program)]
}

fn version(command: &[String]) -> Result<String, FindError> {
    let broken = |reason: String| FindError::Broken { program: command.join(" "), reason };
    let output = Command::new(&command[0])
        .args(&command[1..])
        .arg("--version")
        .output()
        .map_err(|error| broken(error.to_string()))?;
    if !output.status.success() {
        return Err(broken(format!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
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
        let places =
            Places { ladon: Some("/nowhere/ladon".into()), peers: Some("/nowhere".into()) };
        let error = named(&["keydb".to_owned()], &places).unwrap_err();
        assert!(error.to_string().contains("known: ladon"), "{error}");
        let error = named(&["ladon".to_owned()], &places).unwrap_err();
        assert!(error.to_string().contains("cargo build --release"), "{error}");
        let error = named(&["valkey".to_owned()], &places).unwrap_err();
        assert!(error.to_string().contains("install-peers.sh"), "{error}");
    }

    #[test]
    fn a_program_outside_of_a_tree_is_started_as_it_is() {
        assert_eq!(command(Path::new("/usr/bin/redis-server")), ["/usr/bin/redis-server"]);
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
