//! `ladon config`, and how wrong settings end.

use crate::common::ladon;
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

#[test]
fn layers_and_origins_as_json() {
    let dir = TempDir::new().expect("a directory");
    let toml = dir.path().join("ladon.toml");
    let conf = dir.path().join("redis.conf");
    fs::write(&toml, "maxmemory = \"1gb\"\ntimeout = 5\n").expect("writes");
    fs::write(&conf, "timeout 6\nmaxclients 7\nrequirepass hunter2\n").expect("writes");
    let (toml, conf) = (toml.to_str().expect("UTF-8"), conf.to_str().expect("UTF-8"));
    let run =
        ladon(&["config", "--json", "--config", toml, "--redis-conf", conf, "--maxclients", "8"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let all: Value = serde_json::from_str(&run.stdout).expect("JSON");
    for (name, value, origin) in [
        ("maxmemory", "1073741824", format!("{toml}:1")),
        ("timeout", "6", format!("{conf}:1")),
        ("maxclients", "8", "--maxclients".to_owned()),
        ("gate", "everysec", "default".to_owned()),
    ] {
        assert_eq!(all[name]["value"], value, "{name}");
        assert_eq!(all[name]["origin"], origin, "{name}");
    }
    assert_eq!(all["requirepass"]["value"], Value::Null);
    assert!(!run.stdout.contains("hunter2"));
}

#[test]
fn every_wrong_line_and_flag_is_named() {
    let dir = TempDir::new().expect("a directory");
    let conf = dir.path().join("redis.conf");
    fs::write(&conf, "port 1\nreplica-read-only no\npidfile /x\nnosuch 1\n").expect("writes");
    let conf = conf.to_str().expect("UTF-8");
    let run = ladon(&["config", "--redis-conf", conf, "--gate", "sometimes"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{}", run.stderr);
    assert!(lines[0].starts_with(&format!("{conf}:2: replica-read-only")), "{}", lines[0]);
    assert!(lines[1].starts_with(&format!("{conf}:4: ")), "{}", lines[1]);
    assert!(lines[2].starts_with("--gate: "), "{}", lines[2]);
}

#[test]
fn the_redis_conf_of_this_machine_if_it_has_one() {
    // Debian's package brings one; the copy of its directives is checked with the settings.
    let path = "/etc/redis/redis.conf";
    if fs::File::open(path).is_ok() {
        let run = ladon(&["config", "--redis-conf", path]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(run.stdout.contains(&format!("# {path}:")), "{}", run.stdout);
    }
}

#[test]
fn command_line_errors_have_their_own_code() {
    for arguments in [&["--nosuch"][..], &["nosuch"], &["config", "--nosuch"], &["check"]] {
        let run = ladon(arguments);
        assert_eq!(run.code, 2, "{arguments:?}");
        assert!(!run.stderr.is_empty());
    }
    for arguments in [&["--help"][..], &["--version"], &["version"], &["help", "config"]] {
        let run = ladon(arguments);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
        assert!(!run.stdout.is_empty());
    }
    assert!(ladon(&["--help"]).stdout.contains("Exit codes:"));
}
