//! `Glob` against what a real redis-server (7.0.15) answered.
//!
//! `glob_vectors.txt`: the keys of a database in hex (`-`: the empty key), then random patterns
//! in hex with the set of keys that `KEYS pattern` gave, a bit per key, first key highest.

use ladon_settings::Glob;

#[test]
fn every_answer_is_that_of_redis() {
    let vectors = include_str!("../glob_vectors.txt");
    let mut lines = vectors.lines();
    let header = lines.next().expect("a line of keys");
    let keys: Vec<Vec<u8>> = header.split(' ').skip(1).map(hex).collect();
    let mut checked = 0;
    for line in lines {
        let (pattern, bits) = line.split_once(' ').expect("pattern and bits");
        let pattern = hex(pattern);
        let glob = Glob::new(&pattern, false);
        let digits = keys.len().div_ceil(4);
        let bits = format!("{bits:0>digits$}");
        let bit = |index: usize| {
            let from_low = keys.len() - 1 - index;
            let digit = bits.as_bytes()[digits - 1 - from_low / 4] as char;
            digit.to_digit(16).expect("a hex digit") >> (from_low % 4) & 1 == 1
        };
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(
                glob.matches(key),
                bit(index),
                "pattern {:?}, key {:?}",
                String::from_utf8_lossy(&pattern),
                String::from_utf8_lossy(key)
            );
            checked += 1;
        }
    }
    assert!(checked > 10_000);
}

fn hex(text: &str) -> Vec<u8> {
    if text == "-" {
        return Vec::new();
    }
    let bytes = (0..text.len()).step_by(2);
    bytes.map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}
