//! Every probe, as a user starts it, tiny: against a real redis-server, which is named twice, so that
//! a probe's handling of several systems is seen too. Skips, and says so, where there is none.

use std::process::{Command, Output};

use ladon_lab::systems::find::{Places, named};

fn lab(work: &str, arguments: &[&str]) -> Option<Output> {
    if named(&["redis".to_owned()], &Places::default()).is_err() {
        eprintln!("SKIPPED: no redis-server on PATH (apt-get install redis-server)");
        return None;
    }
    let out = tempfile::tempdir().unwrap();
    let json = out.path().join("result.json");
    let output = Command::new(env!("CARGO_BIN_EXE_ladon-lab"))
        .args(["probe", work])
        .args(["--systems", "redis,redis", "--json"])
        .arg(&json)
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(record["work"], work);
    assert_eq!(record["systems"].as_array().unwrap().len(), 2);
    assert!(record["machine"]["kernel"].as_str().unwrap().contains("Linux"));
    assert_eq!(record["command_line"][2], work);
    let text = std::fs::read_to_string(out.path().join("result.txt")).unwrap();
    assert!(text.contains("redis#2"), "{text}");
    Some(output)
}

#[test]
fn kv() {
    let small = ["--rounds", "2", "--seconds", "0.3", "--keys", "2000", "--pipeline", "1,16"];
    let promises = ["--persistence", "none,everysec,fsync"];
    let Some(output) = lab("kv", &[small.as_slice(), &promises].concat()) else { return };
    let text = String::from_utf8(output.stdout).unwrap();
    for promise in ["none", "everysec", "fsync"] {
        assert!(text.contains(&format!("persistence {promise}:")), "{text}");
    }
    assert!(text.contains("redis#2 / redis"), "{text}");
}

#[test]
fn memory() {
    lab("memory", &["--keys", "2000"]);
}

#[test]
fn types() {
    let small = ["--rounds", "1", "--seconds", "0.1", "--pipeline", "8", "--fields", "2000"];
    let few = ["--members", "2000", "--counters", "2000", "--bitmaps", "10", "--lists", "10"];
    let Some(output) = lab("types", &[small, few].concat()) else { return };
    let text = String::from_utf8(output.stdout).unwrap();
    for operation in ["HSET P=8", "LPUSH+RPOP P=8", "ZRANGE P=8", "SETBIT P=8", "INCR P=8"] {
        assert!(text.contains(operation), "{operation}: {text}");
    }
    assert!(text.contains("redis#2 / redis"), "{text}");
}

#[test]
fn memory_of_types() {
    let few = ["--memory-members", "1000", "--memory-hashes", "100", "--memory-lists", "100"];
    let Some(output) = lab("types", &[["--memory"].as_slice(), &few].concat()) else { return };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("hash of 20 fields") && text.contains("list of 100 elements"), "{text}");
}

#[test]
fn growth() {
    lab("growth", &["--keys", "20000", "--seconds", "0.1", "--clients", "5"]);
}

#[test]
fn eviction() {
    let small = ["--keys", "20000", "--requests", "20000", "--maxmemory", "4000000"];
    let Some(output) = lab("eviction", &small) else { return };
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("redis")).collect();
    let rows: Vec<&&str> = rows.iter().filter(|line| line.contains("allkeys-")).collect();
    assert_eq!(rows.len(), 2 * 2 * 2, "two systems, patterns and policies: {text}");
    for row in rows {
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_ne!(cells.last(), Some(&"0"), "nothing was evicted: {text}");
    }
}

#[test]
fn stall() {
    let few = ["--sorted-set", "20000", "--hash", "5000", "--set", "5000", "--list", "5000"];
    let Some(output) = lab(
        "stall",
        &[["--seconds", "0.1", "--every", "50", "--clients", "2"].as_slice(), &few].concat(),
    ) else {
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    for stretch in ["nothing", "HGETALL", "SUNIONSTORE", "LRANGE", "DEL", "BGSAVE + all"] {
        assert!(text.contains(&format!("\n{stretch} ")), "{stretch}: {text}");
    }
}

#[test]
fn handover() {
    let Some(output) = lab("handover", &["--rounds", "1", "--seconds", "0.1"]) else { return };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("from LPUSH to the client that waits"), "{text}");
}

#[test]
fn an_interrupted_run_leaves_no_server_behind() {
    if named(&["redis".to_owned()], &Places::default()).is_err() {
        eprintln!("SKIPPED: no redis-server on PATH (apt-get install redis-server)");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ladon-lab"))
        .args([
            "probe",
            "kv",
            "--systems",
            "redis",
            "--seconds",
            "60",
            "--keys",
            "2000",
            "--data-root",
        ])
        .arg(root.path())
        .spawn()
        .unwrap();
    let entries = || std::fs::read_dir(root.path()).unwrap().count();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while entries() == 0 || servers_below(root.path()) == 0 {
        assert!(std::time::Instant::now() < deadline, "no server was started");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(servers_below(root.path()), 0);
    assert_eq!(entries(), 0);
}

/// Processes that work in a directory below `root`, as a redis-server does.
fn servers_below(root: &std::path::Path) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let folders = processes.filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok());
    folders.filter(|folder| folder.starts_with(root)).count()
}
