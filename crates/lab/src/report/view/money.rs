//! What requests cost, given what the machine costs.

/// Cost of a billion requests on a machine of this price, fully used: an hour's price through an
/// hour's requests. The whole machine is paid for, so this is of the throughput and not of the CPU
/// time.
#[must_use]
pub fn per_billion(price_per_hour: f64, per_second: f64) -> Option<f64> {
    (per_second > 0.0).then(|| price_per_hour / (per_second * 3600.0) * 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_a_second_takes_a_thousand_seconds() {
        let cost = per_billion(3.6, 1e6).unwrap();
        assert!((cost - 1.0).abs() < 1e-12, "{cost}");
        assert_eq!(per_billion(1.0, 0.0), None);
    }
}
