//! Who asks: the header `Authorization`, or `_token` in the query as Upstash has it.

use super::head::Head;
use ladon_identity::Login;

/// What a request says of its user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Credentials {
    /// Nothing.
    #[default]
    None,
    /// A header or a token, as it came.
    Given(Box<[u8]>),
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
    pub fn login(&self) -> Option<Login> {
        let Credentials::Given(header) = self else { return None };
        Login::of_header(header)
    }
}
