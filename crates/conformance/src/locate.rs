//! Finds the programs that the tests run, builds or installs them where it can, and otherwise
//! says what to do. A test that lacks its program fails: a skipped proof is none.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Ladon's binary: the one that `LADON_BIN` names, else cargo builds it, in the profile that
/// this program was built in.
///
/// # Errors
/// If the build fails, with cargo's words.
pub fn ladon() -> io::Result<PathBuf> {
    if let Some(path) = std::env::var_os("LADON_BIN") {
        return Ok(PathBuf::from(path));
    }
    let this = std::env::current_exe()?;
    let Some(folder) = profile_folder(&this) else {
        return Err(io::Error::other(format!("no target folder above {}", this.display())));
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--quiet", "--package", "ladon-bin", "--bin", "ladon"])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    if let Some(target) = folder.parent() {
        command.arg("--target-dir").arg(target);
    }
    match folder.file_name().and_then(|name| name.to_str()) {
        None | Some("debug") => {}
        Some(profile) => {
            command.args(["--profile", profile]);
        }
    }
    run(&mut command)?;
    Ok(folder.join("ladon"))
}

/// `target/PROFILE`, of a program in it or of a test in its `deps`.
fn profile_folder(program: &Path) -> Option<&Path> {
    let folder = program.parent()?;
    if folder.ends_with("deps") { folder.parent() } else { Some(folder) }
}

/// Ladon's binary: this one if it is given, as an absolute path, because servers run in folders of
/// their own; else that of [`ladon`].
///
/// # Errors
/// If there is no such file, or those of [`ladon`].
pub fn ladon_or(given: Option<&Path>) -> io::Result<PathBuf> {
    given.map_or_else(ladon, Path::canonicalize)
}

/// A program of a Debian package: found on the path, else installed with apt-get, which needs
/// root or a sudo that asks no password.
///
/// # Errors
/// If it is missing and cannot be installed, with the command that would.
pub fn program(name: &str, package: &str) -> io::Result<PathBuf> {
    if let Some(path) = on_path(name) {
        return Ok(path);
    }
    let install = format!(
        "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
         --no-install-recommends {package}"
    );
    let shell = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).arg(&install).stdin(Stdio::null());
        run(&mut command)
    };
    let result = shell("sh", &["-c"]).or_else(|_| shell("sudo", &["-n", "sh", "-c"]));
    match (result, on_path(name)) {
        (_, Some(path)) => Ok(path),
        (result, None) => Err(io::Error::other(format!(
            "this test needs {name}, and could not install it ({}). As root: {install}",
            result.err().map_or_else(|| "installed, but not on the path".into(), |e| e.to_string()),
        ))),
    }
}

/// Starts a program that may be in the tree of another system (`scripts/install-peers.sh` makes
/// one): then that tree's loader runs it, with that tree's libraries.
pub fn command(program: &Path) -> Command {
    const LOADERS: [(&str, &str); 2] = [
        ("lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu"),
        ("lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu"),
    ];
    let trees = program.ancestors().skip(1).filter(|tree| *tree != Path::new("/"));
    for tree in trees {
        for (loader, triple) in LOADERS {
            let loader = tree.join(loader);
            if loader.is_file() && tree.join("usr/lib").join(triple).is_dir() {
                let mut command = Command::new(loader);
                command.arg("--library-path").arg(tree.join("usr/lib").join(triple)).arg(program);
                return command;
            }
        }
    }
    Command::new(program)
}

/// The folder for what tests download or build, kept between runs: `target/conformance`.
///
/// # Errors
/// If it cannot be made.
pub fn cache() -> io::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let target = test.ancestors().nth(3).map(Path::to_path_buf).unwrap_or_default();
    let folder = target.join("conformance");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Runs a command to its end.
///
/// # Errors
/// If it does not start, or fails, with the end of its output.
pub fn run(command: &mut Command) -> io::Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| io::Error::other(format!("{command:?}: {error}")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let all = format!("{}{}", text(&output.stdout), text(&output.stderr));
    let lines: Vec<&str> = all.lines().collect();
    let end = lines[lines.len().saturating_sub(60)..].join("\n");
    Err(io::Error::other(format!("{command:?}: {}\n{end}", output.status)))
}

/// The value, or a test that fails with the error's own text (which `expect` would escape).
///
/// # Panics
/// If there is no value.
pub fn must<T>(what: &str, result: io::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{what}: {error}"))
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_tests_have_one_folder() {
        for program in ["target/release/side-by-side", "target/release/deps/it-0123"] {
            assert_eq!(profile_folder(Path::new(program)), Some(Path::new("target/release")));
        }
    }
}
