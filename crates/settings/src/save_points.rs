//! `save`: automatic checkpoints after a number of changes within a time.

use std::time::Duration;

/// Checkpoint when at least `changes` happened and the last one is `after` ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    /// Time since the last checkpoint.
    pub after: Duration,
    /// Changes since the last checkpoint.
    pub changes: u64,
}

/// Reads `"3600 1 300 100"`: pairs of seconds and changes; the empty text means no save points.
pub fn parse(text: &str) -> Option<Vec<SavePoint>> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if !words.len().is_multiple_of(2) {
        return None;
    }
    words
        .chunks_exact(2)
        .map(|pair| {
            let seconds = pair[0].parse::<u32>().ok().filter(|&seconds| seconds >= 1)?;
            let changes = u64::from(pair[1].parse::<u32>().ok()?);
            Some(SavePoint { after: Duration::from_secs(seconds.into()), changes })
        })
        .collect()
}

/// The inverse of [`parse`].
pub fn format(points: &[SavePoint]) -> String {
    let pairs = points.iter().map(|point| format!("{} {}", point.after.as_secs(), point.changes));
    pairs.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_read_back_and_halves_are_refused() {
        assert_eq!(parse("").as_deref(), Some(&[][..]));
        assert_eq!(format(&parse(" 900 1  60 10000").unwrap()), "900 1 60 10000");
        for bad in ["900", "0 1", "900 -1", "a b"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
