//! Virtual environments for the tests that drive the server with Python's clients.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::locate;

/// The interpreter of an environment with `requirements` (a file as pip reads it) installed, made
/// in `target/conformance/NAME` at the first call and again whenever the file changes.
///
/// # Errors
/// If there is no Python, or the packages are not available.
pub fn environment(name: &str, requirements: &Path) -> io::Result<PathBuf> {
    // Tests of one binary run on several threads; the second one finds the environment there.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().map_err(|_| io::Error::other("an earlier install failed"))?;

    let wanted = std::fs::read_to_string(requirements)?;
    let environment = locate::cache()?.join(name);
    let python = environment.join("bin/python");
    let stamp = environment.join("installed.txt");
    if std::fs::read_to_string(&stamp).ok().as_ref() != Some(&wanted) {
        locate::program("python3", "python3 python3-venv")?;
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv", "--clear"]).arg(&environment);
        locate::run(&mut venv)?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements);
        locate::run(&mut pip)?;
        std::fs::write(&stamp, wanted)?;
    }
    Ok(python)
}
