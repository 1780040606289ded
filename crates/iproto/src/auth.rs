//! Authentication: `chap-sha1` and `pap-sha256`.
//!
//! ```text
//! chap-sha1   stored: base64(sha1(sha1(password)))
//!             sent:   sha1(password) xor sha1(salt[..20] + sha1(sha1(password)))
//! pap-sha256  stored: [base64(own salt), base64(sha256(own salt + password))]
//!             sent:   the password
//! ```
//!
//! Secrets are compared in a time that does not depend on where they differ.

use crate::base64;
use crate::greeting::SALT_BYTES;
use crate::{RequestError, request};
use ladon_msgpack::{Value, read, read_array, read_str, write};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use thiserror::Error;

/// `chap-sha1`'s name.
pub const CHAP_SHA1: &str = "chap-sha1";

/// `pap-sha256`'s name.
pub const PAP_SHA256: &str = "pap-sha256";

/// Bytes of a scramble, and of the salts that are used.
pub const SCRAMBLE_BYTES: usize = 20;

/// The error for an AUTH without credentials, of a user other than `guest`.
pub const NO_CREDENTIALS: RequestError =
    RequestError::InvalidMsgpack("authentication request body");

type Scramble = [u8; SCRAMBLE_BYTES];

/// What a client proves its identity with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credentials<'a> {
    /// A scramble.
    ChapSha1(Scramble),
    /// The password.
    PapSha256(&'a [u8]),
}

impl<'a> Credentials<'a> {
    /// Decodes the tuple of an AUTH. `None`: it is empty, which is enough for `guest`, and
    /// [`NO_CREDENTIALS`] for others.
    ///
    /// # Errors
    /// Tarantool's for an incomplete tuple, an unknown method, and data that the method cannot use.
    pub fn decode(mut tuple: &'a [u8]) -> Result<Option<Credentials<'a>>, RequestError> {
        let incomplete = |_| NO_CREDENTIALS;
        match read_array(&mut tuple).map_err(incomplete)? {
            0 => return Ok(None),
            1 => return Err(NO_CREDENTIALS),
            _ => {}
        }
        let method = read_str(&mut tuple).map_err(incomplete)?;
        let data = read(&mut tuple).map_err(incomplete)?;
        let invalid = |method, reason| RequestError::InvalidAuthRequest { method, reason };
        if method == CHAP_SHA1.as_bytes() {
            // Some connectors send the scramble, which is no text, as bytes.
            let (Value::Str(scramble) | Value::Bin(scramble)) = data else {
                return Err(invalid(CHAP_SHA1, "scramble must be string"));
            };
            let scramble =
                scramble.try_into().map_err(|_| invalid(CHAP_SHA1, "invalid scramble size"))?;
            Ok(Some(Credentials::ChapSha1(scramble)))
        } else if method == PAP_SHA256.as_bytes() {
            match data {
                Value::Str(password) => Ok(Some(Credentials::PapSha256(password))),
                _ => Err(invalid(PAP_SHA256, "expected password string")),
            }
        } else {
            let name = String::from_utf8_lossy(method).into_owned();
            Err(RequestError::UnknownAuthMethod(name))
        }
    }

    /// Appends the tuple of an AUTH.
    pub fn write(&self, out: &mut Vec<u8>) {
        write::array(out, 2);
        match self {
            Credentials::ChapSha1(scramble) => {
                write::str(out, CHAP_SHA1.as_bytes());
                write::str(out, scramble);
            }
            Credentials::PapSha256(password) => {
                write::str(out, PAP_SHA256.as_bytes());
                write::str(out, password);
            }
        }
    }
}

/// A password that a tuple of `_user` cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("Invalid '{method}' data: {reason}")]
pub struct StoredPasswordError {
    /// The authentication method.
    pub method: &'static str,
    /// What is wrong.
    pub reason: &'static str,
}

impl StoredPasswordError {
    /// ER_INVALID_AUTH_DATA.
    pub const CODE: u32 = 250;
}

/// What the server keeps of a password: one value of the map `auth` of a tuple of `_user`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum StoredPassword {
    /// `sha1(sha1(password))`.
    ChapSha1(Scramble),
    /// `sha256(salt + password)`.
    PapSha256 {
        /// The password's own salt.
        salt: Scramble,
        /// The hash.
        hash: [u8; 32],
    },
}

impl StoredPassword {
    /// Hashes a password for `chap-sha1`.
    pub fn chap_sha1(password: &[u8]) -> StoredPassword {
        StoredPassword::ChapSha1(Sha1::digest(Sha1::digest(password)).into())
    }

    /// Hashes a password for `pap-sha256`, with a salt that is random.
    pub fn pap_sha256(password: &[u8], salt: Scramble) -> StoredPassword {
        StoredPassword::PapSha256 { salt, hash: sha256(&salt, password) }
    }

    /// Reads one pair of the map `auth`: a method and its MessagePack value. `None`: the method is
    /// not known.
    ///
    /// # Errors
    /// A value that the method cannot use.
    pub fn read(
        method: &[u8],
        value: &[u8],
    ) -> Option<Result<StoredPassword, StoredPasswordError>> {
        if method == CHAP_SHA1.as_bytes() {
            Some(read_chap_sha1(value))
        } else if method == PAP_SHA256.as_bytes() {
            Some(read_pap_sha256(value))
        } else {
            None
        }
    }

    /// The method's name.
    pub const fn method(&self) -> &'static str {
        match self {
            StoredPassword::ChapSha1(_) => CHAP_SHA1,
            StoredPassword::PapSha256 { .. } => PAP_SHA256,
        }
    }

    /// Appends the map `auth` with this password.
    pub fn write_map(&self, out: &mut Vec<u8>) {
        let text = |bytes: &[u8]| {
            let mut text = Vec::new();
            base64::encode(&mut text, bytes);
            text
        };
        write::map(out, 1);
        write::str(out, self.method().as_bytes());
        match self {
            StoredPassword::ChapSha1(hash) => write::str(out, &text(hash)),
            StoredPassword::PapSha256 { salt, hash } => {
                write::array(out, 2);
                write::str(out, &text(salt));
                write::str(out, &text(hash));
            }
        }
    }

    /// Whether these credentials prove that the client knows the password. `salt` is the
    /// connection's, from the greeting.
    pub fn accepts(&self, credentials: &Credentials<'_>, salt: &[u8; SALT_BYTES]) -> bool {
        match (self, credentials) {
            (StoredPassword::ChapSha1(hash), Credentials::ChapSha1(scramble)) => {
                let once = xor(scramble, &salted(salt, hash));
                equal(&Sha1::digest(once), hash)
            }
            (StoredPassword::PapSha256 { salt, hash }, Credentials::PapSha256(password)) => {
                equal(&sha256(salt, password), hash)
            }
            _ => false,
        }
    }
}

/// The scramble by which a client proves that it knows a password.
pub fn scramble(password: &[u8], salt: &[u8; SALT_BYTES]) -> Scramble {
    let once: Scramble = Sha1::digest(password).into();
    xor(&once, &salted(salt, &Sha1::digest(once).into()))
}

fn read_chap_sha1(mut value: &[u8]) -> Result<StoredPassword, StoredPasswordError> {
    let error = |reason| StoredPasswordError { method: CHAP_SHA1, reason };
    let text = read_str(&mut value).map_err(|_| error("scramble must be string"))?;
    let hash = base64::decode(text).ok_or(error("invalid scramble size"))?;
    Ok(StoredPassword::ChapSha1(hash))
}

fn read_pap_sha256(mut value: &[u8]) -> Result<StoredPassword, StoredPasswordError> {
    let error = |reason| StoredPasswordError { method: PAP_SHA256, reason };
    if !request::is_array(value) || read_array(&mut value) != Ok(2) {
        return Err(error("expected array with password salt and hash"));
    }
    let text = read_str(&mut value).map_err(|_| error("password salt must be string"))?;
    let salt = base64::decode(text).ok_or(error("invalid password salt size"))?;
    let text = read_str(&mut value).map_err(|_| error("password hash must be string"))?;
    let hash = base64::decode(text).ok_or(error("invalid password hash size"))?;
    Ok(StoredPassword::PapSha256 { salt, hash })
}

fn salted(salt: &[u8; SALT_BYTES], hash: &Scramble) -> Scramble {
    Sha1::new_with_prefix(&salt[..SCRAMBLE_BYTES]).chain_update(hash).finalize().into()
}

fn sha256(salt: &Scramble, password: &[u8]) -> [u8; 32] {
    Sha256::new_with_prefix(salt).chain_update(password).finalize().into()
}

fn xor(left: &Scramble, right: &Scramble) -> Scramble {
    std::array::from_fn(|index| left[index] ^ right[index])
}

/// Compares without ending early: the time tells nothing of how much was right.
fn equal(left: &[u8], right: &[u8]) -> bool {
    let differences = left.iter().zip(right).fold(0, |all, (left, right)| all | (left ^ right));
    left.len() == right.len() && std::hint::black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: [u8; SALT_BYTES] = [0x5a; SALT_BYTES];

    /// What `_user` of a fresh Tarantool has for `guest`, whose password is empty.
    #[test]
    fn the_hash_of_the_empty_password() {
        let mut map = Vec::new();
        StoredPassword::chap_sha1(b"").write_map(&mut map);
        assert_eq!(map[..11], *b"\x81\xa9chap-sha1");
        assert_eq!(map[11..], *b"\xbcvhvewKp0tNyweZQ+cFKAlsyphfg=");
    }

    fn check(stored: &StoredPassword, right: Credentials<'_>, wrong: &[Credentials<'_>]) {
        let mut map = Vec::new();
        stored.write_map(&mut map);
        let mut rest = &map[1..];
        let method = read_str(&mut rest).unwrap();
        assert!(StoredPassword::read(method, rest) == Some(Ok(*stored)));
        assert!(stored.accepts(&right, &SALT));
        for wrong in wrong {
            assert!(!stored.accepts(wrong, &SALT), "{wrong:?}");
        }
        let mut tuple = Vec::new();
        right.write(&mut tuple);
        assert_eq!(Credentials::decode(&tuple), Ok(Some(right)));
    }

    #[test]
    fn the_right_password_only() {
        let mut other_salt = SALT;
        other_salt[19] ^= 1;
        check(
            &StoredPassword::chap_sha1(b"secret"),
            Credentials::ChapSha1(scramble(b"secret", &SALT)),
            &[
                Credentials::ChapSha1(scramble(b"Secret", &SALT)),
                Credentials::ChapSha1(scramble(b"secret", &other_salt)),
                Credentials::PapSha256(b"secret"),
            ],
        );
        check(
            &StoredPassword::pap_sha256(b"secret", [9; SCRAMBLE_BYTES]),
            Credentials::PapSha256(b"secret"),
            &[
                Credentials::PapSha256(b"secret "),
                Credentials::PapSha256(b""),
                Credentials::ChapSha1(scramble(b"secret", &SALT)),
            ],
        );
        // Of the greeting's salt, 20 bytes count.
        let mut tail = SALT;
        tail[20] ^= 1;
        assert_eq!(scramble(b"secret", &SALT), scramble(b"secret", &tail));
    }

    #[test]
    fn tuples_that_are_no_credentials() {
        let check = |tuple: &[u8], expected: &str| {
            assert_eq!(Credentials::decode(tuple).unwrap_err().to_string(), expected);
        };
        assert_eq!(Credentials::decode(&[0x90]), Ok(None));
        let incomplete = "Invalid MsgPack - authentication request body";
        check(b"\x91\xa9chap-sha1", incomplete);
        check(b"\x92\x01\x01", incomplete);
        check(b"\x92\xa3md5\xa0", "Unknown authentication method 'md5'");
        check(b"\x92\xa9chap-sha1\x01", "Invalid 'chap-sha1' request: scramble must be string");
        check(b"\x92\xa9chap-sha1\xa1x", "Invalid 'chap-sha1' request: invalid scramble size");
        let password = "Invalid 'pap-sha256' request: expected password string";
        check(b"\x92\xaapap-sha256\xc4\x01x", password);
    }

    #[test]
    fn values_that_are_no_stored_password() {
        let check = |method: &str, value: &[u8], expected: &str| {
            let Some(Err(error)) = StoredPassword::read(method.as_bytes(), value) else {
                panic!("{method} takes {value:x?}");
            };
            assert_eq!(error.to_string(), format!("Invalid '{method}' data: {expected}"));
        };
        assert!(StoredPassword::read(b"md5", b"\xa0").is_none());
        check(CHAP_SHA1, b"\x01", "scramble must be string");
        check(CHAP_SHA1, b"\xa4Zm9v", "invalid scramble size");
        check(PAP_SHA256, b"\x91\xa0", "expected array with password salt and hash");
        check(PAP_SHA256, b"\x92\x01\xa0", "password salt must be string");
        check(PAP_SHA256, b"\x92\xa0\xa0", "invalid password salt size");
        let salted = |end: &[u8]| [b"\x92\xbcWlpaWlpaWlpaWlpaWlpaWlpaWlo=", end].concat();
        check(PAP_SHA256, &salted(b"\x01"), "password hash must be string");
        check(PAP_SHA256, &salted(b"\xa0"), "invalid password hash size");
    }
}
