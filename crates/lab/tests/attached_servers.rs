//! `--attach` to servers that run already, in every protocol: works go through, twice, as each pass keeps
//! to keys of its own. Skips, and says so, where a server is not installed.

mod common;

use std::path::Path;
use std::process::Command;

use common::start;
use ladon_lab::results::schema::{Outcome, Results};
use ladon_lab::systems::iproto_control::IprotoControl;

fn run(attach: &str, works: &str, out: &Path) -> Result<Results, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_ladon-lab"))
        .args(["run", "--work", works, "--only-attached", "--attach", attach])
        .args(["--rounds", "2", "--seconds", "0.1", "--keys", "2000", "--clients", "5", "--out"])
        .arg(out)
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(ladon_lab::results::file::read(&out.join("results.json")).unwrap())
}

/// Every part but those in `empty` has its two rounds; a second run meets what the first left.
fn all_measured(attach: &str, works: &str, empty: &[&str]) {
    for _ in 0..2 {
        let out = tempfile::tempdir().unwrap();
        let results = run(attach, works, out.path()).unwrap();
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
}

#[test]
fn tarantool_with_a_login() {
    let Some((_, instance)) = start("tarantool") else { return };
    let mut control = IprotoControl::connect(instance.address()).unwrap();
    control
        .eval(
            "box.session.su('admin', function()
               for id = 512, 516 do box.space[id]:drop() end
               lab_add, lab_set_many = nil, nil
               box.schema.sequence.drop('sets_numbers')
               box.schema.user.create('user', {password = 'secret'})
               box.schema.user.grant('user', 'super')
             end)",
        )
        .unwrap();
    let address = instance.address();
    let attach = format!("t=tarantool://user:secret@{address}");
    all_measured(&attach, "counter,sets,index,batch", &[]);
    let out = tempfile::tempdir().unwrap();
    let wrong = format!("t=tarantool://user:wrong@{address}");
    let results = run(&wrong, "counter", out.path()).unwrap();
    let cell = &results.works[0].parts[0].cells[0];
    let Outcome::Empty { reason } = &cell.outcome else { panic!("{cell:?}") };
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
    let out = tempfile::tempdir().unwrap();
    let attach = format!("t=tarantool://{}", instance.address());
    let results = run(&attach, "counter", out.path()).unwrap();
    let Outcome::Empty { reason } = &results.works[0].parts[0].cells[0].outcome else {
        panic!("measured beside somebody else's space");
    };
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
