//! Multikey indexes: a tuple has a key for each element of one of its arrays.
//!
//! ```text
//! path tags[*].name:   [1, {tags: [{name: "a"}, {name: "b"}]}]   has the keys "a" and "b"
//! entry's hint:        [ 32 bits of the key's hint | 32 bits: where the element begins ]
//! ```
//!
//! An entry says where in its tuple the element is, so a comparison does not walk the array. The
//! place takes no part in the order. Equal elements of a tuple are one entry.

use crate::fields;
use crate::key_part::Part;
use crate::path::{self, Step};
use ladon_msgpack as msgpack;

/// The array of which each element has a key.
#[derive(Clone, Debug)]
pub(crate) struct Elements {
    /// The field's number, from 0.
    field: u32,
    /// Where in the field the array is.
    steps: Box<[Step]>,
}

impl Elements {
    /// The low bits of a hint that say where an element begins. Tuples are shorter than 4 GiB.
    pub(crate) const OFFSET_BITS: u32 = 32;

    /// The array that parts have in common, if the index is multikey.
    pub(crate) fn of(parts: &[Part]) -> Option<Elements> {
        let (field, steps) = parts.iter().find_map(Part::array)?;
        Some(Elements { field, steps: steps.into() })
    }

    /// The tuple from the element on that a hint names.
    pub(crate) fn at(tuple: &[u8], hint: u64) -> Option<&[u8]> {
        tuple.get(hint as u32 as usize..)
    }

    /// How many elements the array has; 0 if there is none.
    pub(crate) fn count(&self, tuple: &[u8]) -> u32 {
        self.array(tuple).map_or(0, |(count, _)| count)
    }

    /// Where in the tuple each element begins.
    pub(crate) fn offsets<'a>(&self, tuple: &'a [u8]) -> impl Iterator<Item = u32> + use<'a> {
        let (count, mut rest) = self.array(tuple).unwrap_or((0, &[]));
        (0..count).map_while(move |_| {
            let offset = tuple.len() - rest.len();
            msgpack::skip(&mut rest).ok()?;
            u32::try_from(offset).ok()
        })
    }

    /// The number of elements, and the tuple from the first one on.
    fn array<'a>(&self, tuple: &'a [u8]) -> Option<(u32, &'a [u8])> {
        let field = fields::from_field(tuple, self.field)?;
        let mut array = path::follow(field, &self.steps)?;
        Some((msgpack::read_array(&mut array).ok()?, array))
    }
}
