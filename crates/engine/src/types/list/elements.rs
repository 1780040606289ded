//! Elements outside of a list, on their way to another.

use super::Element;

/// Elements one behind the other in one buffer: many small ones take little more than their bytes.
#[derive(Debug, Default)]
pub struct Elements {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Elements {
    /// Appends an element.
    pub fn push(&mut self, element: Element<'_>) {
        match element {
            Element::Int(int) => {
                let mut digits = itoa::Buffer::new();
                self.bytes.extend_from_slice(digits.format(int).as_bytes());
            }
            Element::Bytes(bytes) => self.bytes.extend_from_slice(bytes),
        }
        self.ends.push(self.bytes.len());
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The elements as they were appended, or in the opposite order.
    pub fn in_order(&self, reversed: bool) -> Vec<&[u8]> {
        let mut start = 0;
        let element = |&end: &usize| &self.bytes[std::mem::replace(&mut start, end)..end];
        let mut elements: Vec<&[u8]> = self.ends.iter().map(element).collect();
        if reversed {
            elements.reverse();
        }
        elements
    }
}
