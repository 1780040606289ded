//! Logged bodies and ops in readable form, for tools.

/// A piece of what was logged.
#[derive(Clone, Debug, PartialEq)]
pub enum DumpValue<'a> {
    /// Bytes of a client's.
    Bytes(&'a [u8]),
    /// Text of the encoding's own.
    Text(String),
    /// A number.
    Int(i64),
    /// A score.
    Float(f64),
    /// Several alike.
    List(Vec<DumpValue<'a>>),
    /// Several with a label each.
    Record(Vec<(&'static str, DumpValue<'a>)>),
}

impl<'a> DumpValue<'a> {
    /// The rest of an encoding, a run of byte strings.
    pub(crate) fn list_of_bytes(mut rest: &'a [u8]) -> Option<DumpValue<'a>> {
        let mut list = Vec::new();
        while !rest.is_empty() {
            list.push(DumpValue::Bytes(ladon_record::varint::take_bytes(&mut rest)?));
        }
        Some(DumpValue::List(list))
    }
}
