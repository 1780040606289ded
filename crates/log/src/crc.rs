//! The checksum of everything this crate writes: CRC-32C (iSCSI, Castagnoli).

/// CRC-32C of `bytes`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn check_value_of_the_standard() {
        // RFC 3720, appendix B.4: 32 bytes of zeros.
        assert_eq!(super::crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(super::crc32c(b"123456789"), 0xe306_9283);
    }
}
