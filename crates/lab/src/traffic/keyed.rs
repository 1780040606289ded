//! Reads and writes of the keys of one space, in any mix.

use std::borrow::Cow;

use serde::Serialize;

use super::ledger::Ledger;
use super::pick::{Distribution, Pick};
use super::source::{Reply, Traffic, as_get, as_get_by_call, as_set};
use crate::operation::{Answer, Operation, OperationKind};

/// What is done with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// Read it.
    Read,
    /// Read it by the name of the server's function for it.
    ReadByCall,
    /// Write a new version.
    Write,
    /// Read it, then write a new version: two operations.
    ReadThenWrite,
    /// Write a key that is not there yet.
    Insert,
    /// Read up to so many keys from it on, evenly from 1.
    Scan {
        /// The most.
        keys: u32,
    },
    /// Read so many keys from it on.
    Range {
        /// How many; fewer at the end.
        keys: u32,
    },
    /// Write so many keys, it and those after it, as one change.
    WriteMany {
        /// How many.
        keys: u32,
    },
}

impl Deed {
    /// The operations that it takes.
    #[must_use]
    pub fn kinds(self) -> Vec<OperationKind> {
        match self {
            Self::Read => vec![OperationKind::Get],
            Self::ReadByCall => vec![OperationKind::GetByCall],
            Self::Write | Self::Insert => vec![OperationKind::Set],
            Self::ReadThenWrite => vec![OperationKind::Get, OperationKind::Set],
            Self::Scan { .. } | Self::Range { .. } => vec![OperationKind::ScanFrom],
            Self::WriteMany { .. } => vec![OperationKind::SetMany],
        }
    }
}

/// What is known of a request under way.
#[derive(Clone, Copy, Debug)]
struct Request {
    key: u32,
    /// Keys that it is about, from `key` on.
    keys: u32,
    /// Of `key`, when it was sent.
    floor: u32,
    /// Whether a write of `key` is to follow.
    then_write: bool,
    /// For scans: how many keys from `key` on must be there.
    certain: u32,
}

enum Order {
    Each { next: u32, deed: Deed },
    Mixed { mix: Vec<(u32, Deed)>, pick: Pick },
}

/// See the module.
pub struct Keyed<'a> {
    ledger: &'a mut Ledger,
    order: Order,
    requests: Vec<Request>,
    /// Keys below this were all acknowledged once: reads may ask for them.
    known: u32,
}

impl<'a> Keyed<'a> {
    /// `deed` on every key, once, in order.
    #[must_use]
    pub fn each(ledger: &'a mut Ledger, deed: Deed, requests: usize) -> Self {
        Self::new(ledger, Order::Each { next: 0, deed }, requests)
    }

    /// Deeds by their shares of 100 on keys by `distribution`.
    #[must_use]
    pub fn mixed(
        ledger: &'a mut Ledger,
        mix: &[(u32, Deed)],
        distribution: Distribution,
        seed: u64,
        requests: usize,
    ) -> Self {
        let pick = Pick::new(distribution, ledger.keys(), seed);
        Self::new(ledger, Order::Mixed { mix: mix.to_vec(), pick }, requests)
    }

    fn new(ledger: &'a mut Ledger, order: Order, requests: usize) -> Self {
        let request = Request { key: 0, keys: 1, floor: 0, then_write: false, certain: 0 };
        let known = ledger.keys();
        Self { ledger, order, requests: vec![request; requests], known }
    }

    /// The next deed and its key; `None` when there is nothing more to do.
    #[inline]
    fn decide(&mut self) -> Option<(Deed, u32)> {
        match &mut self.order {
            Order::Each { next, deed } => {
                let key = *next;
                *next = key.saturating_add(1);
                (key < self.known).then_some((*deed, key))
            }
            Order::Mixed { mix, pick } => {
                let deed = match mix.as_slice() {
                    [(_, only)] => *only,
                    several => {
                        let mut left = pick.evenly(several.iter().map(|(share, _)| share).sum());
                        let chosen = several.iter().find(|(share, _)| {
                            let here = left < *share;
                            left = left.wrapping_sub(*share);
                            here
                        });
                        chosen.map_or(several[0].1, |(_, deed)| *deed)
                    }
                };
                if deed == Deed::Insert {
                    return Some((deed, self.ledger.add_key()));
                }
                // What was inserted last is known once it was acknowledged, which comes in order
                // but for those under way.
                while self.known < self.ledger.keys() && self.ledger.floor(self.known) > 0 {
                    self.known += 1;
                }
                (self.known > 0).then(|| (deed, pick.below(self.known)))
            }
        }
    }

    fn scan_length(&mut self, keys: u32) -> u32 {
        match &mut self.order {
            Order::Mixed { pick, .. } => 1 + pick.evenly(keys),
            Order::Each { .. } => keys,
        }
    }

    /// Whether the reply to a write tells a value that another's write may have left there
    /// meanwhile.
    fn read_back(&self, noted: &Request, reply: &Reply<'_>) -> bool {
        match reply.answer() {
            Ok(Answer::Value(Some(value))) => {
                self.ledger.may_hold(noted.key, noted.floor.max(1), Some(&value))
            }
            _ => false,
        }
    }

    /// Values from `key` on: those that must be there, in order, and between them those that may.
    fn is_scan(&self, request: &Request, values: &[Vec<u8>]) -> bool {
        let mut values = values.iter();
        let mut next = values.next();
        let mut seen = 0;
        for key in request.key..self.ledger.keys() {
            if seen == request.keys {
                break;
            }
            let here = next.is_some_and(|value| self.ledger.ever_held(key, value));
            if here {
                next = values.next();
                seen += 1;
            } else if key < request.certain {
                return false;
            }
        }
        next.is_none()
    }
}

impl Traffic for Keyed<'_> {
    #[inline]
    fn next(&mut self, _: usize, request: usize, operation: &mut Operation) -> bool {
        let last = self.requests[request];
        let (deed, key) = if last.then_write {
            (Deed::Write, last.key)
        } else {
            let Some(decided) = self.decide() else { return false };
            decided
        };
        let mut noted = Request { key, keys: 1, floor: 0, then_write: false, certain: 0 };
        match deed {
            Deed::Read | Deed::ReadThenWrite => {
                noted.floor = self.ledger.floor(key);
                noted.then_write = deed == Deed::ReadThenWrite;
                self.ledger.write_key(key, as_get(operation));
            }
            Deed::ReadByCall => {
                noted.floor = self.ledger.floor(key);
                self.ledger.write_key(key, as_get_by_call(operation));
            }
            Deed::Write | Deed::Insert => {
                noted.floor = self.ledger.floor(key);
                let (text, value) = as_set(operation);
                self.ledger.write_key(key, text);
                self.ledger.send(key, value);
            }
            Deed::Scan { keys } | Deed::Range { keys } => {
                let is_range = matches!(deed, Deed::Range { .. });
                noted.keys = if is_range { keys } else { self.scan_length(keys) };
                noted.certain = self.known;
                let mut text = Vec::new();
                self.ledger.write_key(key, &mut text);
                *operation = Operation::ScanFrom { key: text, count: noted.keys as usize };
            }
            Deed::WriteMany { keys } => {
                // All keys of the window exist; it begins where it fits.
                noted.keys = keys.min(self.known);
                noted.key = key.min(self.known - noted.keys);
                if !matches!(operation, Operation::SetMany { .. }) {
                    *operation = Operation::SetMany { pairs: Vec::new() };
                }
                if let Operation::SetMany { pairs } = operation {
                    pairs.resize_with(noted.keys as usize, Default::default);
                    for (number, (text, value)) in (noted.key..).zip(pairs) {
                        self.ledger.write_key(number, text);
                        self.ledger.send(number, value);
                    }
                }
            }
        }
        self.requests[request] = noted;
        true
    }

    #[inline]
    fn judge(&mut self, reply: &Reply<'_>) -> bool {
        let noted = self.requests[reply.request];
        match reply.operation {
            Operation::Get { .. } | Operation::GetByCall { .. } => {
                let Ok(value) = reply.value() else { return false };
                self.ledger.may_hold(noted.key, noted.floor, value.as_deref())
            }
            Operation::ScanFrom { .. } => match reply.answer() {
                Ok(Answer::Members(values)) => self.is_scan(&noted, &values),
                _ => false,
            },
            _ => {
                if !reply.is(&Answer::Done) && !self.read_back(&noted, reply) {
                    return false;
                }
                for key in noted.key..noted.key + noted.keys {
                    self.ledger.acknowledge(key);
                }
                true
            }
        }
    }

    fn expected(&self, _: usize, request: usize, operation: &Operation) -> String {
        let noted = self.requests[request];
        match operation {
            Operation::Get { .. } | Operation::GetByCall { .. } => {
                self.ledger.describe(noted.key, noted.floor)
            }
            Operation::ScanFrom { .. } => {
                format!("the values of keys {} and up to {} more", noted.key, noted.keys - 1)
            }
            _ => "done".to_owned(),
        }
    }
}

/// Reads every key after a crash and counts what is missing instead of stopping at it.
pub struct Survivors<'a> {
    ledger: &'a Ledger,
    next: u32,
    keys: Vec<u32>,
    /// Keys whose acknowledged write is not there any more.
    pub missing: u64,
}

impl<'a> Survivors<'a> {
    /// Over all of `ledger`.
    #[must_use]
    pub fn new(ledger: &'a Ledger, requests: usize) -> Self {
        Self { ledger, next: 0, keys: vec![0; requests], missing: 0 }
    }
}

impl Traffic for Survivors<'_> {
    fn next(&mut self, _: usize, request: usize, operation: &mut Operation) -> bool {
        if self.next >= self.ledger.keys() {
            return false;
        }
        self.keys[request] = self.next;
        self.ledger.write_key(self.next, as_get(operation));
        self.next += 1;
        true
    }

    fn judge(&mut self, reply: &Reply<'_>) -> bool {
        let key = self.keys[reply.request];
        let Ok(value) = reply.value() else { return false };
        let floor = self.ledger.floor(key);
        match value.as_ref().map(Cow::as_ref) {
            value if self.ledger.may_hold(key, floor, value) => true,
            None => {
                self.missing += 1;
                true
            }
            // Older than the acknowledged value: that is a loss too. Anything else is not a loss
            // but a wrong value.
            Some(value) if self.ledger.ever_held(key, value) => {
                self.missing += 1;
                true
            }
            Some(_) => false,
        }
    }

    fn expected(&self, _: usize, request: usize, _: &Operation) -> String {
        let key = self.keys[request];
        format!("nothing, or {}", self.ledger.describe(key, self.ledger.floor(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::resp::Resp;
    use crate::dialects::{Dialect, Framed, Malformed, Refused};
    use crate::traffic::source::blank;
    use crate::traffic::value::write_value;

    const OK: &[u8] = b"+OK\r\n";

    fn is_right(traffic: &mut impl Traffic, operation: &Operation, frame: &[u8]) -> bool {
        traffic.judge(&Reply::new((0, 0), operation, &Resp::new(), frame))
    }

    fn filled(keys: u32) -> Ledger {
        let mut ledger = Ledger::new("k", keys, 16);
        let mut fill = Keyed::each(&mut ledger, Deed::Write, 1);
        let mut operation = blank();
        while fill.next(0, 0, &mut operation) {
            assert!(is_right(&mut fill, &operation, OK));
        }
        ledger
    }

    fn value(key: u32, version: u32) -> Vec<u8> {
        let mut value = Vec::new();
        write_value(u64::from(key), version, 16, &mut value);
        value
    }

    fn bulk(value: &[u8]) -> Vec<u8> {
        [b"$16\r\n", value, b"\r\n"].concat()
    }

    #[test]
    fn a_read_after_a_write_must_have_it() {
        let mut ledger = filled(1);
        let mix = [(100, Deed::ReadThenWrite)];
        let mut both = Keyed::mixed(&mut ledger, &mix, Distribution::Uniform, 1, 1);
        let mut operation = blank();
        for version in 1..4 {
            both.next(0, 0, &mut operation);
            assert!(matches!(operation, Operation::Get { .. }));
            assert!(!is_right(&mut both, &operation, &bulk(&value(0, version - 1))), "stale");
            assert!(!is_right(&mut both, &operation, b"$-1\r\n"), "gone");
            assert!(!is_right(&mut both, &operation, b"-ERR\r\n"));
            assert!(is_right(&mut both, &operation, &bulk(&value(0, version))));
            both.next(0, 0, &mut operation);
            assert!(matches!(operation, Operation::Set { .. }));
            assert!(is_right(&mut both, &operation, OK));
        }
    }

    #[test]
    fn a_write_that_reads_back_may_find_another_s_write_and_nothing_else() {
        let mut ledger = filled(1);
        let mix = [(100, Deed::Write)];
        let mut writes = Keyed::mixed(&mut ledger, &mix, Distribution::Uniform, 1, 2);
        let (mut first, mut second) = (blank(), blank());
        writes.next(0, 0, &mut first);
        writes.next(1, 1, &mut second);
        let told = |version| {
            let text = String::from_utf8(value(0, version)).unwrap();
            let body = format!("{{\"key\":\"k:0000000000\",\"value\":\"{text}\"}}");
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
        };
        let http = crate::dialects::http::Http;
        assert!(!writes.judge(&Reply::new((0, 0), &first, &http, &told(4))), "never sent");
        assert!(writes.judge(&Reply::new((0, 0), &first, &http, &told(3))), "the second's");
        assert!(writes.judge(&Reply::new((1, 1), &second, &http, &told(2))), "the first's");
    }

    #[test]
    fn a_batch_is_keys_that_exist_each_once() {
        let mut ledger = filled(10);
        let mix = [(100, Deed::WriteMany { keys: 4 })];
        let mut batches = Keyed::mixed(&mut ledger, &mix, Distribution::Uniform, 1, 1);
        let mut operation = blank();
        for _ in 0..100 {
            batches.next(0, 0, &mut operation);
            let Operation::SetMany { pairs } = &operation else { panic!("{operation:?}") };
            assert_eq!(pairs.len(), 4);
            assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0));
            assert!(pairs.iter().all(|(key, _)| key.as_slice() <= b"k:0000000009".as_slice()));
            assert!(is_right(&mut batches, &operation, OK));
        }
        assert_eq!(ledger.keys(), 10);
    }

    #[test]
    fn a_crash_s_losses_are_counted_and_lies_are_not_losses() {
        let ledger = filled(3);
        let mut survivors = Survivors::new(&ledger, 1);
        let mut operation = blank();
        let replies = [bulk(&value(0, 1)), b"$-1\r\n".to_vec()];
        for reply in replies {
            assert!(survivors.next(0, 0, &mut operation));
            assert!(is_right(&mut survivors, &operation, &reply));
        }
        assert_eq!(survivors.missing, 1);
        assert!(survivors.next(0, 0, &mut operation));
        assert!(!is_right(&mut survivors, &operation, &bulk(&value(0, 1))), "another key's");
        assert!(!survivors.next(0, 0, &mut operation));
    }

    /// A dialect whose replies are the values of a scan, sixteen bytes each.
    struct Scans;

    impl Dialect for Scans {
        fn can(&self, _: OperationKind) -> Result<(), String> {
            Ok(())
        }

        fn hello(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<usize, Malformed> {
            Ok(0)
        }

        fn check_hello(&self, _: usize, _: &[u8]) -> Result<(), Refused> {
            Ok(())
        }

        fn encode(&mut self, _: u64, _: &Operation, _: &mut Vec<u8>) {}

        fn frame(&self, _: Option<&Operation>, bytes: &[u8]) -> Result<Framed, Malformed> {
            Ok(Framed::Frame { length: bytes.len(), tag: None })
        }

        fn answer(&self, _: &Operation, frame: &[u8]) -> Result<Answer, Refused> {
            Ok(Answer::Members(frame.chunks(16).map(<[u8]>::to_vec).collect()))
        }
    }

    #[test]
    fn a_scan_must_have_what_is_there_in_order_and_may_have_what_is_being_inserted() {
        let mut ledger = filled(5);
        // Key 5 is being inserted.
        let inserted = ledger.add_key();
        ledger.send(inserted, &mut Vec::new());
        let mix = [(100, Deed::Scan { keys: 1 })];
        let mut scans = Keyed::mixed(&mut ledger, &mix, Distribution::Uniform, 1, 1);
        let mut operation = blank();
        scans.next(0, 0, &mut operation);
        scans.requests[0] = Request { key: 3, keys: 4, certain: 5, ..scans.requests[0] };
        let mut right = |keys: &[u32]| {
            let frame: Vec<u8> = keys.iter().flat_map(|&key| value(key, 1)).collect();
            scans.judge(&Reply::new((0, 0), &operation, &Scans, &frame))
        };
        assert!(right(&[3, 4]));
        assert!(right(&[3, 4, 5]), "the one that is being inserted");
        assert!(!right(&[3, 5]), "4 is there");
        assert!(!right(&[4, 3]), "out of order");
        assert!(!right(&[2, 3, 4]), "before its start");
        assert!(!right(&[3, 4, 4]), "twice");
        scans.requests[0].keys = 1;
        assert!(scans.judge(&Reply::new((0, 0), &operation, &Scans, &value(3, 1))));
        let two = [value(3, 1), value(4, 1)].concat();
        assert!(!scans.judge(&Reply::new((0, 0), &operation, &Scans, &two)), "more than asked for");
    }
}
