//! Who asks: the header `Authorization`, or `_token` in the query as Upstash has it.

use super::head::Head;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What a request says of its user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Credentials {
    /// Nothing.
    #[default]
    None,
    /// A header or a token, as it came.
    Given(Box<[u8]>),
}

/// The name and the password in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// `None`: the default user.
    pub user: Option<Vec<u8>>,
    /// The password.
    pub password: Vec<u8>,
}

impl Credentials {
    /// Those of a request.
    pub fn of(head: &Head) -> Credentials {
        if let Some(header) = &head.headers.authorization {
            return Credentials::Given(header.clone());
        }
        match head.target.value("_token") {
            Some(token) => Credentials::Given([b"Bearer ", token].concat().into()),
            None => Credentials::None,
        }
    }

    /// What to log in with; `None` if that cannot be read.
    ///
    /// `Basic` has a name and a password (RFC 7617); `Bearer PASSWORD` is the default user's,
    /// `Bearer NAME:PASSWORD` another one's.
    pub fn login(&self) -> Option<Login> {
        let Credentials::Given(header) = self else { return None };
        let blank = header.iter().position(|&byte| byte == b' ')?;
        let (scheme, rest) = (&header[..blank], header[blank..].trim_ascii());
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return Some(
                Login::of_pair(rest)
                    .unwrap_or_else(|| Login { user: None, password: rest.to_vec() }),
            );
        }
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return None;
        }
        Login::of_pair(&STANDARD.decode(rest).ok()?)
    }
}

impl Login {
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
        let found = Credentials::Given(header.as_bytes().into()).login();
        let expected = expected.map(|(user, password)| Login {
            user: user.map(|user| user.as_bytes().to_vec()),
            password: password.as_bytes().to_vec(),
        });
        assert_eq!(found, expected, "{header}");
    }

    #[test]
    fn tokens_and_pairs_log_in() {
        check("Bearer s3cret", Some((None, "s3cret")));
        check("bearer  alice:pass:word ", Some((Some("alice"), "pass:word")));
        check("Bearer :s3:cret", Some((None, "s3:cret")));
        check(&format!("Basic {}", STANDARD.encode("alice:p:w")), Some((Some("alice"), "p:w")));
        for wrong in ["", "Bearer", "Basic", "Basic !", "Digest x", "s3cret"] {
            check(wrong, None);
        }
    }
}
