//! Messages, and events about keys.

use super::figures::{axis, higher, lower, usual};
use crate::topology::Topology;
use crate::work::{Custom, Own, Part, Plan, Scale, Settings, Step, Times, Work};

/// The work.
pub const WORK: Work = Work {
    name: "publish",
    title: "Messages and events",
    repeats: "no published test: what chats and caches do (Socket.IO, Celery, Spring Session)",
    what: "One client publishes messages of 64 bytes to 1, 100 and 10,000 subscribers of a channel, as many at \
           once as make 1,000 deliveries, or one; each subscriber must get each message, in order. Then SET by 50 users, 16 requests at \
           once: without events, with events that nobody subscribes to, and with one subscriber to all of them, who reads.",
    settings: Settings::Chosen,
    topology: Topology::Single,
    decides: Times { rounds: 7, seconds: 0.5 },
    plan,
};

const DELIVERIES: &[&str; 1] = &["deliveries"];
/// Writes, and who hears of them.
pub(crate) const EVENTS: &[&str; 3] = &["set-silent", "set-events", "set-heard"];

/// Numbers of subscribers.
pub(crate) fn subscribers(scale: &Scale) -> Vec<usize> {
    scale.clients_or(if scale.small { &[1, 100] } else { &[1, 100, 10_000] })
}

fn plan(scale: &Scale) -> Plan {
    let title = |name: &str| match name {
        "set-silent" => "SET without events",
        "set-events" => "SET with events that nobody subscribes to",
        _ => "SET with events that one client reads",
    };
    let mut parts = vec![Part {
        name: DELIVERIES[0].to_owned(),
        title: "PUBLISH to one channel".to_owned(),
        axis: axis("subscribers", "subscribers"),
        figures: vec![
            lower("cpu_us", "server CPU per delivered message", "us"),
            higher("per_second", "delivered messages", "1/s"),
            lower("p50_us", "until the last subscriber has the batch, median", "us"),
            lower("p99_us", "until the last subscriber has the batch, 99 %", "us"),
        ],
    }];
    parts.extend(EVENTS.iter().map(|name| Part::new(*name, title(name), usual())));
    let publish = Custom {
        measurements: subscribers(scale).len(),
        beside_seconds: 2.0,
        ..Custom::in_redis_commands(Own::Publish, DELIVERIES)
    };
    let events = Custom {
        measurements: EVENTS.len(),
        beside_seconds: 0.5,
        ..Custom::in_redis_commands(Own::Notifications, EVENTS)
    };
    Plan { parts, steps: vec![Step::Custom(publish), Step::Custom(events)] }
}
