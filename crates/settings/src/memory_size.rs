//! Amounts of memory as Redis writes them: `100`, `64k` (1000), `64kb` (1024), `2gb`.

/// Bytes, from text; `None` if it is not an amount of memory or does not fit into 63 bits.
pub fn parse(text: &str) -> Option<i64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if unit.len() > 2 {
        // Not a unit, and possibly long.
        return None;
    }
    let unit: i64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1000 * 1000,
        "mb" => 1 << 20,
        "g" => 1000 * 1000 * 1000,
        "gb" => 1 << 30,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(unit)
}

/// The shortest exact way to write it for a person: `64mb`, `1000`.
pub fn shorten(bytes: i64) -> String {
    for (unit, name) in [(1i64 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")] {
        if bytes != 0 && bytes % unit == 0 {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_redis() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("1b", Some(1)),
            ("1k", Some(1000)),
            ("1kB", Some(1024)),
            ("3M", Some(3_000_000)),
            ("2GB", Some(2 << 30)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("99999999999gb", None),
            ("1.5gb", None),
            ("-1", None),
            ("gb", None),
            ("1gib", None),
            (" 1", None),
        ] {
            assert_eq!(parse(text), bytes, "{text}");
        }
    }

    #[test]
    fn short_form_reads_back() {
        for bytes in [0, 1, 1000, 1024, 64 << 20, 5 << 30, (1 << 30) + 1] {
            assert_eq!(parse(&shorten(bytes)), Some(bytes));
        }
    }
}
