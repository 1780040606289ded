//! The checksum of everything that this crate writes: CRC-32C (iSCSI, Castagnoli).
//!
//! Most records are a few dozen bytes. The processor's own instruction takes eight of them at a
//! time, which is less work than choosing an algorithm for longer inputs.
//!
//! # Soundness
//! The one `unsafe` call is to a safe function that needs an instruction, after a check that the
//! processor has it.

/// Up to this length, single instructions are as fast as several in parallel.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const SHORT_BYTES_MAX: usize = 128;

/// CRC-32C of `bytes`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if bytes.len() <= SHORT_BYTES_MAX && std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has it.
        return unsafe { crc32c_of_few(bytes) };
    }
    crc_fast::crc32_iscsi(bytes)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "sse4.2")]
fn crc32c_of_few(bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};
    let (words, rest) = bytes.as_chunks();
    let crc = words
        .iter()
        .fold(u64::from(u32::MAX), |crc, &word| _mm_crc32_u64(crc, u64::from_le_bytes(word)));
    let (halves, rest) = rest.as_chunks();
    // The upper half of the instruction's result is zero.
    let crc =
        halves.iter().fold(crc as u32, |crc, &half| _mm_crc32_u32(crc, u32::from_le_bytes(half)));
    !rest.iter().fold(crc, |crc, &byte| _mm_crc32_u8(crc, byte))
}

/// The checksum of two concatenated inputs, from the checksums of both; `length` is that of the
/// second.
pub fn crc32c_of_both(first: u32, second: u32, length: usize) -> u32 {
    let (first, second) = (u64::from(first), u64::from(second));
    let algorithm = crc_fast::CrcAlgorithm::Crc32Iscsi;
    crc_fast::checksum_combine(algorithm, first, second, length as u64) as u32
}

#[cfg(test)]
mod tests {
    #[test]
    fn check_value_of_the_standard() {
        // RFC 3720, appendix B.4: 32 bytes of zeros.
        assert_eq!(super::crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(super::crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn short_runs_have_the_checksum_of_long_ones() {
        let bytes: Vec<u8> = (0..300u32).map(|n| (n * 37 % 251) as u8).collect();
        for length in 0..bytes.len() {
            let run = &bytes[length % 7..length.max(length % 7)];
            assert_eq!(super::crc32c(run), crc_fast::crc32_iscsi(run), "{} bytes", run.len());
        }
    }

    #[test]
    fn checksums_of_parts_make_that_of_the_whole() {
        const LENGTH: usize = if cfg!(miri) { 2_400 } else { 100_000 };
        let bytes: Vec<u8> = (0..LENGTH as u32).map(|n| (n % 251) as u8).collect();
        for cut in [0, 1, 20, LENGTH / 24, LENGTH - 1, LENGTH] {
            let (first, second) = bytes.split_at(cut);
            let (a, b) = (super::crc32c(first), super::crc32c(second));
            assert_eq!(super::crc32c_of_both(a, b, second.len()), super::crc32c(&bytes));
        }
    }
}
