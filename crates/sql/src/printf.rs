//! `PRINTF`.

use crate::budget::Budget;
use crate::convert::{text_of, to_numeric};
use crate::error::{self, Error};
use crate::functions::Around;
use crate::value::Value;

/// Widest field.
const WIDTH_MAX: usize = 10_000;

#[derive(Default)]
struct Spec {
    is_left: bool,
    has_plus: bool,
    has_space: bool,
    has_zeros: bool,
    width: usize,
    precision: Option<usize>,
}

/// Formats values as C's `printf` does: `d i u f e s q c x X o %`.
///
/// # Errors
/// If a width is too large, or the conversion is none of these.
pub(crate) fn printf(arguments: &[Value], _: &Around, budget: &Budget) -> Result<Value, Error> {
    let Some((format, rest)) = arguments.split_first().filter(|(format, _)| !format.is_null())
    else {
        return Ok(Value::Null);
    };
    let format: Vec<char> = String::from_utf8_lossy(&text_of(format)).chars().collect();
    let mut rest = rest.iter();
    let mut out = String::new();
    let mut at = 0;
    while at < format.len() {
        if format[at] != '%' {
            out.push(format[at]);
            at += 1;
            continue;
        }
        let (spec, next) = read(&format, at + 1, &mut rest)?;
        let Some(conversion) = format.get(next) else {
            out.push('%');
            break;
        };
        at = next + 1;
        if *conversion == '%' {
            out.push('%');
            continue;
        }
        let value = rest.next().unwrap_or(&Value::Null);
        pad(&mut out, &spec, &one(*conversion, &spec, value)?);
        if out.len() > crate::functions::BYTES_MAX {
            return Err(error::execute("string or blob too big"));
        }
        budget.work(spec.width)?;
    }
    Ok(Value::text(&out))
}

fn read<'v>(
    format: &[char],
    mut at: usize,
    rest: &mut impl Iterator<Item = &'v Value>,
) -> Result<(Spec, usize), Error> {
    let mut spec = Spec::default();
    loop {
        match format.get(at) {
            Some('-') => spec.is_left = true,
            Some('+') => spec.has_plus = true,
            Some(' ') => spec.has_space = true,
            Some('0') => spec.has_zeros = true,
            Some('l' | '#' | ',') => {}
            _ => break,
        }
        at += 1;
    }
    let is_negative = std::cell::Cell::new(false);
    let mut number = |at: &mut usize| {
        let mut value = 0usize;
        if format.get(*at) == Some(&'*') {
            *at += 1;
            value = match rest.next() {
                Some(Value::Int(given)) => {
                    is_negative.set(*given < 0);
                    usize::try_from(given.unsigned_abs()).unwrap_or(usize::MAX)
                }
                _ => 0,
            };
        }
        while let Some(digit) = format.get(*at).and_then(|it| it.to_digit(10)) {
            value = value.saturating_mul(10).saturating_add(digit as usize);
            *at += 1;
        }
        match value {
            0..=WIDTH_MAX => Ok(value),
            _ => Err(error::execute("string or blob too big")),
        }
    };
    spec.width = number(&mut at)?;
    // As in C: a negative width is one to the left.
    spec.is_left |= is_negative.get();
    if format.get(at) == Some(&'.') {
        at += 1;
        spec.precision = Some(number(&mut at)?);
    }
    while format.get(at) == Some(&'l') {
        at += 1;
    }
    Ok((spec, at))
}

fn pad(out: &mut String, spec: &Spec, text: &str) {
    let missing = spec.width.saturating_sub(text.chars().count());
    let (sign, digits) = match text.strip_prefix(['-', '+', ' ']) {
        Some(digits) if spec.has_zeros => (&text[..1], digits),
        _ => ("", text),
    };
    match (spec.is_left, spec.has_zeros) {
        (true, _) => *out += &format!("{text}{}", " ".repeat(missing)),
        (false, true) => *out += &format!("{sign}{}{digits}", "0".repeat(missing)),
        (false, false) => *out += &format!("{}{text}", " ".repeat(missing)),
    }
}

fn integer(value: &Value) -> i128 {
    match to_numeric(value) {
        Ok(Value::Int(number)) => number,
        Ok(Value::Double(number)) => number as i128,
        _ => 0,
    }
}

fn double(value: &Value) -> f64 {
    match to_numeric(value) {
        Ok(Value::Int(number)) => number as f64,
        Ok(Value::Double(number)) => number,
        _ => 0.0,
    }
}

fn signed(spec: &Spec, is_negative: bool, digits: &str) -> String {
    let sign = match () {
        () if is_negative => "-",
        () if spec.has_plus => "+",
        () if spec.has_space => " ",
        () => "",
    };
    format!("{sign}{digits}")
}

fn one(conversion: char, spec: &Spec, value: &Value) -> Result<String, Error> {
    const PRECISION: usize = 6;
    let precision = spec.precision.unwrap_or(PRECISION);
    Ok(match conversion {
        'd' | 'i' | 'u' => {
            let number = integer(value);
            signed(spec, number < 0, &number.unsigned_abs().to_string())
        }
        'x' => format!("{:x}", integer(value) as u64),
        'X' => format!("{:X}", integer(value) as u64),
        'o' => format!("{:o}", integer(value) as u64),
        'f' => {
            let number = double(value);
            signed(spec, number < 0.0, &format!("{:.precision$}", number.abs()))
        }
        'e' | 'E' => {
            let number = double(value);
            let text = format!("{:.precision$e}", number.abs());
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let mark = if exponent < 0 { '-' } else { '+' };
            let text = format!("{mantissa}{conversion}{mark}{:02}", exponent.abs());
            signed(spec, number < 0.0, &text)
        }
        's' | 'z' | 'q' => {
            let text = match value {
                Value::Null => String::new(),
                value => String::from_utf8_lossy(&text_of(value)).into_owned(),
            };
            let text = if conversion == 'q' { text.replace('\'', "''") } else { text };
            text.chars().take(spec.precision.unwrap_or(usize::MAX)).collect()
        }
        'c' => String::from_utf8_lossy(&text_of(value)).chars().take(1).collect(),
        other => return Err(error::unsupported(&format!("'%{other}' in PRINTF"))),
    })
}
