//! Where a value ends, without its elements: lengths are followed, and nothing in between is looked at.
//!
//! A stream has lengths behind its listpacks that only their entries tell apart, so it is read.

use std::io::Read;

use crate::elements::{Elements, FieldExpiry, count_down};
use crate::error::Fault;
use crate::source::Source;
use crate::text::{read_length, skip_string};

impl Elements {
    /// Takes all elements of a value of which none was taken.
    pub(crate) fn skip<R: Read>(mut self, source: &mut Source<R>) -> Result<(), Fault> {
        match &mut self {
            Elements::String(text) => text.skip_rest(source),
            Elements::Packed { packed, .. } => packed.skip_rest(source),
            Elements::Plain { left, .. } => {
                while count_down(left) {
                    skip_string(source)?;
                }
                Ok(())
            }
            Elements::Scored { left, is_decimal } => {
                while count_down(left) {
                    skip_string(source)?;
                    skip_score(*is_decimal, source)?;
                }
                Ok(())
            }
            Elements::Fields { left, expiry } => {
                while count_down(left) {
                    skip_field(*expiry, source)?;
                }
                Ok(())
            }
            Elements::Quicklist { nodes_left, is_second, .. } => {
                while count_down(nodes_left) {
                    if *is_second {
                        read_length(source)?;
                    }
                    skip_string(source)?;
                }
                Ok(())
            }
            Elements::Stream(stream) => {
                while stream.next(source)?.is_some() {}
                Ok(())
            }
        }
    }
}

fn skip_score<R: Read>(is_decimal: bool, source: &mut Source<R>) -> Result<(), Fault> {
    /// From here on, the byte stands for a number that is none in decimal.
    const NO_LENGTH: u8 = 253;
    if !is_decimal {
        return source.skip(8);
    }
    match source.byte()? {
        NO_LENGTH.. => Ok(()),
        length => source.skip(length.into()),
    }
}

fn skip_field<R: Read>(expiry: FieldExpiry, source: &mut Source<R>) -> Result<(), Fault> {
    if matches!(expiry, FieldExpiry::Absolute | FieldExpiry::Since(_)) {
        read_length(source)?;
    }
    skip_string(source)?;
    skip_string(source)?;
    if matches!(expiry, FieldExpiry::Valkey) {
        source.skip(8)?;
    }
    Ok(())
}
