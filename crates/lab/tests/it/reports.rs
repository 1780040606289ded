//! `ladon-lab report` and `compare` as a user calls them, on a kept file of results format 1.
//!
//! The fixture is made up, so that it has every kind of cell and verdict; its figures say nothing
//! about anybody.

use std::path::Path;
use std::process::{Command, Output};

use ladon_lab::results::{Cell, Outcome, Results, file};

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/results-format-1.json");

fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ladon-lab")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn fixture() -> Results {
    file::read(Path::new(FIXTURE)).unwrap()
}

/// A file of the fixture after `change`.
fn changed(folder: &Path, name: &str, change: impl Fn(&mut Results)) -> String {
    let mut results = fixture();
    change(&mut results);
    let path = file::write(&folder.join(name), &results).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Ladon's throughput times `factor`, in every cell.
fn slower(results: &mut Results, factor: f64) {
    let parts = results.works.iter_mut().flat_map(|work| &mut work.parts);
    let cells = parts.flat_map(|part| &mut part.cells).filter(|cell| cell.system == "ladon");
    for Cell { outcome, .. } in cells {
        if let Outcome::Measured { rounds } = outcome {
            rounds.iter_mut().for_each(|round| round.per_second *= factor);
        }
    }
}

/// All numbers as floats: `1` and `1.0` are the same place on an axis.
fn floats(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(values) => values.iter().map(floats).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), floats(value))).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn a_file_of_format_1_is_read_and_written_unchanged() {
    let bytes = std::fs::read(FIXTURE).unwrap();
    let raw: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let again = serde_json::to_value(fixture()).unwrap();
    assert!(floats(&raw) == floats(&again), "a field was lost or renamed");
}

#[test]
fn report_prints_tables_and_writes_a_page_that_refers_to_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = lab(&["report", FIXTURE, "--out", folder.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let tables = text(&output.stdout);
    for said in [
        "Ladon 0.1.0 is first in 10 of 13 comparisons: ",
        "Ladon 0.1.0 is behind another in 1 of 13 comparisons: ",
        "Ladon 0.1.0 is not told apart from the others in 2 of 13 comparisons: ",
        "Keys and values (kv): SET, 100 users",
        "wins: Ladon 0.1.0, gate none: 1.30× the throughput of Valkey 9.1.2, appendonly no",
        "not told apart, and not known to be level",
        "undecided: Ladon 0.1.0",
        "empty: memcached 1.6.18, memory only: memcached has no sets",
        "breaks off at 8,000: broke off at 8000 users",
        "†: the load generator was the limit",
        "written: ",
    ] {
        assert!(tables.contains(said), "'{said}' is missing in\n{tables}");
    }
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    for said in [
        "<strong>Ladon 0.1.0 is first in 10 of 13 comparisons</strong>",
        "13 comparisons: Ladon 0.1.0 wins 10, Valkey 9.1.2 wins 1, 2 undecided.",
        "memcached has no sets",
        "Cost of a billion requests",
        "apt-get install openjdk-17-jre-headless",
        "client-output-buffer-limit",
        "AMD EPYC 7B13",
    ] {
        assert!(page.contains(said), "'{said}' is missing in the page");
    }
    for outside in ["http://", "https://", "src=", "@import", "<script", "<link"] {
        assert!(!page.contains(outside), "the page has '{outside}'");
    }
}

/// Whatever a server says of itself is text.
#[test]
fn a_server_cannot_write_html() {
    let folder = tempfile::tempdir().unwrap();
    let evil = "<script>alert(1)</script>\"'&";
    let path = changed(folder.path(), "evil", |results| {
        results.systems[0].label = evil.to_owned();
        results.systems[0].settings[0].values.insert(evil.to_owned(), evil.to_owned());
        results.works[0].title = evil.to_owned();
        results.works[0].parts[0].title = evil.to_owned();
        results.works[0].parts[0].figures[0].title = evil.to_owned();
    });
    let output = lab(&["report", &path, "--out", folder.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(!page.contains("<script"));
    assert!(page.contains("&lt;script&gt;"));
}

#[test]
fn several_runs_make_one_report() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let output = lab(&["report", FIXTURE, FIXTURE, "--out", out]);
    assert!(
        text(&output.stdout).contains("; 6 to 10 interleaved rounds, measurements of 2 s"),
        "{}",
        text(&output.stdout)
    );
    let other = changed(folder.path(), "other", |results| {
        results.machine.cpu_model = "Another".to_owned();
        results.partial = true;
    });
    let output = lab(&["report", FIXTURE, &other, "--out", out, "--price-per-hour", "7"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("PARTIAL"));
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("run 2 of 2") && page.contains("the run was ended before"));
    assert!(page.contains("An hour of this machine costs 7.00"));
}

#[test]
fn compare_tells_by_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let same = lab(&["compare", FIXTURE, FIXTURE]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stdout));
    let slow = changed(folder.path(), "slow", |results| slower(results, 0.6));
    let worse = lab(&["compare", FIXTURE, &slow]);
    assert_eq!(worse.status.code(), Some(1), "{}", text(&worse.stdout));
    assert!(text(&worse.stdout).contains("REGRESSION"));
    let others = lab(&["compare", FIXTURE, &slow, "--systems", "redis,valkey"]);
    assert_eq!(others.status.code(), Some(0), "{}", text(&others.stdout));
    let better = lab(&["compare", &slow, FIXTURE, "--relative-to", "redis"]);
    assert_eq!(better.status.code(), Some(0));
    assert!(text(&better.stdout).contains("improvement"));
    let json = lab(&["compare", FIXTURE, &slow, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(json["regressions"].as_u64().unwrap() > 5);
    assert_eq!(json["rows"][0]["change"], "regression");
    let lost = changed(folder.path(), "lost", |results| {
        results.works[0].parts[0].cells[0].outcome =
            Outcome::Empty { reason: "it does not start any more".to_owned() };
    });
    let lost = lab(&["compare", FIXTURE, &lost]);
    assert_eq!(lost.status.code(), Some(1));
    assert!(text(&lost.stdout).contains("it does not start any more"));
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    let out = folder.path().to_str().unwrap();
    for (content, said) in [
        ("{\"format\": 1, \"lab_ver", "damaged or cut off"),
        ("{\"format\": 7, \"lab_version\": \"9\"}", "format 7"),
        ("{\"name\": \"not ours\"}", "not a results file"),
    ] {
        std::fs::write(&path, content).unwrap();
        let path = path.to_str().unwrap();
        let report = lab(&["report", path, "--out", out]);
        assert_eq!(report.status.code(), Some(1));
        let error = text(&report.stderr);
        assert!(error.contains(said) && error.contains("x.json"), "{error}");
        let compare = lab(&["compare", FIXTURE, path]);
        assert_eq!(compare.status.code(), Some(2), "1 would say that something regressed");
    }
    assert!(!folder.path().join("report.html").exists());
}
