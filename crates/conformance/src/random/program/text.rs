//! Words of Lua.

use crate::random::rng::Rng;

pub(super) fn one_of<'a>(rng: &mut Rng, all: &[&'a str]) -> &'a str {
    rng.pick::<&str>(all)
}

/// A literal for these bytes.
pub(super) fn literal(bytes: &[u8]) -> String {
    let mut out = String::from("'");
    for &byte in bytes {
        match byte {
            b'\'' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:03}")),
        }
    }
    out.push('\'');
    out
}
