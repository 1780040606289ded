//! Every system's file against the real thing: starts, answers, tells its settings, comes back with
//! its data, and is gone afterwards. A system that is not installed is skipped, loudly.

use std::path::Path;
use std::time::Duration;

use ladon_lab::dialects::iproto::msgpack::Value;
use ladon_lab::dialects::iproto::request::{Iterator as Walk, Request};
use ladon_lab::measure::cores;
use ladon_lab::systems::control::{Control, Reply};
use ladon_lab::systems::instance::{Instance, Want};
use ladon_lab::systems::iproto_control::IprotoControl;
use ladon_lab::systems::program_paths::ProgramPaths;
use ladon_lab::systems::registry::{self, Found};
use ladon_lab::systems::system::DriverKind;
use ladon_lab::topology::Topology;

const PATIENCE: Duration = Duration::from_secs(60);

/// The system, or nothing after saying so on the test's own output.
fn found(name: &str) -> Option<Found> {
    let system = registry::by_name(name).unwrap();
    match system.find(&ProgramPaths::default()) {
        Ok(program) => Some(Found { system, program }),
        Err(missing) => {
            eprintln!("SKIPPED: {missing}");
            None
        }
    }
}

fn start(found: &Found, want: &Want) -> Instance {
    let cores = cores::allowed().unwrap();
    Instance::start(found, want, &std::env::temp_dir(), &cores, PATIENCE).unwrap()
}

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Every setting in turn: it starts, answers and says which settings it has; then it is gone.
fn every_setting_starts(name: &str, shows: impl Fn(&str, &str) -> bool) {
    let Some(found) = found(name) else { return };
    for setting in found.system.settings() {
        let mut instance = start(&found, &Want::new(setting));
        let values = found.system.effective_settings(instance.address()).unwrap();
        assert!(
            values.iter().any(|(key, value)| shows(key, value)),
            "{name}, {}: {values:?}",
            setting.name
        );
        let pids = instance.pids();
        let usage = instance.usage();
        assert!(usage.resident_bytes > 100_000, "{usage:?}");
        let directory = instance.data_directory(0);
        assert!(instance.stop(PATIENCE), "{name} did not go by itself");
        drop(instance);
        assert!(pids.iter().all(|pid| !is_alive(*pid)));
        assert!(!directory.exists());
    }
}

#[test]
fn redis() {
    every_setting_starts("redis", |key, _| key == "appendfsync");
}

#[test]
fn redis8() {
    every_setting_starts("redis8", |key, _| key == "appendfsync");
}

#[test]
fn valkey() {
    every_setting_starts("valkey", |key, _| key == "appendfsync");
}

#[test]
fn redisearch() {
    every_setting_starts("redisearch", |key, _| key.starts_with("FT.CONFIG"));
}

#[test]
fn bare_loop() {
    every_setting_starts("bare-loop", |key, _| key == "threads");
}

#[test]
fn ladon() {
    every_setting_starts("ladon", |key, _| key == "io-threads");
}

#[test]
fn ladon_over_iproto() {
    every_setting_starts("ladon-iproto", |key, value| key == "iproto" && !value.is_empty());
}

#[test]
fn mariadb() {
    every_setting_starts("mariadb", |key, value| {
        key == "default_storage_engine" && value == "MEMORY"
    });
}

#[test]
fn sqlite() {
    every_setting_starts("sqlite", |key, _| key == "THREADSAFE");
}

#[test]
fn ladon_over_memcached() {
    every_setting_starts("ladon-memcached", |key, value| key == "memcached" && !value.is_empty());
}

/// Both types of primary indexes are what they are called, in both servers alike.
#[test]
fn primary_indexes_are_of_their_type() {
    for (name, kind) in [
        ("tarantool", "tree"),
        ("tarantool-hash", "hash"),
        ("ladon-iproto", "tree"),
        ("ladon-iproto-hash", "hash"),
    ] {
        let Some(found) = found(name) else { continue };
        let instance = start(&found, &Want::new(found.system.settings()[0]));
        let mut guest = IprotoControl::connect(instance.address()).unwrap();
        let (index, limit) = (0, 100);
        // `_vindex`: the indexes that a user may read.
        let all =
            Request::Select { space: 289, index, iterator: Walk::GreaterOrEqual, limit, key: &[] };
        let rows = guest.request(&all).unwrap();
        let of_users = rows.iter().filter_map(|row| match row.as_array() {
            Some([Value::Unsigned(512..), Value::Unsigned(0), _, of, ..]) => of.as_text(),
            _ => None,
        });
        let kinds: Vec<String> = of_users.map(str::to_lowercase).collect();
        assert_eq!(kinds, [kind; 5], "{name}");
    }
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let Some(found) = found("redis") else { return };
    let setting = found.system.settings()[0];
    let want = Want { extra: vec!["--no-such-directive".to_owned()], ..Want::new(setting) };
    let cores = cores::allowed().unwrap();
    let started = Instance::start(&found, &want, &std::env::temp_dir(), &cores, PATIENCE);
    let error = started.err().unwrap().to_string();
    assert!(error.contains("before it answered") && error.contains("no-such-directive"), "{error}");
}

/// What was written with the strongest promise is there after `kill -9`.
#[test]
fn redis_keeps_what_it_promised() {
    for name in ["redis", "redis8", "valkey", "ladon"] {
        let Some(found) = found(name) else { continue };
        let setting = *found.system.settings().last().unwrap();
        let mut instance = start(&found, &Want::new(setting));
        let mut control = Control::connect(instance.address()).unwrap();
        control.text(&["SET", "kept", "yes"]).unwrap();
        instance.kill();
        instance.restart().unwrap();
        let mut control = Control::connect(instance.address()).unwrap();
        assert_eq!(control.text(&["GET", "kept"]).unwrap(), "yes", "{name}");
    }
}

#[test]
fn redis_copies_to_its_replica() {
    for name in ["redis", "redis8", "valkey"] {
        let Some(found) = found(name) else { continue };
        let setting = found.system.settings()[0];
        let want = Want { topology: Topology::Replica, ..Want::new(setting) };
        let instance = start(&found, &want);
        let [master, replica] = instance.addresses()[..] else { panic!("two nodes") };
        let mut control = Control::connect(master).unwrap();
        control.text(&["SET", "copied", "yes"]).unwrap();
        assert_eq!(control.integer(&["WAIT", "1", "10000"]).unwrap(), 1);
        let mut control = Control::connect(replica).unwrap();
        assert_eq!(control.text(&["GET", "copied"]).unwrap(), "yes", "{name}");
    }
}

#[test]
fn redis_makes_a_cluster_of_three_shards_with_two_replicas_each() {
    let Some(found) = found("redis") else { return };
    assert_eq!(found.system.driver(), DriverKind::Resp);
    let setting = found.system.settings()[0];
    let topology = Topology::Cluster { shards: 3, replicas: 2 };
    let instance = start(&found, &Want { topology, ..Want::new(setting) });
    assert_eq!(instance.addresses().len(), 9);
    for master in &instance.addresses()[..3] {
        let mut control = Control::connect(*master).unwrap();
        assert_eq!(control.info("replication", "connected_slaves").unwrap(), "2");
    }
    // The slot of `foo` is 12182 (Redis Cluster's specification): the third shard's.
    let mut control = Control::connect(instance.addresses()[0]).unwrap();
    let moved = control.call(&["GET", "foo"]).unwrap();
    let third = instance.addresses()[2];
    assert_eq!(moved, Reply::Error(format!("MOVED 12182 {third}")));
}

#[test]
fn tarantool() {
    every_setting_starts("tarantool", |key, value| key == "wal_mode" && !value.is_empty());
}

#[test]
fn memcached() {
    every_setting_starts("memcached", |key, value| key == "maxconns" && value == "20000");
}

#[test]
fn web_programs() {
    every_setting_starts("go-leveldb", |key, value| key == "store" && value == "leveldb");
    every_setting_starts("go-redis", |key, _| key == "appendfsync");
    every_setting_starts("go-ladon", |key, _| key == "io-threads");
    every_setting_starts("go-tarantool", |key, _| key == "wal_mode");
    every_setting_starts("tarantool-http", |key, _| key == "wal_mode");
}

#[test]
fn voltdb() {
    every_setting_starts("voltdb", |key, value| key == "commandlogenabled" && value == "false");
}

#[test]
fn hazelcast() {
    every_setting_starts("hazelcast", |_, value| value.contains("HEALTH_CHECK"));
}

#[test]
fn keydb() {
    every_setting_starts("keydb", |key, _| key == "appendfsync");
}

#[test]
fn dragonfly() {
    every_setting_starts("dragonfly", |key, _| key == "maxclients");
}

/// Definitions, and what was written with the strongest promise, are there after `kill -9`.
#[test]
fn spaces_of_ladon_come_back() {
    let Some(found) = found("ladon-iproto") else { return };
    let setting = *found.system.settings().last().unwrap();
    let mut instance = start(&found, &Want::new(setting));
    let mut guest = IprotoControl::connect(instance.address()).unwrap();
    let (space, tuple) = (512, [Value::text("kept"), Value::text("yes")]);
    guest.request(&Request::Replace { space, tuple: &tuple }).unwrap();
    instance.kill();
    instance.restart().unwrap();
    let mut guest = IprotoControl::connect(instance.address()).unwrap();
    let (key, index, limit, iterator) = (&tuple[..1], 0, 1, Walk::Equal);
    let kept = guest.request(&Request::Select { space, index, iterator, limit, key }).unwrap();
    assert_eq!(kept, [Value::Array(tuple.to_vec())]);
}

fn tarantool_says(address: std::net::SocketAddr, lua: &str) -> Vec<Value> {
    IprotoControl::connect(address).unwrap().eval(lua).unwrap()
}

#[test]
fn tarantool_keeps_what_it_promised() {
    let Some(found) = found("tarantool") else { return };
    let setting = *found.system.settings().last().unwrap();
    let mut instance = start(&found, &Want::new(setting));
    tarantool_says(instance.address(), "box.space.kv:replace{'kept', 'yes'}");
    instance.kill();
    instance.restart().unwrap();
    let kept = tarantool_says(instance.address(), "return box.space.kv:get('kept')[2]");
    assert_eq!(kept, [Value::text("yes")]);
}

#[test]
fn tarantool_copies_to_its_replica_and_both_ways() {
    let Some(found) = found("tarantool") else { return };
    let settings = found.system.settings();
    let want = Want { topology: Topology::Replica, ..Want::new(settings[0]) };
    let refused =
        Instance::start(&found, &want, &std::env::temp_dir(), &cores::allowed().unwrap(), PATIENCE);
    assert!(refused.err().unwrap().to_string().contains("wal_mode none writes none"));
    for (topology, both_ways) in [(Topology::Replica, false), (Topology::MasterMaster, true)] {
        let instance = start(&found, &Want { topology, ..Want::new(settings[1]) });
        let [one, other] = instance.addresses()[..] else { panic!("two nodes") };
        let mut ways = vec![(one, other)];
        if both_ways {
            ways.push((other, one));
        }
        for (from, to) in ways {
            tarantool_says(from, "box.space.kv:replace{'copied', box.info.uuid}");
            let uuid = tarantool_says(from, "return box.info.uuid");
            let deadline = std::time::Instant::now() + PATIENCE;
            let copy = "local t = box.space.kv:get('copied') return t and t[2]";
            while tarantool_says(to, copy) != uuid {
                assert!(std::time::Instant::now() < deadline, "no copy came");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

#[test]
fn snapshots_are_seen_to_end() {
    for name in
        ["tarantool", "redis", "redis8", "valkey", "ladon", "ladon-iproto", "ladon-memcached"]
    {
        let Some(found) = found(name) else { continue };
        let instance = start(&found, &Want::new(found.system.settings()[0]));
        found.system.begin_snapshot(instance.address()).unwrap();
        let deadline = std::time::Instant::now() + PATIENCE;
        while found.system.snapshot_under_way(instance.address()).unwrap() {
            assert!(std::time::Instant::now() < deadline, "{name} never ended its snapshot");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
