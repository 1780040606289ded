//! `client-output-buffer-limit`: how much a client may leave unread before it is cut off.

use crate::memory_size;

/// Which limit applies to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputClass {
    /// Ordinary connections, `MONITOR` included.
    Normal = 0,
    /// Replicas.
    Replica = 1,
    /// Connections with subscriptions.
    PubSub = 2,
}

/// A class' limit; zero means that this limit does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimit {
    /// Bytes beyond which the connection is closed at once.
    pub hard_bytes: u64,
    /// Bytes beyond which the connection is closed if it stays there for `soft_seconds`.
    pub soft_bytes: u64,
    /// See `soft_bytes`.
    pub soft_seconds: u64,
}

/// In the order of [`OutputClass`].
const NAMES: [&str; 3] = ["normal", "slave", "pubsub"];

/// Reads `"normal 0 0 0 replica 256mb 64mb 60"` on top of `limits`; classes that the text does
/// not name keep their limit. Errors in Redis' words.
pub fn parse(text: &str, mut limits: [OutputLimit; 3]) -> Result<[OutputLimit; 3], &'static str> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if words.is_empty() || !words.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.");
    }
    for group in words.chunks_exact(4) {
        let class = class_index(group[0])
            .ok_or("Invalid client class specified in buffer limit configuration.")?;
        let numbers = (
            memory_size::parse(group[1]),
            memory_size::parse(group[2]),
            group[3].parse::<u32>().ok(),
        );
        let (Some(hard), Some(soft), Some(seconds)) = numbers else {
            return Err(
                "Error in hard, soft or soft_seconds setting in buffer limit configuration.",
            );
        };
        limits[class] = OutputLimit {
            hard_bytes: hard as u64,
            soft_bytes: soft as u64,
            soft_seconds: seconds.into(),
        };
    }
    Ok(limits)
}

/// The inverse of [`parse`]; every class, in bytes, as `CONFIG GET` answers.
pub fn format(limits: &[OutputLimit; 3]) -> String {
    let groups = NAMES.iter().zip(limits).map(|(name, limit)| {
        format!("{name} {} {} {}", limit.hard_bytes, limit.soft_bytes, limit.soft_seconds)
    });
    groups.collect::<Vec<_>>().join(" ")
}

fn class_index(name: &str) -> Option<usize> {
    if name.eq_ignore_ascii_case("replica") {
        return Some(OutputClass::Replica as usize);
    }
    NAMES.iter().position(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_are_not_named_keep_their_limit() {
        let start = parse("pubsub 32mb 8mb 60", Default::default()).unwrap();
        let limits = parse("normal 1mb 2 3 replica 3 4 5", start).unwrap();
        assert_eq!(format(&limits), "normal 1048576 2 3 slave 3 4 5 pubsub 33554432 8388608 60");
        assert_eq!(parse(&format(&limits), Default::default()), Ok(limits));
    }

    #[test]
    fn errors_are_those_of_redis() {
        for (text, start) in [
            ("", "Wrong"),
            ("normal 1", "Wrong"),
            ("foo 1 2 3", "Invalid client class"),
            ("normal 1 x 3", "Error in hard"),
        ] {
            let error = parse(text, Default::default()).unwrap_err();
            assert!(error.starts_with(start), "{text}: {error}");
        }
    }
}
