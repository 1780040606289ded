//! The target of a request: segments of a path, and the pairs of a query (RFC 3986).

/// A target in origin form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The decoded segments between the slashes; `/` has none.
    pub segments: Vec<Vec<u8>>,
    /// The decoded pairs behind `?`; the value is `None` without `=`.
    pub query: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// Why a target is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// It is no path.
    Form,
    /// A `%` without two hexadecimal digits.
    Escape,
}

impl Target {
    /// Reads a path with an optional query, or an absolute URI, of which the path counts.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn parse(text: &str) -> Result<Target, TargetError> {
        let path = match text.strip_prefix("http://").or(text.strip_prefix("https://")) {
            Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
            None => text,
        };
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path, None),
        };
        let path = path.strip_prefix('/').ok_or(TargetError::Form)?;
        let mut target = Target::default();
        if !path.is_empty() {
            for segment in path.split('/') {
                target.segments.push(decoded(segment, false)?);
            }
        }
        for pair in query.into_iter().flat_map(|query| query.split('&')) {
            if pair.is_empty() {
                continue;
            }
            let (name, value) = match pair.split_once('=') {
                Some((name, value)) => (name, Some(decoded(value, true)?)),
                None => (pair, None),
            };
            target.query.push((decoded(name, true)?, value));
        }
        Ok(target)
    }

    /// The first value of a name in the query; empty if the name has none.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        let pair = self.query.iter().find(|(found, _)| found == name.as_bytes())?;
        Some(pair.1.as_deref().unwrap_or_default())
    }

    /// All values of a name in the query.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let pairs = self.query.iter().filter(move |(found, _)| found == name.as_bytes());
        pairs.map(|(_, value)| value.as_deref().unwrap_or_default())
    }

    /// The first name of the query that is none of these.
    pub fn other_than(&self, names: &[&str]) -> Option<&[u8]> {
        let mut found = self.query.iter().map(|(name, _)| name.as_slice());
        found.find(|found| !names.iter().any(|name| name.as_bytes() == *found))
    }
}

/// Bytes without their escapes. In a query, `+` is a blank, as forms send it.
fn decoded(text: &str, plus_is_blank: bool) -> Result<Vec<u8>, TargetError> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let plain = match byte {
            b'%' => {
                let digit = |byte: Option<u8>| {
                    byte.and_then(|byte| char::from(byte).to_digit(16)).ok_or(TargetError::Escape)
                };
                let high = digit(bytes.next())?;
                (high << 4 | digit(bytes.next())?) as u8
            }
            b'+' if plus_is_blank => b' ',
            byte => byte,
        };
        out.push(plain);
    }
    Ok(out)
}

/// A segment of a path with its escapes.
pub fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
            text.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Vec<String>, Vec<(String, Option<String>)>) {
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let target = Target::parse(text).expect(text);
        let query = target.query.iter();
        (
            target.segments.iter().map(|it| text_of(it)).collect(),
            query.map(|(name, value)| (text_of(name), value.as_deref().map(text_of))).collect(),
        )
    }

    #[test]
    fn targets_are_decoded_after_they_are_split() {
        assert_eq!(parsed("/").0, Vec::<String>::new());
        assert_eq!(parsed("/set/a%2Fb/%C3%A9+/").0, ["set", "a/b", "é+", ""]);
        assert_eq!(parsed("http://host:1/get/k?x").0, ["get", "k"]);
        assert_eq!(parsed("https://host").0, Vec::<String>::new());
        let (_, query) = parsed("/?EX=10&&NX&a+b=c%26d+&e=");
        let expected = [("EX", Some("10")), ("NX", None), ("a b", Some("c&d ")), ("e", Some(""))];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
        assert_eq!(query, expected);
        assert_eq!(Target::parse("*"), Err(TargetError::Form));
        assert_eq!(Target::parse("/%4"), Err(TargetError::Escape));
        assert_eq!(Target::parse("/?a=%+1"), Err(TargetError::Escape));
    }
}
