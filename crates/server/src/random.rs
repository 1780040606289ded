//! Randomness from the system.

use ladon_platform::{Clock, SystemClock};
use std::io::Read as _;

/// Randomness for values that need not be secret.
pub fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    match read {
        Ok(()) => u64::from_ne_bytes(bytes),
        Err(_) => SystemClock.unix_us() ^ u64::from(std::process::id()) << 40,
    }
}

pub(crate) fn random_hex() -> String {
    (0..3).map(|_| format!("{:016x}", random_u64())).collect::<String>()[..40].to_owned()
}
