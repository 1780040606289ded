//! The Gregorian calendar, before its introduction as after: days are counted from 1970-01-01.

/// Seconds of a day.
pub(super) const DAY: i64 = 86_400;

/// -5879610-06-22 and 5879611-07-11, the first and the last day that Tarantool has: days since
/// 0000-12-31 fit into 32 bits.
pub(super) const DAYS_MIN: i64 = i32::MIN as i64 - 719_163;
pub(super) const DAYS_MAX: i64 = i32::MAX as i64 - 719_163;

/// What happens to a day that the month of a sum has not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub(super) enum Adjust {
    /// It goes on into the next month.
    Excess = 0,
    /// It is the month's last.
    Limit = 1,
    /// As for `Limit`, and the last day of a month stays the last.
    Snap = 2,
}

impl Adjust {
    /// From the number that cdata and MessagePack have.
    pub(super) fn of(number: i64) -> Option<Adjust> {
        match number {
            0 => Some(Adjust::Excess),
            1 => Some(Adjust::Limit),
            2 => Some(Adjust::Snap),
            _ => None,
        }
    }
}

/// The day of a date; months and days may be beyond their year and month. Years are those that
/// [`DAYS_MIN`] allows, or near them.
pub(super) fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year + (month - 1).div_euclid(12);
    let month = (month - 1).rem_euclid(12) + 1;
    // Years begin in March here, so that the day that may be missing is the last.
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The day of a date, if there is such a day.
pub(super) fn checked_day_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_date = (1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month);
    let found = is_date.then(|| day_of(year, month, day))?;
    (DAYS_MIN..=DAYS_MAX).contains(&found).then_some(found)
}

/// Year, month and day.
pub(super) fn date(day: i64) -> (i64, i64, i64) {
    let days = day + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

pub(super) fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// The days of a month from 1 to 12.
pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day of its year, from 1 on.
pub(super) fn day_of_year(day: i64) -> i64 {
    day - day_of(date(day).0, 1, 1) + 1
}

/// The day of its week, from Monday, which is 1, to Sunday, which is 7.
pub(super) fn day_of_week(day: i64) -> i64 {
    // 1970-01-01 was a Thursday.
    (day + 3).rem_euclid(7) + 1
}

/// The year and the week of ISO 8601: a week has the year of its Thursday.
pub(super) fn week_of(day: i64) -> (i64, i64) {
    let thursday = day - day_of_week(day) + 4;
    (date(thursday).0, (day_of_year(thursday) - 1) / 7 + 1)
}

/// The day of a week of ISO 8601.
pub(super) fn day_of_week_date(year: i64, week: i64, day: i64) -> Option<i64> {
    let fourth = day_of(year, 1, 4);
    let found = fourth - day_of_week(fourth) + 1 + (week - 1) * 7 + day - 1;
    ((1..=7).contains(&day) && week >= 1 && week_of(found) == (year, week)).then_some(found)
}

/// The same day so many months later.
pub(super) fn add_months(day: i64, months: i64, adjust: Adjust) -> i64 {
    let (year, month, of_month) = date(day);
    let was_last = of_month == days_in_month(year, month);
    let sum = month - 1 + months;
    let (year, month) = (year + sum.div_euclid(12), sum.rem_euclid(12) + 1);
    let last = days_in_month(year, month);
    let of_month = match adjust {
        Adjust::Excess => of_month,
        Adjust::Snap if was_last => last,
        _ => of_month.min(last),
    };
    day_of(year, month, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse() {
        for day in (-1_000_000..1_000_000).step_by(97).chain([DAYS_MIN, DAYS_MAX]) {
            let (year, month, of_month) = date(day);
            assert_eq!(day_of(year, month, of_month), day);
        }
        assert_eq!(date(DAYS_MIN), (-5_879_610, 6, 22));
        assert_eq!(date(DAYS_MAX), (5_879_611, 7, 11));
    }

    #[test]
    fn weeks_are_those_of_iso_8601() {
        assert_eq!(week_of(day_of(2021, 1, 3)), (2020, 53));
        assert_eq!(week_of(day_of(2024, 12, 30)), (2025, 1));
        assert_eq!(day_of_week_date(2012, 52, 1), Some(day_of(2012, 12, 24)));
        assert_eq!(day_of_week_date(2012, 53, 3), None);
    }

    #[test]
    fn months_are_added_as_asked() {
        let end = day_of(1972, 2, 29);
        assert_eq!(date(add_months(end, 1, Adjust::Snap)), (1972, 3, 31));
        assert_eq!(date(add_months(end, 1, Adjust::Limit)), (1972, 3, 29));
        assert_eq!(date(add_months(end, 12, Adjust::Limit)), (1973, 2, 28));
        assert_eq!(date(add_months(end, 12, Adjust::Excess)), (1973, 3, 1));
    }
}
