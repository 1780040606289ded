//! Days as people count them.

/// Year, month (1 to 12) and day (1 to 31) of a count of days since 1970-01-01 (proleptic Gregorian).
///
/// Counted in eras of 400 years that begin in March, so that the leap day comes last (Hinnant,
/// "chrono-compatible low-level date algorithms").
#[must_use]
pub fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::civil_date;

    /// Every day of 500 years, counted by hand.
    #[test]
    fn days_follow_one_another() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..500 * 365 {
            assert_eq!(civil_date(days), (year, month, day), "{days}");
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 => 28 + u64::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > last {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }
}
