//! Any dialect on a server that is not ours: every key begins with what no other pass's keys do,
//! and rows have numbers that no other pass's rows have. A server that runs already keeps what
//! earlier passes left, and may hold somebody else's data.
//!
//! ```text
//!   key     lab:7f:few:3:12             of pass 0x7f
//!   row     number and group with the pass in their upper 16 bits
//! ```

use std::borrow::Cow;

use super::{Dialect, Framed, Malformed, Refused};
use crate::operation::{Answer, Operation, OperationKind};

/// See the module.
pub struct Prefixed {
    inner: Box<dyn Dialect>,
    prefix: Vec<u8>,
    rows: u64,
}

/// Users' rows stay below this.
const ROWS_SHIFT: u32 = 48;

impl Prefixed {
    /// For pass `pass`.
    #[must_use]
    pub fn new(inner: Box<dyn Dialect>, pass: u16) -> Self {
        let prefix = format!("lab:{pass:x}:").into_bytes();
        Self { inner, prefix, rows: u64::from(pass) << ROWS_SHIFT }
    }

    fn key(&self, key: &[u8]) -> Vec<u8> {
        [&self.prefix, key].concat()
    }

    fn apart(&self, operation: &Operation) -> Operation {
        match operation {
            Operation::Ping => Operation::Ping,
            Operation::Set { key, value } => {
                Operation::Set { key: self.key(key), value: value.clone() }
            }
            Operation::Get { key } => Operation::Get { key: self.key(key) },
            Operation::GetByCall { key } => Operation::GetByCall { key: self.key(key) },
            Operation::Delete { key } => Operation::Delete { key: self.key(key) },
            Operation::Add { key, by } => Operation::Add { key: self.key(key), by: *by },
            Operation::AddMember { set, member } => {
                Operation::AddMember { set: self.key(set), member: member.clone() }
            }
            Operation::Members { set } => Operation::Members { set: self.key(set) },
            Operation::SetMany { pairs } => {
                let pairs = pairs.iter().map(|(key, value)| (self.key(key), value.clone()));
                Operation::SetMany { pairs: pairs.collect() }
            }
            Operation::InsertRow { id, group, value } => Operation::InsertRow {
                id: self.rows | id,
                group: self.rows | group,
                value: value.clone(),
            },
            Operation::InsertTuple { id, value } => {
                Operation::InsertTuple { id: self.rows | id, value: value.clone() }
            }
            Operation::FindByGroup { group } => Operation::FindByGroup { group: self.rows | group },
            // The driver asks `can` first; others pass as they are.
            other => other.clone(),
        }
    }
}

impl Dialect for Prefixed {
    fn can(&self, kind: OperationKind) -> Result<(), String> {
        match kind {
            OperationKind::ScanFrom => {
                Err("attached: behind the lab's keys a scan would see others".to_owned())
            }
            other => self.inner.can(other),
        }
    }

    fn greeting_bytes(&self) -> usize {
        self.inner.greeting_bytes()
    }

    fn hello(&mut self, greeting: &[u8], out: &mut Vec<u8>) -> Result<usize, Malformed> {
        self.inner.hello(greeting, out)
    }

    fn check_hello(&self, number: usize, frame: &[u8]) -> Result<(), Refused> {
        self.inner.check_hello(number, frame)
    }

    fn tags_replies(&self) -> bool {
        self.inner.tags_replies()
    }

    fn encode(&mut self, tag: u64, operation: &Operation, out: &mut Vec<u8>) {
        let apart = self.apart(operation);
        self.inner.encode(tag, &apart, out);
    }

    fn frame(&self, expecting: Option<&Operation>, bytes: &[u8]) -> Result<Framed, Malformed> {
        self.inner.frame(expecting, bytes)
    }

    fn answer(&self, operation: &Operation, frame: &[u8]) -> Result<Answer, Refused> {
        Ok(match self.inner.answer(&self.apart(operation), frame)? {
            Answer::Rows(rows) => {
                Answer::Rows(rows.into_iter().map(|(id, value)| (id ^ self.rows, value)).collect())
            }
            other => other,
        })
    }

    fn value<'a>(
        &self,
        operation: &Operation,
        frame: &'a [u8],
    ) -> Result<Option<Cow<'a, [u8]>>, Refused> {
        self.inner.value(&self.apart(operation), frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::resp::Resp;

    #[test]
    fn two_passes_share_no_key_and_no_row() {
        let bytes = |pass: u16, operation: &Operation| {
            let mut out = Vec::new();
            Prefixed::new(Box::new(Resp::new()), pass).encode(0, operation, &mut out);
            out
        };
        let get = Operation::Get { key: b"k".to_vec() };
        assert_eq!(bytes(0x7f, &get), b"*2\r\n$3\r\nGET\r\n$8\r\nlab:7f:k\r\n");
        assert_ne!(bytes(1, &get), bytes(2, &get));
        let one = Prefixed::new(Box::new(Resp::new()), 1);
        let row = Operation::InsertRow { id: 5, group: 6, value: Vec::new() };
        let Operation::InsertRow { id, group, .. } = one.apart(&row) else { panic!("a row") };
        assert_eq!((id, group), (1 << 48 | 5, 1 << 48 | 6));
        assert!(one.can(OperationKind::ScanFrom).is_err());
    }
}
