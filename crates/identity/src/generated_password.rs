//! `ACL GENPASS`: passwords out of random bits.

use thiserror::Error;

/// Bits of a password whose length was not asked for.
pub const BITS_DEFAULT: i64 = 256;
/// Most bits that a caller may ask for.
pub const BITS_MAX: i64 = 4096;

/// A number of bits that no password has.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "ERR ACL GENPASS argument must be the number of bits for the output password, a positive \
     number up to 4096"
)]
pub struct BitsError;

/// A password of `bits` bits as hexadecimal digits, the last of which may carry fewer than four.
///
/// `fill` provides the randomness. It must be fit for secrets: the operating system's, not the
/// simulator's, in a server.
///
/// # Errors
/// A number of bits that is not positive or above [`BITS_MAX`].
pub fn generate_password(bits: i64, fill: impl FnOnce(&mut [u8])) -> Result<String, BitsError> {
    if !(1..=BITS_MAX).contains(&bits) {
        return Err(BitsError);
    }
    let digits = (bits as usize).div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    fill(&mut bytes);
    let mut password: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    password.truncate(digits);
    Ok(password)
}
