//! Putting elements in order.

use super::elements::Elements;
use super::options::Options;
use super::pattern::{Pattern, Source};
use super::sorted::limited;
use ladon_kernel::command::error::CommandError;
use std::cmp::Ordering;

/// What elements are compared by.
enum Weights {
    /// Numbers; of equals, the elements' bytes.
    Numbers(Vec<f64>),
    /// The elements' own bytes.
    Elements,
    /// The bytes that BY found; nothing comes before everything.
    Texts(Vec<Option<Vec<u8>>>),
}

/// The elements' numbers in the order asked for, up to where LIMIT ends.
pub(super) fn sorted(
    source: &mut Source<'_, '_>,
    elements: &Elements,
    options: &Options<'_>,
) -> Result<Vec<usize>, CommandError> {
    let weights = weigh(source, elements, options)?;
    let compare = |&a: &usize, &b: &usize| {
        let ordering = match &weights {
            Weights::Numbers(numbers) => numbers[a]
                .partial_cmp(&numbers[b])
                .unwrap_or(Ordering::Equal)
                .then_with(|| elements.get(a).cmp(elements.get(b))),
            Weights::Elements => elements.get(a).cmp(elements.get(b)),
            Weights::Texts(texts) => texts[a].cmp(&texts[b]),
        };
        let ordering = if options.descending { ordering.reverse() } else { ordering };
        // Equal elements keep their order.
        ordering.then(a.cmp(&b))
    };
    let end = limited(elements.len(), options.limit).end;
    if let Weights::Numbers(numbers) = &weights
        && end == elements.len()
    {
        return Ok(by_numbers(numbers, elements, options.descending));
    }
    let mut order: Vec<usize> = (0..elements.len()).collect();
    if end < order.len() {
        // Only the first ones are needed.
        order.select_nth_unstable_by(end, compare);
        order[..end].sort_unstable_by(compare);
    } else {
        order.sort_unstable_by(compare);
    }
    Ok(order)
}

/// Sorts all of them by number. Each number is next to its index, so that most comparisons read
/// nothing else.
fn by_numbers(numbers: &[f64], elements: &Elements, descending: bool) -> Vec<usize> {
    let mut pairs: Vec<(f64, usize)> = numbers.iter().copied().zip(0..).collect();
    pairs.sort_unstable_by(|&(x, a), &(y, b)| {
        let by_number = x.partial_cmp(&y).unwrap_or(Ordering::Equal);
        let ordering = by_number.then_with(|| elements.get(a).cmp(elements.get(b)));
        let ordering = if descending { ordering.reverse() } else { ordering };
        ordering.then(a.cmp(&b))
    });
    pairs.into_iter().map(|(_, at)| at).collect()
}

fn weigh(
    source: &mut Source<'_, '_>,
    elements: &Elements,
    options: &Options<'_>,
) -> Result<Weights, CommandError> {
    let by = options.by.as_ref();
    if options.alpha {
        let Some(pattern) = by else { return Ok(Weights::Elements) };
        let mut texts = Vec::with_capacity(elements.len());
        pattern.look_up_all(source, elements, |found| texts.push(found.map(<[u8]>::to_vec)));
        return Ok(Weights::Texts(texts));
    }
    let pattern = by.unwrap_or(&Pattern::Element);
    let mut broken = false;
    let mut numbers = Vec::with_capacity(elements.len());
    pattern.look_up_all(source, elements, |found| {
        numbers.push(match found {
            Some(text) => number(text).unwrap_or_else(|| {
                broken = true;
                0.0
            }),
            None => 0.0,
        });
    });
    if broken {
        return Err(CommandError::text("ERR One or more scores can't be converted into double"));
    }
    Ok(Weights::Numbers(numbers))
}

/// Parses a number as C's `strtod` does, which Redis calls here: leading blanks are skipped, an
/// empty text is zero, and overflow and underflow are refused.
fn number(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    if text.is_empty() {
        return Some(0.0);
    }
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let digits = text.trim_start_matches(['+', '-']);
    // Not by length, because the second byte may be part of a multi-byte character.
    let head = digits.get(..2).unwrap_or_default();
    if digits.len() > 2 && head.eq_ignore_ascii_case("0x") {
        let value = hexadecimal(&digits[2..])?;
        return Some(if text.starts_with('-') { -value } else { value });
    }
    let value: f64 = text.parse().ok()?;
    let is_named = digits.starts_with(|first: char| first.is_ascii_alphabetic());
    let mantissa = digits.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let fits = value.is_normal() || value == 0.0 && is_zero || value.is_infinite() && is_named;
    fits.then_some(value)
}

/// Whole numbers only: hexadecimal fractions do not occur in practice.
fn hexadecimal(digits: &str) -> Option<f64> {
    u64::from_str_radix(digits, 16).ok().map(|value| value as f64)
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_those_of_strtod() {
        for (text, value) in [
            ("", Some(0.0)),
            ("1", Some(1.0)),
            ("-2.5", Some(-2.5)),
            ("+3", Some(3.0)),
            (" 7", Some(7.0)),
            ("7 ", None),
            ("!\u{455} YY", None),
            ("\u{455}", None),
            ("1e3", Some(1000.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("0x10", Some(16.0)),
            ("-0x10", Some(-16.0)),
            ("inf", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("nan", None),
            ("1e999", None),
            ("1e-999", None),
            ("0e-999", Some(0.0)),
            ("abc", None),
            ("1a", None),
            ("--1", None),
            (" ", None),
        ] {
            assert_eq!(number(text.as_bytes()), value, "{text:?}");
        }
    }
}
