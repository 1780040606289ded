//! The checksum of everything this crate writes: CRC-32C (iSCSI, Castagnoli).

/// CRC-32C of `bytes`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// That of some bytes and `length` more behind them, from the checksums of both.
pub(crate) fn crc32c_of_both(first: u32, second: u32, length: usize) -> u32 {
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
