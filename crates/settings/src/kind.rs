//! The kinds of settings: parsing them from text, and printing them as `CONFIG GET` does.
//!
//! Error texts are Redis' own, since clients' tests compare them.

use crate::{endpoint, event_classes, memory_size, output_limits, percentiles, save_points};
use std::sync::Arc;

/// The kind of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `yes` or `no`.
    Bool,
    /// A whole number.
    Integer {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// A whole number that is pulled into the range when it is outside, as Redis does with `hz`.
    Clamped {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// Permission bits in octal, at most 777.
    Octal,
    /// Bytes, with a unit.
    Memory {
        /// Fewest bytes.
        min: i64,
    },
    /// Bytes with a unit, or a percentage (kept as a negative number).
    MemoryOrPercent,
    /// One of these words; kept as its index.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// See [`endpoint`].
    Endpoints,
    /// See [`save_points`].
    SavePoints,
    /// See [`output_limits`].
    OutputLimits,
    /// See [`percentiles`].
    Percentiles,
    /// See [`event_classes`].
    EventClasses,
    /// Exactly the default, since Ladon does nothing else.
    Fixed {
        /// What another value in a redis.conf would mean.
        unlike: Unlike,
        /// Why there is no choice.
        reason: &'static str,
    },
}

/// The effect of asking for a behaviour that Ladon does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlike {
    /// Nothing gets worse: a redis.conf gets a warning.
    Harmless,
    /// A user may rely on it: a redis.conf with it is refused.
    Promise,
}

/// A value. Which variant, the kind decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Bool, Integer, Clamped, Octal, Memory, MemoryOrPercent, Choice.
    Number(i64),
    /// The others, in their canonical form. Shared, as a client can make it long.
    Text(Arc<String>),
}

impl Value {
    /// A value that is text.
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(Arc::new(text.into()))
    }
}

/// The sign distinguishes a percentage from bytes; zero is zero either way.
const PERCENT_MAX: i64 = 100;

impl Kind {
    /// Whether the value is a number.
    pub(crate) const fn is_number(&self) -> bool {
        !matches!(
            self,
            Kind::Text
                | Kind::Endpoints
                | Kind::SavePoints
                | Kind::OutputLimits
                | Kind::Percentiles
                | Kind::EventClasses
                | Kind::Fixed { .. }
        )
    }

    /// Parses `input`. `present` is the setting's value: if an input names only a part (output
    /// limits), the rest stays. The error is the text after `CONFIG SET failed ... - `.
    pub fn parse(&self, input: &str, present: &Value) -> Result<Value, String> {
        let number = match *self {
            Kind::Bool => parse_bool(input)?,
            Kind::Integer { min, max } => in_range(parse_integer(input)?, min, max)?,
            Kind::Clamped { min, max } => {
                in_range(parse_integer(input)?, 0, i32::MAX.into())?.clamp(min, max)
            }
            Kind::Octal => i64::from_str_radix(input, 8)
                .ok()
                .filter(|bits| (0..=0o777).contains(bits))
                .ok_or("argument couldn't be parsed into an integer")?,
            Kind::Memory { min } => {
                let bytes = memory_size::parse(input).ok_or("argument must be a memory value")?;
                in_range(bytes, min, i64::MAX)?
            }
            Kind::MemoryOrPercent => parse_memory_or_percent(input)?,
            Kind::Choice(choices) => parse_choice(input, choices)?,
            Kind::Text => return Ok(Value::text(input)),
            Kind::Endpoints => {
                return Ok(Value::text(endpoint::format_list(&endpoint::parse_list(input)?)));
            }
            Kind::SavePoints => {
                let points = save_points::parse(input).ok_or("Invalid save parameters")?;
                return Ok(Value::text(save_points::format(&points)));
            }
            Kind::OutputLimits => {
                let present = match present {
                    Value::Text(text) => output_limits::parse(text, Default::default()).ok(),
                    Value::Number(_) => None,
                };
                let limits = output_limits::parse(input, present.unwrap_or_default())?;
                return Ok(Value::text(output_limits::format(&limits)));
            }
            Kind::Percentiles => {
                return Ok(Value::text(percentiles::format(&percentiles::parse(input)?)));
            }
            Kind::EventClasses => return Ok(Value::text(event_classes::canonical(input)?)),
            Kind::Fixed { reason, .. } => {
                return match present {
                    Value::Text(only) if only.eq_ignore_ascii_case(input) => Ok(present.clone()),
                    Value::Text(only) => Err(format!("only '{only}' is supported: {reason}")),
                    Value::Number(_) => Err(reason.to_owned()),
                };
            }
        };
        Ok(Value::Number(number))
    }

    /// Writes `value` as `CONFIG GET` answers.
    pub fn format(&self, value: &Value) -> String {
        match (self, value) {
            (_, Value::Text(text)) => text.to_string(),
            (Kind::Bool, Value::Number(number)) => yes_no(*number != 0).to_owned(),
            (Kind::Octal, Value::Number(bits)) => format!("{bits:o}"),
            (Kind::MemoryOrPercent, Value::Number(number)) if *number < 0 => {
                format!("{}%", number.unsigned_abs())
            }
            (Kind::Choice(choices), Value::Number(index)) => usize::try_from(*index)
                .ok()
                .and_then(|index| choices.get(index))
                .unwrap_or(&"")
                .to_string(),
            (_, Value::Number(number)) => number.to_string(),
        }
    }

    /// The allowed values, for `--help` and the documents.
    pub fn describe(&self) -> String {
        match *self {
            Kind::Bool => "yes or no".to_owned(),
            Kind::Integer { min, max: i64::MAX } => format!("number, at least {min}"),
            Kind::Integer { min, max } | Kind::Clamped { min, max } => {
                format!("number, {min} to {max}")
            }
            Kind::Octal => "octal permission bits".to_owned(),
            Kind::Memory { min: 0 } => "size".to_owned(),
            Kind::Memory { min } => format!("size, at least {}", memory_size::shorten(min)),
            Kind::MemoryOrPercent => "size or percentage".to_owned(),
            Kind::Choice(choices) => choices.join(", "),
            Kind::Text => "text".to_owned(),
            Kind::Endpoints => "list of HOST:PORT or unix:PATH".to_owned(),
            Kind::SavePoints => "pairs of seconds and changes".to_owned(),
            Kind::OutputLimits => "groups of class, hard size, soft size, seconds".to_owned(),
            Kind::Percentiles => "list of percentages".to_owned(),
            Kind::EventClasses => "letters of event classes".to_owned(),
            Kind::Fixed { .. } => "fixed".to_owned(),
        }
    }
}

/// As Redis spells truth.
pub(crate) const fn yes_no(truth: bool) -> &'static str {
    if truth { "yes" } else { "no" }
}

fn parse_bool(input: &str) -> Result<i64, &'static str> {
    if input.eq_ignore_ascii_case("yes") {
        Ok(1)
    } else if input.eq_ignore_ascii_case("no") {
        Ok(0)
    } else {
        Err("argument must be 'yes' or 'no'")
    }
}

/// Only the canonical spelling of a number counts in Redis: no sign `+`, no leading zero.
fn parse_integer(input: &str) -> Result<i64, &'static str> {
    let number = input.parse::<i64>().ok().filter(|number| number.to_string() == input);
    number.ok_or("argument couldn't be parsed into an integer")
}

fn in_range(number: i64, min: i64, max: i64) -> Result<i64, String> {
    if (min..=max).contains(&number) {
        return Ok(number);
    }
    Err(format!("argument must be between {min} and {max} inclusive"))
}

fn parse_memory_or_percent(input: &str) -> Result<i64, String> {
    let bad = || "argument must be a memory or percent value".to_owned();
    match input.strip_suffix('%') {
        Some(percent) => match parse_integer(percent) {
            Ok(percent) if percent > PERCENT_MAX => {
                Err(format!("percentage argument must be less or equal to {PERCENT_MAX}"))
            }
            Ok(percent) if percent >= 0 => Ok(-percent),
            _ => Err(bad()),
        },
        None => memory_size::parse(input).ok_or_else(bad),
    }
}

fn parse_choice(input: &str, choices: &[&str]) -> Result<i64, String> {
    let index = choices.iter().position(|choice| choice.eq_ignore_ascii_case(input));
    index
        .map(|index| index as i64)
        .ok_or_else(|| format!("argument(s) must be one of the following: {}", choices.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: Kind, input: &str, expected: Result<&str, &str>) {
        let present = Value::text("no");
        let found = kind.parse(input, &present).map(|value| kind.format(&value));
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn values_read_and_errors_are_those_of_redis() {
        check(Kind::Bool, "YES", Ok("yes"));
        check(Kind::Bool, "1", Err("argument must be 'yes' or 'no'"));
        let ports = Kind::Integer { min: 0, max: 65535 };
        check(ports, "6379", Ok("6379"));
        for bad in ["007", "+7", " 7", "7x", "", "-0"] {
            check(ports, bad, Err("argument couldn't be parsed into an integer"));
        }
        check(ports, "65536", Err("argument must be between 0 and 65535 inclusive"));
        check(Kind::Clamped { min: 1, max: 500 }, "1000", Ok("500"));
        check(Kind::Octal, "770", Ok("770"));
        check(Kind::Octal, "999", Err("argument couldn't be parsed into an integer"));
        check(Kind::Memory { min: 0 }, "1kb", Ok("1024"));
        check(Kind::Memory { min: 0 }, "x", Err("argument must be a memory value"));
        check(
            Kind::Memory { min: 1 << 20 },
            "1",
            Err("argument must be between 1048576 and 9223372036854775807 inclusive"),
        );
        check(Kind::MemoryOrPercent, "5%", Ok("5%"));
        check(Kind::MemoryOrPercent, "0%", Ok("0"));
        check(Kind::MemoryOrPercent, "x", Err("argument must be a memory or percent value"));
        check(
            Kind::MemoryOrPercent,
            "101%",
            Err("percentage argument must be less or equal to 100"),
        );
        let words = Kind::Choice(&["everysec", "always", "no"]);
        check(words, "Always", Ok("always"));
        check(words, "x", Err("argument(s) must be one of the following: everysec, always, no"));
        let fixed = Kind::Fixed { unlike: Unlike::Harmless, reason: "so it is" };
        check(fixed, "NO", Ok("no"));
        check(fixed, "yes", Err("only 'no' is supported: so it is"));
    }
}
