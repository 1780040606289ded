//! Values stored outside their entry, and the table of their types.

use crate::prefetch::{prefetch, prefetch_bytes};
use crate::prefetch_target::AccessedPart;
use crate::table::bucket::BucketHint;
use crate::types::collection::{Collection, Env, Saving};
use crate::types::dump_value::DumpValue;
use crate::types::hash::HashValue;
use crate::types::list::ListValue;
use crate::types::long_string::LongString;
use crate::types::set::SetValue;
use crate::types::sorted_set::SortedSet;
use crate::types::stream::Stream;
use crate::types::string_op;
use crossbeam_epoch::Guard;
use ladon_record::ValueKind;

/// A type in the table of types.
pub trait Variant: Collection {
    /// The value in an object, if it is one of this type.
    fn of(object: &Object) -> Option<&Self>;
    /// As `of`, to change it.
    fn of_mut(object: &mut Object) -> Option<&mut Self>;
    /// The value as an object.
    fn into_object(self) -> Object;
}

/// The table of types: from its rows, each a [`ValueKind`] and the type that implements
/// [`Collection`] for it, generates the enum and every function that depends on a value's type.
macro_rules! table_of_types {
    ($($(#[$doc:meta])* $kind:ident: $value:ty,)*) => {
        /// A value with its own allocation.
        #[derive(Debug)]
        pub enum Object {
            /// A string too long to be stored in its entry.
            String(LongString),
            $($(#[$doc])* $kind($value),)*
        }

        $(const _: () = assert!(matches!(<$value>::KIND, ValueKind::$kind));

        impl Variant for $value {
            #[inline]
            fn of(object: &Object) -> Option<&Self> {
                match object {
                    Object::$kind(value) => Some(value),
                    _ => None,
                }
            }

            #[inline]
            fn of_mut(object: &mut Object) -> Option<&mut Self> {
                match object {
                    Object::$kind(value) => Some(value),
                    _ => None,
                }
            }

            fn into_object(self) -> Object {
                Object::$kind(self)
            }
        })*

        /// Evaluates the expression for the object's type.
        macro_rules! by_type {
            ($object:expr, $string:pat => $of_string:expr, $other:ident => $of_others:expr) => {
                match $object {
                    Object::String($string) => $of_string,
                    $(Object::$kind($other) => $of_others,)*
                }
            };
        }

        /// As `by_type`, by number; the type has the given name in the expression.
        macro_rules! by_kind {
            ($number:expr, $of_string:expr, $name:ident => $of_others:expr) => {
                match $number {
                    ValueKind::String => $of_string,
                    $(ValueKind::$kind => {
                        type $name = $value;
                        $of_others
                    })*
                }
            };
        }
    };
}

table_of_types! {
    /// A set.
    Set: SetValue,
    /// A hash.
    Hash: HashValue,
    /// A list.
    List: ListValue,
    /// A sorted set.
    SortedSet: SortedSet,
    /// A stream.
    Stream: Stream,
}

// What a stream keeps beside its box must not make all objects larger.
const _: () = assert!(size_of::<Stream>() <= size_of::<HashValue>());

impl Object {
    /// The type that clients see.
    pub fn kind(&self) -> ValueKind {
        fn of<C: Collection>(_: &C) -> ValueKind {
            C::KIND
        }
        by_type!(self, _ => ValueKind::String, value => of(value))
    }

    /// Number of elements; a string's bytes.
    pub fn len(&self) -> usize {
        by_type!(self, bytes => bytes.len(), value => Collection::len(value))
    }

    /// Whether it is empty in a way that no key's value is.
    pub fn is_empty(&self) -> bool {
        by_type!(self, bytes => bytes.is_empty(), value => Collection::is_empty(value))
    }

    /// Bytes of memory that the value owns, itself included.
    #[inline]
    pub fn bytes(&self) -> usize {
        size_of::<Object>()
            + by_type!(self, bytes => bytes.bytes(), value => Collection::bytes(value))
    }

    /// What `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        by_type!(self, _ => "raw", value => Collection::encoding(value))
    }

    /// Cost of dropping the value, in allocations.
    pub fn drop_effort(&self) -> usize {
        by_type!(self, bytes => bytes.drop_effort(), value => Collection::drop_effort(value))
    }

    /// Whether the order of the elements is part of the value.
    pub fn is_ordered(&self) -> bool {
        fn of<C: Collection>(_: &C) -> bool {
            C::ORDERED
        }
        by_type!(self, _ => true, value => of(value))
    }

    /// When the first element expires, Unix milliseconds; 0 where none does.
    #[inline]
    pub(crate) fn next_expiry(&self) -> u64 {
        by_type!(self, _ => 0, value => Collection::next_expiry(value))
    }

    /// See [`Collection::is_over`].
    pub(crate) fn is_over(&self, now: u64) -> bool {
        by_type!(self, _ => false, value => Collection::is_over(value, now))
    }

    /// See [`Collection::has_due`].
    pub(crate) fn has_due(&self, now: u64, count: usize) -> bool {
        by_type!(self, _ => false, value => Collection::has_due(value, now, count))
    }

    /// Removes up to `max` elements that are due at `now`, and writes that into `op`; returns how
    /// many.
    pub(crate) fn expire_due(
        &mut self,
        now: u64,
        max: usize,
        env: Env<'_>,
        op: &mut Vec<u8>,
    ) -> usize {
        by_type!(self, _ => 0, value => Collection::expire_due(value, now, max, env, op))
    }

    /// See [`Collection::hidden`].
    pub(crate) fn hidden(&self) -> usize {
        by_type!(self, _ => 0, value => Collection::hidden(value))
    }

    /// Whether all of its elements are hidden.
    pub(crate) fn shows_nothing(&self) -> bool {
        self.hidden() > 0 && by_type!(self, _ => false, value => Collection::len(value) == 0)
    }

    /// See [`Collection::has_to_hide`].
    pub(crate) fn has_to_hide(&self, now: u64, count: usize) -> bool {
        by_type!(self, _ => false, value => Collection::has_to_hide(value, now, count))
    }

    /// See [`Collection::hide_due`].
    pub(crate) fn hide_due(&mut self, now: u64, max: usize, env: Env<'_>) -> usize {
        by_type!(self, _ => 0, value => Collection::hide_due(value, now, max, env))
    }

    /// See [`Collection::unhide`].
    pub(crate) fn unhide(&mut self, max: usize, env: Env<'_>) -> usize {
        by_type!(self, _ => 0, value => Collection::unhide(value, max, env))
    }

    /// Prefetches what this header points to, as far as `inside` requires. Returns the bucket that
    /// will then hold a member. The hint is valid while `guard` is held.
    pub(crate) fn prefetch(&self, inside: AccessedPart, guard: &Guard) -> BucketHint {
        by_type!(
            self,
            bytes => {
                match inside {
                    AccessedPart::Byte(at) => prefetch(bytes.as_ptr().wrapping_add(at.min(bytes.len()))),
                    _ => prefetch_bytes(bytes),
                }
                BucketHint::NONE
            },
            value => value.prefetch(inside, guard)
        )
    }

    /// Calls `visit` with the parts of each element, or with a whole string.
    pub fn for_each(&self, mut visit: impl FnMut(&[&[u8]])) {
        by_type!(self, bytes => visit(&[bytes]), value => Collection::for_each(value, &mut visit));
    }

    /// A copy in the same encoding.
    pub(crate) fn duplicate(&self, env: Env<'_>) -> Object {
        by_type!(
            self,
            bytes => Object::String(bytes.duplicate()),
            value => Collection::duplicate(value, env).into_object()
        )
    }

    /// See [`Collection::freeze`].
    pub(crate) fn frozen(&mut self) -> Option<Object> {
        by_type!(
            self,
            bytes => Some(Object::String(bytes.freeze())),
            value => Collection::freeze(value).map(Variant::into_object)
        )
    }

    /// See [`Collection::revert`]; `before` is of the same type.
    pub(crate) fn revert(
        &mut self,
        before: &Object,
        ops: &mut dyn Iterator<Item = &[u8]>,
        env: Env<'_>,
    ) {
        fn revert<C: Variant>(
            value: &mut C,
            before: &Object,
            ops: &mut dyn Iterator<Item = &[u8]>,
            env: Env<'_>,
        ) {
            let before = C::of(before).expect("a value that was frozen keeps its type");
            value.revert(before, ops, env);
        }
        by_type!(
            self,
            _ => unreachable!("strings are taken back by what was written"),
            value => revert(value, before, ops, env)
        )
    }

    /// See [`Collection::compact`].
    pub(crate) fn compact(&mut self) -> usize {
        by_type!(self, _ => 0, value => Collection::compact(value))
    }

    /// Appends the body of a `Put`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        by_type!(
            self,
            bytes => out.extend_from_slice(bytes),
            value => Collection::encode(value, out)
        );
    }

    /// Reads the body of a collection's `Put`; `None` if it is malformed.
    pub(crate) fn decode(kind: ValueKind, body: &[u8], env: Env<'_>) -> Option<Object> {
        by_kind!(kind, None, C => C::decode(body, env).map(C::into_object))
    }

    /// Applies an `Update`'s op; `None` if it is malformed.
    pub(crate) fn apply_op(&mut self, op: &[u8], env: Env<'_>) -> Option<()> {
        by_type!(
            self,
            bytes => bytes.edit(|bytes| string_op::apply_op(bytes, op)),
            value => Collection::apply_op(value, op, env)
        )
    }

    /// How a checkpoint that takes `piece` elements at a time saves the value.
    pub(crate) fn saving(&self, piece: usize) -> Saving {
        by_type!(self, bytes => bytes.saving(), value => Collection::saving(value, piece))
    }

    /// See [`Collection::encode_range`]; `None` if the value was replaced.
    pub(crate) fn encode_range(
        &self,
        from: u64,
        env: Env<'_>,
        op: &mut Vec<u8>,
    ) -> Option<(u64, usize)> {
        by_type!(
            self,
            _ => None,
            value => value.is_in_ranges().then(|| value.encode_range(from, env, op))
        )
    }

    /// An empty value into which saved ranges are loaded; `None` for a type that is not saved in
    /// ranges.
    pub(crate) fn for_ranges(kind: ValueKind) -> Option<Object> {
        by_kind!(kind, None, C => C::for_ranges().map(C::into_object))
    }
}

impl<'a> DumpValue<'a> {
    /// The content of a `Put`'s body; `None` if it is malformed.
    pub fn body(kind: ValueKind, body: &'a [u8]) -> Option<DumpValue<'a>> {
        match kind {
            ValueKind::String => Some(DumpValue::Bytes(body)),
            _ => by_kind!(kind, None, C => C::show_body(body)),
        }
    }

    /// What an `Update`'s op says: a record; `None` if it is malformed.
    pub fn op(kind: ValueKind, op: &'a [u8]) -> Option<DumpValue<'a>> {
        match kind {
            ValueKind::String => {
                if let Some(parts) = string_op::decode_replace(op) {
                    let part = |part: string_op::Replacement<'a>| {
                        let number = |at| i64::try_from(at).ok().map(DumpValue::Int);
                        Some(DumpValue::Record(vec![
                            ("offset", number(part.old.start)?),
                            ("remove", number(part.old.len())?),
                            ("write", DumpValue::Bytes(part.new)),
                        ]))
                    };
                    return parts.into_iter().map(part).collect::<Option<_>>().map(DumpValue::List);
                }
                let (offset, bytes) = string_op::decode_write_at(op)?;
                let offset = i64::try_from(offset).ok()?;
                let parts =
                    vec![("offset", DumpValue::Int(offset)), ("write", DumpValue::Bytes(bytes))];
                Some(DumpValue::Record(parts))
            }
            _ => by_kind!(kind, None, C => C::show_op(op)),
        }
    }
}

#[cfg(test)]
impl Object {
    pub(crate) fn bytes_for_test(&self) -> &[u8] {
        by_type!(self, bytes => bytes, other => panic!("{other:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::set;
    use ladon_record::varint;

    #[test]
    fn what_is_logged_reads_back_and_cuts_do_not() {
        let mut op = Vec::new();
        string_op::encode_write_at(300, b"xyz", &mut op);
        let written = vec![("offset", DumpValue::Int(300)), ("write", DumpValue::Bytes(b"xyz"))];
        assert_eq!(DumpValue::op(ValueKind::String, &op), Some(DumpValue::Record(written)));
        let mut op = vec![set::OP_REMOVE];
        varint::put_bytes(&mut op, b"a");
        varint::put_bytes(&mut op, b"");
        let members = DumpValue::List(vec![DumpValue::Bytes(b"a"), DumpValue::Bytes(b"")]);
        assert_eq!(DumpValue::body(ValueKind::Set, &op[1..]), Some(members.clone()));
        let removed = DumpValue::Record(vec![("remove", members)]);
        assert_eq!(DumpValue::op(ValueKind::Set, &op), Some(removed));
        assert_eq!(DumpValue::op(ValueKind::Set, &op[..2]), None);
        assert_eq!(DumpValue::op(ValueKind::Set, &[9]), None);
        assert_eq!(DumpValue::op(ValueKind::String, &[]), None);
    }
}
