//! Where programs lie, and how one out of another system's tree is started.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::system::{Missing, Program};

/// Where to look.
#[derive(Clone, Debug, Default)]
pub struct ProgramPaths {
    /// Ladon's binary; otherwise the one in this program's folder, or in that of another profile.
    pub ladon: Option<PathBuf>,
    /// The tree that `scripts/install-peers.sh` made; else [`PEER_TREES`].
    pub peers: Option<PathBuf>,
    /// The very program of the system looked for, as `NAME@PROGRAM` says; nowhere else then.
    pub program: Option<PathBuf>,
    /// Where the lab's own helpers are built and kept; else [`helpers_directory`].
    pub helpers: Option<PathBuf>,
}

/// Where the script puts the peers unless told otherwise, and an older habit.
pub const PEER_TREES: [&str; 2] = ["/opt/ladon-peers", "/opt/peers"];

impl ProgramPaths {
    /// The first of `candidates` that exists, or the one that the user named.
    ///
    /// # Errors
    /// All places that were searched, with `install`.
    pub fn first(
        &self,
        system: &'static str,
        candidates: Vec<PathBuf>,
        install: &str,
    ) -> Result<PathBuf, Missing> {
        let candidates = self.program.clone().map_or(candidates, |program| vec![program]);
        if let Some(found) = candidates.iter().find(|path| path.is_file()) {
            // Servers are started in folders of their own.
            return Ok(std::path::absolute(found).unwrap_or_else(|_| found.clone()));
        }
        Err(Missing {
            system,
            reason: format!("not found at {}", listed(&candidates)),
            install: install.to_owned(),
        })
    }

    /// Finds a program and asks it for its version with `question`; the answer's first line.
    ///
    /// # Errors
    /// As [`Self::first`]; and what it said when it does not start.
    pub fn program(
        &self,
        system: &'static str,
        candidates: Vec<PathBuf>,
        question: &[&str],
        install: &str,
    ) -> Result<Program, Missing> {
        let path = self.first(system, candidates, install)?;
        let command = command(&path);
        let version = version(&command, question).map_err(|reason| Missing {
            system,
            reason: format!("{} {} failed: {reason}", command.join(" "), question.join(" ")),
            install: install.to_owned(),
        })?;
        Ok(Program { system, label: system.to_owned(), command, version, behind: None })
    }

    /// `program` (for example `usr/bin/valkey-server`) in every tree of peers.
    #[must_use]
    pub fn in_trees(&self, program: &str) -> Vec<PathBuf> {
        let trees = self
            .peers
            .clone()
            .map_or_else(|| PEER_TREES.map(PathBuf::from).to_vec(), |one| vec![one]);
        trees.iter().map(|tree| tree.join(program)).collect()
    }

    /// Where helpers are built.
    #[must_use]
    pub fn helpers(&self) -> PathBuf {
        self.helpers.clone().unwrap_or_else(helpers_directory)
    }
}

/// Where it was looked for, in words: a PATH has a dozen folders, which are one place.
fn listed(candidates: &[PathBuf]) -> String {
    let mut places: Vec<String> = Vec::new();
    for candidate in candidates {
        let name = candidate.file_name().unwrap_or_default().to_string_lossy();
        let place = if on_path(&name).contains(candidate) {
            format!("{name} on the PATH")
        } else {
            candidate.display().to_string()
        };
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places.join(", ")
}

/// The user's cache, as the XDG base directories say: helpers are built once, not once a run.
#[must_use]
pub fn helpers_directory() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("ladon-lab")
}

/// The file, if it is there.
///
/// # Errors
/// That it is not, in words.
pub fn first_file(path: &Path) -> Result<PathBuf, String> {
    let there = path.is_file().then(|| path.to_owned());
    there.ok_or_else(|| format!("{} was not made", path.display()))
}

/// Every place where the shell would look for `program`.
#[must_use]
pub fn on_path(program: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).collect()
}

/// A program out of another system's tree needs that tree's libraries, so it is started through the
/// tree's dynamic loader: no chroot, hence no root, and data directories stay where they are.
#[must_use]
pub fn command(program: &Path) -> Vec<String> {
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

/// The first line that is not empty of what a program says when asked; on either stream, as some
/// answer on the one and some on the other.
///
/// # Errors
/// When it does not start or ends badly, in words.
pub fn version(command: &[String], question: &[&str]) -> Result<String, String> {
    let output = Command::new(&command[0])
        .args(&command[1..])
        .args(question)
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, err.trim()));
    }
    let first = out.lines().chain(err.lines()).find(|line| !line.trim().is_empty());
    Ok(first.unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_outside_of_a_tree_is_started_as_it_is() {
        assert_eq!(command(Path::new("/usr/bin/redis-server")), ["/usr/bin/redis-server"]);
    }

    #[test]
    fn what_is_missing_says_where_it_was_looked_for_and_what_to_do() {
        let places = ProgramPaths { peers: Some("/nowhere".into()), ..ProgramPaths::default() };
        let missing = places
            .program("valkey", places.in_trees("usr/bin/valkey-server"), &["--version"], "do this")
            .unwrap_err();
        assert_eq!(
            missing.to_string(),
            "valkey: not found at /nowhere/usr/bin/valkey-server; do this"
        );
    }

    #[test]
    fn the_path_is_one_place() {
        let places = ProgramPaths::default();
        let missing =
            places.first("x", on_path("no-such-program"), "do this").unwrap_err().to_string();
        assert_eq!(missing, "x: not found at no-such-program on the PATH; do this");
    }

    /// Tests run in the crate's folder.
    #[test]
    fn a_relative_path_is_good_in_every_folder() {
        let found = ProgramPaths::default().first("x", vec!["Cargo.toml".into()], "do this");
        assert_eq!(found.unwrap(), Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    }

    #[test]
    fn a_program_that_fails_is_missing_too() {
        let places = ProgramPaths { program: Some("/bin/false".into()), ..ProgramPaths::default() };
        let missing =
            places.program("redis", on_path("redis-server"), &["--version"], "-").unwrap_err();
        assert!(missing.reason.contains("exit status: 1"), "{}", missing.reason);
    }
}
