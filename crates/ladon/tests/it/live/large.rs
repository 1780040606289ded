//! Values that take long to combine, and what is computed aside of them.

use super::{call, info_number};
use ladon_crash::{Client, Server};
use ladon_resp::client::Value;
use std::time::{Duration, Instant};

pub fn connect(server: &Server) -> Client {
    server.connect().expect("connects")
}

pub fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

pub fn run(client: &mut Client, text: &str) -> Value {
    call(client, &words(text))
}

/// Fills a key, an element a number.
pub fn fill(
    client: &mut Client,
    head: &str,
    numbers: std::ops::Range<usize>,
    element: impl Fn(usize) -> Vec<String>,
) {
    let numbers: Vec<usize> = numbers.collect();
    for part in numbers.chunks(5_000) {
        let mut request: Vec<String> = head.split(' ').map(str::to_owned).collect();
        request.extend(part.iter().flat_map(|&n| element(n)));
        client.call(&request).expect("filled");
    }
}

pub fn array(value: Value) -> Vec<Value> {
    match value {
        Value::Array(values) | Value::Set(values) => values,
        other => panic!("an array, not {other:?}"),
    }
}

/// Waits until so many jobs were begun.
pub fn wait_for_jobs(client: &mut Client, jobs: u64) {
    let began = Instant::now();
    while info_number(client, "ladon", "aside_jobs") < jobs {
        assert!(began.elapsed() < Duration::from_secs(20), "a job is begun");
    }
}

/// Two sets that take a while to unite.
pub fn large_sets(client: &mut Client) {
    for (key, first) in [("a", 0), ("b", 40_000)] {
        fill(client, &format!("SADD {key}"), first..first + 80_000, |n| vec![format!("m{n}")]);
    }
}
