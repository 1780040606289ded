//! go-redis's ordinary use: the program in `clients/go-redis`, built below `target/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use ladon_conformance::{Server, locate};

#[test]
fn go_redis_works() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/go-redis");
    let program = locate::cache().expect("a folder").join("go-redis-ordinary-use");
    let mut build = Command::new(go());
    build.current_dir(&folder).args(["build", "-o"]).arg(&program).arg(".");
    locate::must("go-redis from the Go module proxy", locate::run(&mut build));
    let server = locate::must("the server", Server::subject());
    let mut client = Command::new(&program);
    client.arg(server.port().to_string());
    let output = locate::must("go-redis", locate::run(&mut client));
    let checks: u32 = output.trim().parse().expect("the number of checks");
    assert!(checks > 90, "only {checks} checks ran");
}

/// The Go compiler: where Go's own installer puts it, else Debian's.
fn go() -> PathBuf {
    let own = PathBuf::from("/usr/local/go/bin/go");
    if own.is_file() {
        return own;
    }
    locate::must("Go 1.26 or newer (https://go.dev/dl)", locate::program("go", "golang-go"))
}
