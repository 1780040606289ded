//! `--attach` to servers that run already, in every protocol: works go through, twice, as each pass
//! keeps to keys of its own. Skips, and says so, where a server is not installed.

use std::path::Path;
use std::process::Command;

use crate::common::start;
use ladon_lab::results::schema::{Outcome, Results};
use ladon_lab::systems::control::Control;
use ladon_lab::systems::iproto_control::IprotoControl;

/// What a run leaves; and whether it measured anything.
fn run(attach: &str, works: &str, out: &Path) -> (Results, bool) {
    let output = Command::new(env!("CARGO_BIN_EXE_ladon-lab"))
        .args(["run", "--work", works, "--only-attached", "--attach", attach])
        .args(["--rounds", "2", "--seconds", "0.1", "--keys", "2000", "--clients", "5", "--out"])
        .arg(out)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let nothing = said.contains("nothing was measured");
    assert!(output.status.success() != nothing, "{said}");
    (ladon_lab::results::file::read(&out.join("results.json")).unwrap(), !nothing)
}

/// Why the first cell of a run that measured nothing is empty.
fn refused(attach: &str, works: &str) -> String {
    let out = tempfile::tempdir().unwrap();
    let (results, measured) = run(attach, works, out.path());
    assert!(!measured);
    match &results.works[0].parts[0].cells[0].outcome {
        Outcome::Empty { reason } => reason.clone(),
        measured @ Outcome::Measured { .. } => panic!("{measured:?}"),
    }
}

/// Every part but those in `empty` has its two rounds; a second run meets what the first left.
fn all_measured(attach: &str, works: &str, empty: &[&str]) {
    for _ in 0..2 {
        let out = tempfile::tempdir().unwrap();
        let (results, _) = run(attach, works, out.path());
        for part in results.works.iter().flat_map(|work| &work.parts) {
            for cell in &part.cells {
                match &cell.outcome {
                    Outcome::Measured { rounds } => assert_eq!(rounds.len(), 2, "{}", part.part),
                    Outcome::Empty { reason } => {
                        assert!(empty.contains(&part.part.as_str()), "{}: {reason}", part.part);
                    }
                }
            }
        }
    }
}

#[test]
fn redis() {
    let Some((_, instance)) = start("redis") else { return };
    all_measured(&format!("r={}", instance.address()), "counter,sets,mixed", &["e"]);
    let reason = refused(&format!("r={}", instance.address()), "index");
    assert!(reason.contains("FT.CREATE"), "{reason}");
}

/// The record has what the server tells, but for its password.
#[test]
fn redis_tells_its_version_and_what_it_promises() {
    let Some((_, instance)) = start("redis") else { return };
    let mut control = Control::connect(instance.address()).unwrap();
    for words in [
        ["CONFIG", "SET", "appendonly", "yes"],
        ["CONFIG", "SET", "appendfsync", "always"],
        ["CONFIG", "SET", "requirepass", "geheim"],
    ] {
        control.text(&words).unwrap();
    }
    let out = tempfile::tempdir().unwrap();
    let (results, measured) =
        run(&format!("r=redis://:geheim@{}", instance.address()), "counter", out.path());
    assert!(measured);
    let system = results.systems.iter().find(|system| system.name == "r").unwrap();
    assert!(system.version.as_deref().is_some_and(|told| told.starts_with("redis ")), "{system:?}");
    assert_eq!(system.settings[0].promise, "fsync");
    assert_eq!(system.settings[0].values["requirepass"], "***");
    for file in ["results.json", "report.html"] {
        let text = std::fs::read_to_string(out.path().join(file)).unwrap();
        assert!(!text.contains("geheim"), "{file}");
    }
}

/// The module is found by asking; its index of an earlier run is taken, and somebody else's is not.
#[test]
fn redisearch() {
    let Some((_, instance)) = start("redisearch") else { return };
    let attach = format!("r={}", instance.address());
    all_measured(&attach, "index", &[]);
    let mut control = Control::connect(instance.address()).unwrap();
    control.text(&["FT.DROPINDEX", "lab:rows"]).unwrap();
    let other = ["FT.CREATE", "lab:rows", "ON", "HASH", "PREFIX", "1", "orders:"];
    let schema = ["SCHEMA", "g", "TAG"];
    control.text(&[&other[..], &schema[..]].concat()).unwrap();
    let reason = refused(&attach, "index");
    assert!(reason.contains("somebody else's"), "{reason}");
}

#[test]
fn tarantool_with_a_login() {
    let Some((_, instance)) = start("tarantool") else { return };
    let mut control = IprotoControl::connect(instance.address()).unwrap();
    control
        .eval(
            "box.session.su('admin', function()
               for id = 512, 517 do box.space[id]:drop() end
               lab_set_many = nil
               box.schema.sequence.drop('sets_numbers')
               box.schema.user.create('user', {password = 'secret'})
               box.schema.user.grant('user', 'super')
             end)",
        )
        .unwrap();
    let address = instance.address();
    let attach = format!("t=tarantool://user:secret@{address}");
    all_measured(&attach, "counter,sets,index,batch", &[]);
    let reason = refused(&format!("t=tarantool://user:wrong@{address}"), "counter");
    assert!(reason.contains("the lab's spaces cannot be made"), "{reason}");
}

/// A space of somebody else's is not touched.
#[test]
fn tarantool_in_use() {
    let Some((_, instance)) = start("tarantool") else { return };
    let mut control = IprotoControl::connect(instance.address()).unwrap();
    control
        .eval("box.session.su('admin', function() box.space.rows:rename('orders') end)")
        .unwrap();
    let reason = refused(&format!("t=tarantool://{}", instance.address()), "counter");
    assert!(reason.contains("somebody else's"), "{reason}");
}

#[test]
fn memcached() {
    let Some((_, instance)) = start("memcached") else { return };
    all_measured(&format!("m=memcached://{}", instance.address()), "kv,counter", &[]);
}

#[test]
fn a_web_program() {
    let Some((_, instance)) = start("go-leveldb") else { return };
    all_measured(&format!("w=http://{}/", instance.address()), "web", &[]);
}
