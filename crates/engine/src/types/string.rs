//! Strings: in the entry, as an integer, or boxed when long.

use crate::item::ItemHead;
use crate::object::Object;
use crate::table::entry::{ValueInit, ValueRef};
use crate::types::integer::{parse_int, write_int};
use crate::types::long_string::LongString;
use std::borrow::Cow;

/// Longer strings are boxed.
pub const INLINE_BYTES_MAX: usize = 16 << 10;

/// A string that grew in place is boxed from this length on: there it can continue to grow without
/// moving the key.
pub(crate) const GROWN_INLINE_BYTES_MAX: usize = 2048;

/// The `OBJECT ENCODING` of a short string.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// "int" if it is one.
    Shortest,
    /// "embstr", integer or not.
    Text,
    /// "raw".
    Grown,
}

/// The representation for a string's bytes.
#[inline]
pub(crate) fn init(bytes: &[u8], form: Form) -> ValueInit<'_> {
    let inline_max = if form == Form::Grown { GROWN_INLINE_BYTES_MAX } else { INLINE_BYTES_MAX };
    if bytes.len() > inline_max {
        return ValueInit::Object(Box::new(Object::String(bytes.to_vec().into())));
    }
    if form == Form::Shortest
        && let Some(int) = parse_int(bytes)
    {
        return ValueInit::Int(int);
    }
    ValueInit::Bytes { bytes, grown: form == Form::Grown }
}

/// As `init`, of a string that has a head.
pub(crate) fn init_item(bytes: &[u8], form: Form, head: ItemHead) -> ValueInit<'_> {
    if head.is_empty() {
        return init(bytes, form);
    }
    match init(bytes, if form == Form::Shortest { Form::Text } else { form }) {
        ValueInit::Bytes { bytes, grown } => ValueInit::of_bytes(bytes, grown, head),
        _ => {
            let string = LongString::from(bytes.to_vec()).with_head(head);
            ValueInit::Object(Box::new(Object::String(string)))
        }
    }
}

/// A string's bytes, whatever its representation; `None` if the value is no string.
pub fn bytes(value: ValueRef<'_>) -> Option<Cow<'_, [u8]>> {
    match value {
        ValueRef::Bytes { bytes, .. } => Some(Cow::Borrowed(bytes)),
        ValueRef::Int(int) => {
            let mut out = Vec::with_capacity(20);
            write_int(int, &mut out);
            Some(Cow::Owned(out))
        }
        ValueRef::Object(Object::String(bytes)) => Some(Cow::Borrowed(bytes)),
        ValueRef::Object(_) => None,
    }
}
