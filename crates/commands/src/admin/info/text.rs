//! `INFO`'s text: sections of `name:value` lines.

use std::fmt::{Display, Write};

/// The text so far.
#[derive(Default)]
pub(super) struct Text(String);

impl Text {
    /// Begins a section.
    pub(super) fn section(&mut self, name: &str) {
        let gap = if self.0.is_empty() { "" } else { "\r\n" };
        // Writing to a string cannot fail, here and below.
        let _ = write!(self.0, "{gap}# {name}\r\n");
    }

    /// Adds a field.
    pub(super) fn field(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.0, "{name}:{value}\r\n");
    }

    /// Adds a field that is 0 or 1.
    pub(super) fn flag(&mut self, name: &str, value: bool) {
        self.field(name, u8::from(value));
    }

    /// Adds fields with the same "none" value, for what Ladon does not have.
    pub(super) fn none_of(&mut self, names: &[&str]) {
        for name in names {
            self.field(name, 0);
        }
    }

    /// Adds a number of bytes, once as a number and once in readable form.
    pub(super) fn bytes(&mut self, name: &str, bytes: u64) {
        self.field(name, bytes);
        self.field(&format!("{name}_human"), human_bytes(bytes));
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// Bytes as people read them: `894.87K`.
pub(crate) fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "K", "M", "G", "T", "P"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes}B") } else { format!("{value:.2}{}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_readable() {
        for (bytes, expected) in
            [(0, "0B"), (1023, "1023B"), (1024, "1.00K"), (916_344, "894.87K"), (5 << 30, "5.00G")]
        {
            assert_eq!(human_bytes(bytes), expected);
        }
    }
}
