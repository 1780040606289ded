//! Integers of any width at any bit of a string, and the handling of overflow.

/// `i5`, `u12`: an integer's width and whether it has a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Width {
    pub(super) signed: bool,
    /// 1 to 64; to 63 without a sign.
    pub(super) bits: u32,
}

/// What to do with a value that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overflow {
    /// Keep its low bits.
    Wrap,
    /// Take the nearest that fits.
    Saturate,
    /// Do nothing.
    Fail,
}

impl Width {
    /// Reads `i1` to `i64`, `u1` to `u63`.
    pub(super) fn parse(text: &[u8]) -> Option<Width> {
        let (signed, digits) = match text {
            [b'i', digits @ ..] => (true, digits),
            [b'u', digits @ ..] => (false, digits),
            _ => return None,
        };
        let bits = ladon_resp::parse_i64(digits)?;
        let most = if signed { 64 } else { 63 };
        (1..=most).contains(&bits).then_some(Width { signed, bits: bits as u32 })
    }

    /// The smallest and the largest representable value.
    fn bounds(self) -> (i128, i128) {
        match self.signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    /// `value` as it will be stored; `None` if it does not fit and `overflow` says to fail.
    pub(super) fn fit(self, value: i128, overflow: Overflow) -> Option<i64> {
        let (least, most) = self.bounds();
        if (least..=most).contains(&value) {
            return Some(value as i64);
        }
        match overflow {
            Overflow::Wrap => Some(self.value_of(value as u64)),
            Overflow::Saturate => Some(value.clamp(least, most) as i64),
            Overflow::Fail => None,
        }
    }

    /// The value that the low bits represent.
    fn value_of(self, bits: u64) -> i64 {
        let unused = 64 - self.bits;
        match self.signed {
            true => (bits << unused) as i64 >> unused,
            false => (bits << unused >> unused) as i64,
        }
    }

    /// The bytes of a string that the integer at this bit covers.
    pub(super) fn bytes(self, offset: u64) -> std::ops::Range<usize> {
        (offset / 8) as usize..((offset + u64::from(self.bits)).div_ceil(8)) as usize
    }

    /// Reads the integer at this bit; bits after the string's end are zeros.
    pub(super) fn read(self, string: &[u8], offset: u64) -> i64 {
        let window = self.bytes(offset).fold(0u128, |window, at| {
            window << 8 | u128::from(string.get(at).copied().unwrap_or(0))
        });
        self.value_of((window >> self.bits_behind(offset)) as u64)
    }

    /// Writes the low bits of `value` at this bit; the string must be long enough.
    pub(super) fn write(self, string: &mut [u8], offset: u64, value: i64) {
        let bytes = self.bytes(offset);
        let behind = self.bits_behind(offset);
        let mask = (u128::MAX >> (128 - self.bits)) << behind;
        let mut window = (value as u128) << behind & mask;
        let mut mask = mask;
        for byte in string[bytes].iter_mut().rev() {
            *byte = *byte & !(mask as u8) | window as u8;
            window >>= 8;
            mask >>= 8;
        }
    }

    /// Bits of the last byte after the integer.
    fn bits_behind(self, offset: u64) -> u32 {
        (7 - (offset + u64::from(self.bits) + 7) % 8) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bit(string: &[u8], at: u64) -> bool {
        string.get((at / 8) as usize).is_some_and(|byte| byte & 0x80 >> (at % 8) != 0)
    }

    fn widths() -> impl Strategy<Value = Width> {
        prop_oneof![
            (1u32..=64).prop_map(|bits| Width { signed: true, bits }),
            (1u32..=63).prop_map(|bits| Width { signed: false, bits }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_nothing_else_changes(
            width in widths(),
            mut string in prop::collection::vec(any::<u8>(), 40),
            offset in 0u64..250,
            value: i64,
        ) {
            let before = string.clone();
            width.write(&mut string, offset, value);
            prop_assert_eq!(
                width.read(&string, offset),
                width.fit(value.into(), Overflow::Wrap).unwrap()
            );
            for at in 0..320 {
                let within = (offset..offset + u64::from(width.bits)).contains(&at);
                let expected = match within {
                    true => value >> (offset + u64::from(width.bits) - 1 - at) & 1 != 0,
                    false => bit(&before, at),
                };
                prop_assert_eq!(bit(&string, at), expected, "bit {}", at);
            }
        }

        #[test]
        fn behind_the_end_are_zeros(width in widths(), string: [u8; 5], offset in 0u64..80) {
            let mut longer = string.to_vec();
            longer.resize(40, 0);
            prop_assert_eq!(width.read(&string, offset), width.read(&longer, offset));
        }
    }

    #[test]
    fn what_does_not_fit() {
        let (i8, u8) = (Width::parse(b"i8").unwrap(), Width::parse(b"u8").unwrap());
        let i64 = Width::parse(b"i64").unwrap();
        for (width, value, wrapped, saturated) in [
            (i8, 127, 127, Some(127)),
            (i8, 128, -128, Some(127)),
            (i8, -129, 127, Some(-128)),
            (u8, 256, 0, Some(255)),
            (u8, -1, 255, Some(0)),
            (i64, i128::from(i64::MAX) + 1, i64::MIN, Some(i64::MAX)),
            (i64, i128::from(i64::MIN) - 1, i64::MAX, Some(i64::MIN)),
        ] {
            assert_eq!(width.fit(value, Overflow::Wrap), Some(wrapped));
            assert_eq!(width.fit(value, Overflow::Saturate), saturated);
            let fits = i128::from(wrapped) == value;
            assert_eq!(width.fit(value, Overflow::Fail), fits.then_some(wrapped));
        }
    }

    #[test]
    fn widths_are_those_of_redis() {
        for wrong in ["", "i", "u", "i0", "u0", "i65", "u64", "8", "I8", "i-1", "i08", "x8"] {
            assert_eq!(Width::parse(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(Width::parse(b"u63"), Some(Width { signed: false, bits: 63 }));
    }
}
