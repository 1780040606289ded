//! A figure beside the limit that the project set for it.

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// More is a miss.
    AtMost(f64),
    /// Less is a miss.
    AtLeast(f64),
}

/// One line: what was to be reached, what was, and whether that is enough.
#[must_use]
pub fn verdict(what: &str, value: Option<f64>, limit: Limit) -> String {
    let (word, bound) = match limit {
        Limit::AtMost(bound) => ("at most", bound),
        Limit::AtLeast(bound) => ("at least", bound),
    };
    let Some(value) = value else {
        return format!("target: {what} {word} {bound}: not measured\n");
    };
    let met = match limit {
        Limit::AtMost(bound) => value <= bound,
        Limit::AtLeast(bound) => value >= bound,
    };
    let verdict = if met {
        "MET".to_owned()
    } else {
        format!("MISSED by {:.0} %", ((value - bound) / bound * 100.0).abs())
    };
    format!("target: {what} {word} {bound}: {value:.2}, {verdict}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions() {
        assert_eq!(
            verdict("x", Some(45.0), Limit::AtMost(45.0)),
            "target: x at most 45: 45.00, MET\n"
        );
        assert_eq!(
            verdict("x", Some(54.0), Limit::AtMost(45.0)),
            "target: x at most 45: 54.00, MISSED by 20 %\n"
        );
        assert_eq!(
            verdict("x", Some(0.6), Limit::AtLeast(0.8)),
            "target: x at least 0.8: 0.60, MISSED by 25 %\n"
        );
        assert_eq!(
            verdict("x", None, Limit::AtLeast(0.8)),
            "target: x at least 0.8: not measured\n"
        );
    }
}
