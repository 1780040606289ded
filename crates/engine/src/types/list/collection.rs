//! Lists as the rest of the engine sees them.

use super::{ListValue, Repr, Step};
use crate::saved_bytes::{PieceWriter, Steps};
use crate::types::collection::{Collection, Env, Saving};
use crate::types::dump_value::DumpValue;
use ladon_record::{ValueKind, varint};

impl Collection for ListValue {
    const KIND: ValueKind = ValueKind::List;
    const ORDERED: bool = true;

    #[inline]
    fn len(&self) -> usize {
        ListValue::len(self)
    }

    #[inline]
    fn bytes(&self) -> usize {
        ListValue::bytes(self)
    }

    fn encoding(&self) -> &'static str {
        ListValue::encoding(self)
    }

    fn drop_effort(&self) -> usize {
        self.chunks()
    }

    fn compact(&mut self) -> usize {
        match &mut self.0 {
            Repr::Packed(packed) => packed.compact(),
            _ => 0,
        }
    }

    fn duplicate(&self, _env: Env<'_>) -> ListValue {
        ListValue::duplicate(self)
    }

    fn freeze(&mut self) -> Option<ListValue> {
        matches!(self.0, Repr::Chunked(_)).then(|| self.duplicate())
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[&[u8]])) {
        ListValue::for_each(self, |element| element.with_bytes(|bytes| visit(&[bytes])));
    }

    /// The elements, first to last, each as length and bytes.
    fn encode(&self, out: &mut Vec<u8>) {
        ListValue::for_each(self, |e| e.with_bytes(|bytes| varint::put_bytes(out, bytes)));
    }

    fn decode(mut body: &[u8], env: Env<'_>) -> Option<ListValue> {
        let limits = env.limits.of_lists();
        let mut list = ListValue::new();
        while !body.is_empty() {
            list.append(limits, varint::take_bytes(&mut body)?);
        }
        (!list.is_empty()).then_some(list)
    }

    /// Steps, one after the other.
    fn apply_op(&mut self, mut op: &[u8], env: Env<'_>) -> Option<()> {
        let limits = env.limits.of_lists();
        while !op.is_empty() {
            self.apply(&Step::take(&mut op)?, limits)?;
        }
        Some(())
    }

    fn saving(&self, piece: usize) -> Saving {
        match &self.0 {
            Repr::Chunked(_) if self.len() > 2 * piece => {
                let snapshot = self.duplicate();
                Saving::Snapshot(Box::new(move |take| {
                    let mut pieces = PieceWriter::new(take);
                    ListValue::for_each(&snapshot, |e| e.with_bytes(|bytes| pieces.bytes(bytes)));
                    pieces.finish();
                }))
            }
            _ => Saving::Whole,
        }
    }

    fn show_body(body: &[u8]) -> Option<DumpValue<'_>> {
        DumpValue::list_of_bytes(body)
    }

    fn show_op(op: &[u8]) -> Option<DumpValue<'_>> {
        let steps: Option<Vec<_>> = Step::decode_all(op)?.iter().map(Step::show).collect();
        let mut steps = steps?;
        match steps.len() {
            1 => steps.pop(),
            _ => Some(DumpValue::Record(vec![("steps", DumpValue::List(steps))])),
        }
    }
}
