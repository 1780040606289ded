//! `--tool`: each load generator against a real server, where both are installed; skipped loudly
//! where not. A wrong answer that a script saw ends the run.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use ladon_lab::results::schema::{Outcome, Results};
use ladon_lab::run::load_tool::Tool;
use ladon_lab::systems::program_paths::ProgramPaths;
use ladon_lab::systems::registry;

fn run(tool: &str, system: &str, work: &str, path: Option<&Path>, out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ladon-lab"));
    command
        .args(["run", "--tool", tool, "--systems", system, "--work", work, "--rounds", "1"])
        .args(["--seconds", "0.5", "--keys", "2000", "--clients", "5", "--out"])
        .arg(out);
    if let Some(path) = path {
        let before = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{before}", path.display()));
    }
    command.output().unwrap()
}

fn is_here(system: &str) -> bool {
    let names = [system.to_owned()];
    let (found, missing) = registry::named(&names, &ProgramPaths::default()).unwrap();
    missing.iter().for_each(|missing| eprintln!("SKIPPED: {missing}"));
    !found.is_empty()
}

/// Parts that were measured, and those that were not with their reasons.
fn parts(out: &Path) -> (Vec<String>, Vec<String>) {
    let results: Results = ladon_lab::results::file::read(&out.join("results.json")).unwrap();
    let (mut measured, mut empty) = (Vec::new(), Vec::new());
    // A crash is the lab's own doing, whatever tool measures the rest.
    let parts = results.works.iter().flat_map(|work| &work.parts);
    for part in parts.filter(|part| part.part != "crash") {
        for cell in &part.cells {
            match &cell.outcome {
                Outcome::Measured { rounds } => {
                    let round = &rounds[0];
                    assert!(round.per_second > 0.0 && round.operations > 0, "{round:?}");
                    assert!(round.load_busy > 0.0, "the tool's own work is not seen: {round:?}");
                    assert!(round.cpu_user_us.unwrap() + round.cpu_system_us.unwrap() > 0.0);
                    let latency = round.latency_us.as_ref().unwrap();
                    assert!(latency.p50 > 0.0 && latency.max >= latency.p50, "{latency:?}");
                    measured.push(part.part.clone());
                }
                Outcome::Empty { reason } => empty.push(format!("{}: {reason}", part.part)),
            }
        }
    }
    (measured, empty)
}

fn measures(tool: Tool, name: &str, system: &str, work: &str, wanted: &[&str]) {
    if tool.find().is_none() {
        eprintln!("SKIPPED: {}: {}", tool.program(), tool.install());
        return;
    }
    if !is_here(system) {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let output = run(name, system, work, None, out.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (measured, empty) = parts(out.path());
    assert_eq!(measured, wanted, "{empty:?}");
}

#[test]
fn redis_benchmark() {
    let wanted = ["set", "set", "set", "set", "get", "get", "get", "get"];
    measures(Tool::RedisBenchmark, "redis-benchmark", "redis", "durability", &wanted);
}

#[test]
fn k6_on_redis() {
    measures(Tool::K6, "k6", "redis", "kv", &["set-5", "get-5", "delete-5"]);
}

#[test]
fn wrk_on_a_web_program() {
    measures(Tool::Wrk, "wrk", "go-leveldb", "web", &["write-5", "read-5"]);
}

/// What k6 says is not taken on trust: a stand-in for it that saw wrong answers, and one that
/// failed.
#[test]
fn what_a_script_saw_wrong_ends_the_run() {
    if !is_here("redis") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("k6");
    let says = |wrong: u32, failed: u32| {
        let text = format!(
            "#!/bin/sh\necho '{{\"iterations\":9,\"wrong\":{wrong},\"failed\":{failed},\
             \"milliseconds\":500,\"latency_ms\":{{\"med\":1,\"max\":2}}}}'\n"
        );
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    says(3, 0);
    let out = tempfile::tempdir().unwrap();
    let output = run("k6", "redis", "kv", Some(folder.path()), out.path());
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("saw 3 wrong of 9"), "{text}");
    says(0, 2);
    let out = tempfile::tempdir().unwrap();
    let output = run("k6", "redis", "kv", Some(folder.path()), out.path());
    assert_eq!(output.status.code(), Some(1), "no figure is no success");
    let (measured, empty) = parts(out.path());
    assert!(measured.is_empty() && empty[0].contains("2 of 9 failed"), "{empty:?}");
}

#[test]
fn a_tool_that_is_not_here_says_how_to_get_it_and_one_that_cannot_why() {
    if is_here("tarantool") {
        let out = tempfile::tempdir().unwrap();
        let output = run("wrk", "tarantool", "counter", None, out.path());
        assert_eq!(output.status.code(), Some(1), "no figure is no success");
        let (measured, empty) = parts(out.path());
        let reason =
            if Tool::Wrk.find().is_some() { "speaks HTTP only" } else { "apt-get install" };
        assert!(measured.is_empty() && empty[0].contains(reason), "{empty:?}");
    }
    for tool in Tool::ALL {
        assert!(tool.install().contains("install") || tool.install().contains("https://"));
    }
}
