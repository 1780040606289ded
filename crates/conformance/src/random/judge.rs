//! Whether two replies to one request say the same.

use crate::compare;
use crate::reply::Reply;

/// What of a reply is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Every byte.
    Exact,
    /// The elements, in any order.
    Unordered,
    /// The pairs of elements (or the map's entries), in any order.
    Pairs,
    /// A scan that ends at once: its elements in any order.
    Scan,
    /// The same, by pairs.
    ScanPairs,
    /// Scores, except the last digits that depend on the order of additions: Redis sorts the sets
    /// of a union by their sizes with C's qsort, which may put equal ones in any order. The sign of
    /// a zero, which packed sets lose, is ignored as well.
    Scores,
    /// Numbers, but for the time between the two servers.
    About,
    /// All but the times in what is said of streams' groups, and the nodes of streams.
    Times,
    /// Everything, but for the number that a server gives a client.
    Client,
    /// Types and lengths.
    Shape,
    /// The outermost type; an error's words.
    Kind,
}

/// Tolerated distance between times, in milliseconds: a pause of this machine.
const ABOUT_MS: u64 = 5_000;

impl Check {
    /// The one of this name in the grammar.
    pub fn named(name: &str) -> Option<Check> {
        Some(match name {
            "unordered" => Check::Unordered,
            "pairs" => Check::Pairs,
            "scan" => Check::Scan,
            "scan-pairs" => Check::ScanPairs,
            "about" => Check::About,
            "scores" => Check::Scores,
            "client" => Check::Client,
            "times" => Check::Times,
            "shape" => Check::Shape,
            "kind" => Check::Kind,
            _ => return None,
        })
    }

    /// Whether `got` agrees with `wanted`, as far as that is defined.
    pub fn same(self, wanted: &Reply, got: &Reply) -> bool {
        if wanted == got {
            return true;
        }
        if matches!(wanted, Reply::Error(_)) || matches!(got, Reply::Error(_)) {
            return false;
        }
        match self {
            Check::Exact | Check::Client => false,
            Check::Unordered => in_order(wanted, 1) == in_order(got, 1),
            Check::Pairs => in_order(wanted, 2) == in_order(got, 2),
            Check::Scan => scans_alike(wanted, got, 1),
            Check::ScanPairs => scans_alike(wanted, got, 2),
            Check::About => about(wanted, got),
            Check::Scores => rounded(wanted) == rounded(got),
            Check::Times => timeless(wanted) == timeless(got),
            Check::Shape => compare::shape(wanted) == compare::shape(got),
            Check::Kind => compare::kind(wanted) == compare::kind(got),
        }
    }
}

/// The reply with its elements in groups of `at_a_time`, sorted by their bytes.
fn in_order(reply: &Reply, at_a_time: usize) -> Reply {
    let sorted = |items: &[Reply]| {
        let mut groups: Vec<&[Reply]> = items.chunks(at_a_time).collect();
        groups.sort_by_cached_key(|group| group.iter().map(Reply::show).collect::<Vec<_>>());
        groups.concat()
    };
    match reply {
        // Pairs in nested arrays: RESP3's form of WITHSCORES.
        Reply::Array(items) if items.iter().all(|it| matches!(it, Reply::Array(_))) => {
            let mut items = items.clone();
            items.sort_by_cached_key(Reply::show);
            Reply::Array(items)
        }
        Reply::Array(items) => Reply::Array(sorted(items)),
        Reply::Set(items) => Reply::Set(sorted(items)),
        Reply::Map(pairs) => {
            let mut pairs = pairs.clone();
            pairs.sort_by_cached_key(|(key, _)| key.show());
            Reply::Map(pairs)
        }
        other => other.clone(),
    }
}

fn scans_alike(wanted: &Reply, got: &Reply, at_a_time: usize) -> bool {
    match (wanted, got) {
        (Reply::Array(wanted), Reply::Array(got)) if wanted.len() == 2 && got.len() == 2 => {
            wanted[0] == got[0] && in_order(&wanted[1], at_a_time) == in_order(&got[1], at_a_time)
        }
        _ => false,
    }
}

/// The reply with every number in thirteen digits.
fn rounded(reply: &Reply) -> Reply {
    let number = |text: &str| {
        let number = text.parse::<f64>().ok().filter(|it| it.is_finite())?;
        Some(format!("{:.12e}", number + 0.0))
    };
    match reply {
        Reply::Bulk(bytes) => std::str::from_utf8(bytes)
            .ok()
            .and_then(number)
            .map_or_else(|| reply.clone(), |text| Reply::Bulk(text.into())),
        Reply::Double(text) => number(text).map_or_else(|| reply.clone(), Reply::Double),
        Reply::Array(items) => Reply::Array(items.iter().map(rounded).collect()),
        other => other.clone(),
    }
}

/// The reply with every time that is over, or since then, as 0.
fn timeless(reply: &Reply) -> Reply {
    const NAMES: [&[u8]; 6] = [
        b"idle",
        b"inactive",
        b"seen-time",
        b"active-time",
        b"radix-tree-keys",
        b"radix-tree-nodes",
    ];
    let named = |name: &Reply, value: &Reply| match (name, value) {
        (Reply::Bulk(name), Reply::Integer(0..)) if NAMES.contains(&name.as_slice()) => {
            Reply::Integer(0)
        }
        _ => timeless(value),
    };
    match reply {
        // What is pending: an entry, perhaps a consumer, when, how often.
        Reply::Array(items) => match items.as_slice() {
            [entry @ Reply::Bulk(_), Reply::Integer(0..), times @ Reply::Integer(_)] => {
                Reply::Array(vec![entry.clone(), Reply::Integer(0), times.clone()])
            }
            [
                entry @ Reply::Bulk(_),
                consumer @ Reply::Bulk(_),
                Reply::Integer(0..),
                times @ Reply::Integer(_),
            ] => Reply::Array(vec![
                entry.clone(),
                consumer.clone(),
                Reply::Integer(0),
                times.clone(),
            ]),
            items => {
                let before = [Reply::Null].into_iter().chain(items.iter().cloned());
                Reply::Array(before.zip(items).map(|(name, it)| named(&name, it)).collect())
            }
        },
        Reply::Map(pairs) => {
            let pairs = pairs.iter().map(|(name, value)| (name.clone(), named(name, value)));
            Reply::Map(pairs.collect())
        }
        other => other.clone(),
    }
}

fn about(wanted: &Reply, got: &Reply) -> bool {
    match (wanted, got) {
        // -1 and -2 are answers, not times.
        (Reply::Integer(wanted), Reply::Integer(got)) => {
            *wanted >= 0 && *got >= 0 && wanted.abs_diff(*got) <= ABOUT_MS
        }
        (Reply::Array(wanted), Reply::Array(got)) => {
            wanted.len() == got.len()
                && wanted.iter().zip(got).all(|(wanted, got)| wanted == got || about(wanted, got))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(wire: &str) -> Reply {
        Reply::read(&mut wire.as_bytes())
    }

    #[test]
    fn only_what_is_defined_counts() {
        let (ab, ba) = (reply("*2\r\n:1\r\n:2\r\n"), reply("*2\r\n:2\r\n:1\r\n"));
        assert!(Check::Unordered.same(&ab, &ba));
        assert!(!Check::Exact.same(&ab, &ba));
        assert!(!Check::Pairs.same(&ab, &ba));
        assert!(!Check::Unordered.same(&ab, &reply("*2\r\n:1\r\n:1\r\n")));
        let pending = |ms, times| reply(&format!("*1\r\n*3\r\n$1\r\na\r\n:{ms}\r\n:{times}\r\n"));
        assert!(Check::Times.same(&pending(5, 1), &pending(7, 1)));
        assert!(!Check::Times.same(&pending(5, 1), &pending(5, 2)));
        let idle = |ms| reply(&format!("*2\r\n$4\r\nidle\r\n:{ms}\r\n"));
        assert!(Check::Times.same(&idle(3), &idle(9)));
        assert!(!Check::Times.same(&idle(-1), &idle(9)));
        assert!(Check::About.same(&reply(":1000\r\n"), &reply(":999\r\n")));
        assert!(!Check::About.same(&reply(":-1\r\n"), &reply(":-2\r\n")));
        assert!(!Check::Kind.same(&reply("-ERR a\r\n"), &reply("-ERR b\r\n")));
    }
}
