//! The load generator against a real redis-server: all keys arrive, all replies check, and a value
//! that somebody else changed is noticed. Skips, and says so, where there is no redis-server.

use crate::common;
use std::time::Duration;

use ladon_lab::load::data::Data;
use ladon_lab::load::driver::{Driver, LoadError, Waiting};
use ladon_lab::load::workload::{LANE_OF_READS, Mix, Strings};
use ladon_lab::systems::control::Control;
use ladon_lab::systems::instance::Instance;

fn redis() -> Option<Instance> {
    common::start("redis").map(|(_, server)| server)
}

fn control(server: &Instance) -> Control {
    Control::connect(server.address()).unwrap()
}

fn load(server: &Instance, data: &mut Data) {
    let until = data.keys();
    let strings = Strings::new(data, Mix::Load { until }, 16, 0);
    let mut driver = Driver::connect(server.address(), 8, Waiting::Sleep, strings).unwrap();
    let sample = driver.run_to_end().unwrap();
    assert_eq!(sample.replies, u64::from(data.keys()));
}

fn run(server: &Instance, data: &mut Data, mix: Mix, depth: usize) -> Result<u64, LoadError> {
    let strings = Strings::new(data, mix, depth, 3);
    let mut driver = Driver::connect(server.address(), 10, Waiting::Sleep, strings)?;
    let first = driver.run(Duration::from_millis(100))?;
    let last = driver.drain()?;
    assert_eq!(first.replies, first.latency_ns.iter().map(|lane| lane.len()).sum::<u64>());
    Ok(first.replies + last.replies)
}

#[test]
fn loads_reads_and_writes_check() {
    let Some(server) = redis() else { return };
    let mut data = Data::new(10_000, 16, 64);
    load(&server, &mut data);
    assert_eq!(control(&server).integer(&["DBSIZE"]).unwrap(), 10_000);
    let before = server.usage();
    for depth in [1, 16, 64] {
        for mix in [Mix::Set, Mix::Get, Mix::SetAndGet, Mix::Get] {
            assert!(run(&server, &mut data, mix, depth).unwrap() > 100);
        }
    }
    let after = server.usage();
    assert!(after.cpu() - before.cpu() > Duration::from_millis(20));
    assert!(after.resident_bytes > 1 << 20);
}

#[test]
fn a_paced_load_keeps_its_rate_and_counts_from_when_it_was_due() {
    let Some(server) = redis() else { return };
    let mut data = Data::new(1_000, 16, 64);
    load(&server, &mut data);
    let strings = Strings::new(&mut data, Mix::SetAndGet, 1, 3);
    let mut driver = Driver::connect(server.address(), 10, Waiting::Sleep, strings).unwrap();
    for number in 0..10 {
        driver.pace(number, Duration::from_millis(10), Duration::from_millis(number as u64));
    }
    let sample = driver.run(Duration::from_millis(500)).unwrap();
    let due = sample.elapsed.as_secs_f64() * 1000.0;
    let replies = sample.replies as f64;
    assert!(replies <= due + 10.0 && replies > due / 2.0, "{replies} replies of {due}");
    // A server that pauses for 300 ms keeps about 300 requests waiting, not 10.
    assert_eq!(control(&server).text(&["CLIENT", "PAUSE", "300"]).unwrap(), "OK");
    let sample = driver.run(Duration::from_millis(700)).unwrap();
    let late = |lane| sample.lane_longer_than(lane, Duration::from_millis(20));
    assert!(late(0) + late(1) > 100, "{} and {}", late(0), late(1));
    driver.drain().unwrap();
}

#[test]
fn a_probe_does_not_make_up_for_times_that_went_by() {
    let Some(server) = redis() else { return };
    let mut data = Data::new(1_000, 16, 64);
    load(&server, &mut data);
    let strings = Strings::new(&mut data, Mix::Get, 1, 3);
    let mut driver = Driver::connect(server.address(), 1, Waiting::Sleep, strings).unwrap();
    driver.probe(0, Duration::from_millis(2));
    assert_eq!(control(&server).text(&["CLIENT", "PAUSE", "500"]).unwrap(), "OK");
    let sample = driver.run(Duration::from_millis(1000)).unwrap();
    assert!(sample.lane_max_us(LANE_OF_READS) > 200_000.0, "{}", sample.latency_us(1.0));
    // Making up for them, it would have 225 that waited so long; one at a time, a second has room
    // for 20, however busy the machine is.
    assert!(sample.lane_longer_than(LANE_OF_READS, Duration::from_millis(50)) <= 20);
    assert!(sample.replies > 5, "{}", sample.replies);
    driver.drain().unwrap();
}

#[test]
fn values_larger_than_socket_buffers_check() {
    let Some(server) = redis() else { return };
    let mut data = Data::new(20, 16, 1 << 20);
    load(&server, &mut data);
    run(&server, &mut data, Mix::Set, 4).unwrap();
    run(&server, &mut data, Mix::Get, 4).unwrap();
}

#[test]
fn a_value_changed_behind_our_back_is_noticed() {
    let Some(server) = redis() else { return };
    let mut data = Data::new(50, 16, 64);
    load(&server, &mut data);
    let other = "x".repeat(64);
    control(&server).text(&["SET", "key:000000000007", &other]).unwrap();
    let result = run(&server, &mut data, Mix::Get, 16);
    assert!(
        matches!(&result, Err(LoadError::Wrong { about, .. }) if about == "key 7"),
        "{result:?}"
    );
}
