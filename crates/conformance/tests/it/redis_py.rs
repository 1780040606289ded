//! redis-py's ordinary use: `clients/redis-py/ordinary_use.py`, in a virtual environment below
//! `target/`.

use std::path::Path;
use std::process::Command;

use ladon_conformance::{Server, locate, python};

#[test]
fn redis_py_works() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/redis-py");
    let requirements = folder.join("requirements.txt");
    let python = locate::must("redis-py", python::environment("redis-py", &requirements));
    let server = locate::must("the server", Server::subject());
    let mut script = Command::new(&python);
    script.arg(folder.join("ordinary_use.py")).arg(server.port().to_string());
    let output = locate::must("redis-py", locate::run(&mut script));
    let checks: u32 = output.trim().parse().expect("the number of checks");
    assert!(checks > 200, "only {checks} checks ran");
}
