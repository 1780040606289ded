//! `INCRBYFLOAT`'s arithmetic against sums recorded from a real server (redis-server 7.0.15 on
//! x86-64, random operands): `current|increment|answer` per line, `!` before an error's text.

use ladon_resp::LongDouble;

/// What `SET key current` and `INCRBYFLOAT key increment` answer.
fn answer(current: &str, increment: &str) -> String {
    let Some(increment) = LongDouble::parse(increment.as_bytes()) else {
        return "!ERR value is not a valid float".to_owned();
    };
    let Some(current) = LongDouble::parse(current.as_bytes()) else {
        return "!ERR value is not a valid float".to_owned();
    };
    match current.checked_add(increment).filter(|sum| sum.is_finite()) {
        Some(sum) => {
            let mut text = Vec::new();
            sum.write_human(&mut text);
            String::from_utf8(text).expect("digits")
        }
        None => "!ERR increment would produce NaN or Infinity".to_owned(),
    }
}

#[test]
fn sums_are_those_of_a_real_server() {
    // A longer recording can be put in its place to look for differences.
    let path = std::env::var_os("LADON_INCRBYFLOAT_RECORDING").unwrap_or_else(|| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/incrbyfloat.txt").into()
    });
    let recording = std::fs::read_to_string(path).expect("a readable recording");
    let mut lines = 0;
    for line in recording.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [current, increment, expected] = fields[..] else { panic!("{line}") };
        assert_eq!(answer(current, increment), expected, "{current} + {increment}");
        lines += 1;
    }
    assert!(lines >= 3000);
}
