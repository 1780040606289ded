//! A file cut into fragments of whole keys, which several threads read at once.
//!
//! ```text
//! file      header, aux, select 0, key key key | key key | select 1, key ... , function, key, end
//! fragments                        [  db 0    ] [ db 0  ]            [ db 1 ]
//! ```
//!
//! Whoever cuts looks at lengths alone, and at the checksum. What is wrong inside of a value is found
//! by [`Reader::of_fragment`].

use std::io::Read;

use crate::dialect::Dialect;
use crate::error::Error;
use crate::reader::{Event, Reader};

/// Keys that follow each other in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where they begin in the file.
    pub at: u64,
    /// How many bytes they are.
    pub bytes: u64,
    /// The database that they are in.
    pub db: u64,
    /// Whose format the file has.
    pub dialect: Dialect,
    /// The format's version.
    pub version: u32,
}

/// A part of a file.
#[derive(Debug)]
pub enum FilePart {
    /// Keys.
    Keys(Fragment),
    /// The source of a library of functions.
    Function(Vec<u8>),
    /// The end; the checksum was right, if there is one.
    End,
}

/// The parts of a file, in order. After an error it yields nothing more.
pub struct FileParts<R> {
    reader: Reader<R>,
    db: u64,
    /// What follows the keys that were yielded last.
    next: Option<Result<FilePart, Error>>,
    /// A fragment ends with the key that reaches this.
    bytes_min: u64,
}

impl<R: Read> FileParts<R> {
    /// Cuts a file into fragments of about `bytes_min`.
    pub fn new(read: R, bytes_min: u64) -> FileParts<R> {
        FileParts { reader: Reader::new(read), db: 0, next: None, bytes_min }
    }

    /// How many bytes have been taken.
    pub fn offset(&self) -> u64 {
        self.reader.offset()
    }
}

impl<R: Read> Iterator for FileParts<R> {
    type Item = Result<FilePart, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(next) = self.next.take() {
            return Some(next);
        }
        let mut keys: Option<Fragment> = None;
        loop {
            let at = self.reader.offset();
            let found = match self.reader.next_skipping() {
                None => None,
                Some(Err(error)) => Some(Err(error)),
                Some(Ok(Event::Key(_))) => {
                    let (dialect, version) = (self.reader.dialect(), self.reader.version());
                    let Fragment { at, db, .. } = *keys.get_or_insert(Fragment {
                        at,
                        bytes: 0,
                        db: self.db,
                        dialect,
                        version,
                    });
                    let bytes = self.reader.offset() - at;
                    let fragment = Fragment { at, bytes, db, dialect, version };
                    if bytes >= self.bytes_min {
                        return Some(Ok(FilePart::Keys(fragment)));
                    }
                    keys = Some(fragment);
                    continue;
                }
                Some(Ok(Event::Function(code))) => Some(Ok(FilePart::Function(code))),
                Some(Ok(Event::End { .. })) => Some(Ok(FilePart::End)),
                Some(Ok(event)) => {
                    if let Event::SelectDb(db) = event {
                        self.db = db;
                    }
                    match keys {
                        // Facts about the file and hints end a fragment.
                        Some(keys) => return Some(Ok(FilePart::Keys(keys))),
                        None => continue,
                    }
                }
            };
            return match keys {
                None => found,
                Some(keys) => {
                    self.next = found;
                    Some(Ok(FilePart::Keys(keys)))
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyFacts, Value, Version, Writer};

    fn file() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), Version::Redis10).unwrap();
        writer.function(b"#!lua name=f").unwrap();
        for n in 0..100_u64 {
            if n % 40 == 0 {
                writer.select_db(n / 40).unwrap();
            }
            let members = (0..n).map(|m| m.to_string().into_bytes()).collect();
            let value = if n % 2 == 0 {
                Value::Set(members)
            } else {
                Value::String(vec![b'v'; n as usize * 40])
            };
            writer.key(n.to_string().as_bytes(), &KeyFacts::default(), &value).unwrap();
        }
        writer.finish().unwrap()
    }

    /// What a reader yields, with each key's database.
    fn whole(bytes: &[u8]) -> Vec<String> {
        let (mut db, mut all) = (0, Vec::new());
        for event in Reader::new(bytes) {
            match event.unwrap() {
                Event::SelectDb(number) => db = number,
                event @ (Event::Key(_) | Event::Element(_) | Event::KeyEnd) => {
                    all.push(format!("{db} {event:?}"));
                }
                _ => {}
            }
        }
        all
    }

    fn in_fragments(bytes: &[u8], bytes_min: u64) -> Vec<String> {
        let mut all = Vec::new();
        for part in FileParts::new(bytes, bytes_min) {
            let FilePart::Keys(keys) = part.unwrap() else { continue };
            let range = keys.at as usize..(keys.at + keys.bytes) as usize;
            let events = Reader::of_fragment(&bytes[range], &keys);
            all.extend(events.map(|event| format!("{} {:?}", keys.db, event.unwrap())));
        }
        all
    }

    #[test]
    fn fragments_say_the_same_as_the_file() {
        let file = file();
        for bytes_min in [1, 100, 5000, u64::MAX] {
            assert_eq!(in_fragments(&file, bytes_min), whole(&file), "{bytes_min}");
        }
    }

    #[test]
    fn the_first_part_of_a_long_string_has_room_for_all_if_it_is_there() {
        let mut writer = Writer::new(Vec::new(), Version::Redis10).unwrap();
        let long =
            Value::String((0..1_000_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect());
        writer.key(b"long", &KeyFacts::default(), &long).unwrap();
        let file = writer.finish().unwrap();
        let room = |bytes_there: u64| {
            let keys = FileParts::new(&file[..], 1).next().unwrap().unwrap();
            let FilePart::Keys(keys) = keys else { panic!("{keys:?}") };
            let keys = Fragment { bytes: bytes_there.min(keys.bytes), ..keys };
            let parts =
                Reader::of_fragment(&file[keys.at as usize..], &keys).find_map(|event| match event
                    .unwrap()
                {
                    Event::Element(crate::Element::StringPart(part)) => Some(part.capacity()),
                    _ => None,
                });
            parts.unwrap()
        };
        assert_eq!(room(u64::MAX), 1_000_000);
        assert!(room(900_000) < 500_000, "more than is there");
    }

    #[test]
    fn a_cut_and_a_changed_byte_are_found() {
        let file = file();
        for cut in 0..file.len() {
            let last = FileParts::new(&file[..cut], 100).last();
            assert!(matches!(last, Some(Err(_))), "cut at {cut}");
        }
        let mut changed = file.clone();
        let at = changed.len() - 100;
        changed[at] ^= 1;
        let last = FileParts::new(&changed[..], 100).last();
        assert!(matches!(last, Some(Err(_))), "a checksum");
    }
}
