//! Just enough big-integer arithmetic to turn decimal text into binary fractions and back.
//! Only numbers that do not fit into 128 bits come this way, so clarity goes before speed.

use std::cmp::Ordering;

/// A natural number; least significant word first, no leading zero words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Big(Vec<u32>);

impl Big {
    /// The number that these ASCII digits write. Bytes that are not digits are skipped.
    pub(crate) fn from_digits(digits: &[u8], radix: u32) -> Big {
        let mut big = Big(Vec::new());
        for digit in digits.iter().filter_map(|byte| char::from(*byte).to_digit(radix)) {
            big.multiply_add(radix, digit);
        }
        big
    }

    pub(crate) fn from_u64(value: u64) -> Big {
        Big(vec![value as u32, (value >> 32) as u32]).trimmed()
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of bits up to the highest set one.
    pub(crate) fn bits(&self) -> u32 {
        self.0.last().map_or(0, |top| self.0.len() as u32 * 32 - top.leading_zeros())
    }

    pub(crate) fn multiply_add(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for word in &mut self.0 {
            carry += u64::from(*word) * u64::from(factor);
            *word = carry as u32;
            carry >>= 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }

    pub(crate) fn times_power_of_ten(mut self, exponent: u32) -> Big {
        for _ in 0..exponent / 9 {
            self.multiply_add(1_000_000_000, 0);
        }
        self.multiply_add(10u32.pow(exponent % 9), 0);
        self
    }

    pub(crate) fn shifted_left(&self, bits: u32) -> Big {
        let mut words = vec![0; (bits / 32) as usize];
        let mut carry = 0u64;
        for word in &self.0 {
            carry |= u64::from(*word) << (bits % 32);
            words.push(carry as u32);
            carry >>= 32;
        }
        words.push(carry as u32);
        Big(words).trimmed()
    }

    /// The highest 128 bits: `(value, shift, rest)`, where the number is `value << shift` plus
    /// something smaller than `1 << shift` that is not zero if `rest` says so.
    pub(crate) fn top(&self) -> (u128, u32, bool) {
        let shift = self.bits().saturating_sub(128);
        let mut value = 0;
        let mut rest = false;
        for (index, word) in self.0.iter().enumerate() {
            let place = index as u32 * 32;
            if place >= shift {
                value |= u128::from(*word) << (place - shift);
            } else if place + 32 <= shift {
                rest |= *word != 0;
            } else {
                value |= u128::from(*word >> (shift - place));
                rest |= word.trailing_zeros() < shift - place;
            }
        }
        (value, shift, rest)
    }

    /// `self / divisor` for a quotient below 2^127, and whether something remains. Bit by bit.
    pub(crate) fn divided_by(&self, divisor: &Big) -> (u128, bool) {
        let mut quotient = 0u128;
        let mut rest = self.clone();
        for shift in (0..=self.bits().saturating_sub(divisor.bits())).rev() {
            let part = divisor.shifted_left(shift);
            quotient <<= 1;
            if rest.compare(&part) != Ordering::Less {
                rest.subtract(&part);
                quotient |= 1;
            }
        }
        (quotient, !rest.is_zero())
    }

    /// Decimal digits; empty for zero.
    pub(crate) fn to_decimal(&self) -> String {
        let mut groups = Vec::new();
        let mut number = self.clone();
        while !number.is_zero() {
            let mut rest = 0u64;
            for word in number.0.iter_mut().rev() {
                rest = rest << 32 | u64::from(*word);
                *word = (rest / 1_000_000_000) as u32;
                rest %= 1_000_000_000;
            }
            groups.push(rest);
            number = number.trimmed();
        }
        let mut text = groups.pop().map_or(String::new(), |group| group.to_string());
        for group in groups.iter().rev() {
            text.push_str(&format!("{group:09}"));
        }
        text
    }

    fn compare(&self, other: &Big) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// `other` must not be greater.
    fn subtract(&mut self, other: &Big) {
        let mut borrow = 0i64;
        for (index, word) in self.0.iter_mut().enumerate() {
            let difference =
                i64::from(*word) - other.0.get(index).map_or(0, |word| i64::from(*word)) + borrow;
            *word = difference as u32;
            borrow = difference >> 32;
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn trimmed(mut self) -> Big {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }
}
