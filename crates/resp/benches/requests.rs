//! Nanoseconds per request and reply: `cargo bench -p ladon-resp`. Runs tiny under `cargo test`.

use std::hint::black_box;
use std::time::Instant;

use ladon_resp::client::write_request;
use ladon_resp::{Limits, LongDouble, Parser, Progress, Proto, Reply};

const DEPTH: usize = 64;

fn main() {
    let rounds = if std::env::args().any(|arg| arg == "--bench") { 100_000 } else { 10 };
    let key = [b'k'; 16];
    let value = [b'v'; 64];
    let (mut sets, mut gets) = (Vec::new(), Vec::new());
    for _ in 0..DEPTH {
        write_request(&mut sets, &[&b"SET"[..], &key, &value]);
        write_request(&mut gets, &[&b"GET"[..], &key]);
    }
    measure("parse SET key:16 value:64", rounds, parse(&sets, 3));
    measure("parse GET key:16", rounds, parse(&gets, 2));

    let mut out = Vec::with_capacity(1 << 16);
    measure("reply 64 byte string", rounds, || {
        out.clear();
        (0..DEPTH).for_each(|_| Reply::new(&mut out, Proto::Resp2).bulk(black_box(value)));
    });
    let mut out = Vec::with_capacity(1 << 16);
    measure("reply integer", rounds, || {
        out.clear();
        (0..DEPTH as i64)
            .for_each(|n| Reply::new(&mut out, Proto::Resp2).integer(black_box(n * 1000)));
    });
    let mut out = Vec::with_capacity(1 << 16);
    measure("INCRBYFLOAT's sum", rounds / 10, || {
        out.clear();
        for _ in 0..DEPTH {
            let [one, other] =
                [&b"10.5"[..], b"0.1"].map(|text| LongDouble::parse(black_box(text)));
            let sum = one.zip(other).and_then(|(one, other)| one.checked_add(other));
            sum.expect("two finite numbers").write_human(&mut out);
        }
    });
}

fn parse(bytes: &[u8], arguments: usize) -> impl FnMut() {
    let (mut parser, limits, mut args) = (Parser::new(), Limits::default(), Vec::new());
    move || {
        let (mut from, mut requests) = (0, 0);
        args.clear();
        while from < bytes.len() {
            match parser.parse(black_box(&bytes[from..]), &limits, &mut args) {
                Ok(Progress::Complete { consumed }) => from += consumed,
                other => panic!("{other:?}"),
            }
            requests += 1;
        }
        assert_eq!((requests, args.len()), (DEPTH, DEPTH * arguments));
    }
}

/// Prints the median of eleven parts of `rounds` calls, each of [`DEPTH`] operations.
fn measure(name: &str, rounds: usize, mut work: impl FnMut()) {
    let part = (rounds / 11).max(1);
    let mut times: Vec<f64> = (0..11)
        .map(|_| {
            let start = Instant::now();
            (0..part).for_each(|_| work());
            start.elapsed().as_nanos() as f64 / (part * DEPTH) as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name}: {:.1} ns", times[5]);
}
