//! A library of functions, as a change's body: its code, and what the code registered.
//!
//! What was registered is kept beside the code, so that replay and `FUNCTION LIST` need no Lua.
//!
//! ```text
//! body     := code bytes, count varint, functions
//! function := name bytes, flags varint, described u8 (0 or 1), description bytes if it is 1
//! bytes    := length varint, then that many bytes
//! ```

use crate::varint;

/// A library of functions, without its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibraryBody {
    /// The source, with its first line.
    pub code: Vec<u8>,
    /// The functions, in the order of their registration.
    pub functions: Vec<FunctionFacts>,
}

/// What a library says about one of its functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionFacts {
    /// Its name.
    pub name: Vec<u8>,
    /// Its description, if it has one.
    pub description: Option<Vec<u8>>,
    /// Its flags, one bit each: 1 `no-writes`, 2 `allow-oom`, 4 `allow-stale`, 8 `no-cluster`,
    /// 16 `allow-cross-slot-keys`. Numbers of the file format, never reused.
    pub flags: u64,
}

impl LibraryBody {
    /// Appends the encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::put_bytes(out, &self.code);
        varint::put(out, self.functions.len() as u64);
        for function in &self.functions {
            varint::put_bytes(out, &function.name);
            varint::put(out, function.flags);
            out.push(function.description.is_some().into());
            if let Some(description) = &function.description {
                varint::put_bytes(out, description);
            }
        }
    }

    /// Reads an encoding; `None` if it is malformed.
    pub fn decode(mut bytes: &[u8]) -> Option<LibraryBody> {
        let input = &mut bytes;
        let code = varint::take_bytes(input)?.to_vec();
        let count = varint::take(input)?;
        let mut functions = Vec::new();
        for _ in 0..count {
            let name = varint::take_bytes(input)?.to_vec();
            let flags = varint::take(input)?;
            let (&described, rest) = input.split_first()?;
            *input = rest;
            let description = match described {
                0 => None,
                1 => Some(varint::take_bytes(input)?.to_vec()),
                _ => return None,
            };
            functions.push(FunctionFacts { name, description, flags });
        }
        input.is_empty().then_some(LibraryBody { code, functions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_reads_back_and_every_cut_is_an_error() {
        let function = |name: &[u8], description: Option<&[u8]>, flags| FunctionFacts {
            name: name.to_vec(),
            description: description.map(<[u8]>::to_vec),
            flags,
        };
        let functions = vec![
            function(b"plain", None, 0),
            function(b"described", Some(b"what it does"), 5),
            function(b"empty", Some(b""), 300),
        ];
        let body = LibraryBody { code: b"#!lua name=x\n...".to_vec(), functions };
        let mut encoded = Vec::new();
        body.encode(&mut encoded);
        assert_eq!(LibraryBody::decode(&encoded), Some(body));
        for cut in 0..encoded.len() {
            assert_eq!(LibraryBody::decode(&encoded[..cut]), None, "cut at {cut}");
        }
        encoded.push(0);
        assert_eq!(LibraryBody::decode(&encoded), None, "bytes behind the end");
    }
}
