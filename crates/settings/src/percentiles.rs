//! `latency-tracking-info-percentiles`: which percentiles `INFO latencystats` shows.

/// Why the text holds no list of percentiles, in Redis' words.
const NO_NUMBER: &str = "Invalid latency-tracking-info-percentiles parameters";
const OUT_OF_RANGE: &str =
    "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]";

/// Reads `"50 99 99.9"`; each between 0 and 100.
pub fn parse(text: &str) -> Result<Vec<f64>, &'static str> {
    text.split_ascii_whitespace()
        .map(|word| match word.parse::<f64>() {
            Ok(percentile) if (0.0..=100.0).contains(&percentile) => Ok(percentile),
            Ok(percentile) if percentile.is_finite() => Err(OUT_OF_RANGE),
            _ => Err(NO_NUMBER),
        })
        .collect()
}

/// The inverse of [`parse`].
pub fn format(percentiles: &[f64]) -> String {
    percentiles.iter().map(f64::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_read_back() {
        assert_eq!(format(&parse("50 99.90 100").unwrap()), "50 99.9 100");
        assert_eq!(parse(""), Ok(vec![]));
        assert_eq!(parse("50 101"), Err(OUT_OF_RANGE));
        assert_eq!(parse("50 x"), Err(NO_NUMBER));
        assert_eq!(parse("NaN"), Err(NO_NUMBER));
    }
}
