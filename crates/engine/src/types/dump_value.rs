//! Logged bodies and ops in readable form, for tools.

/// A piece of what was logged.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown<'a> {
    /// Bytes of a client's.
    Bytes(&'a [u8]),
    /// Text of the encoding's own.
    Text(String),
    /// A number.
    Int(i64),
    /// A score.
    Float(f64),
    /// Several alike.
    List(Vec<Shown<'a>>),
    /// Several with a label each.
    Record(Vec<(&'static str, Shown<'a>)>),
}

impl<'a> Shown<'a> {
    /// The rest of an encoding, a run of byte strings.
    pub(crate) fn list_of_bytes(mut rest: &'a [u8]) -> Option<Shown<'a>> {
        let mut list = Vec::new();
        while !rest.is_empty() {
            list.push(Shown::Bytes(ladon_model::varint::take_bytes(&mut rest)?));
        }
        Some(Shown::List(list))
    }
}
