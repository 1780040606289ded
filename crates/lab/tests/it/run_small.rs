//! `ladon-lab run` as a user starts it, tiny, against the real servers of this machine: works end
//! to end, a crash is counted, an interruption leaves a valid result and no server. Skips, and says
//! so, where a server is not installed.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use ladon_lab::results::schema::{Cell, Outcome, Results};
use ladon_lab::systems::program_paths::ProgramPaths;
use ladon_lab::systems::registry;

fn is_here(system: &str) -> bool {
    let names = [system.to_owned()];
    let here =
        registry::named(&names, &ProgramPaths::default()).is_ok_and(|(found, _)| !found.is_empty());
    if !here {
        eprintln!("SKIPPED: {system} is not installed");
    }
    here
}

fn lab(out: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ladon-lab"))
        .arg("run")
        .args(arguments)
        .arg("--out")
        .arg(out)
        .output()
        .unwrap()
}

fn results(out: &Path) -> Results {
    ladon_lab::results::file::read(&out.join("results.json")).unwrap()
}

fn cells(results: &Results) -> impl Iterator<Item = (&str, &str, &Cell)> {
    results.works.iter().flat_map(|work| {
        work.parts.iter().flat_map(move |part| {
            part.cells.iter().map(move |cell| (work.work.as_str(), part.part.as_str(), cell))
        })
    })
}

const SMALL: [&str; 8] = ["--rounds", "2", "--seconds", "0.1", "--keys", "2000", "--clients", "5"];

/// Every cell of `system` is measured in every round, but those whose part is in `empty`.
fn all_measured(system: &str, work: &str, empty: &[&str]) {
    if !is_here(system) {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let output = lab(out.path(), &[&["--work", work, "--systems", system], &SMALL[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(out.path().join("report.html")).unwrap();
    let results = results(out.path());
    let tables = String::from_utf8_lossy(&output.stdout);
    for work in work.split(',') {
        assert!(page.contains(&format!("id=\"run1-{work}\"")), "the report lacks {work}");
        assert!(tables.contains(&format!("({work})")), "{tables}");
    }
    assert!(!results.partial);
    let mut seen = 0;
    for (_, part, cell) in cells(&results) {
        assert_eq!(cell.system, system);
        match &cell.outcome {
            Outcome::Measured { rounds } => {
                assert_eq!(rounds.len(), 2, "{part}");
                for round in rounds {
                    assert!(round.operations > 0, "{part}: {round:?}");
                    assert!(round.cpu_user_us.is_none_or(|cpu| cpu >= 0.0));
                }
                seen += 1;
            }
            Outcome::Empty { reason } => assert!(empty.contains(&part), "{part}: {reason}"),
        }
    }
    assert!(seen > 0);
    let system = &results.systems[0];
    assert!(system.version.is_some() && !system.settings.is_empty());
    assert!(!system.settings[0].command_line.is_empty());
    assert!(system.settings[0].values.len() > 5, "{:?}", system.settings[0].values);
}

#[test]
fn works_on_redis() {
    all_measured("redis", "kv,counter,sets", &[]);
}

#[test]
fn works_on_tarantool() {
    all_measured("tarantool", "kv,counter,sets", &[]);
}

#[test]
fn works_on_ladon_over_memcached() {
    all_measured("ladon-memcached", "kv,counter", &[]);
}

#[test]
fn works_on_ladon_over_iproto() {
    all_measured("ladon-iproto", "kv,counter,sets,index", &[]);
}

#[test]
fn ladon_over_iproto_says_what_it_cannot_do() {
    if !is_here("ladon-iproto") || !is_here("tarantool") {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let both = ["--work", "batch", "--systems", "ladon-iproto,tarantool"];
    let output = lab(out.path(), &[&both[..], &SMALL].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut empty, mut measured) = (0, 0);
    for (_, part, cell) in cells(&results(out.path())) {
        match (cell.system.as_str(), &cell.outcome) {
            ("ladon-iproto", Outcome::Empty { reason }) => {
                assert!(reason.contains("stored function"), "{reason}");
                empty += 1;
            }
            ("tarantool", Outcome::Measured { .. }) => measured += 1,
            (system, outcome) => panic!("{system}, {part}: {outcome:?}"),
        }
    }
    assert!(empty > 0 && empty == measured, "{empty} {measured}");
}

/// TREE beside TREE and HASH beside HASH; an index without an order has no ranges.
#[test]
fn spaces_of_both_types_on_both_servers() {
    for (system, empty) in [
        ("ladon-iproto", &[][..]),
        ("ladon-iproto-hash", &["range"]),
        ("tarantool", &[]),
        ("tarantool-hash", &["range"]),
    ] {
        all_measured(system, "spaces", empty);
    }
    all_measured("redis", "spaces", &["call", "range", "tuple"]);
}

#[test]
fn statements_of_sql_on_all_that_take_them() {
    for system in ["ladon-iproto", "tarantool", "sqlite", "mariadb"] {
        all_measured(system, "sql", &[]);
    }
}

/// A system that is named and takes no SQL says so in its cells.
#[test]
fn a_system_without_sql_says_so() {
    if !is_here("tarantool") || !is_here("redis") {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let both = ["--work", "sql", "--systems", "tarantool,redis"];
    let output = lab(out.path(), &[&both[..], &SMALL].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results = results(out.path());
    let of_redis = cells(&results).filter(|(_, _, cell)| cell.system == "redis");
    for (_, part, cell) in of_redis {
        let Outcome::Empty { reason } = &cell.outcome else { panic!("{part}: {cell:?}") };
        assert_eq!(reason, "Redis is not asked in SQL here");
    }
}

#[test]
fn an_index_on_redis_with_its_module() {
    all_measured("redisearch", "index", &[]);
}

#[test]
fn works_on_memcached() {
    all_measured("memcached", "kv,counter,sets", &["add-5", "members-5"]);
}

/// Through its own client, with all that this can be asked for.
#[test]
fn works_on_hazelcast() {
    let works = "kv,counter,sets,batch,index,shared,durability";
    all_measured("hazelcast", works, &["crash"]);
    all_measured("hazelcast", "mixed", &["e"]);
    all_measured("hazelcast", "replica", &["lag"]);
}

/// As Hazelcast's; it can scan as well. A find is a transaction over all partitions: on a busy
/// machine none may end within so short a measurement, and `own_clients.rs` has seen them answered.
#[test]
fn works_on_voltdb() {
    let works = "kv,counter,sets,batch,index,shared,durability";
    all_measured("voltdb", works, &["crash", "find"]);
    all_measured("voltdb", "mixed", &[]);
}

#[test]
fn batches_pipelines_and_a_shared_connection_on_redis() {
    all_measured("redis", "batch,pipeline,shared,connections", &[]);
}

#[test]
fn batches_and_a_shared_connection_on_tarantool() {
    all_measured("tarantool", "batch,shared", &[]);
}

#[test]
fn ycsb_on_redis_and_tarantool() {
    all_measured("redis", "mixed", &["e"]);
    all_measured("tarantool", "mixed", &[]);
}

/// What a kill takes: everything without a log, nothing with one that is handed to the system.
#[test]
fn a_crash_loses_what_was_not_logged_and_nothing_else() {
    // Ladon writes its log whatever the gate: without one, less than everything is missing.
    for (system, log, all) in [
        ("redis", "appendfsync always", 3),
        ("tarantool", "wal_mode write", 3),
        ("ladon-iproto", "gate write", 2),
    ] {
        if !is_here(system) {
            continue;
        }
        let out = tempfile::tempdir().unwrap();
        let arguments = [&["--work", "durability", "--systems", system], &SMALL[..]].concat();
        let output = lab(out.path(), &arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let results = results(out.path());
        let mut seen = 0;
        for (_, part, cell) in cells(&results) {
            if part != "crash" {
                continue;
            }
            for round in cell.rounds() {
                let acknowledged = round.figure("acknowledged").unwrap();
                let missing = round.figure("missing").unwrap();
                assert!(acknowledged > 0.0);
                if ["appendonly no", "wal_mode none"].contains(&cell.setting.as_str()) {
                    assert!((missing - acknowledged).abs() < 0.5, "{}", cell.setting);
                    seen |= 1;
                } else if cell.setting == log {
                    assert!(missing < 0.5, "{}: {missing} of {acknowledged}", cell.setting);
                    seen |= 2;
                }
            }
        }
        assert_eq!(
            seen,
            all,
            "{system}: {:?}",
            cells(&results).map(|(_, p, c)| (p, &c.setting)).collect::<Vec<_>>()
        );
    }
}

#[test]
fn an_open_loop_keeps_its_rate() {
    if !is_here("redis") {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let rate = ["--work", "counter", "--systems", "redis", "--rate", "1000"];
    let long = ["--rounds", "1", "--seconds", "1", "--clients", "10"];
    let output = lab(out.path(), &[rate.as_slice(), &long].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results = results(out.path());
    // All keep the rate: what counts is how long requests wait.
    assert_eq!(results.works[0].parts[0].figures[0].key, "p99_us");
    assert_eq!(results.load["--rate"], "1000");
    for (_, part, cell) in cells(&results) {
        let round = &cell.rounds()[0];
        assert!((500..1600).contains(&round.operations), "{part}: {}", round.operations);
        assert!(round.extra.contains_key("behind_ms"));
    }
}

#[test]
fn a_tool_in_the_place_of_the_driver() {
    if !is_here("redis") || ladon_lab::run::load_tool::Tool::RedisBenchmark.find().is_none() {
        eprintln!("SKIPPED: no redis-benchmark");
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let tool = ["--work", "pipeline,counter", "--systems", "redis", "--tool", "redis-benchmark"];
    let few = ["--pipeline", "8", "--value-size", "64"];
    let output = lab(out.path(), &[tool.as_slice(), &SMALL, &few].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (work, part, cell) in cells(&results(out.path())) {
        match (&cell.outcome, work) {
            (Outcome::Measured { rounds }, "pipeline") => assert!(rounds[0].per_second > 100.0),
            (Outcome::Empty { reason }, "counter") => assert!(reason.contains("tool"), "{reason}"),
            // Its figures would stand between the tool's.
            (Outcome::Empty { reason }, "pipeline")
                if part == "ping" || part.ends_with("-shards") =>
            {
                assert!(reason.contains("only the lab's own driver"), "{reason}");
            }
            other => panic!("{part}: {other:?}"),
        }
    }
}

/// Eighteen seconds for what would take many times that at full length: every work is measured, and
/// the run does not take longer than it may.
#[test]
fn a_run_that_has_little_time_measures_everything_once_and_ends() {
    if !is_here("redis") {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let arguments = ["--quick", "--systems", "redis,redis", "--clients", "5", "--budget", "0.4"];
    let output = lab(out.path(), &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results = results(out.path());
    assert!(!results.partial && results.seconds < 0.5, "{}", results.seconds);
    assert_eq!(results.works.len(), 4);
    for (work, part, cell) in cells(&results) {
        assert!(!cell.rounds().is_empty(), "{work} {part}: {:?}", cell.outcome);
    }
}

#[test]
fn nonsense_is_refused() {
    let out = tempfile::tempdir().unwrap();
    for (arguments, word) in [
        (vec!["--work", "nothing"], "unknown work"),
        (vec![], "say --quick"),
        (vec!["--quick", "--systems", "nothing"], "unknown system"),
        (vec!["--quick", "--value-size", "3"], "--value-size"),
        (vec!["--quick", "--clients", "0"], "at least 1"),
        (vec!["--quick", "--attach", "x=ftp://127.0.0.1:1"], "scheme"),
        (vec!["--work", "kv,sets,kv"], "kv is listed twice"),
        (vec!["--quick", "--price-per-hour=-1"], "--price-per-hour"),
        (
            vec!["--work", "kv", "--data-root", "/dev/null/nowhere"],
            "--data-root /dev/null/nowhere: ",
        ),
        (vec!["--work", "kv", "--server-cores", "1000"], "--server-cores: core 1000"),
        (vec!["--work", "kv", "--load-cores", "1000"], "--load-cores: core 1000"),
        (vec!["--work", "sets", "--dist", "zipf"], "--dist changes nothing"),
    ] {
        let output = lab(out.path(), &arguments);
        assert!(!output.status.success());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(word), "{arguments:?}: {text}");
    }
}

/// A script that waits for figures must not take reasons for them.
#[test]
fn a_run_without_a_figure_is_no_success() {
    if !is_here("redis") {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let output = lab(out.path(), &["--work", "web", "--systems", "redis,keydb@/nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("nothing was measured"), "{text}");
    assert!(text.contains("not measured: keydb: not found at /nowhere"), "{text}");
    let results = results(out.path());
    assert!(!results.partial && cells(&results).count() > 0);
}

#[test]
fn an_interrupted_run_leaves_a_valid_partial_result_and_no_server() {
    if !is_here("redis") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let out = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ladon-lab"))
        .args(["run", "--work", "counter", "--systems", "redis,redis", "--clients", "5"])
        .args(["--seconds", "0.5", "--rounds", "1000", "--data-root"])
        .arg(root.path())
        .arg("--out")
        .arg(out.path())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let file = out.path().join("results.json");
    while !file.exists() || servers_below(root.path()) == 0 {
        assert!(Instant::now() < deadline, "nothing was measured");
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(servers_below(root.path()), 0);
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    let results = results(out.path());
    assert!(results.partial && results.finished_unix >= results.started_unix);
    let page = std::fs::read_to_string(out.path().join("report.html")).unwrap();
    assert!(page.contains("the run was ended before everything was measured"));
    let measured = cells(&results).filter(|(_, _, cell)| !cell.rounds().is_empty()).count();
    assert!(measured >= 2, "{measured}");
    for (_, part, cell) in cells(&results) {
        let empty = matches!(&cell.outcome, Outcome::Empty { .. });
        assert!(!empty, "{part}: the interruption is no failure of the server's");
    }
}

/// Processes that work in a directory below `root`, as a server does.
fn servers_below(root: &Path) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let folders = processes.filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok());
    folders.filter(|folder| folder.starts_with(root)).count()
}

#[test]
fn nodes_indexes_pages_and_memory() {
    all_measured("redis", "replica,cluster,memory", &[]);
    // Without a log there is nothing to copy from: those cells of wal_mode none are empty.
    let empty = ["set", "get", "delete", "lag", "zset-member", "hash", "list"];
    all_measured("tarantool", "index,memory,replica-both", &empty);
    all_measured("go-leveldb", "web", &[]);
}

#[test]
fn types_stalls_and_handovers() {
    // Beside a work that has users: an option that changes nothing at all is refused.
    all_measured("redis", "counter,types,scripts,publish,stall,handover", &[]);
}

#[test]
fn a_polite_client_beside_impolite_ones() {
    if !is_here("redis") {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let output = lab(
        out.path(),
        &[
            "--work",
            "fairness",
            "--systems",
            "redis",
            "--rounds",
            "1",
            "--seconds",
            "0.1",
            "--keys",
            "2000",
        ],
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results = results(out.path());
    let mut seen = 0;
    for (_, part, cell) in cells(&results) {
        let [round] = cell.rounds() else { panic!("{part}: {:?}", cell.outcome) };
        let waits = round.latency_us.as_ref().unwrap();
        assert!(waits.p50 > 0.0 && waits.max >= waits.p999, "{part}: {waits:?}");
        let extra =
            |key: &str| round.extra.get(key).copied().unwrap_or_else(|| panic!("{part}: {key}"));
        assert!(extra("peak_bytes") > 1e6, "{part}");
        assert!(extra("gave_up").abs() < 0.5 && extra("closed").abs() < 0.5, "{part}");
        // One slow command may take longer than a round this short.
        if part != "nothing" && part != "snapshot" && !part.starts_with("slow") {
            assert!(extra("others_per_second") > 1.0, "{part}: {round:?}");
        }
        seen += 1;
    }
    assert_eq!(seen, 10);
}

/// Every cell has its round, and the figure of each part is one.
fn measured_once(works: &str, parts: usize) {
    if !is_here("redis") {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let small = ["--rounds", "1", "--seconds", "0.1", "--keys", "2000"];
    let output = lab(out.path(), &[&["--work", works, "--systems", "redis"], &small[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results = results(out.path());
    let all = results.works.iter().flat_map(|work| &work.parts);
    for part in all.clone() {
        let rounds = part.cells[0].rounds();
        assert_eq!(rounds.len(), 1, "{}: {:?}", part.part, part.cells[0].outcome);
        for figure in &part.figures {
            let value = rounds[0].figure(&figure.key);
            assert!(value.is_some_and(|value| value >= 0.0), "{}: {}", part.part, figure.key);
        }
    }
    assert_eq!(all.count(), parts);
}

#[test]
fn more_stalls() {
    measured_once("stall-more", 17);
}

#[test]
fn growth_and_evictions() {
    measured_once("growth,eviction", 8);
}

#[test]
fn memory_while_data_change() {
    measured_once("churn", 5);
}

/// Two cores for the servers, shared with the load where there are no more.
#[test]
fn shards_are_servers_on_a_core_each() {
    if !is_here("redis") || std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let arguments = ["--work", "pipeline", "--systems", "redis", "--server-cores", "0,1"];
    let output = lab(out.path(), &[&arguments[..], &SMALL[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results = results(out.path());
    let shards = cells(&results).filter(|(_, part, _)| part.ends_with("-shards"));
    let rounds: Vec<_> = shards.flat_map(|(_, _, cell)| cell.rounds()).collect();
    // Two parts, two depths, two rounds.
    assert_eq!(rounds.len(), 8);
    for round in rounds {
        assert_eq!(round.extra.get("shards"), Some(&2.0));
        assert!(round.operations > 0 && round.cpu_user_us.is_some(), "{round:?}");
    }
}

#[test]
fn two_load_threads_do_the_same_work_with_the_same_checks() {
    if !is_here("redis") {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let works = ["--work", "kv,counter,sets,batch", "--systems", "redis", "--load-threads", "2"];
    // Some numbers of users are odd, so that the threads' parts differ.
    let output = lab(out.path(), &[&works[..], &SMALL[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results = results(out.path());
    let mut seen = 0;
    for (work, part, cell) in cells(&results) {
        assert_eq!(cell.rounds().len(), 2, "{work} {part}: {:?}", cell.outcome);
        for round in cell.rounds() {
            let latency = round.latency_us.as_ref().unwrap();
            assert_eq!(round.extra.get("load_threads"), Some(&2.0), "{work} {part}");
            assert!(round.operations > 0 && latency.p50 > 0.0, "{work} {part}: {round:?}");
            seen += 1;
        }
    }
    assert!(seen >= 20, "{seen}");
}

#[test]
fn a_budget_sets_rounds_and_seconds_and_says_so() {
    if !is_here("redis") {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    // Eighteen seconds for two measurements: as many rounds as there can be, and long ones.
    let arguments =
        ["--work", "counter", "--systems", "redis", "--clients", "5", "--budget", "0.3"];
    let began = Instant::now();
    let output = lab(out.path(), &arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    assert!(
        errors.contains("before the rounds") && errors.contains("of 0 min 18 s asked for"),
        "{errors}"
    );
    let results = results(out.path());
    let budget = results.budget.clone().unwrap();
    assert!((budget.minutes - 0.3).abs() < 1e-9);
    assert!(results.rounds >= 6, "{}", results.rounds);
    assert_eq!(budget.rounds_min, results.rounds, "one work");
    assert!(!results.partial);
    for (_, part, cell) in cells(&results) {
        assert_eq!(cell.rounds().len() as u32, results.rounds, "{part}: {:?}", cell.outcome);
    }
    // Far more than the least, far less than without end.
    assert!(budget.seconds_max * f64::from(results.rounds) > 0.5, "{budget:?}");
    assert!(began.elapsed() < Duration::from_secs(60));
}
