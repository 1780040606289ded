//! The name and the password that an HTTP request gives (RFC 7617, RFC 6750).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Who a request says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// `None`: the default user.
    pub user: Option<Vec<u8>>,
    /// The password.
    pub password: Vec<u8>,
}

impl Login {
    /// Reads the value of a header `Authorization`; `None` if there is no name and password in it.
    ///
    /// `Basic` has both (RFC 7617); `Bearer PASSWORD` is the default user's, `Bearer NAME:PASSWORD`
    /// another one's, `Bearer :PASSWORD` the default user's with any colons in it.
    #[must_use]
    pub fn of_header(value: &[u8]) -> Option<Login> {
        let blank = value.iter().position(|&byte| byte == b' ')?;
        let (scheme, rest) = (&value[..blank], value[blank..].trim_ascii());
        if scheme.eq_ignore_ascii_case(b"bearer") {
            let whole = || Login { user: None, password: rest.to_vec() };
            return Some(Login::of_pair(rest).unwrap_or_else(whole));
        }
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return None;
        }
        Login::of_pair(&STANDARD.decode(rest).ok()?)
    }

    fn of_pair(text: &[u8]) -> Option<Login> {
        let colon = text.iter().position(|&byte| byte == b':')?;
        let (name, password) = (&text[..colon], &text[colon + 1..]);
        let user = (!name.is_empty()).then(|| name.to_vec());
        Some(Login { user, password: password.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &str, expected: Option<(Option<&str>, &str)>) {
        let expected = expected.map(|(user, password)| Login {
            user: user.map(|user| user.as_bytes().to_vec()),
            password: password.as_bytes().to_vec(),
        });
        assert_eq!(Login::of_header(header.as_bytes()), expected, "{header}");
    }

    #[test]
    fn tokens_and_pairs_log_in() {
        check("Bearer s3cret", Some((None, "s3cret")));
        check("bearer  alice:pass:word ", Some((Some("alice"), "pass:word")));
        check("Bearer :s3:cret", Some((None, "s3:cret")));
        check(&format!("Basic {}", STANDARD.encode("alice:p:w")), Some((Some("alice"), "p:w")));
        check(&format!("Basic {}", STANDARD.encode(":p")), Some((None, "p")));
        for wrong in ["", "Bearer", "Basic", "Basic !", "Basic YWxpY2U=", "Digest x", "s3cret"] {
            check(wrong, None);
        }
    }
}
