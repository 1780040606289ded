//! redis-benchmark runs to its end, and does to the data what it should.

use std::process::Command;

use ladon_conformance::{Connection, Reply, Server, locate};

#[test]
fn redis_benchmark_works() {
    let program =
        locate::must("redis-benchmark", locate::program("redis-benchmark", "redis-tools"));
    let server = locate::must("the server", Server::subject());
    for pipeline in ["1", "16"] {
        let mut command = Command::new(&program);
        command
            .args(["-p", &server.port().to_string(), "-n", "20000", "-r", "1000", "--csv"])
            .args(["-P", pipeline, "-t", "ping,set,get,incr,sadd,spop,mset"]);
        let output = locate::must("redis-benchmark", locate::run(&mut command));
        for test in ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "SADD", "SPOP", "MSET"] {
            let line = output.lines().find(|line| line.trim_start_matches('"').starts_with(test));
            let line = line.unwrap_or_else(|| panic!("no {test} in\n{output}"));
            let rate = line.split(',').nth(1).map(|rate| rate.trim_matches('"').parse::<f64>());
            assert!(matches!(rate, Some(Ok(rate)) if rate > 0.0), "{line}");
        }
    }
    let mut connection = Connection::open(server.address, 2).expect("a connection");
    let sum: i64 = match connection.call(&["keys", "counter:*"]) {
        Reply::Array(keys) => keys
            .iter()
            .map(|key| connection.call(&["get", &key.text()]).text().parse::<i64>().unwrap_or(0))
            .sum(),
        other => panic!("{}", other.show()),
    };
    assert_eq!(sum, 40_000, "every INCR counted once");
}
