//! Passwords, kept as their SHA-256.
//!
//! A slow hash would not help: these are secrets that programs share, as long as wanted, and a
//! request for authentication must stay cheap (the same page as for rules, "How passwords are
//! stored internally").

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Bytes of a password. To check one is a matter of microseconds per kilobyte, and anybody may ask
/// for it.
pub const PASSWORD_BYTES_MAX: usize = 64 << 10;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The SHA-256 of a password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PasswordHash([u8; 32]);

impl PasswordHash {
    /// The hash of `password`.
    pub fn of(password: &[u8]) -> PasswordHash {
        PasswordHash(Sha256::digest(password).into())
    }

    /// The hash that is written as 64 lower case hexadecimal digits.
    pub fn parse(text: &[u8]) -> Option<PasswordHash> {
        let digit = |byte: &u8| HEX.iter().position(|digit| digit == byte);
        let text: &[u8; 64] = text.try_into().ok()?;
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
            *byte = (digit(&pair[0])? << 4 | digit(&pair[1])?) as u8;
        }
        Some(PasswordHash(hash))
    }

    /// As 64 lower case hexadecimal digits.
    pub fn to_hex(self) -> String {
        let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits.map(|digit| char::from(HEX[usize::from(digit)])).collect()
    }

    /// Whether the two are the same, in a time that does not tell where they differ.
    pub fn is_same(&self, other: &PasswordHash) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}
