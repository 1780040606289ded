//! A whole RDB file as events.
//!
//! ```text
//! file   := "REDIS" version of 4 digits | "VALKEY" version of 3 digits,
//!           part..., ff, [checksum u64]
//! part   := fa name value | fe database | fb keys, expiring keys | fd seconds i32 | fc ms i64
//!           | f9 frequency u8 | f8 idle seconds | f5 library | f4 slot, keys, expiring keys
//!           | encoding u8, key, value
//! ```
//!
//! The checksum came with version 5. Source: `rdb.h` and `rdb.c` of Redis 7.4 and Valkey 9.0.

use std::io::Read;

use crate::dialect::Dialect;
use crate::elements::Elements;
use crate::encoding::Encoding;
use crate::error::{Error, Fault};
use crate::fragments::Fragment;
use crate::source::{STEP, Source};
use crate::text::{read_length, read_string};
use crate::value::{Element, Value};

/// Since this version there is a checksum.
const VERSION_OF_CHECKSUM: u32 = 5;

/// A key and all that a file says of it before its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The key.
    pub name: Vec<u8>,
    /// How its value is encoded.
    pub encoding: Encoding,
    /// When it expires, in milliseconds since 1970.
    pub expires_at_ms: Option<i64>,
    /// How long nobody has used it.
    pub idle_s: Option<u64>,
    /// How often it is used, as a logarithm.
    pub frequency: Option<u8>,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The first one.
    Header {
        /// Whose format it is.
        dialect: Dialect,
        /// The format's version.
        version: u32,
    },
    /// A fact about the file. Those whose names a reader does not know are to be ignored.
    Aux {
        /// The name.
        name: Vec<u8>,
        /// The value.
        value: Vec<u8>,
    },
    /// The keys that follow are in this database.
    SelectDb(u64),
    /// How many keys follow in this database; a hint.
    ResizeDb {
        /// All keys.
        keys: u64,
        /// Keys that expire.
        expiring: u64,
    },
    /// The source of a library of functions.
    Function(Vec<u8>),
    /// A key, whose elements follow.
    Key(Key),
    /// A part of the key's value.
    Element(Element),
    /// The key's value is complete. Redis ignores a key without elements that is not a string or a
    /// stream.
    KeyEnd,
    /// The last one; the checksum was right, if the file has one.
    End {
        /// The checksum, if the file has one.
        checksum: Option<u64>,
    },
}

enum Step {
    Header,
    Parts,
    Value(Elements),
    Done,
}

/// Reads a file from its first byte to its checksum, and nothing behind it. After an error it
/// yields nothing more.
pub struct Reader<R> {
    source: Source<R>,
    step: Step,
    version: u32,
    dialect: Dialect,
    /// The key whose value is being read, if `encoding` is there.
    key: Vec<u8>,
    encoding: Option<Encoding>,
    /// What is read ends behind any key.
    is_fragment: bool,
}

impl<R: Read> Reader<R> {
    /// A reader from the beginning of a file.
    pub fn new(read: R) -> Reader<R> {
        Reader {
            source: Source::new(read, STEP),
            step: Step::Header,
            version: 0,
            dialect: Dialect::Redis,
            key: Vec::new(),
            encoding: None,
            is_fragment: false,
        }
    }

    /// A reader of the bytes of a fragment, and of nothing else of its file.
    pub fn of_fragment(read: R, fragment: &Fragment) -> Reader<R> {
        Reader {
            source: Source::of_part(read, fragment.at, fragment.bytes),
            step: Step::Parts,
            version: fragment.version,
            dialect: fragment.dialect,
            key: Vec::new(),
            encoding: None,
            is_fragment: true,
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// The next event, where a key stands for its value, too: that is skipped.
    pub(crate) fn next_skipping(&mut self) -> Option<Result<Event, Error>> {
        let event = self.next()?;
        if matches!(event, Ok(Event::Key(_)))
            && let Step::Value(elements) = std::mem::replace(&mut self.step, Step::Parts)
        {
            if let Err(fault) = elements.skip(&mut self.source) {
                return Some(Err(self.fail(fault)));
            }
            self.encoding = None;
        }
        Some(event)
    }

    fn fail(&mut self, fault: Fault) -> Error {
        self.step = Step::Done;
        let encoding = self.encoding.take();
        let key = encoding.map(|_| self.key.as_slice().into());
        Error { at: self.source.offset(), key, encoding, fault }
    }

    /// How many bytes have been taken.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }

    /// What follows the bytes that have been taken; after the last event, what follows the file.
    pub fn into_rest(self) -> impl Read {
        self.source.into_rest()
    }

    /// The rest of a value whose [`Event::Key`] was the last event, as a whole.
    ///
    /// # Errors
    /// As of the reader itself.
    pub fn value(&mut self, key: &Key) -> Result<Value, Error> {
        let mut value = Value::empty(key.encoding.type_name());
        while matches!(self.step, Step::Value(_)) {
            match self.next().expect("a value that is being read has an end")? {
                Event::Element(element) => value.push(element),
                _ => break,
            }
        }
        Ok(value)
    }

    fn step(&mut self) -> Result<Event, Fault> {
        match &mut self.step {
            Step::Header => self.header(),
            Step::Value(elements) => match elements.next(&mut self.source)? {
                Some(element) => Ok(Event::Element(element)),
                None => {
                    self.step = Step::Parts;
                    self.encoding = None;
                    Ok(Event::KeyEnd)
                }
            },
            Step::Parts | Step::Done => self.part(),
        }
    }

    fn header(&mut self) -> Result<Event, Fault> {
        const NONE: Fault = Fault::Malformed("it begins neither with REDIS nor with VALKEY");
        let head: [u8; 9] = self.source.array()?;
        let (dialect, digits) = match &head {
            [b'R', b'E', b'D', b'I', b'S', digits @ ..] => (Dialect::Redis, &digits[..]),
            [b'V', b'A', b'L', b'K', b'E', b'Y', digits @ ..] => (Dialect::Valkey, &digits[..]),
            _ => return Err(NONE),
        };
        if !digits.iter().all(u8::is_ascii_digit) {
            return Err(Fault::Malformed("no version follows the file's first word"));
        }
        let version = digits.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
        if Dialect::of_version(version)? != dialect {
            return Err(Fault::Malformed("the version is not of those who wrote the file"));
        }
        (self.dialect, self.version, self.step) = (dialect, version, Step::Parts);
        Ok(Event::Header { dialect, version })
    }

    /// What begins with a byte of its own.
    fn part(&mut self) -> Result<Event, Fault> {
        let source = &mut self.source;
        let (mut expires_at_ms, mut idle_s, mut frequency) = (None, None, None);
        loop {
            match source.byte()? {
                0xff => return self.end(),
                0xfe => return Ok(Event::SelectDb(read_length(source)?)),
                0xfd => {
                    let seconds = i32::from_le_bytes(source.array()?);
                    expires_at_ms = Some(i64::from(seconds) * 1000);
                }
                0xfc => expires_at_ms = Some(source.i64_le()?),
                0xfb => {
                    let (keys, expiring) = (read_length(source)?, read_length(source)?);
                    return Ok(Event::ResizeDb { keys, expiring });
                }
                0xfa => {
                    let (name, value) = (read_string(source)?, read_string(source)?);
                    return Ok(Event::Aux { name, value });
                }
                0xf9 => frequency = Some(source.byte()?),
                0xf8 => idle_s = Some(read_length(source)?),
                0xf7 => return Err(module_data(source)),
                0xf6 => return Err(unsupported("functions of Redis 7.0's release candidates")),
                0xf5 => return Ok(Event::Function(read_string(source)?)),
                // Sizes of a cluster's slot, which are hints.
                0xf4 => {
                    for _ in 0..3 {
                        read_length(source)?;
                    }
                }
                0xf3 if self.dialect == Dialect::Valkey => {
                    return Err(unsupported("migrations of slots that were not finished"));
                }
                byte => {
                    let Some(encoding) = Encoding::of(byte, self.dialect) else {
                        return Err(self.unknown(byte));
                    };
                    let name = read_string(source)?;
                    self.key.clone_from(&name);
                    self.encoding = Some(encoding);
                    let elements = Elements::open(encoding, source)?;
                    self.step = Step::Value(elements);
                    let key = Key { name, encoding, expires_at_ms, idle_s, frequency };
                    return Ok(Event::Key(key));
                }
            }
        }
    }

    /// A byte that begins nothing that is read here.
    fn unknown(&mut self, byte: u8) -> Fault {
        let source = &mut self.source;
        match byte {
            6 | 7 => {
                let key = match read_string(source) {
                    Ok(key) => key,
                    Err(fault) => return fault,
                };
                let module = if byte == 7 {
                    match read_length(source) {
                        Ok(id) => format!("of the module type '{}'", module_type(id)),
                        Err(fault) => return fault,
                    }
                } else {
                    "of a module, in the format before Redis 4.0".to_owned()
                };
                Fault::Unsupported(format!(
                    "the key '{}' has a value {module}, which only that module reads",
                    key.escape_ascii()
                ))
            }
            _ => Fault::Unsupported(format!("the byte {byte} begins neither a key nor a part")),
        }
    }

    fn end(&mut self) -> Result<Event, Fault> {
        let computed = self.source.checksum();
        let mut checksum = None;
        if self.version >= VERSION_OF_CHECKSUM {
            let stored = u64::from_le_bytes(self.source.array()?);
            // Zero is written where checksums are switched off.
            if stored != 0 && stored != computed {
                return Err(Fault::Checksum { stored, computed });
            }
            checksum = (stored != 0).then_some(stored);
        }
        self.step = Step::Done;
        Ok(Event::End { checksum })
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if matches!(self.step, Step::Done) {
            return None;
        }
        if self.is_fragment && matches!(self.step, Step::Parts) {
            match self.source.is_at_end() {
                Ok(false) => {}
                Ok(true) => return None,
                Err(fault) => return Some(Err(self.fail(fault))),
            }
        }
        Some(self.step().map_err(|fault| self.fail(fault)))
    }
}

fn unsupported(what: &str) -> Fault {
    Fault::Unsupported(format!("the file holds {what}, which are not read"))
}

fn module_data<R: Read>(source: &mut Source<R>) -> Fault {
    match read_length(source) {
        Ok(id) => Fault::Unsupported(format!(
            "the file holds data of the module type '{}', which only that module reads",
            module_type(id)
        )),
        Err(fault) => fault,
    }
}

/// The name of a module's type: nine characters of six bits each, above ten bits of a version.
pub(crate) fn module_type(id: u64) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let character = |n: u64| char::from(ALPHABET[(id >> (10 + 6 * n) & 63) as usize]);
    (0..9).rev().map(character).collect()
}
