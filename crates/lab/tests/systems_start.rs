//! Every system's file against the real thing: starts, answers, tells its settings, comes back with
//! its data, and is gone afterwards. A system that is not installed is skipped, loudly.

use std::path::Path;
use std::time::Duration;

use ladon_lab::measure::cores;
use ladon_lab::systems::control::{Control, Reply};
use ladon_lab::systems::instance::{Instance, Want};
use ladon_lab::systems::places::Places;
use ladon_lab::systems::registry::{self, Found};
use ladon_lab::systems::system::{DriverKind, Topology};

const PATIENCE: Duration = Duration::from_secs(60);

/// The system, or nothing after saying so on the test's own output.
fn found(name: &str) -> Option<Found> {
    let system = registry::by_name(name).unwrap();
    match system.find(&Places::default()) {
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
fn ladon() {
    every_setting_starts("ladon", |key, _| key == "io-threads");
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
