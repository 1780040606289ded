//! BY and GET: from an element to a key or to a field of a hash.

use super::elements::Elements;
use ladon_engine::types::hash::HashValue;
use ladon_engine::types::string;
use ladon_engine::{Ahead, Key, Tx};
use ladon_record::DbId;

/// Where patterns look up their keys.
pub(super) enum Source<'s, 't> {
    /// In a database; all its locks are held if there are patterns with a `*`.
    Data {
        tx: &'s mut Tx<'t>,
        db: DbId,
        /// The number by which clients select it.
        number: u16,
    },
    /// In the elements alone, see [`Pattern::without_keys`].
    Elements,
}

pub(super) enum Pattern<'a> {
    /// `#`: the element itself.
    Element,
    /// The keys with the element in the middle; `prefix*suffix`, or `prefix*suffix->field`.
    Keys { prefix: &'a [u8], suffix: &'a [u8], field: Option<&'a [u8]> },
    /// No `*`, so the pattern names nothing.
    Nothing,
}

impl<'a> Pattern<'a> {
    pub(super) fn parse(text: &'a [u8]) -> Pattern<'a> {
        if text == b"#" {
            return Pattern::Element;
        }
        let Some(star) = text.iter().position(|&byte| byte == b'*') else {
            return Pattern::Nothing;
        };
        let (prefix, rest) = (&text[..star], &text[star + 1..]);
        match rest.windows(2).position(|pair| pair == b"->") {
            // An arrow at the end names no field: it is part of the key.
            Some(arrow) if arrow + 2 < rest.len() => {
                Pattern::Keys { prefix, suffix: &rest[..arrow], field: Some(&rest[arrow + 2..]) }
            }
            _ => Pattern::Keys { prefix, suffix: rest, field: None },
        }
    }

    /// The same, where it names no keys.
    pub(super) fn without_keys(&self) -> Option<Pattern<'static>> {
        match self {
            Pattern::Element => Some(Pattern::Element),
            Pattern::Nothing => Some(Pattern::Nothing),
            Pattern::Keys { .. } => None,
        }
    }

    /// Passes on what the pattern yields for an element, if anything.
    pub(super) fn look_up<R>(
        &self,
        source: &mut Source<'_, '_>,
        element: &[u8],
        then: impl FnOnce(Option<&[u8]>) -> R,
    ) -> R {
        let (prefix, suffix, field) = match self {
            Pattern::Element => return then(Some(element)),
            Pattern::Nothing => return then(None),
            Pattern::Keys { prefix, suffix, field } => (prefix, suffix, field),
        };
        let Source::Data { tx, db, .. } = source else { return then(None) };
        let name = [prefix, element, suffix].concat();
        let key = tx.key(&name);
        look_at(tx, *db, key, *field, then)
    }

    /// As `look_up`, for many consecutive elements with their indexes. Prefetches for later
    /// elements meanwhile.
    pub(super) fn look_up_all(
        &self,
        source: &mut Source<'_, '_>,
        elements: &Elements,
        mut then: impl FnMut(Option<&[u8]>),
    ) {
        /// Number of names made at once.
        const NAMES: usize = 1024;
        let (Pattern::Keys { prefix, suffix, field }, Source::Data { tx, db, number }) =
            (self, &mut *source)
        else {
            for at in 0..elements.len() {
                self.look_up(source, elements.get(at), &mut then);
            }
            return;
        };
        let keyspace = tx.keyspace();
        let (mut names, mut ends, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for first in (0..elements.len()).step_by(NAMES) {
            names.clear();
            ends.clear();
            keys.clear();
            for at in first..elements.len().min(first + NAMES) {
                let start = names.len();
                for part in [prefix, elements.get(at), suffix] {
                    names.extend_from_slice(part);
                }
                ends.push(names.len());
                keys.push(Ahead { db: *number, hash: keyspace.hash(&names[start..]) });
            }
            let mut lookahead = keyspace.lookahead();
            let mut start = 0;
            for (at, &end) in ends.iter().enumerate() {
                lookahead.advance(&keys, at);
                let key = Key { bytes: &names[start..end], hash: keys[at].hash };
                look_at(tx, *db, key, *field, &mut then);
                start = end;
            }
        }
    }
}

fn look_at<R>(
    tx: &mut Tx<'_>,
    db: DbId,
    key: Key<'_>,
    field: Option<&[u8]>,
    then: impl FnOnce(Option<&[u8]>) -> R,
) -> R {
    let hasher = tx.env().hasher;
    match field {
        // A key of another type counts as missing.
        Some(field) => {
            let hash = tx.read_value::<HashValue>(db, key).ok().flatten();
            then(hash.and_then(|hash| hash.get(hasher, field)))
        }
        None => {
            let value = tx.read(db, key).map(|entry| entry.value());
            then(value.and_then(string::bytes).as_deref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<(&str, &str, Option<&str>)> {
        let text_of = |bytes| std::str::from_utf8(bytes).unwrap();
        match Pattern::parse(text.as_bytes()) {
            Pattern::Keys { prefix, suffix, field } => {
                Some((text_of(prefix), text_of(suffix), field.map(text_of)))
            }
            _ => None,
        }
    }

    #[test]
    fn patterns_are_cut_where_redis_cuts_them() {
        assert_eq!(parts("w_*"), Some(("w_", "", None)));
        assert_eq!(parts("a*b*c"), Some(("a", "b*c", None)));
        assert_eq!(parts("h:*->f"), Some(("h:", "", Some("f"))));
        assert_eq!(parts("h:*:x->f->g"), Some(("h:", ":x", Some("f->g"))));
        assert_eq!(parts("h:*->"), Some(("h:", "->", None)));
        assert_eq!(parts("a->b*"), Some(("a->b", "", None)));
        assert_eq!(parts("nosort"), None);
        assert_eq!(parts("#"), None);
        assert_eq!(parts("#*"), Some(("#", "", None)));
    }
}
