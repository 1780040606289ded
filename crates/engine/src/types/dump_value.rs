//! Logged bodies and ops in readable form, for tools.

use super::string;
use crate::object;
use ladon_model::ValueKind;

/// A piece of what was logged.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown<'a> {
    /// Bytes of a client's.
    Bytes(&'a [u8]),
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
    /// The content of a `Put`'s body; `None` if it is malformed.
    pub fn body(kind: ValueKind, body: &'a [u8]) -> Option<Shown<'a>> {
        match kind {
            ValueKind::String => Some(Shown::Bytes(body)),
            _ => object::show_body(kind, body),
        }
    }

    /// What an `Update`'s op says: a record; `None` if it is malformed.
    pub fn op(kind: ValueKind, op: &'a [u8]) -> Option<Shown<'a>> {
        match kind {
            ValueKind::String => {
                let (offset, bytes) = string::decode_write_at(op)?;
                let offset = i64::try_from(offset).ok()?;
                let parts = vec![("offset", Shown::Int(offset)), ("write", Shown::Bytes(bytes))];
                Some(Shown::Record(parts))
            }
            _ => object::show_op(kind, op),
        }
    }

    /// The rest of an encoding, a run of byte strings.
    pub(crate) fn list_of_bytes(mut rest: &'a [u8]) -> Option<Shown<'a>> {
        let mut list = Vec::new();
        while !rest.is_empty() {
            list.push(Shown::Bytes(ladon_model::varint::take_bytes(&mut rest)?));
        }
        Some(Shown::List(list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::set;
    use ladon_model::varint;

    #[test]
    fn what_is_logged_reads_back_and_cuts_do_not() {
        let mut op = Vec::new();
        string::encode_write_at(300, b"xyz", &mut op);
        let written = vec![("offset", Shown::Int(300)), ("write", Shown::Bytes(b"xyz"))];
        assert_eq!(Shown::op(ValueKind::String, &op), Some(Shown::Record(written)));
        let mut op = vec![set::OP_REMOVE];
        varint::put_bytes(&mut op, b"a");
        varint::put_bytes(&mut op, b"");
        let members = Shown::List(vec![Shown::Bytes(b"a"), Shown::Bytes(b"")]);
        assert_eq!(Shown::body(ValueKind::Set, &op[1..]), Some(members.clone()));
        let removed = Shown::Record(vec![("remove", members)]);
        assert_eq!(Shown::op(ValueKind::Set, &op), Some(removed));
        assert_eq!(Shown::op(ValueKind::Set, &op[..2]), None);
        assert_eq!(Shown::op(ValueKind::Set, &[9]), None);
        assert_eq!(Shown::op(ValueKind::String, &[]), None);
    }
}
