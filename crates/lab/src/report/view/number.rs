//! Numbers for people: three digits and the unit's own prefix.

/// `value` in `unit` (`1/s`, `us`, `s`, `bytes`, anything else as it is, or nothing).
#[must_use]
pub fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "1/s" => format!("{}/s", scaled(value, 1000.0, &["", " k", " M", " G"])),
        "us" => scaled(value, 1000.0, &[" µs", " ms", " s"]),
        "bytes" => scaled(value, 1024.0, &[" B", " KiB", " MiB", " GiB", " TiB"]),
        "" => plain(value),
        unit => format!("{} {unit}", plain(value)),
    }
}

/// A number without a unit, `12,300` or `0.48`.
#[must_use]
pub fn plain(value: f64) -> String {
    if value.abs() >= 1000.0 { grouped(value) } else { digits(value) }
}

/// `1 round`, `12 rounds`.
#[must_use]
pub fn counted(count: f64, what: &str) -> String {
    format!("{} {what}{}", plain(count), if count == 1.0 { "" } else { "s" })
}

/// How many times, `1.35×`.
#[must_use]
pub fn times(ratio: f64) -> String {
    let digits = if ratio.abs() < 10.0 { 2 } else { usize::from(ratio.abs() < 100.0) };
    format!("{ratio:.digits$}×")
}

/// Both ends, `1.30 to 1.41×`. Two rounds give ends so far out that their digits say nothing:
/// `<0.01 to >100×`.
#[must_use]
pub fn range((low, high): (f64, f64)) -> String {
    let end = |value: f64| match value {
        value if value < 0.01 => "<0.01×".to_owned(),
        value if value > 100.0 => ">100×".to_owned(),
        value => times(value),
    };
    format!("{} to {}", end(low).trim_end_matches('×'), end(high))
}

/// Money without a currency, which only the reader knows.
#[must_use]
pub fn money(value: f64) -> String {
    let digits = if value >= 100.0 {
        0
    } else if value >= 1.0 {
        2
    } else {
        4
    };
    format!("{value:.digits$}")
}

/// `2026-11-22 00:34 UTC` of seconds since 1970.
#[must_use]
pub fn moment(unix: u64) -> String {
    let (days, second) = (unix / 86_400, unix % 86_400);
    // Days to a date in the proleptic Gregorian calendar, with years that begin in March.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", second / 3600, second % 3600 / 60)
}

fn scaled(value: f64, step: f64, prefixes: &[&str]) -> String {
    let (mut value, mut index) = (value, 0);
    // 999.6 would be shown as 1000.
    while value.abs() >= step - 0.5 && index + 1 < prefixes.len() {
        value /= step;
        index += 1;
    }
    format!("{}{}", digits(value), prefixes[index])
}

/// Three significant digits.
#[must_use]
pub fn digits(value: f64) -> String {
    let digits = match value.abs() {
        value if value >= 99.95 || value == 0.0 => 0,
        value if value >= 9.995 => 1,
        value if value >= 0.0995 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    // A whole number is one: `8 users`, not `8.00 users`.
    if value.fract() == 0.0 { format!("{value:.0}") } else { text }
}

fn grouped(value: f64) -> String {
    let text = format!("{:.0}", value.abs());
    let mut grouped = String::new();
    for (index, digit) in text.chars().enumerate() {
        if index > 0 && (text.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if value < 0.0 { format!("-{grouped}") } else { grouped }
}

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
    fn units() {
        for (value, unit, expected) in [
            (1_234_567.0, "1/s", "1.23 M/s"),
            (999_700.0, "1/s", "1.00 M/s"),
            (98_760.0, "1/s", "98.8 k/s"),
            (12.0, "1/s", "12/s"),
            (0.4812, "us", "0.48 µs"),
            (1530.0, "us", "1.53 ms"),
            (2_000_000.0, "us", "2 s"),
            (41.4, "bytes", "41.4 B"),
            (94_371_840.0, "bytes", "90 MiB"),
            (9.5, "s", "9.50 s"),
            (3100.0, "", "3,100"),
            (0.0, "", "0"),
        ] {
            assert_eq!(with_unit(value, unit), expected);
        }
    }

    #[test]
    fn ratios_and_money() {
        assert_eq!(times(1.349), "1.35×");
        assert_eq!(times(12.34), "12.3×");
        assert_eq!(range((0.951, 1.049)), "0.95 to 1.05×");
        assert_eq!(range((0.0001, 5289.0)), "<0.01 to >100×");
        assert_eq!(
            (counted(1.0, "round"), counted(12.0, "round")),
            ("1 round".into(), "12 rounds".into())
        );
        assert_eq!(money(0.123_456), "0.1235");
        assert_eq!(money(12.0), "12.00");
    }

    #[test]
    fn moments() {
        assert_eq!(moment(0), "1970-01-01 00:00 UTC");
        assert_eq!(moment(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(moment(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(moment(1_795_300_000), "2026-11-21 22:26 UTC");
    }

    #[test]
    fn a_million_a_second_takes_a_thousand_seconds() {
        let cost = per_billion(3.6, 1e6).unwrap();
        assert!((cost - 1.0).abs() < 1e-12, "{cost}");
        assert_eq!(per_billion(1.0, 0.0), None);
    }
}
